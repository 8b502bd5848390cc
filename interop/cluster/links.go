package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/ibidhq/ibid/internal/testenv"
)

// links are connections between two processes that can be disturbed, by name: client-0 (between clients and a gateway),
// upstream, store, bus-0.
type links struct {
	server  *toxiproxy.ApiServer
	proxies map[string]*toxiproxy.Proxy
	relays  map[string]*testenv.Relay // behind those of the store and the bus
}

func newLinks(c *cluster) (*links, error) {
	l := &links{
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		proxies: map[string]*toxiproxy.Proxy{},
		relays:  map[string]*testenv.Relay{},
	}
	err := l.add("upstream", strings.TrimPrefix(c.upstream.URL, "http://"))
	for i, p := range c.nats {
		err = errors.Join(err, l.addRelayed("bus-"+strconv.Itoa(i), "tcp", p.addr))
	}
	if c.pg != nil {
		_, host, _ := strings.Cut(c.pg.DSN, "host=")
		host, _, _ = strings.Cut(host, "&")
		err = errors.Join(err, l.addRelayed("store", "unix", filepath.Join(host, ".s.PGSQL.5432")))
	}
	return l, err
}

// addRelayed adds a link through a relay, which can break its connections silently.
func (l *links) addRelayed(name, network, to string) error {
	relay, err := testenv.NewRelay(network, to)
	if err != nil {
		return err
	}
	l.relays[name] = relay
	return l.add(name, relay.Addr())
}

// add adds a link to an address.
func (l *links) add(name, to string) error {
	p := toxiproxy.NewProxy(l.server, name, "127.0.0.1:0", to)
	if err := p.Start(); err != nil {
		return fmt.Errorf("linking %s to %s: %w", name, to, err)
	}
	l.proxies[name] = p
	return nil
}

func (l *links) addr(name string) string { return l.proxies[name].Listen }

func (l *links) close() {
	for _, p := range l.proxies {
		p.Stop()
	}
	for _, relay := range l.relays {
		relay.Close()
	}
}

// breakSilently makes existing connections half open on all links with the prefix. New ones work.
func (l *links) breakSilently(prefix string) {
	for name, relay := range l.relays {
		if strings.HasPrefix(name, prefix) {
			relay.BreakSilently()
		}
	}
}

// disturb applies a toxic to all links with the prefix, in both directions, while during runs.
func (l *links) disturb(ctx context.Context, prefix, toxic string, during func() error) (err error) {
	for name, p := range l.proxies {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, direction := range []string{"upstream", "downstream"} {
			if _, err := p.Toxics.AddToxicJson(strings.NewReader(
				fmt.Sprintf(`{"name":%q,"stream":%q,%s}`, direction, direction, toxic),
			)); err != nil {
				return fmt.Errorf("disturbing %s: %w", name, err)
			}
			defer func() { err = errors.Join(err, p.Toxics.RemoveToxic(ctx, direction)) }()
		}
	}
	return during()
}

// toxics are the faults of connections, in toxiproxy's terms.
var (
	slowing = []string{
		`"type":"latency","attributes":{"latency":150}`,
		`"type":"latency","attributes":{"latency":60,"jitter":60}`,
		`"type":"bandwidth","attributes":{"rate":100}`, // KB/s
	}
	breaking = []string{
		`"type":"limit_data","attributes":{"bytes":2500}`, // in the middle of an answer
		`"type":"reset_peer","attributes":{"timeout":100}`,
		`"type":"timeout","attributes":{"timeout":0}`, // nothing passes, and neither end is notified
	}
)

// toxicTime is the duration of each fault.
const toxicTime = time.Second

// connections are the faults of connections between two processes: a call that needs a broken one may fail.
func connections() []fault {
	disturbed := func(prefix string, toxics ...string) func(context.Context, *cluster) error {
		return func(ctx context.Context, c *cluster) error {
			for _, toxic := range toxics {
				wait := func() error { return pause(ctx, toxicTime) }
				if err := c.links.disturb(ctx, prefix, toxic, wait); err != nil {
					return err
				}
			}
			return nil
		}
	}
	silent := func(prefix string) func(context.Context, *cluster) error {
		return func(ctx context.Context, c *cluster) error {
			c.links.breakSilently(prefix)
			return pause(ctx, toxicTime)
		}
	}
	return []fault{
		{name: "client slow", do: disturbed("client", slowing...)},
		{name: "client broken", do: disturbed("client", breaking...), mayFail: anyCall, repeats: true},
		{name: "upstream slow", do: disturbed("upstream", slowing...)},
		{name: "upstream broken", do: disturbed("upstream", breaking...), mayFail: anyCall},
		{name: "store slow", do: disturbed("store", slowing...)},
		{name: "store broken", do: disturbed("store", breaking...)},
		{name: "store half open", do: silent("store")},
		{name: "bus slow", do: disturbed("bus", slowing...)},
		{name: "bus broken", do: disturbed("bus", breaking...)},
		{name: "bus half open", do: silent("bus")},
	}
}
