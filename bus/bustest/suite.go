package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Join begins a world for one test. The function that it returns opens its nodes, the one of each number once.
type Join func(t *testing.T) func(number int) *bus.Bus

// Run tests what holds for a bus in one process and for one that connects many.
func Run(t *testing.T, join Join) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Join){
		"messages reach all nodes":   reachesAllNodes,
		"live":                       live,
		"close":                      closes,
		"a slow listener is dropped": dropsSlowListener,
		"hostile ids":                hostileIDs,
		"relay":                      relays,
		"burst":                      burst,
	} {
		t.Run(name, func(t *testing.T) { test(t, join) })
	}
}

// Listeners on all nodes receive what one node sends, unchanged and in order.
func reachesAllNodes(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	sender := node(0)
	var listeners []*bus.Listener
	for i := range 3 {
		b := node(i + 1)
		for range 2 {
			l := Listen(t, b, "acme", "run_1")
			Sound(t, sender, l, "acme", "run_1")
			listeners = append(listeners, l)
		}
	}
	own := Listen(t, sender, "acme", "run_1")
	const n = 200
	go func() {
		for i := range int64(n) {
			if err := sender.Publish([]store.Event{*Event("acme", "run_1", i+1)}); err != nil {
				t.Error(err)
			}
		}
	}()
	for i, l := range append(listeners, own) {
		var got []int64
		for len(got) < n {
			if m := Next(t, l); m.Event.Seq > 0 {
				got = append(got, m.Event.Seq)
				if diff := cmp.Diff(Event("acme", "run_1", m.Event.Seq), m.Event); diff != "" {
					t.Fatalf("listener %d (-sent +heard):\n%s", i, diff)
				}
			}
		}
		for j, seq := range got {
			if seq != int64(j+1) {
				t.Fatalf("listener %d heard %v", i, got)
			}
		}
	}
}

// Live deltas reach all listeners of their run on any node, and a new listener requests a replay.
func live(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	a, b := node(0), node(1)
	requests := make(chan string, 100)
	for _, k := range [][2]string{{"acme", "run_1"}, {"acme", "run_2"}, {"other", "run_1"}} {
		t.Cleanup(a.OnReplay(k[0], k[1], func() { requests <- k[0] + " " + k[1] }))
	}
	for name, listener := range map[string]*bus.Bus{"another node": b, "its own node": a, "a late node": node(2)} {
		l := Listen(t, listener, "acme", "run_1")
		testenv.Until(t, name+" asks for a replay", func() bool {
			select {
			case whose := <-requests:
				if whose != "acme run_1" {
					t.Errorf("%s was asked for", whose)
				}
				return true
			default: // in a cluster, the first request may be lost
				Listen(t, listener, "acme", "run_1").Close()
				return false
			}
		})
		Sound(t, a, l, "acme", "run_1")
		data := json.RawMessage(`{"text":"„Grüße“ 你好"}`)
		want := bus.Live{Kind: "text", AnswerID: "ans_1", Step: 2, At: 12, Data: data}
		a.Tell("acme", "run_1", want)
		m := Next(t, l)
		for m.Live == nil { // a cluster may be slow to forward the last sound
			m = Next(t, l)
		}
		if diff := cmp.Diff(&want, m.Live); diff != "" {
			t.Errorf("at %s (-sent +heard):\n%s", name, diff)
		}
		l.Close()
	}
}

// Closing a node closes its listeners at once.
func closes(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	node(0)
	b := node(1)
	l := Listen(t, b, "acme", "run_1")
	again := Listen(t, b, "acme", "run_2")
	testenv.OK(t, b.Close())
	for _, l := range []*bus.Listener{l, again} {
		for m := range l.C {
			if !m.Wake {
				t.Errorf("heard %+v", m)
			}
		}
		if l.Dropped() {
			t.Error("Close dropped a listener")
		}
	}
	if _, err := b.Listen(t.Context(), "acme", "run_1"); err == nil {
		t.Error("Listen on a closed bus succeeds")
	}
	if err := b.Healthy(); err == nil {
		t.Error("a closed bus is healthy")
	}
	b.Tell("acme", "run_1", bus.Live{})
	b.Wake()
}

// A listener that does not read is dropped; another one receives everything.
func dropsSlowListener(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	a, b := node(0), node(1)
	slow, quick := Listen(t, b, "acme", "run_1"), Listen(t, b, "acme", "run_1")
	Sound(t, a, quick, "acme", "run_1")
	n := int64(bus.MaxBehind + 50)
	for i := range n {
		Publish(t, a, Event("acme", "run_1", i+1))
		for {
			if m := Next(t, quick); m.Event.Seq == i+1 {
				break
			}
		}
	}
	testenv.Until(t, "the slow listener is dropped", slow.Dropped)
	got := 0
	for range slow.C {
		got++
	}
	if got != bus.MaxBehind {
		t.Errorf("a dropped listener had %d messages, want %d", got, bus.MaxBehind)
	}
	if quick.Dropped() {
		t.Error("the quick listener was dropped")
	}
	slow.Close()
	quick.Close()
}

// Ids are arbitrary strings, and a listener receives nothing of other runs.
func hostileIDs(t *testing.T, join Join) {
	t.Helper()
	long := strings.Repeat("x", 1024)
	ids := []string{
		"", "a", "a.b", "a b", "*", ">", "a.*", "a.>", "\r\n", "run\x00", "Läufe", "跑", long, long + "y", "\xff",
		"a\nPUB x 0",
	}
	node := join(t)
	a, b := node(0), node(1)
	listeners := map[[2]string]*bus.Listener{}
	for _, id := range ids {
		for _, k := range [][2]string{{"acme", id}, {"other", id}} {
			listeners[k] = Listen(t, b, k[0], k[1])
			if id != "\xff" {
				Sound(t, a, listeners[k], k[0], k[1])
			}
		}
	}
	for k := range listeners {
		Publish(t, a, Event(k[0], k[1], 7))
	}
	for k, l := range listeners {
		if k[1] == "\xff" {
			continue // not a JSON string, hence not an id that a store returns: NATS does not carry it
		}
		if m := Next(t, l); m.Event.Tenant != k[0] || m.Event.Run != k[1] || m.Event.Seq != 7 {
			t.Errorf("a listener to %q heard %+v", k, m.Event)
		}
	}
	for k, l := range listeners {
		select {
		case m := <-l.C:
			if m.Event == nil || [2]string{m.Event.Tenant, m.Event.Run} != k || k[1] != "\xff" {
				t.Errorf("a listener to %q heard %+v", k, m)
			}
		default:
		}
	}
}

// Events go from one node's store to a reader at another: existing ones, new ones, and again from any of them.
func relays(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	a, b := node(0), node(1)
	s := OpenStore(t, a)
	Put(t, s, "acme", "run_1", 3)
	stopRelay := Start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	told, stop := Follow(t, Listen(t, b, "acme", "run_1"), s, 0)
	Expect(t, told, 1, 3)
	for seq := int64(4); seq <= 8; seq++ {
		Put(t, s, "acme", "run_1", 1)
		Put(t, s, "acme", "run_2", 1)
		Put(t, s, "other", "run_1", 1)
		a.Wake()
		Expect(t, told, seq, seq)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Follow: %v", err)
	}
	resumed, _ := Follow(t, Listen(t, b, "acme", "run_1"), s, 5)
	Expect(t, resumed, 6, 8)
	Put(t, s, "acme", "run_1", 200)
	a.Wake()
	Expect(t, resumed, 9, 208)
	testenv.Until(t, "the outbox is empty", func() bool {
		left, err := s.Outbox(t.Context(), 1, 0)
		return err == nil && len(left) == 0
	})
	if err := stopRelay(); err != nil {
		t.Errorf("Relay: %v", err)
	}
}

// A burst may be too much for a reader. It returns as often as necessary, and receives every event once.
func burst(t *testing.T, join Join) {
	t.Helper()
	node := join(t)
	a, b := node(0), node(1)
	s := OpenStore(t, a)
	Start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	const n = 1500
	told := make(chan bus.Message, 2*n)
	Start(t, func(ctx context.Context) error {
		last := int64(0)
		for {
			l, err := b.Listen(ctx, "acme", "run_1")
			if err != nil {
				return err
			}
			err = l.Follow(ctx, s, last, func(m bus.Message) error {
				if m.Event != nil {
					last = m.Event.Seq
					told <- m
				}
				return nil
			})
			l.Close()
			if !errors.Is(err, bus.ErrDropped) {
				return err
			}
		}
	})
	for range 3 {
		Put(t, s, "acme", "run_1", n/3)
		a.Wake()
	}
	Expect(t, told, 1, n)
	if len(told) != 0 {
		t.Errorf("got %d more", len(told))
	}
}
