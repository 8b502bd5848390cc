package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ibidhq/ibid/manifest"
)

// respond forwards the response, and captures its answer if the route is captured.
func (e *exchange) respond() {
	res := e.res
	removeHopByHop(res.Header)
	h := e.w.Header()
	var before http.Header
	if e.captured {
		if e.policies = e.g.policies(e.up.Name, e.tenant); e.awaitsPolicies() {
			before = h.Clone()
		}
		q := e.g.quotas[e.tenant]
		e.overQuota = q != nil && q.used.Load() >= q.limit
	}
	passHeader(h, res.Header, e.g.options.Guard.hasOrigins())
	sandbox(h, e.in)
	body := io.ReadCloser((*source)(e))
	if e.labels.named && e.captured {
		h[RunHeader] = []string{e.labels.run}
	}
	switch {
	case !e.captured || res.StatusCode/100 != 2 || res.Body == http.NoBody:
		e.release()
	case e.wantsCitation(), e.awaitsPolicies():
		body = e.cite(body)
	default:
		body = e.capture(body)
	}
	if !e.judgeHeld(before) {
		_ = body.Close()
		return
	}
	announced := announce(h, res.Trailer)
	e.w.WriteHeader(res.StatusCode)
	var err error
	if res.ContentLength < 0 {
		err = e.flush() // a stream's first byte may take long, its header should not
	}
	if err == nil {
		err = e.copy(body)
	}
	_ = body.Close() // sets the trailers
	if err != nil {
		panic(http.ErrAbortHandler) // a truncated response must not look complete
	}
	e.passTrailer(h, announced)
	e.citeTrailer()
}

// announce declares the trailers that will follow and returns how many the upstream declared.
func announce(h, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	var names []string
	for name := range trailer {
		if isTrailer(name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		h.Add("Trailer", strings.Join(names, ", "))
	}
	return len(trailer)
}

// passTrailer forwards the trailers that came, including undeclared ones.
func (e *exchange) passTrailer(h http.Header, announced int) {
	if len(e.res.Trailer) == 0 {
		return
	}
	_ = e.flush() // without it the server would give a short body a length, and no trailers
	for name, values := range e.res.Trailer {
		if values = forwardedValues(name, values); len(values) == 0 || !isTrailer(name) {
			continue
		}
		if len(e.res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// isTrailer reports whether an upstream's trailer may be forwarded. Fields about framing, routing and content are
// forbidden in trailers (RFC 9110, section 6.5.1): clients reject a response that announces them.
func isTrailer(name string) bool { return !isWithheld(name) && httpguts.ValidTrailerHeader(name) }

const (
	smallBuffer = 2 << 10
	largeBuffer = 32 << 10
)

// buffers are pools of copy buffers. A stream that trickles makes do with a small one.
type buffers struct{ small, large sync.Pool }

func (b *buffers) get(large bool) *[]byte {
	pool, size := &b.small, smallBuffer
	if large {
		pool, size = &b.large, largeBuffer
	}
	if buf, ok := pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, size)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	if len(*buf) > smallBuffer {
		b.large.Put(buf)
		return
	}
	b.small.Put(buf)
}

// copy copies the body to the client: read, write, flush. It returns an error if either side fails. Its frame and those
// below it are kept small: a stream waits in it, and its goroutine's stack is most of what a stream costs.
func (e *exchange) copy(body io.Reader) error {
	large := e.res.ContentLength > smallBuffer
	buf := e.g.buffers.get(large)
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			if err := e.write((*buf)[:n], err != nil); err != nil {
				return err
			}
		}
		if err != nil {
			e.g.buffers.put(buf)
			if errors.Is(err, io.EOF) {
				return nil
			}
			_ = e.flush() // what came before the error belongs to the client
			return err
		}
		if !large && n == smallBuffer || large && n <= smallBuffer {
			e.g.buffers.put(buf)
			large = !large
			buf = e.g.buffers.get(large)
		}
	}
}

// write writes part of the body and flushes it. The last part is left to the server to flush, as is the whole of a
// short body of known length, which was ready when the response began.
func (e *exchange) write(p []byte, last bool) error {
	e.idleTimer.writing()
	n, err := e.w.Write(p)
	e.idleTimer.written()
	e.sent += int64(n)
	length := e.res.ContentLength
	if err != nil || last || e.sent == length || length >= 0 && length <= largeBuffer {
		return err
	}
	return e.flush()
}

func (e *exchange) flush() error {
	e.idleTimer.writing()
	defer e.idleTimer.written()
	if f, ok := e.w.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.NewResponseController(e.w).Flush()
}

// source is the upstream's body; it counts the bytes received.
type source exchange

func (s *source) Read(p []byte) (int, error) {
	n, err := s.res.Body.Read(p)
	if s.received += int64(n); s.first == 0 && n > 0 {
		s.first = time.Since(s.started)
	}
	return n, err
}

func (s *source) Close() error { return s.res.Body.Close() }

// hopByHop are the headers that concern one connection, besides those that Connection names.
var hopByHop = strings.Fields("Proxy-Connection Keep-Alive Proxy-Authenticate Proxy-Authorization Te Trailer " +
	"Transfer-Encoding Upgrade Http2-Settings")

// removeHopByHop removes the headers that concern one connection. Read those of a request that ask for trailers or for
// another protocol first.
func removeHopByHop(h http.Header) {
	if values, ok := h["Connection"]; ok {
		for _, value := range values {
			for name := range strings.SplitSeq(value, ",") {
				if name = textproto.TrimString(name); name != "" {
					h.Del(name)
				}
			}
		}
		delete(h, "Connection")
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// hasToken reports whether a list-valued header contains the token.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
}

// isUpgrade reports whether a request asks for a tunnel, that is for another protocol; captured routes have none. A
// different HTTP version or TLS concerns the connection only: a server may ignore that (RFC 9110, section 7.8), and
// clients offer it with every call.
func isUpgrade(r *http.Request, captured bool) bool {
	protocols := r.Header["Upgrade"]
	if len(protocols) == 0 || captured || !hasToken(r.Header["Connection"], "upgrade") {
		return false
	}
	if hasToken(protocols, "websocket") {
		return r.Method == http.MethodGet
	}
	return !hasToken(protocols, "h2c") && !hasToken(protocols, "TLS/1.0")
}

// isWithheld reports whether a header or trailer of an upstream's response is never forwarded: only ibid states what
// was consulted and what is kept, and a browser would apply statements about a host or an origin to ibid's.
func isWithheld(name string) bool {
	switch name {
	case manifest.HeaderName, "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data", "Service-Worker-Allowed",
		"Nel", "Report-To":
		return true
	}
	return strings.HasPrefix(name, "Ibid-")
}

// forwardedValues returns those values of an upstream's response header or trailer that are forwarded.
func forwardedValues(name string, values []string) []string {
	switch {
	case isWithheld(name):
		return nil
	case name == "Set-Cookie" && slices.ContainsFunc(values, isSession):
		return slices.DeleteFunc(slices.Clone(values), isSession)
	}
	return values
}

const (
	// corsPrefix is the prefix of the headers that tell a browser which pages may call. Where ibid sets them itself
	// (see [Guard.CORS]), the upstream's are dropped: they are about another host, and a browser accepts only one.
	corsPrefix  = "Access-Control-"
	corsExposed = corsPrefix + "Expose-Headers"
)

// passHeader copies an upstream's header into the response to the client. Fields already set by whoever serves the
// gateway (CORS) take precedence; lists are merged. cors means that ibid decides which pages may call.
func passHeader(to, from http.Header, cors bool) {
	before := len(to) > 0
	for name, values := range from {
		if values = forwardedValues(name, values); len(values) == 0 {
			continue
		}
		if before {
			had, ok := to[name]
			switch {
			case ok && name == corsExposed:
				values = []string{strings.Join(append(slices.Clip(had), values...), ", ")}
			case ok && name == "Vary":
				values = append(slices.Clip(had), values...)
			case ok, cors && strings.HasPrefix(name, corsPrefix):
				continue
			}
		}
		to[name] = values
	}
	// The server would add these by itself.
	if _, ok := to["Content-Type"]; !ok {
		to["Content-Type"] = nil
	}
	if _, ok := to["Date"]; !ok {
		to["Date"] = nil
	}
}

// sandbox isolates a response from ibid's origin if a browser may display it as a document: its page could otherwise
// read ibid's pages and call ibid's API as the user. In a sandbox it has an origin of its own and runs no scripts.
// Responses to programs are left as the upstream sent them.
func sandbox(h http.Header, r *http.Request) {
	if !isShown(h, r) {
		return
	}
	const policy = "Content-Security-Policy"
	h[policy] = append(slices.Clip(h[policy]), "sandbox") // an upstream's own policy still applies
	h["X-Content-Type-Options"] = []string{"nosniff"}
}

// isShown reports whether a browser may display a response as a document.
func isShown(h http.Header, r *http.Request) bool {
	guessed := true // browsers sniff the bytes if no type is given
	for _, value := range h["Content-Type"] {
		for kind := range strings.SplitSeq(strings.ToLower(value), ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch kind = textproto.TrimString(kind); {
			case kind == "text/html", kind == "text/xml", kind == "application/xml", strings.HasSuffix(kind, "+xml"):
				return true
			case kind == "*/*", kind == "unknown/unknown", kind == "application/unknown", !strings.Contains(kind, "/"):
			default:
				guessed = false
			}
		}
	}
	if guessed && strings.HasPrefix(r.Header.Get("User-Agent"), "Mozilla/") {
		return true
	}
	// A browser asks for a page, a frame or a plug-in. Browsers that are too old to send Sec-Fetch-Dest, or that reach
	// ibid over http under a name that is not loopback, are recognised by what they accept.
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "":
		return strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html")
	case "document", "iframe", "frame", "fencedframe", "object", "embed":
		return true
	}
	return false
}

// tunnelKey is the context key for the exchange of a tunnelled call.
type tunnelKey struct{}

// newTunnel returns the handler for calls that switch to another protocol, such as WebSocket: it then copies bytes both
// ways without interpreting them.
func (g *Gateway) newTunnel(u *upstream) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     u.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			e := exchangeOf(r.In)
			r.Out.URL, r.Out.Host = &e.to, ""
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = values
				}
			}
		},
		ModifyResponse: func(res *http.Response) error {
			exchangeOf(res.Request).status = res.StatusCode
			for name, values := range res.Header {
				if values = forwardedValues(name, values); len(values) == 0 {
					delete(res.Header, name)
					continue
				}
				res.Header[name] = values
			}
			sandbox(res.Header, res.Request)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { exchangeOf(r).upstreamFailed(err) },
	}
}

// tunnel serves a call that asks for another protocol. It ends with the gateway, because the server no longer tracks
// it.
func (e *exchange) tunnel() {
	ctx, cancel := context.WithCancel(context.WithValue(e.in.Context(), tunnelKey{}, e))
	defer cancel()
	defer context.AfterFunc(e.g.stop, cancel)()
	e.up.tunnel.ServeHTTP(e.w, e.in.WithContext(ctx))
}

func exchangeOf(r *http.Request) *exchange {
	e, _ := r.Context().Value(tunnelKey{}).(*exchange)
	return e
}
