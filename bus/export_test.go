package bus

import (
	"context"
	"time"

	"github.com/ibidhq/ibid/store"
)

// OrphanAge is how old an event of another process is before it is relayed.
const OrphanAge = orphanAge

// RelayOld relays the events of at least that age, once.
func (b *Bus) RelayOld(ctx context.Context, s *store.Store, age time.Duration) error {
	return b.relay(ctx, s, age)
}

// SetOrphanAge changes it for this bus.
func (b *Bus) SetOrphanAge(age time.Duration) { b.orphanAfter = age }

// WakeAll wakes all listeners, as happens every 15 seconds.
func (b *Bus) WakeAll() { b.wakeAll() }

// Registered returns how many runs have listeners or senders.
func (b *Bus) Registered() int { return len(b.listeners) + len(b.replays) }

// Subject returns what is common to a run's subjects.
func Subject(tenant, run string) string { return runKey{tenant, run}.subject() }
