package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ibidhq/ibid/store"
)

const (
	// fewer than MaxBehind, and a commit lies between two: a burst of events drops no listener that reads
	relayBatch = 128
	relayEvery = time.Second
	// orphanAge is how old an event is before a node relays it that did not write it: the one that did must be dead.
	orphanAge = 10 * time.Second

	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// Wake says that the store has new events to relay. It never blocks.
func (b *Bus) Wake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Relay publishes the events in the store's outbox until ctx ends, then it returns nil; when the bus is closed first,
// that is the error. It runs once per node.
//
// It begins with all there are, takes new ones as soon as [Bus.Wake] says so, and looks once a second for those that a
// node left behind that died. They go out in order. An event is marked when NATS has it, so after a crash some come
// twice. A store or a NATS server that is away is tried again, with growing pauses.
func (b *Bus) Relay(ctx context.Context, s *store.Store) error {
	tick := time.NewTicker(relayEvery)
	defer tick.Stop()
	pause := time.Duration(0)
	age := time.Duration(0)
	for {
		err := b.relay(ctx, s, age)
		var wait <-chan time.Time
		switch {
		case err == nil && pause > 0:
			b.log.InfoContext(ctx, "relaying events again")
			pause = 0
		case err != nil && ctx.Err() == nil:
			if pause == 0 {
				b.log.WarnContext(ctx, "cannot relay events, trying again", slog.Any("error", err))
			}
			pause = min(max(2*pause, firstPause), longPause)
			wait = time.After(pause)
		}
		if age, err = b.rest(ctx, wait, tick.C); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// rest waits until there is something to relay again, and returns how old it must be. While something is wrong it waits
// for the end of the pause alone.
func (b *Bus) rest(ctx context.Context, pause, tick <-chan time.Time) (age time.Duration, err error) {
	wake := b.wake
	if pause != nil {
		wake, tick = nil, nil
	}
	select {
	case <-ctx.Done():
		return 0, nil
	case <-b.done:
		return 0, fmt.Errorf("relaying events: %w", errClosed)
	case <-wake:
		return 0, nil
	case <-pause:
		return 0, nil
	case <-tick:
		return b.orphan, nil
	}
}

// relay relays all events of at least that age.
func (b *Bus) relay(ctx context.Context, s *store.Store, age time.Duration) error {
	for {
		if !b.conn.IsConnected() {
			return errors.New("relaying events: not connected to NATS")
		}
		events, err := s.Outbox(ctx, relayBatch, age)
		if err != nil {
			return fmt.Errorf("relaying events: %w", err)
		}
		if len(events) == 0 {
			return nil
		}
		ids := make([]int64, len(events))
		for i := range events {
			ids[i] = events[i].ID
			if err := b.publishEvent(&events[i]); err != nil {
				return fmt.Errorf("relaying events: %w", err)
			}
		}
		if err := b.flush(ctx); err != nil {
			return fmt.Errorf("relaying events: %w", err)
		}
		if err := s.Relayed(ctx, ids); err != nil {
			return fmt.Errorf("relaying events: %w", err)
		}
		if len(events) < relayBatch {
			return nil
		}
	}
}

func (b *Bus) publishEvent(e *store.Event) error {
	data := encodeEvent(e, b.limit())
	if data == nil {
		return nil // its listeners wake up in time
	}
	return b.conn.Publish(runKey{e.Tenant, e.Run}.subject()+eventSuffix, data)
}
