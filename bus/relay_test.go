package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// put stores n answers to a run, each with an event.
func put(t *testing.T, s *store.Store, tenant, run string, n int) {
	t.Helper()
	var calls []*store.Call
	for range n {
		calls = append(calls, &store.Call{
			AnswerID: "ans_" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_" + strconv.Itoa(len(calls)),
			Tenant:   tenant, Run: run, Upstream: "openai", Route: "POST /v1/responses", Status: 200, Started: time.Now(),
			Answer: &ibid.Answer{Provider: "openai", Text: "Herons build in March.", Complete: true},
		})
	}
	testenv.OK(t, s.Put(t.Context(), calls))
}

// start runs f until the test ends or stop is called, which returns f's error.
func start(t *testing.T, f func(context.Context) error) (stop func() error) {
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
	t.Cleanup(func() { stop() })
	return stop
}

// follow follows a run and returns its messages other than wake-ups.
func follow(t *testing.T, l *Listener, s *store.Store, after int64) (told chan Message, stop func() error) {
	t.Helper()
	told = make(chan Message, 2000)
	return told, start(t, func(ctx context.Context) error {
		return l.Follow(ctx, s, after, func(m Message) error {
			if !m.Wake {
				told <- m
			}
			return nil
		})
	})
}

// expect reads events from..to in order, with nothing in between.
func expect(t *testing.T, told <-chan Message, from, to int64) {
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

// Events go from one node's store to a reader at another: existing ones, new ones, and again from any of them.
func TestRelay(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			s := openStore(t)
			a, b := node(0), node(1)
			put(t, s, "acme", "run_1", 3)
			stopRelay := start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
			told, stop := follow(t, listen(t, b, "acme", "run_1"), s, 0)
			expect(t, told, 1, 3)
			for seq := int64(4); seq <= 8; seq++ {
				put(t, s, "acme", "run_1", 1)
				put(t, s, "acme", "run_2", 1)
				put(t, s, "other", "run_1", 1)
				a.Wake()
				expect(t, told, seq, seq)
			}
			if err := stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("Follow: %v", err)
			}
			resumed, _ := follow(t, listen(t, b, "acme", "run_1"), s, 5)
			expect(t, resumed, 6, 8)
			put(t, s, "acme", "run_1", 200)
			a.Wake()
			expect(t, resumed, 9, 208)
			testenv.Until(t, "the outbox is empty", func() bool {
				left, err := s.Outbox(t.Context(), 1, 0)
				return err == nil && len(left) == 0
			})
			if err := stopRelay(); err != nil {
				t.Errorf("Relay: %v", err)
			}
		})
	}
}

// A burst may be too much for a reader. It returns as often as necessary, and receives every event once.
func TestBurst(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			s := openStore(t)
			a, b := node(0), node(1)
			start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
			const n = 1500
			told := make(chan Message, 2*n)
			start(t, func(ctx context.Context) error {
				last := int64(0)
				for {
					l, err := b.Listen(ctx, "acme", "run_1")
					if err != nil {
						return err
					}
					err = l.Follow(ctx, s, last, func(m Message) error {
						if m.Event != nil {
							last = m.Event.Seq
							told <- m
						}
						return nil
					})
					l.Close()
					if !errors.Is(err, ErrDropped) {
						return err
					}
				}
			})
			for range 3 {
				put(t, s, "acme", "run_1", n/3)
				a.Wake()
			}
			expect(t, told, 1, n)
			if len(told) != 0 {
				t.Errorf("got %d more", len(told))
			}
		})
	}
}

// Events left in the store by a node that died are relayed by another, without Wake.
func TestRelayAfterCrash(t *testing.T) {
	s := openStore(t)
	a := openBus(t, Embedded)
	a.orphanAfter = 10 * time.Millisecond
	start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	l := listen(t, a, "acme", "run_1")
	told, _ := follow(t, l, s, 0)
	put(t, s, "acme", "run_1", 1)
	a.Wake()
	expect(t, told, 1, 1)
	put(t, s, "acme", "run_1", 2) // no Wake: the node that wrote this is dead
	expect(t, told, 2, 3)
}

// Recent events of other nodes are not relayed.
func TestRelayLeavesYoungEvents(t *testing.T) {
	s := openStore(t)
	a := openBus(t, Embedded)
	put(t, s, "acme", "run_1", 2)
	testenv.OK(t, a.relay(t.Context(), s, orphanAge))
	if left, err := s.Outbox(t.Context(), 10, 0); err != nil || len(left) != 2 {
		t.Errorf("%d events are left, %v; want 2", len(left), err)
	}
}

// Events written while NATS is unreachable arrive afterwards.
func TestRelayAfterReconnect(t *testing.T) {
	first := startNATS(t, &server.Options{})
	host, address := first.Addr().String(), first.ClientURL()
	port := testenv.Must(strconv.Atoi(host[strings.LastIndexByte(host, ':')+1:]))(t)
	s := openStore(t)
	a, b := openBus(t, address), openBus(t, address)
	start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	told, _ := follow(t, listen(t, b, "acme", "run_1"), s, 0)
	put(t, s, "acme", "run_1", 2)
	a.Wake()
	expect(t, told, 1, 2)
	first.Shutdown()
	first.WaitForShutdown()
	testenv.Until(t, "the server is missed", func() bool { return a.Healthy() != nil })
	put(t, s, "acme", "run_1", 2)
	a.Wake()
	startNATS(t, &server.Options{Port: port})
	expect(t, told, 3, 4)
	testenv.Until(t, "the outbox is empty", func() bool {
		left, err := s.Outbox(t.Context(), 1, 0)
		return err == nil && len(left) == 0
	})
}

// A store outage ends nothing, and is logged once.
func TestRelayWithoutStore(t *testing.T) {
	var log bytes.Buffer
	b := testenv.Must(Open(t.Context(), Embedded, slog.New(slog.NewTextHandler(&log, nil))))(t)
	s := openStore(t)
	l := listen(t, b, "acme", "run_1")
	s.Close()
	if err := l.Follow(t.Context(), s, 0, func(Message) error { return nil }); err == nil {
		t.Error("Follow begins without a store")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // several attempts
	defer cancel()
	if err := b.Relay(ctx, s); err != nil {
		t.Errorf("Relay: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Relay(t.Context(), s) }()
	closeBus(t, b)
	if err := <-ended; err == nil {
		t.Error("Relay ends with the bus, and says nothing of it")
	}
	if n := strings.Count(log.String(), "cannot relay events"); n < 1 || n > 2 {
		t.Errorf("it was logged %d times:\n%s", n, log.String())
	}
}

// Follow emits every event once and in order, even if the bus loses, repeats or reorders messages.
func TestFollow(t *testing.T) {
	s := openStore(t)
	b := openBus(t, Embedded)
	put(t, s, "acme", "run_1", 450)
	told, _ := follow(t, listen(t, b, "acme", "run_1"), s, 0)
	expect(t, told, 1, 450)
	put(t, s, "acme", "run_1", 5)
	for _, seq := range []int64{453, 451, 453, 1, 450, 454, 455, 455} { // 452 is lost, 451 late
		publish(t, b, event("acme", "run_1", seq))
	}
	expect(t, told, 451, 455)
	put(t, s, "acme", "run_1", 2) // both lost
	b.wakeAll()
	expect(t, told, 456, 457)
	b.Tell("acme", "run_1", Live{Kind: "text", At: 3})
	select {
	case m := <-told:
		if diff := cmp.Diff(Message{Live: &Live{Kind: "text", At: 3}}, m); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	case <-time.After(20 * time.Second):
		t.Error("the live delta never came")
	}
	stop := errors.New("enough")
	err := listen(t, b, "acme", "run_1").Follow(t.Context(), s, 450, func(m Message) error {
		if m.Event.Seq == 452 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("Follow: %v", err)
	}
}

// A reader with a sequence number beyond the run's last has read a run that was deleted since.
func TestFollowAhead(t *testing.T) {
	s := openStore(t)
	b := openBus(t, Embedded)
	put(t, s, "acme", "run_1", 2)
	told, _ := follow(t, listen(t, b, "acme", "run_1"), s, 7)
	expect(t, told, 1, 2)
	again, _ := follow(t, listen(t, b, "acme", "run_1"), s, 2)
	put(t, s, "acme", "run_1", 1)
	b.wakeAll()
	expect(t, again, 3, 3)
}

// A reader that is too slow gets ErrDropped; one whose bus closes just ends.
func TestFollowEnds(t *testing.T) {
	s := openStore(t)
	b := testenv.Must(Open(t.Context(), Embedded, nil))(t)
	slow, quick := listen(t, b, "acme", "run_1"), listen(t, b, "acme", "run_1")
	begun, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	go func() {
		first := true
		ended <- slow.Follow(context.Background(), s, 0, func(m Message) error {
			if m.Live != nil && first {
				first = false
				close(begun)
				<-goOn
			}
			return nil
		})
	}()
	quit := make(chan error, 1)
	told := make(chan Message, 4*MaxBehind)
	go func() {
		quit <- quick.Follow(context.Background(), s, 0, func(m Message) error {
			if m.Live != nil {
				told <- m
			}
			return nil
		})
	}()
	for i := range 2 * MaxBehind {
		b.Tell("acme", "run_1", Live{Kind: "text", At: i})
		if m := <-told; m.Live.At != i {
			t.Fatalf("got %+v, want %d", m.Live, i)
		}
	}
	<-begun
	testenv.Until(t, "the slow listener is dropped", slow.Dropped) // its messages may arrive later than quick's
	close(goOn)
	if err := <-ended; !errors.Is(err, ErrDropped) {
		t.Errorf("Follow: %v, want ErrDropped", err)
	}
	if again, err := receive(slow); err == nil {
		t.Errorf("a dropped listener hears %v", again)
	}
	closeBus(t, b)
	if err := <-quit; err != nil {
		t.Errorf("Follow: %v, want nil", err)
	}
}

func ExampleListener_Follow() {
	// A reader at any node that saw event 7 last continues with event 8.
	read := func(ctx context.Context, b *Bus, s *store.Store) error {
		l, err := b.Listen(ctx, "default", "run_1")
		if err != nil {
			return err
		}
		defer l.Close()
		return l.Follow(ctx, s, 7, func(m Message) error {
			switch {
			case m.Event != nil:
				fmt.Printf("id: %d\nevent: %s\ndata: %s\n\n", m.Event.Seq, m.Event.Kind, m.Event.Data)
			case m.Live != nil:
				fmt.Printf("event: %s\ndata: %s\n\n", m.Live.Kind, m.Live.Data)
			case m.Wake:
				fmt.Print(":\n\n")
			}
			return nil
		})
	}
	_ = read
}
