package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
)

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
	return t.g.inside.RoundTrip(out)
}

// newInside returns the transport of calls from inside. Each of its connections is one end of a pipe, whose other end
// is served like a client's.
func (g *Gateway) newInside() *http.Transport {
	server := NewServer("", http.HandlerFunc(g.serveInside), &ServerOptions{Logger: g.log})
	t := NewTransport(nil)
	t.Protocols.SetHTTP2(false)
	t.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		c := &insideConn{Conn: far}
		if !g.closing.Load() { // else the call is refused, and that should arrive
			c.release = context.AfterFunc(g.stop, func() { _ = far.Close() })
		}
		_ = server.Serve(&oneConn{conn: c}) // returns at once; the connection is served on
		return near, nil
	}
	return t
}

// serveInside serves a call from inside.
func (g *Gateway) serveInside(w http.ResponseWriter, r *http.Request) {
	var who Identity
	if err := json.Unmarshal([]byte(r.Header.Get(identityHeader)), &who); err != nil {
		g.refuse(w, r, err)
		return
	}
	delete(r.Header, identityHeader)
	g.handle(w, r, &who)
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
