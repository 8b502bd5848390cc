package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worlds are the ways to connect nodes: through a server in the process, one that listens, or a cluster of three. Each
// function returned opens nodes that are closed at the end of the test.
func worlds() map[string]func(*testing.T) func(number int) *Bus {
	return map[string]func(*testing.T) func(int) *Bus{"embedded": embeddedWorld, "server": serverWorld, "cluster": clusterWorld}
}

// embeddedWorld has one server in the process, shared by the test's nodes.
func embeddedWorld(t *testing.T) func(int) *Bus {
	t.Helper()
	first := openBus(t, Embedded)
	return func(number int) *Bus {
		if number == 0 {
			return first
		}
		b := newBus(nil)
		testenv.OK(t, b.connect("", nats.InProcessServer(first.server)))
		b.wg.Go(b.run)
		t.Cleanup(func() { closeBus(t, b) })
		return b
	}
}

func serverWorld(t *testing.T) func(int) *Bus {
	t.Helper()
	s := startNATS(t, &server.Options{})
	return func(int) *Bus { return openBus(t, s.ClientURL()) }
}

func clusterWorld(t *testing.T) func(int) *Bus {
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
	return func(number int) *Bus { return openBus(t, servers[number%3].ClientURL()) }
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

func openBus(t *testing.T, address string) *Bus {
	t.Helper()
	b := testenv.Must(Open(t.Context(), address, nil))(t)
	t.Cleanup(func() { closeBus(t, b) })
	return b
}

func closeBus(t *testing.T, b *Bus) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Errorf("closing the bus: %v", err)
	}
}

func listen(t *testing.T, b *Bus, tenant, run string) *Listener {
	t.Helper()
	l := testenv.Must(b.Listen(t.Context(), tenant, run))(t)
	t.Cleanup(l.Close)
	return l
}

// next returns the listener's next message other than a wake-up.
func next(t *testing.T, l *Listener) Message {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; { // wake-ups arrive before receive times out
		m, err := receive(l)
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

func receive(l *Listener) (Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case m, open := <-l.C:
		if !open {
			return m, fmt.Errorf("the channel is closed, dropped: %t", l.Dropped())
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, fmt.Errorf("no message came")
	}
}
