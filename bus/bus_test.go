package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/bus/bustest"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bus in memory is one node, whoever opens it.
func TestInMemory(t *testing.T) {
	bustest.Run(t, func(t *testing.T) func(int) *bus.Bus {
		t.Helper()
		b := openBus(t)
		return func(int) *bus.Bus { return b }
	})
}

func openBus(t *testing.T) *bus.Bus {
	t.Helper()
	b := testenv.Must(bus.Open(t.Context(), "", nil))(t)
	t.Cleanup(func() { testenv.OK(t, b.Close()) })
	return b
}

// openOutbox opens the store of another process: its events wait in the outbox.
func openOutbox(t *testing.T) *store.Store {
	t.Helper()
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Publishing to a run without a listener allocates nothing.
func TestNobodyListens(t *testing.T) {
	b := openBus(t)
	events := []store.Event{*bustest.Event("acme", "run_1", 1)}
	tell := b.Committed()
	if n := testing.AllocsPerRun(100, func() {
		b.Tell("acme", "run_1", bus.Live{Kind: "text", AnswerID: "ans_1"})
		tell(events)
		b.Wake()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if b.Listening("acme", "run_1") {
		t.Error("somebody listens")
	}
	l := bustest.Listen(t, b, "acme", "run_1")
	if !b.Listening("acme", "run_1") || b.Listening("acme", "run_2") {
		t.Error("a listener is not noticed, or of another run")
	}
	l.Close()
	if b.Registered() != 0 {
		t.Error("a closed listener is kept")
	}
}

// The addresses that are refused are refused without what is secret in them.
func TestBadAddress(t *testing.T) {
	for _, address := range []string{
		"nats://", "localhost:4222", "http://h:1", "embedded", "nats://u:hunter2@h:x", "nats://a:1,,nats://b:2", "nats://u:hunter2%zz@h:1",
	} {
		if _, err := bus.Open(t.Context(), address, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q): %v", address, err)
		}
	}
}

// Any ids have different valid subjects in NATS.
func TestSubjects(t *testing.T) {
	long := strings.Repeat("x", 1024)
	ids := []string{"", "a", "a.b", "a b", "*", ">", "a.*", "a.>", "\r\n", "run\x00", "Läufe", "跑", long, long + "y", "\xff", "a\nPUB x 0"}
	subjects := map[string]bool{}
	for _, id := range ids {
		for _, s := range []string{bus.Subject("acme", id), bus.Subject(id, "acme")} {
			subjects[s] = true
			if len(s) > 100 || strings.ContainsAny(s, " *>\r\n\x00") || strings.Count(s, ".") != 4 {
				t.Errorf("a subject of %q is %q", id, s)
			}
		}
	}
	if len(subjects) != 2*len(ids) {
		t.Errorf("%d runs have %d subjects", 2*len(ids), len(subjects))
	}
}

// Events left in the store by a node that died are relayed by another, without Wake.
func TestRelayAfterCrash(t *testing.T) {
	s := openOutbox(t)
	a := openBus(t)
	a.SetOrphanAge(10 * time.Millisecond)
	bustest.Start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	l := bustest.Listen(t, a, "acme", "run_1")
	told, _ := bustest.Follow(t, l, s, 0)
	bustest.Put(t, s, "acme", "run_1", 1)
	bustest.Expect(t, told, 1, 1)
	bustest.Put(t, s, "acme", "run_1", 2) // no Wake: the node that wrote this is dead
	bustest.Expect(t, told, 2, 3)
}

// Recent events of other nodes are not relayed.
func TestRelayLeavesYoungEvents(t *testing.T) {
	s := openOutbox(t)
	a := openBus(t)
	bustest.Put(t, s, "acme", "run_1", 2)
	testenv.OK(t, a.RelayOld(t.Context(), s, bus.OrphanAge))
	if left, err := s.Outbox(t.Context(), 10, 0); err != nil || len(left) != 2 {
		t.Errorf("%d events are left, %v; want 2", len(left), err)
	}
}

// A store outage ends nothing, and is logged once.
func TestRelayWithoutStore(t *testing.T) {
	var log bytes.Buffer
	b := testenv.Must(bus.Open(t.Context(), "", slog.New(slog.NewTextHandler(&log, nil))))(t)
	s := openOutbox(t)
	l := bustest.Listen(t, b, "acme", "run_1")
	s.Close()
	if err := l.Follow(t.Context(), s, 0, func(bus.Message) error { return nil }); err == nil {
		t.Error("Follow begins without a store")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // several attempts
	defer cancel()
	if err := b.Relay(ctx, s); err != nil {
		t.Errorf("Relay: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Relay(t.Context(), s) }()
	testenv.OK(t, b.Close())
	if err := <-ended; err == nil {
		t.Error("Relay ends with the bus, and says nothing of it")
	}
	if n := strings.Count(log.String(), "cannot relay events"); n < 1 || n > 2 {
		t.Errorf("it was logged %d times:\n%s", n, log.String())
	}
}

// Follow emits every event once and in order, even if the bus loses, repeats or reorders messages.
func TestFollow(t *testing.T) {
	s := openOutbox(t)
	b := openBus(t)
	bustest.Put(t, s, "acme", "run_1", 450)
	told, _ := bustest.Follow(t, bustest.Listen(t, b, "acme", "run_1"), s, 0)
	bustest.Expect(t, told, 1, 450)
	bustest.Put(t, s, "acme", "run_1", 5)
	for _, seq := range []int64{453, 451, 453, 1, 450, 454, 455, 455} { // 452 is lost, 451 late
		bustest.Publish(t, b, bustest.Event("acme", "run_1", seq))
	}
	bustest.Expect(t, told, 451, 455)
	bustest.Put(t, s, "acme", "run_1", 2) // both lost
	b.WakeAll()
	bustest.Expect(t, told, 456, 457)
	b.Tell("acme", "run_1", bus.Live{Kind: "text", At: 3})
	select {
	case m := <-told:
		if diff := cmp.Diff(bus.Message{Live: &bus.Live{Kind: "text", At: 3}}, m); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	case <-time.After(20 * time.Second):
		t.Error("the live delta never came")
	}
	stop := errors.New("enough")
	err := bustest.Listen(t, b, "acme", "run_1").Follow(t.Context(), s, 450, func(m bus.Message) error {
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
	s := openOutbox(t)
	b := openBus(t)
	bustest.Put(t, s, "acme", "run_1", 2)
	told, _ := bustest.Follow(t, bustest.Listen(t, b, "acme", "run_1"), s, 7)
	bustest.Expect(t, told, 1, 2)
	again, _ := bustest.Follow(t, bustest.Listen(t, b, "acme", "run_1"), s, 2)
	bustest.Put(t, s, "acme", "run_1", 1)
	b.WakeAll()
	bustest.Expect(t, again, 3, 3)
}

// A reader that is too slow gets ErrDropped; one whose bus closes just ends.
func TestFollowEnds(t *testing.T) {
	s := openOutbox(t)
	b := testenv.Must(bus.Open(t.Context(), "", nil))(t)
	slow, quick := bustest.Listen(t, b, "acme", "run_1"), bustest.Listen(t, b, "acme", "run_1")
	begun, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	go func() {
		first := true
		ended <- slow.Follow(context.Background(), s, 0, func(m bus.Message) error {
			if m.Live != nil && first {
				first = false
				close(begun)
				<-goOn
			}
			return nil
		})
	}()
	quit := make(chan error, 1)
	told := make(chan bus.Message, 4*bus.MaxBehind)
	go func() {
		quit <- quick.Follow(context.Background(), s, 0, func(m bus.Message) error {
			if m.Live != nil {
				told <- m
			}
			return nil
		})
	}()
	for i := range 2 * bus.MaxBehind {
		b.Tell("acme", "run_1", bus.Live{Kind: "text", At: i})
		if m := <-told; m.Live.At != i {
			t.Fatalf("got %+v, want %d", m.Live, i)
		}
	}
	<-begun
	testenv.Until(t, "the slow listener is dropped", slow.Dropped) // its messages may arrive later than quick's
	close(goOn)
	if err := <-ended; !errors.Is(err, bus.ErrDropped) {
		t.Errorf("Follow: %v, want ErrDropped", err)
	}
	if again, err := bustest.Receive(slow); err == nil {
		t.Errorf("a dropped listener hears %v", again)
	}
	testenv.OK(t, b.Close())
	if err := <-quit; err != nil {
		t.Errorf("Follow: %v, want nil", err)
	}
}

func ExampleListener_Follow() {
	// A reader at any node that saw event 7 last continues with event 8.
	read := func(ctx context.Context, b *bus.Bus, s *store.Store) error {
		l, err := b.Listen(ctx, "default", "run_1")
		if err != nil {
			return err
		}
		defer l.Close()
		return l.Follow(ctx, s, 7, func(m bus.Message) error {
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

// After stop, an answer's sender is not asked for a replay.
func TestReplayEnds(t *testing.T) {
	b := openBus(t)
	stop := b.OnReplay("acme", "run_1", func() { t.Error("replay was called") })
	requests := make(chan struct{}, 1)
	defer b.OnReplay("acme", "run_1", func() { requests <- struct{}{} })()
	stop()
	bustest.Listen(t, b, "acme", "run_1")
	<-requests
	if b.Registered() != 2 { // one listener's run, and one sender's
		t.Error("the registration is kept")
	}
}
