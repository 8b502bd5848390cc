package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The limits of [NewServer].
const (
	// MaxHeader is how many bytes the header of a request may have; more is a 431.
	MaxHeader = 64 << 10
	// headerTime is how long a client may take to send a request's header.
	headerTime = 20 * time.Second
	// idleTime is how long a connection is kept open between requests.
	idleTime = 3 * time.Minute
	// maxStreams is how many requests one HTTP/2 connection may make at a time.
	maxStreams = 1000
)

// lastMoment is how long calls have to end once their connections are closed.
const lastMoment = 2 * time.Second

// ServerOptions are the options of [NewServer].
type ServerOptions struct {
	TLS    *tls.Config  // nil: no TLS
	Logger *slog.Logger // hears about broken connections and panics of handlers; nil: nobody does
}

// NewServer returns a server for a handler that streams, at an address as net/http takes it. It speaks HTTP/1.1 and
// HTTP/2, the latter with TLS and, with prior knowledge, without. It bounds what a request's header may cost; how long
// a request may take is up to its handler.
func NewServer(address string, h http.Handler, o *ServerOptions) *http.Server {
	o = cmp.Or(o, &ServerOptions{})
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	end := &farewell{Handler: h}
	s := &http.Server{
		Addr:              address,
		Handler:           end,
		ConnState:         end.note,
		TLSConfig:         o.TLS,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, SendPingTimeout: 30 * time.Second, WriteByteTimeout: 2 * time.Minute,
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// farewell is the handler of a server that leaves politely: for a while each response says that it is the last one on
// its connection. If idle connections were just closed, a call that a client was about to send on one would fail.
type farewell struct {
	http.Handler

	leaving     atomic.Bool
	connections atomic.Int64          // that are open
	crowd       atomic.Pointer[Crowd] // nil: there may be any number
}

// farewellPart is the part of the time to stop in which clients with open connections hear that the server stops.
const farewellPart = 30

func (f *farewell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.leaving.Load() && r.ProtoMajor == 1 { // HTTP/2 has a message for that
		w.Header().Set("Connection", "close")
	}
	f.Handler.ServeHTTP(w, r)
}

// note counts connections, for [http.Server.ConnState].
func (f *farewell) note(_ net.Conn, state http.ConnState) {
	switch state { //nolint:exhaustive // the others neither begin nor end a connection
	case http.StateNew:
		f.connections.Add(1)
	case http.StateHijacked, http.StateClosed:
		n := f.connections.Add(-1)
		if c := f.crowd.Load(); c != nil {
			c.left(n)
		}
	}
}

// Shutdown ends a server and the gateway behind it: it takes no more calls, lets those that are being served end, and
// waits until their answers are in the store. When ctx ends it breaks off what is left, whose partial answers go into
// the journal, and says so. A server of [NewServer] goes on for a thirtieth of the time until ctx ends, as long as
// clients have connections: close its listener before, so that these are all.
func Shutdown(ctx context.Context, s *http.Server, g *Gateway) error {
	if f, ok := s.Handler.(*farewell); ok {
		f.leaving.Store(true)
		const step = 5 * time.Millisecond
		if end, ok := ctx.Deadline(); ok {
			left := time.Until(end) / farewellPart
			for left > 0 && f.connections.Load() > 0 && pause(ctx, min(left, step)) == nil {
				left -= step
			}
		}
	}
	err := s.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("shutting down: calls were broken off: %w", errors.Join(err, s.Close()))
	}
	return errors.Join(err, g.Close(ctx))
}

// patience ends a call whose client does not read: what is written to it may take Limits.Idle, and up to twice as long.
// How long the upstream is silent is of no matter, which is why a deadline for all that is written would not do. HTTP/2
// would not see it otherwise: its server only looks at whole connections.
//
// It costs a write two atomic additions, and a call a timer that is used again.
type patience struct {
	writes atomic.Uint64 // writes begun and ended: odd while one is going on; there is one at a time

	mu    sync.Mutex
	w     http.ResponseWriter // nil: no call
	idle  time.Duration
	seen  uint64 // of writes
	timer *time.Timer
}

// watch watches over a call.
func (p *patience) watch(w http.ResponseWriter, idle time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.idle, p.seen = w, idle, 0
	p.writes.Store(0)
	if p.timer == nil {
		p.timer = time.AfterFunc(idle, p.endStuckWrite)
		return
	}
	p.timer.Reset(idle)
}

// end leaves the rest to the server, which has to flush it in the same time. The server takes the deadline away.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	setWriteDeadline(p.w, time.Now().Add(p.idle))
	p.w = nil
}

// writing surrounds what writes to the client.
func (p *patience) writing() { p.writes.Add(1) }
func (p *patience) written() { p.writes.Add(1) }

// endStuckWrite ends the write that it saw the last time too.
func (p *patience) endStuckWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	if n := p.writes.Load(); n%2 == 0 || n != p.seen {
		p.seen = n
		p.timer.Reset(p.idle)
		return
	}
	setWriteDeadline(p.w, time.Unix(1, 0)) // HTTP/2 resets the stream at once
}

// setReadDeadline and setWriteDeadline bound how long the client may take. That a writer knows no deadlines is no
// error: it is a test's.
func setReadDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(t)
}

func setWriteDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(t)
}

// Transport makes calls of this process through the gateway, as who: the identity is taken as it is, and no token is
// asked for. It takes a request whose path is /UPSTREAM/REST, of any scheme and host, which goes to the gateway's own
// server over connections in memory: its Ibid- headers are read, its answer is kept, and the response is the one that a
// client would get. No request changes the protocol, and a redirect of the provider's leads nowhere in here: a client
// had better not follow any.
//
// [Gateway.Close] waits for such calls like for all others, and refuses new ones.
func (g *Gateway) Transport(who Identity) http.RoundTripper { return &inside{g, who} }

// inside is the way into the gateway from inside its process.
type inside struct {
	g   *Gateway
	who Identity
}

// identityHeader says who makes a call from inside, as JSON. It counts only on connections in memory, where only
// [inside.RoundTrip] can set it.
const identityHeader = "Ibid-Identity"

func (t *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil {
		return t.g.inside.RoundTrip(r) // it says so
	}
	who, err := json.Marshal(t.who)
	if err != nil {
		return nil, err // strings always can be
	}
	out := r.Clone(r.Context())
	out.URL.Scheme = "http"
	if out.Header == nil {
		out.Header = http.Header{}
	}
	delete(out.Header, "Connection")
	delete(out.Header, "Upgrade")
	out.Close = t.g.closing.Load() // nothing is to be left of it
	out.Header[identityHeader] = []string{string(who)}
	defer t.g.announceLate(out)()
	return t.g.inside.RoundTrip(out)
}

// newInside returns the transport of calls from inside. Each of its connections is one end of a pipe, whose other end
// is served like a client's.
func (g *Gateway) newInside() *http.Transport {
	serve := func(w http.ResponseWriter, r *http.Request) {
		var who Identity
		if err := json.Unmarshal([]byte(r.Header.Get(identityHeader)), &who); err != nil {
			g.refuse(w, r, err)
			return
		}
		delete(r.Header, identityHeader)
		g.handle(w, g.withLate(r), &who) //nolint:contextcheck // the request has it
	}
	server := NewServer("", http.HandlerFunc(serve), &ServerOptions{Logger: g.log})
	t := NewTransport(nil)
	t.Protocols.SetHTTP2(false)
	t.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		c := &insideConn{Conn: far}
		if !g.closing.Load() { // else the call is refused, and that should arrive
			c.release = context.AfterFunc(g.stop, func() { _ = far.Close() }) //nolint:contextcheck // ends with g
		}
		_ = server.Serve(&oneConn{conn: c}) // returns at once; the connection is served on
		return near, nil
	}
	return t
}

// insideConn is a server's end of a connection in memory. Closing the gateway breaks it off.
type insideConn struct {
	net.Conn
	release func() bool // nil: nothing has to be released
}

func (c *insideConn) Close() error {
	if c.release != nil {
		c.release()
	}
	return c.Conn.Close()
}

// oneConn is a listener that has one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	c := l.conn
	if l.conn = nil; c == nil {
		return nil, io.EOF
	}
	return c, nil
}

func (l *oneConn) Close() error { return nil }

// Addr returns an address that nobody uses.
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

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
