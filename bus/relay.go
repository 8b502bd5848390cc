package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ibidhq/ibid/store"
)

const (
	// fewer than MaxBehind, and a commit lies between two: a burst of events drops no listener that reads
	relayBatch = 128
	relayEvery = time.Second
	// orphanAge is how old an event is before a node relays it that did not write it: the one that did must be dead.
	orphanAge = 10 * time.Second
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
	pause := &backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond,
		Multiplier:      2,
		MaxInterval:     5 * time.Second,
	}
	failing := false
	for age := time.Duration(0); ; {
		wake, orphans, retry := b.wake, tick.C, (<-chan time.Time)(nil)
		switch err := b.relay(ctx, s, age); {
		case err != nil:
			if !failing && ctx.Err() == nil {
				b.log.WarnContext(ctx, "cannot relay events, trying again", slog.Any("error", err))
				pause.Reset()
			}
			failing = true
			wake, orphans, retry = nil, nil, time.After(pause.NextBackOff())
		case failing:
			b.log.InfoContext(ctx, "relaying events again")
			failing = false
		}
		age = 0
		select {
		case <-ctx.Done():
			return nil
		case <-b.done:
			return fmt.Errorf("relaying events: %w", errClosed)
		case <-wake:
		case <-retry:
		case <-orphans:
			age = b.orphan
		}
	}
}

// relay relays all events of at least that age.
func (b *Bus) relay(ctx context.Context, s *store.Store, age time.Duration) error {
	for {
		if !b.conn.IsConnected() {
			return errors.New("not connected to NATS")
		}
		events, err := s.Outbox(ctx, relayBatch, age)
		if err != nil || len(events) == 0 {
			return err
		}
		ids := make([]int64, len(events))
		for i := range events {
			ids[i] = events[i].ID
			if err := b.publishEvent(&events[i]); err != nil {
				return err
			}
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
		if err := s.Relayed(ctx, ids); err != nil || len(events) < relayBatch {
			return err
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
