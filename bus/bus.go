package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ibidhq/ibid/store"
)

var errClosed = errors.New("the bus is closed")

// Bus connects the listeners and writers of runs. It is safe for concurrent use.
type Bus struct {
	log  *slog.Logger
	nats *natsLink // nil: nothing leaves this process

	wake        chan struct{} // capacity 1: Relay has work to do
	orphanAfter time.Duration // orphanAge; shorter in tests

	mu        sync.RWMutex // guards the following fields
	listeners map[runKey]map[*Listener]struct{}
	replays   map[runKey]map[*func()]struct{} // callbacks registered with OnReplay
	closed    bool

	done chan struct{} // closed by Close
	wg   sync.WaitGroup
}

// Open opens a bus. If address is empty, it stays in this process: nothing is encoded, and publishing to a run that has
// no listener costs nothing. Otherwise it connects to the NATS servers at the addresses, separated by commas:
// nats://host:4222, or tls:// to require TLS, with user:password@ or token@ if the server needs credentials. A nil
// logger disables logging. Close the bus after use.
//
// An unreachable server is no error: the bus keeps trying as long as it is open, and [Bus.Healthy] reports it. Errors
// never contain an address.
func Open(ctx context.Context, address string, logger *slog.Logger) (*Bus, error) {
	b := &Bus{
		log:         cmp.Or(logger, slog.New(slog.DiscardHandler)),
		wake:        make(chan struct{}, 1),
		listeners:   map[runKey]map[*Listener]struct{}{},
		replays:     map[runKey]map[*func()]struct{}{},
		done:        make(chan struct{}),
		orphanAfter: orphanAge,
	}
	err := ctx.Err()
	if err == nil && address != "" {
		b.nats, err = connect(b, address)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bus: %w", err)
	}
	b.wg.Go(b.wakePeriodically)
	if b.nats != nil {
		b.wg.Go(b.nats.sendLive)
	}
	return b, nil
}

func (b *Bus) wakePeriodically() {
	wake := time.NewTicker(wakeEvery)
	defer wake.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-wake.C:
			b.wakeAll()
		}
	}
}

// Committed returns what the store is to call with the events that a transaction has committed, for
// [store.Options.Committed]. It is nil with NATS: events then wait in the store's outbox for [Bus.Relay].
func (b *Bus) Committed() func([]store.Event) {
	if b.nats != nil {
		return nil
	}
	return b.deliverCommitted
}

// maxBurst is how many events of one run are delivered at once. It is less than MaxBehind, so that a burst drops no
// listener that reads; of the events beyond it, a wake-up tells that the store has them.
const maxBurst = 128

func (b *Bus) deliverCommitted(events []store.Event) {
	var counts map[runKey]int // only kept if there could be a burst
	if len(events) > maxBurst {
		counts = map[runKey]int{}
	}
	for i := range events {
		e := &events[i]
		k := runKey{e.Tenant, e.Run}
		if counts != nil {
			if counts[k]++; counts[k] > maxBurst {
				continue
			}
		}
		b.deliver(k, Message{Event: e})
	}
	for k, n := range counts {
		if n > maxBurst {
			b.deliver(k, Message{Wake: true})
		}
	}
}

// Publish sends events to the listeners of their runs. The events must not change afterwards.
func (b *Bus) Publish(events []store.Event) error {
	for i := range events {
		e := &events[i]
		k := runKey{e.Tenant, e.Run}
		if b.nats == nil {
			b.deliver(k, Message{Event: e})
		} else if err := b.nats.publishEvent(k, e); err != nil {
			return fmt.Errorf("publishing an event: %w", err)
		}
	}
	return nil
}

// Tell sends a live delta to the run's listeners. It never blocks and guarantees nothing; combine text so that an
// answer sends at most ten deltas a second. Over NATS, a delta of more than 64 KiB of JSON, or one sent while NATS is
// slow or unreachable, is lost; listeners notice by Live.At. m.Data must not change afterwards.
func (b *Bus) Tell(tenant, run string, m Live) {
	k := runKey{tenant, run}
	switch {
	case b.nats != nil:
		b.nats.tell(k, m)
	case b.Listening(tenant, run):
		delta := m // m itself would be allocated even if nobody listens
		b.deliver(k, Message{Live: &delta})
	}
}

// Listening reports whether anybody could receive what [Bus.Tell] sends to the run. Over NATS it is always true, as
// listeners at other nodes are not known. Whoever listens later asks for a replay: see [Bus.OnReplay].
func (b *Bus) Listening(tenant, run string) bool {
	if b.nats != nil {
		return true
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.listeners[runKey{tenant, run}]) > 0
}

// deliver hands a message to the run's listeners in this process.
func (b *Bus) deliver(k runKey, m Message) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for l := range b.listeners[k] {
		l.deliver(m)
	}
}

// OnReplay registers replay to be called whenever a listener, on any node, has started listening to the run, until stop
// is called. It should send again, by [Bus.Tell], what is known of an answer that is still arriving, and must return at
// once. A request may be lost or arrive twice.
func (b *Bus) OnReplay(tenant, run string, replay func()) (stop func()) {
	k := runKey{tenant, run}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.replays[k] == nil {
		b.replays[k] = map[*func()]struct{}{}
	}
	b.replays[k][&replay] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.replays[k], &replay)
		if len(b.replays[k]) == 0 {
			delete(b.replays, k)
		}
	}
}

// requestReplay asks all nodes to replay the run's unfinished answers.
func (b *Bus) requestReplay(k runKey) {
	if b.nats != nil {
		b.nats.requestReplay(k)
		return
	}
	b.replay(k)
}

// replay passes a request on to the senders of the run's answers on this node.
func (b *Bus) replay(k runKey) {
	b.mu.RLock()
	var replays []func()
	for replay := range b.replays[k] {
		replays = append(replays, *replay)
	}
	b.mu.RUnlock()
	for _, replay := range replays {
		replay()
	}
}

// Healthy returns the reason why the bus cannot reach other nodes at present, or nil if it can or there are none.
// Meanwhile nothing is lost, only delayed.
func (b *Bus) Healthy() error {
	b.mu.RLock()
	closed := b.closed
	b.mu.RUnlock()
	switch {
	case closed:
		return fmt.Errorf("checking the bus: %w", errClosed)
	case b.nats == nil:
		return nil
	default:
		return b.nats.healthy()
	}
}

// Close closes all listeners and returns when everything that the bus started has ended. Relay returns by itself.
func (b *Bus) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if first {
		for _, l := range b.openListeners() {
			l.Close()
		}
		close(b.done)
		b.wg.Wait()
	}
	if b.nats != nil {
		b.nats.close()
	}
	return nil
}
