package gateway

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Crowd bounds how many clients are connected to a server of [NewServer] at once: more wait until somebody leaves.
// Without that, a process that has no file descriptors left for its database and for providers would accept connections
// only to fail each call. While it is full, no connection is kept open idle. Its methods may be called by many
// goroutines at once.
type Crowd struct {
	most   int64
	server *http.Server
	tell   func(full bool)
	full   atomic.Bool
	room   chan struct{} // of capacity 1: somebody has left since Accept looked last
}

// fullQuarters is how many quarters of the connections have to be taken for a server that was full to stay full.
const fullQuarters = 3

// NewCrowd bounds the connections of a server that does not serve yet. Tell is called when all are taken, and when a
// quarter is free again.
func NewCrowd(s *http.Server, most int, tell func(full bool)) *Crowd {
	c := &Crowd{most: int64(most), server: s, tell: tell, room: make(chan struct{}, 1)}
	if f, ok := s.Handler.(*farewell); ok {
		f.crowd.Store(c)
	}
	return c
}

// Full reports whether new clients wait.
func (c *Crowd) Full() bool { return c.full.Load() }

// Listener returns a listener that takes a connection only when there is room for it.
func (c *Crowd) Listener(l net.Listener) net.Listener {
	f, ok := c.server.Handler.(*farewell)
	if !ok {
		return l
	}
	return &crowdListener{Listener: l, crowd: c, connections: &f.connections, closed: make(chan struct{})}
}

// left notes that a connection has ended, and n are open now.
func (c *Crowd) left(n int64) {
	select {
	case c.room <- struct{}{}:
	default:
	}
	if n < c.most*fullQuarters/4 && c.full.CompareAndSwap(true, false) {
		c.server.SetKeepAlivesEnabled(true)
		c.tell(false)
	}
}

// fill notes that all connections are taken.
func (c *Crowd) fill() {
	if c.full.CompareAndSwap(false, true) {
		c.tell(true)
		c.server.SetKeepAlivesEnabled(false) // which ends those that are idle
	}
}

// crowdListener accepts a connection only when there is room for it.
type crowdListener struct {
	net.Listener

	crowd       *Crowd
	connections *atomic.Int64
	once        sync.Once
	closed      chan struct{}
}

// Accept is that of [net.Listener].
func (l *crowdListener) Accept() (net.Conn, error) {
	for l.connections.Load() >= l.crowd.most {
		l.crowd.fill()
		select {
		case <-l.crowd.room:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	return l.Listener.Accept()
}

// Close is that of [net.Listener].
func (l *crowdListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
