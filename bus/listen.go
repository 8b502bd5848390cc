package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

	// wakeEvery is how often a listener is woken at least, so that whatever was lost is found: a good moment to send a
	// reader a heartbeat.
	wakeEvery = 15 * time.Second

	// followPage is how many events are read from the store at once.
	followPage = 200
)

// ErrDropped is what [Listener.Follow] returns when the listener was dropped because it did not keep up.
var ErrDropped = errors.New("the listener did not keep up")

// Listener hears what happens to one run. It must be closed.
type Listener struct {
	// C carries the messages. It is closed when the listener is closed or dropped, or the bus is closed.
	C <-chan Message

	bus *Bus
	key runKey
	sub *nats.Subscription

	mu      sync.Mutex // guards what follows
	c       chan Message
	closed  bool
	dropped bool
}

// Listen begins to listen to the run, and asks whoever sends one of its answers for what was said so far. When it
// returns, every message published from then on reaches the listener, so read the store afterwards for what happened
// before; [Listener.Follow] does both. Without a connection to NATS it listens all the same, and is woken when there is
// one. ctx bounds only the call itself.
//
// Up to [MaxBehind] messages wait in the listener's channel; one more and it is dropped.
func (b *Bus) Listen(ctx context.Context, tenant, run string) (*Listener, error) {
	c := make(chan Message, MaxBehind)
	l := &Listener{C: c, c: c, bus: b, key: runKey{tenant, run}}
	if err := l.subscribe(); err != nil {
		return nil, fmt.Errorf("listening to a run: %w", err)
	}
	b.requestReplay(b.conn, l.key)
	if err := b.flush(ctx); err != nil && ctx.Err() != nil {
		l.Close()
		return nil, fmt.Errorf("listening to a run: %w", ctx.Err())
	}
	return l, nil
}

func (l *Listener) subscribe() (err error) {
	b := l.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	l.sub, err = b.conn.Subscribe(l.key.subject()+allSuffixes, func(m *nats.Msg) {
		if message, err := decode(l.key, m.Data); err == nil {
			l.deliver(message)
		} else {
			b.log.Debug("cannot read a message", slog.Any("error", err))
		}
	})
	if err == nil {
		b.listeners[l] = struct{}{}
	}
	return err
}

// deliver never blocks. A listener that has no room for what happened is dropped; one that has none for a wake-up is
// awake.
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

// Dropped reports whether the listener was dropped because it did not keep up: then C is closed. Listen again and read
// the store from the last event seen.
func (l *Listener) Dropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close ends the listener and its channel. It may be called twice.
func (l *Listener) Close() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.bus.mu.Lock()
	delete(l.bus.listeners, l)
	l.bus.mu.Unlock()
}

// end ends the subscription. l.mu is held.
func (l *Listener) end() {
	if l.closed {
		return
	}
	l.closed = true
	close(l.c)
	if err := l.sub.Unsubscribe(); err != nil && l.bus.conn.IsConnected() {
		l.bus.log.Debug("cannot end a subscription", slog.Any("error", err))
	}
}

// openListeners returns those that were not closed.
func (b *Bus) openListeners() []*Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.listeners))
}

// wakeAll wakes all listeners.
func (b *Bus) wakeAll() {
	for _, l := range b.openListeners() {
		l.deliver(Message{Wake: true})
	}
}

// Follow calls tell with all that happens to the run after the event with the sequence number after (0: from the run's
// beginning): its events, each once and in order, whatever the bus lost or repeated; between them live deltas as they
// come; and wake-ups, at least every 15 seconds, after the store was read: the moment for a heartbeat.
//
// A reader who is ahead of the run has read one that was deleted meanwhile: it hears the new one from its beginning.
//
// It returns when ctx ends, with its error; what tell returned, if that is not nil; [ErrDropped]; nil when the listener
// or the bus was closed; or why the store cannot be read at the beginning. Later the store may be away: it is read
// again with the next message.
func (l *Listener) Follow(ctx context.Context, s *store.Store, after int64, tell func(Message) error) error {
	f := &follower{listener: l, store: s, seen: after, tell: tell}
	if after > 0 {
		last, err := s.Events(ctx, l.key.Tenant, l.key.Run, after-1, 1)
		if err != nil {
			return fmt.Errorf("following a run: %w", err)
		}
		if len(last) == 0 {
			f.seen = 0
		}
	}
	away, err := f.catchUp(ctx)
	err = cmp.Or(away, err)
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

// follower is one call of Follow.
type follower struct {
	listener *Listener
	store    *store.Store
	seen     int64 // the sequence number of the last event that was told
	behind   bool  // the store could not be read
	tell     func(Message) error
}

// handle tells one message, and before it what it shows to be missing.
func (f *follower) handle(ctx context.Context, m Message) error {
	switch {
	case m.Event != nil && m.Event.Seq <= f.seen:
		return nil
	case m.Event != nil && m.Event.Seq == f.seen+1:
		f.seen++
		return f.tell(m)
	case m.Event != nil || m.Wake || f.behind:
		away, err := f.catchUp(ctx)
		if err != nil {
			return err
		}
		f.behind = away != nil
	}
	if m.Event != nil {
		return nil
	}
	return f.tell(m)
}

// catchUp tells what the store has beyond what was told. The first error says that the store could not be read, the
// second is tell's.
func (f *follower) catchUp(ctx context.Context) (away, err error) {
	for {
		events, away := f.store.Events(ctx, f.listener.key.Tenant, f.listener.key.Run, f.seen, followPage)
		if away != nil {
			return away, nil
		}
		for i := range events {
			if err := f.tell(Message{Event: &events[i]}); err != nil {
				return nil, err
			}
			f.seen = events[i].Seq
		}
		if len(events) < followPage {
			return nil, nil
		}
	}
}
