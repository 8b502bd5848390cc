package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// links are what stands between two processes and can be disturbed, by name: client-0 (between clients and a gateway),
// upstream, store, bus-0.
type links struct {
	server  *toxiproxy.ApiServer
	proxies map[string]*toxiproxy.Proxy
	socket  *socketRelay
}

func newLinks(c *cluster) (*links, error) {
	l := &links{
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		proxies: map[string]*toxiproxy.Proxy{},
	}
	err := l.add("upstream", strings.TrimPrefix(c.upstream.URL, "http://"))
	for i, p := range c.nats {
		err = errors.Join(err, l.add("bus-"+strconv.Itoa(i), p.addr))
	}
	if c.pg != nil && err == nil {
		_, host, _ := strings.Cut(c.pg.DSN, "host=")
		host, _, _ = strings.Cut(host, "&")
		if l.socket, err = newSocketRelay(filepath.Join(host, ".s.PGSQL.5432")); err == nil {
			err = l.add("store", l.socket.listener.Addr().String())
		}
	}
	return l, err
}

// add makes a link to an address.
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
	if l.socket != nil {
		l.socket.close()
	}
}

// disturb puts a toxic on all links whose names begin so, in both directions, for as long as during takes.
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

// socketRelay carries bytes from a port of this machine to the socket of PostgreSQL, which listens on no network.
type socketRelay struct {
	listener net.Listener
	socket   string

	mu    sync.Mutex
	pairs []*pair
	group sync.WaitGroup
}

// pair is the two connections of one that goes through a relay. Once it is half open nothing passes any more, and
// neither side learns that the other has left.
type pair struct {
	client, server net.Conn
	halfOpen       atomic.Bool
}

func newSocketRelay(socket string) (*socketRelay, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &socketRelay{listener: listener, socket: socket}
	r.group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			p := &pair{client: client, server: server}
			r.mu.Lock()
			r.pairs = append(r.pairs, p)
			r.mu.Unlock()
			r.group.Go(func() { p.pass(server, client) })
			r.group.Go(func() { p.pass(client, server) })
		}
	})
	return r, nil
}

// pass carries bytes in one direction until either side ends.
func (p *pair) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if p.halfOpen.Load() {
			if err != nil {
				return
			}
			continue
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// breakSilently makes all connections of now half open. New ones work.
func (r *socketRelay) breakSilently() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pairs {
		p.halfOpen.Store(true)
	}
}

func (r *socketRelay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, p := range r.pairs {
		_ = p.client.Close()
		_ = p.server.Close()
	}
	r.mu.Unlock()
	r.group.Wait()
}
