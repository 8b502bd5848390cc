package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibidhq/ibid/store"
)

// ErrDropped is what [Listener.Follow] returns when the listener was dropped because it did not keep up.
var ErrDropped = errors.New("the listener did not keep up")

// followPage is how many events are read from the store at once.
const followPage = 200

// Follow calls tell with all that happens to the run after the event with the sequence number after (0: from the run's
// beginning): its events, each once and in order, whatever the bus lost or repeated; between them live deltas as they
// come; and wake-ups, at least every [WakeEvery], after the store was read: the moment for a heartbeat.
//
// A reader who is ahead of the run has read one that was deleted meanwhile: it hears the new one from its beginning.
//
// It returns when ctx ends, with its error; what tell returned, if that is not nil; [ErrDropped]; nil when the listener
// or the bus was closed; or why the store cannot be read at the beginning. Later the store may be away: it is read
// again with the next message.
func (l *Listener) Follow(ctx context.Context, s *store.Store, after int64, tell func(Message) error) error {
	f := &follower{listener: l, store: s, seen: after, tell: tell}
	if err := f.begin(ctx); err != nil {
		return fmt.Errorf("following a run: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("following a run: %w", ctx.Err())
		case m, open := <-l.C:
			if !open {
				if l.Dropped() {
					return fmt.Errorf("following a run: %w", ErrDropped)
				}
				return nil
			}
			if err := f.take(ctx, m); err != nil {
				return fmt.Errorf("following a run: %w", err)
			}
		}
	}
}

// follower is one call of Follow.
type follower struct {
	listener *Listener
	store    *store.Store
	seen     int64 // the sequence number of the last event that was told
	behind   bool  // the store could not be read
	tell     func(Message) error
}

// begin tells what the store has already.
func (f *follower) begin(ctx context.Context) error {
	if f.seen > 0 {
		k := f.listener.topic.key
		last, err := f.store.Events(ctx, k.tenant, k.run, f.seen-1, 1)
		if err != nil {
			return err
		}
		if len(last) == 0 {
			f.seen = 0
		}
	}
	return f.catchUp(ctx)
}

func (f *follower) take(ctx context.Context, m Message) error {
	switch {
	case m.Event != nil && m.Event.Seq <= f.seen:
		return nil
	case m.Event != nil && m.Event.Seq == f.seen+1:
		f.seen++
		return f.tell(m)
	case m.Event != nil || m.Wake || f.behind:
		var away *awayError
		err := f.catchUp(ctx)
		f.behind = errors.As(err, &away)
		if err != nil && !f.behind {
			return err
		}
	}
	if m.Event != nil {
		return nil
	}
	return f.tell(m)
}

// awayError says that the store could not be read; any other error is tell's.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// catchUp tells what the store has beyond what was told.
func (f *follower) catchUp(ctx context.Context) error {
	k := f.listener.topic.key
	for {
		events, err := f.store.Events(ctx, k.tenant, k.run, f.seen, followPage)
		if err != nil {
			return &awayError{err}
		}
		for i := range events {
			if err := f.tell(Message{Event: &events[i]}); err != nil {
				return err
			}
			f.seen = events[i].Seq
		}
		if len(events) < followPage {
			return nil
		}
	}
}
