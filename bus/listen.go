package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

const (
	// MaxBehind is how many messages a listener may leave unread before it is dropped.
	MaxBehind = 256

	maxTopicQueue = 256 // messages of a run that wait to be handed to its listeners
)

// Listener hears what happens to one run. It must be closed.
type Listener struct {
	// C carries the messages. It is closed when the listener is closed or dropped, or the bus is closed.
	C <-chan Message

	c       chan Message
	bus     *Bus
	topic   *topic
	left    bool // guarded by Bus.mu
	dropped atomic.Bool
}

// topic is a run that somebody on this node listens to: one subscription, however many listeners.
type topic struct {
	key       runKey
	sub       *nats.Subscription
	queue     chan *nats.Msg
	stop      chan struct{} // closed when nobody listens any more
	listeners map[*Listener]struct{}
}

// Listens reports whether anybody, on any node, listens to the run. It is cheap enough to be asked for every chunk of a
// stream. It may be out of date: up to a round trip late when somebody begins, some seconds when a node died.
func (b *Bus) Listens(tenant, run string) bool { return b.Joined(tenant, run) != 0 }

// Joined returns a number that is another one whenever somebody, on any node, has begun to listen to the run; 0: nobody
// listens. It costs what [Bus.Listens] costs, and is as late. A node whose listeners were forgotten for a while,
// because what it said of them was lost, counts as new.
func (b *Bus) Joined(tenant, run string) uint64 { return b.interest.joined(runKey{tenant, run}) }

// Listen begins to listen to the run. When it returns, every message published from then on reaches the listener, so
// read the store afterwards for what happened before; [Listener.Follow] does both. Without a connection to NATS it
// listens all the same, and is woken when there is one. ctx bounds only the call itself.
//
// Up to [MaxBehind] messages wait in the listener's channel; one more and it is dropped.
func (b *Bus) Listen(ctx context.Context, tenant, run string) (*Listener, error) {
	k := runKey{tenant, run}
	l, err := b.join(k)
	if err != nil {
		return nil, fmt.Errorf("listening to a run: %w", err)
	}
	b.announceJoin(k)
	if err := b.flush(ctx); err != nil && ctx.Err() != nil {
		l.Close()
		return nil, fmt.Errorf("listening to a run: %w", ctx.Err())
	}
	return l, nil
}

// join adds a listener to the run's topic.
func (b *Bus) join(k runKey) (*Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	t := b.topics[k]
	if t == nil {
		t = &topic{
			key:       k,
			queue:     make(chan *nats.Msg, maxTopicQueue),
			stop:      make(chan struct{}),
			listeners: map[*Listener]struct{}{},
		}
		var err error
		if t.sub, err = b.conn.ChanSubscribe(k.subject()+allSuffixes, t.queue); err != nil {
			return nil, fmt.Errorf("subscribing: %w", err)
		}
		b.topics[k] = t
		b.wg.Go(func() { b.serve(t) })
	}
	b.interest.join(k)
	l := &Listener{c: make(chan Message, MaxBehind), bus: b, topic: t}
	l.C = l.c
	t.listeners[l] = struct{}{}
	return l, nil
}

// leave takes a listener out of its topic, and reports whether it was the last there; then the topic ends. b.mu is
// held.
func (b *Bus) leave(l *Listener) (last bool) {
	if l.left {
		return false
	}
	l.left = true
	close(l.c)
	t := l.topic
	delete(t.listeners, l)
	if len(t.listeners) > 0 {
		return false
	}
	delete(b.topics, t.key)
	b.interest.leave(t.key)
	close(t.stop)
	return true
}

// serve hands a topic's messages to its listeners until nobody listens any more.
func (b *Bus) serve(t *topic) {
	lost := 0
	for {
		select {
		case <-t.stop:
			if err := t.sub.Unsubscribe(); err != nil && b.conn.IsConnected() {
				b.log.Debug("cannot end a subscription", slog.Any("error", err))
			}
			return
		case m := <-t.queue:
			if message, err := decode(t.key, m.Subject, m.Data); err == nil {
				b.deliver(t, message)
			} else {
				b.log.Debug("cannot read a message", slog.Any("error", err))
			}
			// Messages are lost while the queue is full, so it is early enough to look when it is empty.
			if n, err := t.sub.Dropped(); len(t.queue) == 0 && err == nil && n > lost {
				lost = n
				b.deliver(t, Message{Wake: true})
			}
		}
	}
}

// deliver gives a message to the topic's listeners. Those that have no room for it are dropped.
func (b *Bus) deliver(t *topic, m Message) {
	b.mu.Lock()
	ended := false
	for l := range t.listeners {
		select {
		case l.c <- m:
		default:
			l.dropped.Store(true)
			ended = b.leave(l)
		}
	}
	b.mu.Unlock()
	if ended {
		b.announceLeave(t.key)
	}
}

// wakeAll wakes all listeners. One whose channel is full is awake.
func (b *Bus) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.topics {
		for l := range t.listeners {
			select {
			case l.c <- Message{Wake: true}:
			default:
			}
		}
	}
}

// Dropped reports whether the listener was dropped because it did not keep up: then C is closed. Listen again and read
// the store from the last event seen.
func (l *Listener) Dropped() bool { return l.dropped.Load() }

// Close ends the listener and its channel. It may be called twice.
func (l *Listener) Close() {
	b := l.bus
	b.mu.Lock()
	last := b.leave(l)
	b.mu.Unlock()
	if last {
		b.announceLeave(l.topic.key)
	}
}
