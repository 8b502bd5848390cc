package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
)

// Transport makes calls of this process through the gateway, as who: the identity is taken as it is, and no token is
// asked for. It takes a request whose path is /UPSTREAM/REST, of any scheme and host, and treats it as if it had come
// from a client: its Ibid- headers are read, its answer is kept, and the response is the one that a client would get,
// of HTTP/1.1, without what only a server adds: a Date, and the length of a short body.
//
// RoundTrip returns when the response's header is there, and its body arrives while it is written: who does not read it
// holds the provider back, and breaks off the call after [Limits].Idle. So does closing the body, or ending the
// request's context, at once. A call that breaks off, on whichever side, is an error of RoundTrip or of the body.
// Informational responses are left out, and no request changes the protocol. A redirect of the provider's leads nowhere
// in here: a client had better not follow any.
//
// [Gateway.Close] waits for such calls like for all others, and refuses new ones.
func (g *Gateway) Transport(who Identity) http.RoundTripper { return &inside{g, who} }

// inside is the way into the gateway from inside its process.
type inside struct {
	g   *Gateway
	who Identity
}

// insideKey holds the handed in the context of a call from inside. A client has no way to put it there.
type insideKey struct{}

// handed is an identity that is known without a token, for one request and no other that has its context.
type handed struct {
	who Identity
	in  *http.Request
}

// handedOver returns the identity that came with a request from inside.
func handedOver(r *http.Request) (Identity, bool) {
	h, ok := r.Context().Value(insideKey{}).(*handed)
	if !ok || h.in != r {
		return Identity{}, false
	}
	return h.who, true
}

// insideCall is a call from inside. The gateway writes into one end of a pipe, and the caller reads from the other.
type insideCall struct {
	g      *Gateway
	out    *http.Request // the caller's
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   *insideBody // the request's
	near   net.Conn    // the caller's end
	writer insideWriter

	head   chan *http.Response // gets the response once its header is there
	broken chan struct{}       // closed by breakOff
	done   chan struct{}       // closed when the gateway is done with the call
	err    error               // why it broke off; to be read when done is closed
	tail   http.Header         // trailers, as well
}

// errBrokenOff says that the gateway broke off a response, as a closed connection says it to a client.
var errBrokenOff = fmt.Errorf("the response broke off: %w", io.ErrUnexpectedEOF)

func (t *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := t.newCall(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("calling the gateway: %w", err)
	}
	t.g.active.Add(1) // so that Close waits until run is at its end
	go c.run(c.request(t.who))
	select {
	case <-c.ctx.Done():
	case <-c.done:
	case res := <-c.head:
		return c.accept(res)
	}
	select { // an answer may have ended as soon as it began
	case res := <-c.head:
		return c.accept(res)
	default:
		return nil, fmt.Errorf("calling the gateway: %w", c.why())
	}
}

// accept returns the response, unless it only says that the caller's own body failed.
func (c *insideCall) accept(res *http.Response) (*http.Response, error) {
	if err := c.body.failure(); err != nil {
		return nil, fmt.Errorf("calling the gateway: %w", err)
	}
	return res, nil
}

func (t *inside) newCall(r *http.Request) (*insideCall, error) {
	if r.URL == nil {
		return nil, errors.New("the request has no URL")
	}
	c := &insideCall{
		g: t.g, out: r, body: newInsideBody(r),
		head: make(chan *http.Response, 1), broken: make(chan struct{}), done: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(r.Context())
	c.body.failed = c.cancel
	c.writer = insideWriter{c: c, header: http.Header{}, left: -1}
	c.near, c.writer.far = net.Pipe()
	return c, nil
}

// request returns the request as a server would have read it.
func (c *insideCall) request(who Identity) *http.Request {
	h := &handed{who: who}
	in := c.out.WithContext(context.WithValue(c.ctx, insideKey{}, h))
	h.in = in
	if in.Header = c.out.Header.Clone(); in.Header == nil {
		in.Header = http.Header{}
	}
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Http2-Settings"} {
		delete(in.Header, name) // a client does not send them as they are, and we change no protocol
	}
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	in.RequestURI = in.URL.RequestURI()
	if u, err := url.ParseRequestURI(in.RequestURI); err == nil {
		in.URL = u
	}
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	in.Close, in.GetBody, in.Response, in.TransferEncoding, in.RemoteAddr = false, nil, nil, nil, ""
	in.Body, in.ContentLength = http.NoBody, 0
	if c.body.body != nil {
		in.Body, in.ContentLength = c.body, c.body.length
	}
	return in
}

// run serves the call. Who closes the gateway need not wait for its end longer than for a client's.
func (c *insideCall) run(in *http.Request) {
	defer c.g.leave()
	if !c.g.closing.Load() { // else it is refused, and that should arrive
		defer context.AfterFunc(c.g.stop, func() { c.cancel(nil) })()
	}
	watching := context.AfterFunc(c.ctx, c.breakOff)
	whole := c.serve(in)
	if !watching() {
		<-c.broken
	}
	_ = c.body.Close()
	c.writer.end(whole)
	close(c.done)
	_ = c.writer.far.Close()
	c.cancel(nil)
}

// breakOff lets nobody wait for the call any more: neither its caller, nor the gateway for its caller.
func (c *insideCall) breakOff() {
	_ = c.body.Close()
	_ = c.near.Close()
	close(c.broken)
}

// serve reports whether the gateway answered whole.
func (c *insideCall) serve(in *http.Request) (whole bool) {
	defer func() {
		v := recover()
		if v == nil || v == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			return
		}
		c.g.metrics.panics.Inc()
		c.g.log.LogAttrs(c.ctx, slog.LevelError, "a mistake of ours was caught",
			slog.String("doing", "serving a call from inside"), slog.String("stack", string(debug.Stack())))
	}()
	c.g.handle(&c.writer, in)
	return true
}

// why says why a call broke off.
func (c *insideCall) why() error {
	if err := c.body.failure(); err != nil {
		return err
	}
	if err := context.Cause(c.out.Context()); err != nil {
		return err
	}
	return errBrokenOff
}
