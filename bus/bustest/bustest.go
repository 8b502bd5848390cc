package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

var when = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Event returns an event of an answer.
func Event(tenant, run string, seq int64) *store.Event {
	return &store.Event{
		ID: 1000 + seq, Tenant: tenant, Run: run, Seq: seq, Kind: store.EventAnswer, At: when,
		Data: json.RawMessage(fmt.Sprintf(`{"answer_id":"ans_%d"}`, seq)),
	}
}

// Publish sends an event.
func Publish(t *testing.T, b *bus.Bus, e *store.Event) {
	t.Helper()
	testenv.OK(t, b.Publish([]store.Event{*e}))
}

// Sound publishes events to a run until one arrives, and all sent before it: in a cluster, servers announce
// subscriptions to each other with a delay, and messages sent in the meantime may be lost.
func Sound(t *testing.T, b *bus.Bus, l *bus.Listener, tenant, run string) {
	t.Helper()
	seq := int64(0)
	testenv.Until(t, "nodes hear each other", func() bool {
		seq--
		Publish(t, b, Event(tenant, run, seq))
		patience := time.NewTimer(100 * time.Millisecond)
		defer patience.Stop()
		for {
			select {
			case m := <-l.C:
				if m.Event != nil && m.Event.Seq == seq {
					return true
				}
			case <-patience.C:
				return false
			}
		}
	})
}

// Listen listens to a run until the test ends.
func Listen(t *testing.T, b *bus.Bus, tenant, run string) *bus.Listener {
	t.Helper()
	l := testenv.Must(b.Listen(t.Context(), tenant, run))(t)
	t.Cleanup(l.Close)
	return l
}

// Next returns the listener's next message other than a wake-up.
func Next(t *testing.T, l *bus.Listener) bus.Message {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; { // wake-ups arrive before receive times out
		m, err := Receive(l)
		if err == nil && time.Now().After(deadline) {
			err = errors.New("nothing but wake-ups came")
		}
		if err != nil {
			t.Fatal(err)
		}
		if !m.Wake {
			return m
		}
	}
}

// Receive returns the next message, or an error if none comes.
func Receive(l *bus.Listener) (bus.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case m, open := <-l.C:
		if !open {
			return m, fmt.Errorf("the channel is closed, dropped: %t", l.Dropped())
		}
		return m, nil
	case <-ctx.Done():
		return bus.Message{}, fmt.Errorf("no message came")
	}
}

// OpenStore opens a store whose events go to the bus as a server's do.
func OpenStore(t *testing.T, b *bus.Bus) *store.Store {
	t.Helper()
	o := &store.Options{Committed: b.Committed()}
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), o))(t)
	t.Cleanup(func() { testenv.OK(t, s.Close()) })
	return s
}

// Put stores n answers to a run, each with an event.
func Put(t *testing.T, s *store.Store, tenant, run string, n int) {
	t.Helper()
	var calls []*store.Call
	for range n {
		calls = append(calls, &store.Call{
			AnswerID: "ans_" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_" + strconv.Itoa(len(calls)),
			Tenant:   tenant, Run: run, Upstream: "openai", Route: "POST /v1/responses", Status: 200,
			Started: time.Now(),
			Answer:  &ibid.Answer{Provider: "openai", Text: "Herons build in March.", Complete: true},
		})
	}
	testenv.OK(t, s.Put(t.Context(), calls))
}

// Start runs f until the test ends or stop is called, which returns f's error.
func Start(t *testing.T, f func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var err error
	stopped := false
	stop = func() error {
		cancel()
		if !stopped {
			stopped, err = true, <-done
		}
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// Follow follows a run and returns its messages other than wake-ups.
func Follow(t *testing.T, l *bus.Listener, s *store.Store, after int64) (told chan bus.Message, stop func() error) {
	t.Helper()
	told = make(chan bus.Message, 2000)
	return told, Start(t, func(ctx context.Context) error {
		return l.Follow(ctx, s, after, func(m bus.Message) error {
			if !m.Wake {
				told <- m
			}
			return nil
		})
	})
}

// Expect reads events from..to in order, with nothing in between.
func Expect(t *testing.T, told <-chan bus.Message, from, to int64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		select {
		case m := <-told:
			if m.Event == nil || m.Event.Seq != seq {
				t.Fatalf("got %+v, want event %d", m, seq)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("event %d never came", seq)
		}
	}
}
