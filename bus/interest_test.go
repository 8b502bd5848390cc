package bus

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func say(t *testing.T, b *Bus, n *notice, now time.Time) {
	t.Helper()
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	b.hear(&nats.Msg{Data: data}, now)
}

// A listener that is not heard of any more is forgotten, one that is repeated stays.
func TestNoticesExpire(t *testing.T) {
	b := openBus(t, Embedded)
	sweep := func(now time.Time) {
		b.interest.sweep(func(_ string, until time.Time) bool { return now.After(until) })
	}
	listens := func() [2]bool { return [2]bool{b.Listens("acme", "1"), b.Listens("acme", "2")} }
	say(t, b, &notice{Node: "n1", On: [][2]string{{"acme", "1"}, {"acme", "2"}}}, when)
	say(t, b, &notice{Node: "n2", On: [][2]string{{"acme", "2"}}}, when.Add(20*time.Second))
	say(t, b, &notice{Node: b.node, On: [][2]string{{"acme", "3"}}}, when)
	if b.Listens("acme", "3") {
		t.Error("a node believes itself")
	}
	for _, step := range []struct {
		after time.Duration
		want  [2]bool
	}{
		{noticeLasts, [2]bool{true, true}},
		{noticeLasts + time.Second, [2]bool{false, true}},
		{noticeLasts + 21*time.Second, [2]bool{false, false}},
	} {
		sweep(when.Add(step.after))
		if got := listens(); got != step.want {
			t.Errorf("after %s: %t, want %t", step.after, got, step.want)
		}
	}
	say(t, b, &notice{Node: "n1", On: [][2]string{{"acme", "1"}, {"acme", "2"}}}, when)
	say(t, b, &notice{Node: "n1", Off: [][2]string{{"acme", "1"}}}, when)
	if got := listens(); got != [2]bool{false, true} {
		t.Errorf("after the listener left: %t", got)
	}
	say(t, b, &notice{Node: "n2", Bye: true}, when)
	if got := listens(); got != [2]bool{false, true} {
		t.Errorf("after another node left: %t", got)
	}
	say(t, b, &notice{Node: "n1", Bye: true}, when)
	if got := listens(); got != [2]bool{} || b.interest.heard != 0 || len(b.interest.runs) != 0 {
		t.Errorf("after the node left: %t, %d heard, %d runs", got, b.interest.heard, len(b.interest.runs))
	}
}

// Whoever begins to listen is a join, on whatever node, and what is only repeated is none.
func TestJoined(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			a, b := node(0), node(1)
			last := uint64(0)
			joins := func(by string, sender *Bus) {
				t.Helper()
				eventually(t, by, func() bool { return sender.Joined("acme", "run_1") != last })
				if last = sender.Joined("acme", "run_1"); last == 0 {
					t.Errorf("%s: nobody listens", by)
				}
			}
			first := listen(t, b, "acme", "run_1")
			joins("the first listener", a)
			second := listen(t, b, "acme", "run_1")
			joins("the second on that node", a)
			own := listen(t, a, "acme", "run_1")
			joins("one on this node", a)
			b.announceAll()
			second.Close()
			marker := listen(t, b, "acme", "run_2")
			eventually(t, "what came before was heard", func() bool { return a.Listens("acme", "run_2") })
			if got := a.Joined("acme", "run_1"); got != last {
				t.Errorf("what is repeated is join %d after %d", got, last)
			}
			for _, l := range []*Listener{first, own, marker} {
				l.Close()
			}
			eventually(t, "nobody listens", func() bool { return a.Joined("acme", "run_1") == 0 })
		})
	}
}

// What other nodes say fills no memory without end.
func TestNoticesAreBounded(t *testing.T) {
	var in interest
	for i := range maxHeard + 10 {
		in.hear(runKey{"acme", strconv.Itoa(i)}, "n1", when, false)
	}
	if len(in.runs) != maxHeard || in.heard != maxHeard {
		t.Errorf("%d runs of %d are known", len(in.runs), in.heard)
	}
	in.join(runKey{"acme", "mine"})
	if in.joined(runKey{"acme", "mine"}) == 0 {
		t.Error("a listener of our own is not known")
	}
	in.forget(runKey{"acme", "0"}, "n1")
	in.hear(runKey{"acme", "new"}, "n2", when, false)
	if in.joined(runKey{"acme", "new"}) == 0 || in.joined(runKey{"acme", "0"}) != 0 {
		t.Error("what was forgotten made no room")
	}
}

// All that a node listens to is told in messages that a server takes.
func TestManyListenersAreTold(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			b := node(0)
			const n = 1500
			name := func(i int) string { return strconv.Itoa(i) + "\x01" + string(make([]byte, 100)) } // six bytes of JSON each
			for i := range n {
				if _, err := b.join(runKey{"acme", name(i)}); err != nil {
					t.Fatal(err)
				}
			}
			late := node(1)
			eventually(t, "a node that came later knows them all", func() bool {
				for i := range n {
					if !late.Listens("acme", name(i)) {
						return false
					}
				}
				return true
			})
		})
	}
}

func BenchmarkListens(b *testing.B) {
	for _, runs := range []int{0, 1, 10_000} {
		b.Run("runs="+strconv.Itoa(runs), func(b *testing.B) {
			bus := newBus(nil)
			for i := range runs {
				bus.interest.join(runKey{"acme", "run_" + strconv.Itoa(i)})
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bus.Listens("acme", "run_01890a5d-ac96-774b-bcce-b302099a8057")
				}
			})
		})
	}
}
