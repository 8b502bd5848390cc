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
	// relayBatch is less than MaxBehind, and each batch is committed, so a burst of events drops no listener that
	// reads.
	relayBatch = 128
	relayEvery = time.Second
	// orphanAge is the age from which an event is relayed by a node that did not write it, since its writer must be
	// dead.
	orphanAge = 10 * time.Second
)

// Wake signals that the store has new events to relay. It never blocks. Without NATS it does nothing, since the store
// hands its events to the bus itself: see [Bus.Committed].
func (b *Bus) Wake() {
	if b.nats != nil {
		b.signal()
	}
}

// signal makes Relay look at the outbox.
func (b *Bus) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Relay publishes the events in the store's outbox until ctx ends, and then returns nil; if the bus is closed first, it
// returns an error. It runs once per node.
//
// It starts with all existing events, relays new ones when [Bus.Wake] is called, and checks once a second for events
// left behind by nodes that died, or by other processes if there is no NATS. Events are sent in order. An event is
// marked once NATS has it, so after a crash some are sent twice. If the store or NATS is unavailable, Relay retries
// with growing pauses.
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
			age = b.orphanAfter
		}
	}
}

// relay relays all events of at least the given age.
func (b *Bus) relay(ctx context.Context, s *store.Store, age time.Duration) error {
	for {
		if b.nats != nil && !b.nats.conn.IsConnected() {
			return errors.New("not connected to NATS")
		}
		events, err := s.Outbox(ctx, relayBatch, age)
		if err != nil || len(events) == 0 {
			return err
		}
		ids := make([]int64, len(events))
		for i := range events {
			ids[i] = events[i].ID
		}
		if err := b.Publish(events); err != nil {
			return err
		}
		if b.nats != nil {
			if err := b.nats.flush(ctx); err != nil {
				return err
			}
		}
		if err := s.Relayed(ctx, ids); err != nil || len(events) < relayBatch {
			return err
		}
	}
}
