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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The limits of [NewServer].
const (
	// MaxHeader is the largest request header in bytes; more is a 431.
	MaxHeader = 64 << 10
	// headerTime is how long a client may take to send a request header.
	headerTime = 20 * time.Second
	// idleTime is how long a connection stays open between requests.
	idleTime = 3 * time.Minute
	// maxStreams is the number of concurrent requests on one HTTP/2 connection.
	maxStreams = 1000
)

// finalWait is how long calls have to end after their connections were closed.
const finalWait = 2 * time.Second

// ServerOptions are the options of [NewServer].
type ServerOptions struct {
	TLS    *tls.Config  // nil disables TLS
	Logger *slog.Logger // logs broken connections and panics of handlers; nil disables logging
}

// NewServer returns a server for a handler that streams. The address is one that net/http accepts. It supports HTTP/1.1
// and HTTP/2, the latter over TLS and, with prior knowledge, in plain text. It limits the size of request headers and
// the time they take; the handler decides how long a request may take.
func NewServer(address string, h http.Handler, o *ServerOptions) *http.Server {
	o = cmp.Or(o, &ServerOptions{})
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	graceful := &gracefulHandler{Handler: h}
	s := &http.Server{
		Addr:              address,
		Handler:           graceful,
		ConnState:         graceful.trackConn,
		TLSConfig:         o.TLS,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(newLimitedLog(log), slog.LevelWarn),
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

// Limits of the lines about broken connections, of which a client can cause any number.
const (
	brokenBurst = 20
	brokenEvery = 10 * time.Second
)

// limitedLog handles the lines of an HTTP server: all panics, and only some of the others, which are about broken
// connections.
type limitedLog struct {
	slog.Handler

	limiter *rate.Limiter
	left    atomic.Int64 // lines left out since the last one
}

func newLimitedLog(log *slog.Logger) *limitedLog {
	return &limitedLog{Handler: log.Handler(), limiter: rate.NewLimiter(rate.Every(brokenEvery), brokenBurst)}
}

// Handle logs one line.
func (l *limitedLog) Handle(ctx context.Context, line slog.Record) error {
	if !strings.Contains(line.Message, "panic serving") && !l.limiter.Allow() {
		l.left.Add(1)
		return nil
	}
	if n := l.left.Swap(0); n > 0 {
		line.AddAttrs(slog.Int64("lines_left_out", n))
	}
	return l.Handler.Handle(ctx, line)
}

// gracefulHandler is the handler of a server that stops gracefully: for a while, each response announces that it is the
// last one on its connection. If idle connections were just closed, a call that a client was about to send would fail.
type gracefulHandler struct {
	http.Handler

	leaving     atomic.Bool
	connections atomic.Int64          // open connections
	crowd       atomic.Pointer[Crowd] // nil means no limit
}

// drainFraction is the divisor that yields the part of the shutdown time in which clients with open connections are
// told that the server stops.
const drainFraction = 30

func (f *gracefulHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.leaving.Load() && r.ProtoMajor == 1 { // HTTP/2 has its own message for that
		w.Header().Set("Connection", "close")
	}
	f.Handler.ServeHTTP(w, r)
}

// trackConn counts connections, for [http.Server.ConnState].
func (f *gracefulHandler) trackConn(_ net.Conn, state http.ConnState) {
	switch state { //nolint:exhaustive // other states neither begin nor end a connection
	case http.StateNew:
		f.connections.Add(1)
	case http.StateHijacked, http.StateClosed:
		n := f.connections.Add(-1)
		if c := f.crowd.Load(); c != nil {
			c.left(n)
		}
	}
}

// Shutdown stops a server and the gateway behind it: it accepts no more calls, lets those being served finish, and
// waits until their answers are in the store. When ctx ends, it breaks off the remaining calls, whose partial answers
// go to the journal, and returns an error. A server made by [NewServer] keeps serving open connections for up to a
// thirtieth of the time until ctx ends: close its listener first, so that no new ones arrive.
func Shutdown(ctx context.Context, s *http.Server, g *Gateway) error {
	if f, ok := s.Handler.(*gracefulHandler); ok {
		f.leaving.Store(true)
		const step = 5 * time.Millisecond
		if end, ok := ctx.Deadline(); ok {
			left := time.Until(end) / drainFraction
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

// idleTimer ends a call whose client does not read: a write to it may take Limits.Idle, and is ended within twice that.
// A deadline for the whole response would not do, because the upstream may be silent for any time. HTTP/2 needs this
// too: its server only watches whole connections.
//
// It costs two atomic additions per write and one reused timer per call.
type idleTimer struct {
	writes atomic.Uint64 // writes begun plus writes ended: odd during a write; writes do not overlap

	mu    sync.Mutex
	w     http.ResponseWriter // nil between calls
	idle  time.Duration
	seen  uint64 // value of writes at the last tick
	timer *time.Timer
}

// watch starts watching a call.
func (p *idleTimer) watch(w http.ResponseWriter, idle time.Duration) {
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

// end leaves the rest to the server, which has to flush it within the same time and then removes the deadline.
func (p *idleTimer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	setWriteDeadline(p.w, time.Now().Add(p.idle))
	p.w = nil
}

// writing and written surround each write to the client.
func (p *idleTimer) writing() { p.writes.Add(1) }
func (p *idleTimer) written() { p.writes.Add(1) }

// endStuckWrite ends a write that was already in progress at the previous tick.
func (p *idleTimer) endStuckWrite() {
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

// setReadDeadline and setWriteDeadline limit how long the client may take. Writers without deadlines, as in tests, are
// not an error.
func setReadDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(t)
}

func setWriteDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(t)
}

// Transport makes calls of this process through the gateway with the identity who, without asking for a token. It
// accepts a request whose path is /UPSTREAM/REST, with any scheme and host, and sends it to the gateway's own server
// over connections in memory: its Ibid- headers are read, its answer is kept, and the response is the one that a client
// would receive. Requests cannot change the protocol. Clients should not follow redirects: a provider's redirect leads
// nowhere here.
//
// [Gateway.Close] waits for these calls as for all others, and refuses new ones.
func (g *Gateway) Transport(who Identity) http.RoundTripper { return &inProcess{g, who} }

// inProcess is the transport of calls from inside the process.
type inProcess struct {
	g   *Gateway
	who Identity
}

// identityHeader carries the identity of an in-process call, as JSON. It counts only on connections in memory, where
// only [inProcess.RoundTrip] can set it.
const identityHeader = "Ibid-Identity"

func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil {
		return t.g.inProcess.RoundTrip(r) // returns the error
	}
	who, err := json.Marshal(t.who)
	if err != nil {
		return nil, err // strings always encode
	}
	out := r.Clone(r.Context())
	out.URL.Scheme = "http"
	if out.Header == nil {
		out.Header = http.Header{}
	}
	delete(out.Header, "Connection")
	delete(out.Header, "Upgrade")
	out.Close = t.g.closing.Load() // leave no connection behind
	out.Header[identityHeader] = []string{string(who)}
	defer t.g.announceLate(out)()
	return t.g.inProcess.RoundTrip(out)
}

// newInProcess returns the transport of in-process calls. Each of its connections is one end of a pipe whose other end
// is served like a client's.
func (g *Gateway) newInProcess() *http.Transport {
	serve := func(w http.ResponseWriter, r *http.Request) {
		var who Identity
		if err := json.Unmarshal([]byte(r.Header.Get(identityHeader)), &who); err != nil {
			g.refuse(w, r, err)
			return
		}
		delete(r.Header, identityHeader)
		g.handle(w, g.withLate(r), &who) //nolint:contextcheck // the request has the context
	}
	server := NewServer("", http.HandlerFunc(serve), &ServerOptions{Logger: g.log})
	t := NewTransport(nil)
	t.Protocols.SetHTTP2(false)
	t.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		c := &pipeConn{Conn: far}
		if !g.closing.Load() { // otherwise the call is refused, and the refusal should arrive
			c.release = context.AfterFunc(g.stop, func() { _ = far.Close() }) //nolint:contextcheck // ends with g
		}
		_ = server.Serve(&oneConn{conn: c}) // returns at once; the connection stays served
		return near, nil
	}
	return t
}

// pipeConn is the server's end of a connection in memory. Closing the gateway closes it.
type pipeConn struct {
	net.Conn
	release func() bool // may be nil
}

func (c *pipeConn) Close() error {
	if c.release != nil {
		c.release()
	}
	return c.Conn.Close()
}

// oneConn is a listener that accepts one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	c := l.conn
	if l.conn = nil; c == nil {
		return nil, io.EOF
	}
	return c, nil
}

func (l *oneConn) Close() error { return nil }

// Addr returns a placeholder.
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

// Crowd limits how many connections a server of [NewServer] has open at once; further clients wait until one closes.
// Without it, a process that has no file descriptors left for its database and for providers would accept connections
// only to fail each call. While the limit is reached, idle connections are not kept open. It is safe for concurrent
// use.
type Crowd struct {
	limit  int64
	server *http.Server
	tell   func(full bool)
	full   atomic.Bool
	room   chan struct{} // capacity 1: a connection was closed since Accept last checked
}

// fullQuarters is how many quarters of the connections must be open for a full server to remain full.
const fullQuarters = 3

// NewCrowd limits the connections of a server that is not serving yet. It calls tell when the limit is reached, and
// when a quarter of the connections is free again.
func NewCrowd(s *http.Server, most int, tell func(full bool)) *Crowd {
	c := &Crowd{limit: int64(most), server: s, tell: tell, room: make(chan struct{}, 1)}
	if f, ok := s.Handler.(*gracefulHandler); ok {
		f.crowd.Store(c)
	}
	return c
}

// Full reports whether new clients have to wait.
func (c *Crowd) Full() bool { return c.full.Load() }

// Listener returns a listener that accepts a connection only while there is room for it.
func (c *Crowd) Listener(l net.Listener) net.Listener {
	f, ok := c.server.Handler.(*gracefulHandler)
	if !ok {
		return l
	}
	return &crowdListener{Listener: l, crowd: c, connections: &f.connections, closed: make(chan struct{})}
}

// left records that a connection was closed and n are still open.
func (c *Crowd) left(n int64) {
	select {
	case c.room <- struct{}{}:
	default:
	}
	if n < c.limit*fullQuarters/4 && c.full.CompareAndSwap(true, false) {
		c.server.SetKeepAlivesEnabled(true)
		c.tell(false)
	}
}

// fill records that the limit is reached.
func (c *Crowd) fill() {
	if c.full.CompareAndSwap(false, true) {
		c.tell(true)
		c.server.SetKeepAlivesEnabled(false) // closes idle ones
	}
}

// crowdListener accepts a connection only while there is room for it.
type crowdListener struct {
	net.Listener

	crowd       *Crowd
	connections *atomic.Int64
	once        sync.Once
	closed      chan struct{}
}

// Accept implements [net.Listener].
func (l *crowdListener) Accept() (net.Conn, error) {
	for l.connections.Load() >= l.crowd.limit {
		l.crowd.fill()
		select {
		case <-l.crowd.room:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	return l.Listener.Accept()
}

// Close implements [net.Listener].
func (l *crowdListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
