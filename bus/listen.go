package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ibidhq/ibid/store"
)

const (
	// MaxBehind is how many messages a listener may leave unread before it is dropped.
	MaxBehind = 256

	// wakeEvery is the interval at which listeners are woken to discover lost messages: a good moment for heartbeats.
	wakeEvery = 15 * time.Second

	// followPage is how many events are read from the store at once.
	followPage = 200
)

// ErrDropped is returned by [Listener.Follow] if the listener was dropped because it did not keep up.
var ErrDropped = errors.New("the listener did not keep up")

// Listener receives what happens to one run. It must be closed.
type Listener struct {
	// C delivers the messages. It is closed when the listener is closed or dropped, or the bus is closed.
	C <-chan Message

	bus *Bus
	key runKey
	sub *nats.Subscription // nil without NATS

	mu      sync.Mutex // guards the following fields
	c       chan Message
	closed  bool
	dropped bool
}

// Listen starts listening to the run and requests a replay of its unfinished answers. Once Listen has returned, every
// message published reaches the listener, so read the store afterwards for what happened before; [Listener.Follow] does
// both. Without a connection to NATS, the listener is registered all the same, and woken once there is one. ctx limits
// only the call itself.
//
// The listener's channel holds up to [MaxBehind] messages; one more and the listener is dropped.
func (b *Bus) Listen(ctx context.Context, tenant, run string) (*Listener, error) {
	c := make(chan Message, MaxBehind)
	l := &Listener{C: c, c: c, bus: b, key: runKey{tenant, run}}
	if err := b.add(l); err != nil {
		return nil, fmt.Errorf("listening to a run: %w", err)
	}
	b.requestReplay(l.key)
	if b.nats == nil {
		return l, nil
	}
	if err := b.nats.flush(ctx); err != nil && ctx.Err() != nil {
		l.Close()
		return nil, fmt.Errorf("listening to a run: %w", ctx.Err())
	}
	return l, nil
}

// add registers a listener.
func (b *Bus) add(l *Listener) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	if b.nats != nil {
		if l.sub, err = b.nats.subscribe(l); err != nil {
			return err
		}
	}
	if b.listeners[l.key] == nil {
		b.listeners[l.key] = map[*Listener]struct{}{}
	}
	b.listeners[l.key][l] = struct{}{}
	return nil
}

// deliver never blocks. A listener without room for a message is dropped; one without room for a wake-up is awake
// anyway.
func (l *Listener) deliver(m Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.c <- m:
	default:
		if !m.Wake {
			l.dropped = true
			l.end()
		}
	}
}

// Dropped reports whether the listener was dropped because it did not keep up; C is then closed. Listen again, and read
// the store from the last event seen.
func (l *Listener) Dropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close closes the listener and its channel. It may be called more than once.
func (l *Listener) Close() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	b := l.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners[l.key], l)
	if len(b.listeners[l.key]) == 0 {
		delete(b.listeners, l.key)
	}
}

// end ends the subscription. l.mu must be held.
func (l *Listener) end() {
	if l.closed {
		return
	}
	l.closed = true
	close(l.c)
	if l.sub != nil {
		l.bus.nats.unsubscribe(l.sub)
	}
}

// openListeners returns the listeners that are not closed.
func (b *Bus) openListeners() []*Listener {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var open []*Listener
	for _, listeners := range b.listeners {
		open = slices.AppendSeq(open, maps.Keys(listeners))
	}
	return open
}

// wakeAll wakes all listeners.
func (b *Bus) wakeAll() {
	for _, l := range b.openListeners() {
		l.deliver(Message{Wake: true})
	}
}

// Follow calls emit with everything that happens to the run after the event with the sequence number after (zero means
// from the beginning): its events, each once and in order, even if the bus lost or repeated some; between them live
// deltas as they arrive; and wake-ups, at least every 15 seconds, after the store was read: the moment for a heartbeat.
//
// A reader that is ahead of the run has read one that was deleted in the meantime: it receives the new one from its
// beginning.
//
// Follow returns ctx's error when ctx ends; emit's error if that is not nil; [ErrDropped]; nil when the listener or the
// bus was closed; or an error if the store cannot be read at the beginning. If the store fails later, it is read again
// with the next message.
func (l *Listener) Follow(ctx context.Context, s *store.Store, after int64, emit func(Message) error) error {
	f := &follower{listener: l, store: s, seen: after, emit: emit}
	if after > 0 {
		last, err := s.Events(ctx, l.key.Tenant, l.key.Run, after-1, 1)
		if err != nil {
			return fmt.Errorf("following a run: %w", err)
		}
		if len(last) == 0 {
			f.seen = 0
		}
	}
	storeErr, err := f.catchUp(ctx)
	err = cmp.Or(storeErr, err)
	for err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case m, open := <-l.C:
			if !open && !l.Dropped() {
				return nil
			}
			if !open {
				err = ErrDropped
			} else {
				err = f.handle(ctx, m)
			}
		}
	}
	return fmt.Errorf("following a run: %w", err)
}

// follower is the state of one call of Follow.
type follower struct {
	listener *Listener
	store    *store.Store
	seen     int64 // the sequence number of the last event emitted
	behind   bool  // the last read of the store failed
	emit     func(Message) error
}

// handle emits one message, after any events that it shows to be missing.
func (f *follower) handle(ctx context.Context, m Message) error {
	switch {
	case m.Event != nil && m.Event.Seq <= f.seen:
		return nil
	case m.Event != nil && m.Event.Seq == f.seen+1:
		f.seen++
		return f.emit(m)
	case m.Event != nil || m.Wake || f.behind:
		storeErr, err := f.catchUp(ctx)
		if err != nil {
			return err
		}
		f.behind = storeErr != nil
	}
	if m.Event != nil {
		return nil
	}
	return f.emit(m)
}

// catchUp emits the events in the store after the last one seen. The first error is that of reading the store, the
// second is emit's.
func (f *follower) catchUp(ctx context.Context) (storeErr, err error) {
	for {
		events, storeErr := f.store.Events(ctx, f.listener.key.Tenant, f.listener.key.Run, f.seen, followPage)
		if storeErr != nil {
			return storeErr, nil
		}
		for i := range events {
			if err := f.emit(Message{Event: &events[i]}); err != nil {
				return nil, err
			}
			f.seen = events[i].Seq
		}
		if len(events) < followPage {
			return nil, nil
		}
	}
}
