package testenv

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Relay carries bytes between a port of this machine and an address, such as the socket of a PostgreSQL server, until
// its connections are broken: so that both ends know it, or silently, as a machine that loses power breaks them.
type Relay struct {
	listener net.Listener

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

// NewRelay returns a relay to an address of a network: "tcp" or "unix". The caller closes it.
func NewRelay(network, address string) (*Relay, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: listener}
	r.group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.Background(), network, address)
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

// Addr returns where the relay listens, as host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// BreakSilently makes all connections of now half open. New ones work.
func (r *Relay) BreakSilently() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pairs {
		p.halfOpen.Store(true)
	}
}

// Break ends all connections of now. New ones work.
func (r *Relay) Break() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pairs {
		_ = p.client.Close()
		_ = p.server.Close()
	}
	r.pairs = nil
}

// Close ends all connections, and returns when nothing passes any more.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.Break()
	r.group.Wait()
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
