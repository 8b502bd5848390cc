package bus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

var when = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func event(tenant, run string, seq int64) *store.Event {
	return &store.Event{
		ID: 1000 + seq, Tenant: tenant, Run: run, Seq: seq, Kind: store.EventAnswer, At: when,
		Data: json.RawMessage(fmt.Sprintf(`{"answer_id":"ans_%d"}`, seq)),
	}
}

// publish sends an event as the relay does.
func publish(t *testing.T, b *Bus, e *store.Event) {
	t.Helper()
	testenv.OK(t, b.publishEvent(e))
}

// sound publishes events to a run until one arrives, and all sent before it: in a cluster, servers announce
// subscriptions to each other with a delay, and messages sent in the meantime may be lost.
func sound(t *testing.T, b *Bus, l *Listener, tenant, run string) {
	t.Helper()
	seq := int64(0)
	testenv.Until(t, "nodes hear each other", func() bool {
		seq--
		publish(t, b, event(tenant, run, seq))
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

// Listeners on all nodes receive what one node sends, unchanged and in order.
func TestMessagesReachAllNodes(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			sender := node(0)
			var listeners []*Listener
			for i := range 3 {
				b := node(i + 1)
				for range 2 {
					l := listen(t, b, "acme", "run_1")
					sound(t, sender, l, "acme", "run_1")
					listeners = append(listeners, l)
				}
			}
			own := listen(t, sender, "acme", "run_1")
			const n = 200
			go func() {
				for i := range int64(n) {
					if err := sender.publishEvent(event("acme", "run_1", i+1)); err != nil {
						t.Error(err)
					}
				}
			}()
			for i, l := range append(listeners, own) {
				var got []int64
				for len(got) < n {
					if m := next(t, l); m.Event.Seq > 0 {
						got = append(got, m.Event.Seq)
						if diff := cmp.Diff(event("acme", "run_1", m.Event.Seq), m.Event); diff != "" {
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
		})
	}
}

// Live deltas reach all listeners of their run on any node, and a new listener requests a replay.
func TestLive(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			a, b := node(0), node(1)
			requests := make(chan string, 100)
			for _, k := range []runKey{{"acme", "run_1"}, {"acme", "run_2"}, {"other", "run_1"}} {
				t.Cleanup(a.OnReplay(k.Tenant, k.Run, func() { requests <- k.Tenant + " " + k.Run }))
			}
			for name, listener := range map[string]*Bus{"another node": b, "its own node": a, "a late node": node(2)} {
				l := listen(t, listener, "acme", "run_1")
				testenv.Until(t, name+" asks for a replay", func() bool {
					select {
					case whose := <-requests:
						if whose != "acme run_1" {
							t.Errorf("%s was asked for", whose)
						}
						return true
					default: // in a cluster, the first request may be lost
						listener.requestReplay(listener.conn, l.key)
						return false
					}
				})
				sound(t, a, l, "acme", "run_1")
				want := Live{Kind: "text", AnswerID: "ans_1", Step: 2, At: 12, Data: json.RawMessage(`{"text":"„Grüße“ 你好"}`)}
				a.Tell("acme", "run_1", want)
				m := next(t, l)
				for m.Live == nil { // a cluster may be slow to forward the last sound
					m = next(t, l)
				}
				if diff := cmp.Diff(&want, m.Live); diff != "" {
					t.Errorf("at %s (-sent +heard):\n%s", name, diff)
				}
				l.Close()
			}
		})
	}
}

// After stop, an answer's sender is not asked for a replay.
func TestReplayEnds(t *testing.T) {
	b := openBus(t, Embedded)
	stop := b.OnReplay("acme", "run_1", func() { t.Error("replay was called") })
	requests := make(chan struct{}, 1)
	defer b.OnReplay("acme", "run_1", func() { requests <- struct{}{} })()
	stop()
	listen(t, b, "acme", "run_1")
	<-requests
	if len(b.replays[runKey{"acme", "run_1"}]) != 1 {
		t.Error("the registration is kept")
	}
}

// Closing a node closes its listeners at once.
func TestClose(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			node(0)
			b := node(1)
			l := listen(t, b, "acme", "run_1")
			again := listen(t, b, "acme", "run_2")
			testenv.OK(t, b.Close())
			for _, l := range []*Listener{l, again} {
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
			b.Tell("acme", "run_1", Live{})
			b.Wake()
		})
	}
}

// A listener that does not read is dropped; another one receives everything.
func TestSlowListenerIsDropped(t *testing.T) {
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			a, b := node(0), node(1)
			slow, quick := listen(t, b, "acme", "run_1"), listen(t, b, "acme", "run_1")
			sound(t, a, quick, "acme", "run_1")
			n := int64(MaxBehind + 50)
			for i := range n {
				publish(t, a, event("acme", "run_1", i+1))
				for {
					if m := next(t, quick); m.Event.Seq == i+1 {
						break
					}
				}
			}
			testenv.Until(t, "the slow listener is dropped", slow.Dropped)
			got := 0
			for range slow.C {
				got++
			}
			if got != MaxBehind {
				t.Errorf("a dropped listener had %d messages, want %d", got, MaxBehind)
			}
			if quick.Dropped() {
				t.Error("the quick listener was dropped")
			}
			slow.Close()
			quick.Close()
		})
	}
}

// Ids are arbitrary strings. They yield different valid NATS subjects, and a listener receives nothing of other runs.
func TestHostileIDs(t *testing.T) {
	long := strings.Repeat("x", 1024)
	ids := []string{"", "a", "a.b", "a b", "*", ">", "a.*", "a.>", "\r\n", "run\x00", "Läufe", "跑", long, long + "y", "\xff", "a\nPUB x 0"}
	for world, join := range worlds() {
		t.Run(world, func(t *testing.T) {
			node := join(t)
			a, b := node(0), node(1)
			subjects := map[string]bool{}
			for _, id := range ids {
				for _, k := range []runKey{{"acme", id}, {id, "acme"}} {
					subjects[k.subject()] = true
					if len(k.subject()) > 100 || strings.ContainsAny(k.subject(), " *>\r\n\x00") || strings.Count(k.subject(), ".") != 4 {
						t.Errorf("the subject of %q is %q", k, k.subject())
					}
				}
			}
			if len(subjects) != 2*len(ids) {
				t.Errorf("%d runs have %d subjects", 2*len(ids), len(subjects))
			}
			listeners := map[runKey]*Listener{}
			for _, id := range ids {
				for _, k := range []runKey{{"acme", id}, {"other", id}} {
					listeners[k] = listen(t, b, k.Tenant, k.Run)
					if id != "\xff" {
						sound(t, a, listeners[k], k.Tenant, k.Run)
					}
				}
			}
			for k := range listeners {
				publish(t, a, event(k.Tenant, k.Run, 7))
			}
			for k, l := range listeners {
				if k.Run == "\xff" {
					continue // not a JSON string, hence not an id that a store returns
				}
				if m := next(t, l); m.Event.Tenant != k.Tenant || m.Event.Run != k.Run || m.Event.Seq != 7 {
					t.Errorf("a listener to %q heard %+v", k, m.Event)
				}
			}
			for k, l := range listeners {
				select {
				case m := <-l.C:
					t.Errorf("a listener to %q heard %+v", k, m)
				default:
				}
			}
		})
	}
}

// Foreign messages under a run's subject are ignored and end nothing.
func TestForeignMessages(t *testing.T) {
	a := openBus(t, Embedded)
	l := listen(t, a, "acme", "run_1")
	subject := runKey{"acme", "run_1"}.subject()
	for _, data := range []string{"", "{", "[]", "null", `{"tenant":"other","run":"run_1","seq":1}`, `{"tenant":"acme","run":7}`} {
		for _, suffix := range []string{eventSuffix, liveSuffix} {
			testenv.OK(t, a.conn.Publish(subject+suffix, []byte(data)))
		}
		testenv.OK(t, a.conn.Publish(replaySubject, []byte(data)))
	}
	publish(t, a, event("acme", "run_1", 1))
	if m := next(t, l); m.Event == nil || m.Event.Seq != 1 {
		t.Errorf("heard %+v", m)
	}
}

// An event that is too large for a message wakes the listener instead; a live delta is lost.
func TestLargeMessages(t *testing.T) {
	small := startNATS(t, &server.Options{MaxPayload: 4096})
	for name, b := range map[string]*Bus{"embedded": openBus(t, Embedded), "a server that allows less": openBus(t, small.ClientURL())} {
		t.Run(name, func(t *testing.T) {
			limit := b.limit()
			if name == "embedded" && limit != maxMessage || name != "embedded" && limit != 4096 {
				t.Errorf("the limit is %d", limit)
			}
			l := listen(t, b, "acme", "run_1")
			e := event("acme", "run_1", 1)
			over := len(encodeEvent(e, limit)) - len(e.Data)
			e.Data = json.RawMessage(`"` + strings.Repeat("x", limit-over-2) + `"`)
			publish(t, b, e)
			if m := next(t, l); cmp.Diff(e, m.Event) != "" {
				t.Errorf("an event of exactly %d bytes came as %+v", limit, m)
			}
			e.Data = json.RawMessage(`"` + strings.Repeat("x", limit-over-1) + `"`)
			publish(t, b, e)
			if m, err := receive(l); err != nil || !m.Wake {
				t.Errorf("an event of %d bytes came as %+v, %v", limit+1, m, err)
			}
			b.Tell("acme", "run_1", Live{Kind: "text", Data: json.RawMessage(`"` + strings.Repeat("x", limit) + `"`)})
			b.Tell("acme", "run_1", Live{Kind: "text", At: 5})
			if m := next(t, l); m.Live == nil || m.Live.At != 5 {
				t.Errorf("heard %+v", m)
			}
			e.Data = json.RawMessage(`{`)
			if data := encodeEvent(e, limit); data == nil || strings.Contains(string(data), "event") {
				t.Errorf("an event with bad data is sent as %s", data)
			}
			e.Run = strings.Repeat("x", limit)
			if data := encodeEvent(e, limit); data != nil {
				t.Errorf("an event with a huge run is sent in %d bytes", len(data))
			}
			publish(t, b, e)
		})
	}
}

// When a server goes away and comes back, the bus reports it, and its listeners are woken and receive messages again.
func TestReconnect(t *testing.T) {
	s := startNATS(t, &server.Options{})
	port := s.Addr().String()
	address := s.ClientURL()
	a, b := openBus(t, address), openBus(t, address)
	l := listen(t, b, "acme", "run_1")
	sound(t, a, l, "acme", "run_1")
	s.Shutdown()
	s.WaitForShutdown()
	testenv.Until(t, "both miss the server", func() bool { return a.Healthy() != nil && b.Healthy() != nil })
	for range 3 * maxLiveQueue { // never blocks
		a.Tell("acme", "run_9", Live{Kind: "text"})
	}
	during := listen(t, b, "acme", "run_2")
	var at int
	testenv.Must(fmt.Sscanf(port[strings.LastIndexByte(port, ':')+1:], "%d", &at))(t)
	startNATS(t, &server.Options{Port: at})
	testenv.Until(t, "both are connected again", func() bool { return a.Healthy() == nil && b.Healthy() == nil })
	for _, l := range []*Listener{l, during} {
		for woken := false; !woken; {
			m := testenv.Must(receive(l))(t)
			woken = m.Wake
		}
	}
	sound(t, a, during, "acme", "run_2")
	publish(t, a, event("acme", "run_2", 3))
	if m := next(t, during); m.Event == nil || m.Event.Seq != 3 {
		t.Errorf("heard %+v", m)
	}
}

// An unreachable server is no error; a server that requires a password gets it, and errors do not contain it.
func TestOpen(t *testing.T) {
	for _, address := range []string{"", "nats://", "localhost:4222", "http://h:1", "nats://u:hunter2@h:x", "nats://a:1,,nats://b:2", "nats://u:hunter2%zz@h:1"} {
		_, err := Open(t.Context(), address, nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q): %v", address, err)
		}
	}
	s := startNATS(t, &server.Options{Username: "ibid", Password: "hunter2"})
	host := s.Addr().String()
	right := testenv.Must(Open(t.Context(), "nats://127.0.0.1:1, nats://ibid:hunter2@"+host, nil))(t)
	defer closeBus(t, right)
	if err := right.Healthy(); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"nats://ibid:hunter3@" + host, "nats://ibid:hunter3@127.0.0.1:1"} {
		wrong := testenv.Must(Open(t.Context(), address, nil))(t)
		testenv.Until(t, "the reason is known", func() bool { return strings.Contains(wrong.Healthy().Error(), ": not connected to NATS") })
		if text := wrong.Healthy().Error(); strings.Contains(text, "hunter") {
			t.Errorf("Healthy: %s", text)
		}
		l, err := wrong.Listen(t.Context(), "acme", "run_1")
		if err != nil {
			t.Error(err)
		}
		l.Close()
		closeBus(t, wrong)
		closeBus(t, wrong)
	}
}
