// Package bus_test tests package bus against real NATS servers: one, and a cluster of three.
package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/bus/bustest"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServer(t *testing.T)       { bustest.Run(t, serverWorld) }
func TestThreeServers(t *testing.T) { bustest.Run(t, clusterWorld) }

// subjects returns the subjects of a run's events and live deltas, and that of requests for a replay, from what NATS
// carries when they are sent.
func subjects(t *testing.T, conn *nats.Conn, b *bus.Bus, tenant, run string) []string {
	t.Helper()
	sub := testenv.Must(conn.SubscribeSync("ibid.v1.>"))(t)
	testenv.OK(t, conn.Flush())
	bustest.Publish(t, b, bustest.Event(tenant, run, 0))
	b.Tell(tenant, run, bus.Live{Kind: "text"})
	bustest.Listen(t, b, tenant, run).Close()
	seen := map[string]bool{}
	for len(seen) < 3 {
		seen[testenv.Must(sub.NextMsg(20*time.Second))(t).Subject] = true
	}
	testenv.OK(t, sub.Unsubscribe())
	return slices.Sorted(maps.Keys(seen))
}

// Foreign messages under a run's subject are ignored and end nothing.
func TestForeignMessages(t *testing.T) {
	s := startNATS(t, &server.Options{})
	a := openBus(t, s.ClientURL())
	conn := testenv.Must(nats.Connect(s.ClientURL()))(t)
	defer conn.Close()
	names := subjects(t, conn, a, "acme", "run_1")
	l := bustest.Listen(t, a, "acme", "run_1")
	for _, data := range []string{"", "{", "[]", "null", `{"tenant":"other","run":"run_1","seq":1}`, `{"tenant":"acme","run":7}`} {
		for _, subject := range names {
			testenv.OK(t, conn.Publish(subject, []byte(data)))
		}
	}
	testenv.OK(t, conn.Flush())
	bustest.Publish(t, a, bustest.Event("acme", "run_1", 1))
	if m := bustest.Next(t, l); m.Event == nil || m.Event.Seq != 1 {
		t.Errorf("heard %+v", m)
	}
}

// An event that is too large for a message wakes the listener instead; a live delta is lost.
func TestLargeMessages(t *testing.T) {
	for name, limit := range map[string]int32{"64 KiB": 1 << 20, "what the server allows": 4096} {
		t.Run(name, func(t *testing.T) {
			s := startNATS(t, &server.Options{MaxPayload: limit})
			b := openBus(t, s.ClientURL())
			limit := min(int(limit), 64<<10)
			l := bustest.Listen(t, b, "acme", "run_1")
			e := bustest.Event("acme", "run_1", 1)
			over := len(`{"tenant":"acme","run":"run_1","event":}`) + len(testenv.Must(json.Marshal(e))(t)) - len(e.Data)
			e.Data = json.RawMessage(`"` + strings.Repeat("x", limit-over-2) + `"`)
			bustest.Publish(t, b, e)
			if m := bustest.Next(t, l); cmp.Diff(e, m.Event) != "" {
				t.Errorf("an event of exactly %d bytes came as %+v", limit, m)
			}
			e.Data = json.RawMessage(`"` + strings.Repeat("x", limit-over-1) + `"`)
			bustest.Publish(t, b, e)
			if m, err := bustest.Receive(l); err != nil || !m.Wake {
				t.Errorf("an event of %d bytes came as %+v, %v", limit+1, m, err)
			}
			e.Data = json.RawMessage(`{`)
			bustest.Publish(t, b, e)
			if m, err := bustest.Receive(l); err != nil || !m.Wake {
				t.Errorf("an event with bad data came as %+v, %v", m, err)
			}
			e.Run = strings.Repeat("x", limit)
			bustest.Publish(t, b, e)
			b.Tell("acme", "run_1", bus.Live{Kind: "text", Data: json.RawMessage(`"` + strings.Repeat("x", limit) + `"`)})
			b.Tell("acme", "run_1", bus.Live{Kind: "text", At: 5})
			if m := bustest.Next(t, l); m.Live == nil || m.Live.At != 5 {
				t.Errorf("heard %+v", m)
			}
		})
	}
}

// When a server goes away and comes back, the bus reports it, and its listeners are woken and receive messages again.
func TestReconnect(t *testing.T) {
	s := startNATS(t, &server.Options{})
	port := s.Addr().String()
	address := s.ClientURL()
	a, b := openBus(t, address), openBus(t, address)
	l := bustest.Listen(t, b, "acme", "run_1")
	bustest.Sound(t, a, l, "acme", "run_1")
	s.Shutdown()
	s.WaitForShutdown()
	testenv.Until(t, "both miss the server", func() bool { return a.Healthy() != nil && b.Healthy() != nil })
	for range 3000 { // never blocks
		a.Tell("acme", "run_9", bus.Live{Kind: "text"})
	}
	during := bustest.Listen(t, b, "acme", "run_2")
	var at int
	testenv.Must(fmt.Sscanf(port[strings.LastIndexByte(port, ':')+1:], "%d", &at))(t)
	startNATS(t, &server.Options{Port: at})
	testenv.Until(t, "both are connected again", func() bool { return a.Healthy() == nil && b.Healthy() == nil })
	for _, l := range []*bus.Listener{l, during} {
		for woken := false; !woken; {
			m := testenv.Must(bustest.Receive(l))(t)
			woken = m.Wake
		}
	}
	bustest.Sound(t, a, during, "acme", "run_2")
	bustest.Publish(t, a, bustest.Event("acme", "run_2", 3))
	if m := bustest.Next(t, during); m.Event == nil || m.Event.Seq != 3 {
		t.Errorf("heard %+v", m)
	}
}

// An unreachable server is no error; a server that requires a password gets it, and errors do not contain it.
func TestOpen(t *testing.T) {
	s := startNATS(t, &server.Options{Username: "ibid", Password: "hunter2"})
	host := s.Addr().String()
	right := testenv.Must(bus.Open(t.Context(), "nats://127.0.0.1:1, nats://ibid:hunter2@"+host, nil))(t)
	defer closeBus(t, right)
	if err := right.Healthy(); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"nats://ibid:hunter3@" + host, "nats://ibid:hunter3@127.0.0.1:1"} {
		wrong := testenv.Must(bus.Open(t.Context(), address, nil))(t)
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

// Events written while NATS is unreachable arrive afterwards.
func TestRelayAfterReconnect(t *testing.T) {
	first := startNATS(t, &server.Options{})
	host, address := first.Addr().String(), first.ClientURL()
	port := testenv.Must(strconv.Atoi(host[strings.LastIndexByte(host, ':')+1:]))(t)
	a, b := openBus(t, address), openBus(t, address)
	s := bustest.OpenStore(t, a)
	bustest.Start(t, func(ctx context.Context) error { return a.Relay(ctx, s) })
	told, _ := bustest.Follow(t, bustest.Listen(t, b, "acme", "run_1"), s, 0)
	bustest.Put(t, s, "acme", "run_1", 2)
	a.Wake()
	bustest.Expect(t, told, 1, 2)
	first.Shutdown()
	first.WaitForShutdown()
	testenv.Until(t, "the server is missed", func() bool { return a.Healthy() != nil })
	bustest.Put(t, s, "acme", "run_1", 2)
	a.Wake()
	startNATS(t, &server.Options{Port: port})
	bustest.Expect(t, told, 3, 4)
	testenv.Until(t, "the outbox is empty", func() bool {
		left, err := s.Outbox(t.Context(), 1, 0)
		return err == nil && len(left) == 0
	})
}

func serverWorld(t *testing.T) func(int) *bus.Bus {
	t.Helper()
	s := startNATS(t, &server.Options{})
	return func(int) *bus.Bus { return openBus(t, s.ClientURL()) }
}

func clusterWorld(t *testing.T) func(int) *bus.Bus {
	t.Helper()
	var routes []*url.URL
	var servers []*server.Server
	for i := range 3 {
		s := startNATS(t, &server.Options{
			ServerName: "n" + strconv.Itoa(i),
			Cluster:    server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: -1, PoolSize: -1},
			Routes:     routes,
		})
		routes = append(routes, &url.URL{Scheme: "nats", Host: s.ClusterAddr().String()})
		servers = append(servers, s)
	}
	for _, s := range servers {
		testenv.Until(t, "the cluster is whole", func() bool { return s.NumRoutes() >= 2 })
	}
	return func(number int) *bus.Bus { return openBus(t, servers[number%3].ClientURL()) }
}

func startNATS(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog = "127.0.0.1", true, true
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s := testenv.Must(server.NewServer(o))(t)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

func openBus(t *testing.T, address string) *bus.Bus {
	t.Helper()
	b := testenv.Must(bus.Open(t.Context(), address, nil))(t)
	t.Cleanup(func() { closeBus(t, b) })
	return b
}

func closeBus(t *testing.T, b *bus.Bus) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Errorf("closing the bus: %v", err)
	}
}
