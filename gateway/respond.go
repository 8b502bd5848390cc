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

	"github.com/ibidhq/ibid/manifest"
)

// respond passes the response on, and captures it where it is an answer.
func (e *exchange) respond() {
	res := e.res
	removeHopByHop(res.Header)
	h := e.w.Header()
	var before http.Header
	if e.captured {
		if e.policies = e.g.policies(e.up.Name, e.tenant); e.polices() {
			before = h.Clone()
		}
		q := e.g.quotas[e.tenant]
		e.full = q != nil && q.used.Load() >= q.most
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
	case e.wantsCitation(), e.polices():
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
		err = e.flush() // a stream's first byte may be long in coming, its header should not
	}
	if err == nil {
		err = e.copy(body)
	}
	_ = body.Close() // sets the trailers
	if err != nil {
		panic(http.ErrAbortHandler) // a response that breaks off must not look like one that ended
	}
	e.passTrailer(h, announced)
	e.citeTrailer()
}

// announce says which trailers will come and returns how many the upstream announced.
func announce(h, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	var names []string
	for name := range trailer {
		if !isWithheld(name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		h.Add("Trailer", strings.Join(names, ", "))
	}
	return len(trailer)
}

// passTrailer passes on the trailers that came, those that were not announced too.
func (e *exchange) passTrailer(h http.Header, announced int) {
	if len(e.res.Trailer) == 0 {
		return
	}
	_ = e.flush() // without it the server would give a short body a length, and no trailers
	for name, values := range e.res.Trailer {
		if values = saidByUpstream(name, values); len(values) == 0 {
			continue
		}
		if len(e.res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

const (
	smallBuffer = 2 << 10
	largeBuffer = 32 << 10
)

// buffers are for copying. A stream that trickles gets by with a small one.
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

// copy copies the body to the client: read, write, flush. The error says that one side failed. Its frame stays small,
// like those below it: a stream waits in it, and its goroutine's stack is most of what it costs.
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
			_ = e.flush() // what came before the break is the client's
			return err
		}
		if !large && n == smallBuffer || large && n <= smallBuffer {
			e.g.buffers.put(buf)
			large = !large
			buf = e.g.buffers.get(large)
		}
	}
}

// write writes a piece of the body and flushes it. The server flushes what is last, and so all of a short body whose
// length is said: that was ready when the response began.
func (e *exchange) write(p []byte, last bool) error {
	e.patience.writing()
	n, err := e.w.Write(p)
	e.patience.written()
	e.sent += int64(n)
	length := e.res.ContentLength
	if err != nil || last || e.sent == length || length >= 0 && length <= largeBuffer {
		return err
	}
	return e.flush()
}

func (e *exchange) flush() error {
	e.patience.writing()
	defer e.patience.written()
	if f, ok := e.w.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.NewResponseController(e.w).Flush()
}

// source is the upstream's body: it counts what comes.
type source exchange

func (s *source) Read(p []byte) (int, error) {
	n, err := s.res.Body.Read(p)
	if s.received += int64(n); s.first == 0 && n > 0 {
		s.first = time.Since(s.started)
	}
	return n, err
}

func (s *source) Close() error { return s.res.Body.Close() }

// hopByHop are the headers that are about one connection, besides those that Connection names.
var hopByHop = strings.Fields("Proxy-Connection Keep-Alive Proxy-Authenticate Proxy-Authorization Te Trailer " +
	"Transfer-Encoding Upgrade Http2-Settings")

// removeHopByHop removes the headers that are about one connection. Those of a request that ask for trailers or for
// another protocol have to be read before.
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

// hasToken reports whether a header that is a list has the token.
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

// isUpgrade reports whether a request asks for a tunnel: for another protocol, which nothing does whose answer would be
// captured. Another HTTP or TLS is about the connection: a server may ignore that (RFC 9110, section 7.8), and
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

// isWithheld reports whether a header or trailer of an upstream's response never goes on: only ibid says what was
// consulted and what is kept, and what is about a host or an origin a browser would take for ibid's.
func isWithheld(name string) bool {
	switch name {
	case manifest.HeaderName, "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data", "Service-Worker-Allowed",
		"Nel", "Report-To":
		return true
	}
	return strings.HasPrefix(name, "Ibid-")
}

// saidByUpstream returns what an upstream may say in a header or trailer of its response.
func saidByUpstream(name string, values []string) []string {
	switch {
	case isWithheld(name):
		return nil
	case name == "Set-Cookie" && slices.ContainsFunc(values, isSession):
		return slices.DeleteFunc(slices.Clone(values), isSession)
	}
	return values
}

const (
	// corsPrefix begins the headers that say to a browser which pages may call. Where ibid says so itself (see
	// [Guard.CORS]), the upstream does not: its word would be of another host, and a browser takes one only.
	corsPrefix  = "Access-Control-"
	corsExposed = corsPrefix + "Expose-Headers"
)

// passHeader puts an upstream's header into the response to the client. What is there already was put there by whoever
// serves the gateway (CORS) and stays; lists have both. cors says that what pages may do is ibid's to say.
func passHeader(to, from http.Header, cors bool) {
	before := len(to) > 0
	for name, values := range from {
		if values = saidByUpstream(name, values); len(values) == 0 {
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
	// The server would make these up.
	if _, ok := to["Content-Type"]; !ok {
		to["Content-Type"] = nil
	}
	if _, ok := to["Date"]; !ok {
		to["Date"] = nil
	}
}

// sandbox keeps a response out of ibid's origin where a browser may show it as a document: its page would otherwise
// read ibid's pages and call ibid's API as the user. In a sandbox it has an origin of its own and runs no script. What
// programs get stays as the upstream sent it.
func sandbox(h http.Header, r *http.Request) {
	if !isShown(h, r) {
		return
	}
	const policy = "Content-Security-Policy"
	h[policy] = append(slices.Clip(h[policy]), "sandbox") // an upstream's own policy counts as well
	h["X-Content-Type-Options"] = []string{"nosniff"}
}

// isShown reports whether a browser may show a response as a document.
func isShown(h http.Header, r *http.Request) bool {
	guessed := true // by a browser, from the bytes, as long as no type says what they are
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
	// A browser asks for a page, a frame or a plug-in. Those that are too old to say so, or that reach ibid by http
	// under a name that is not loopback, tell it by what they accept.
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "":
		return strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html")
	case "document", "iframe", "frame", "fencedframe", "object", "embed":
		return true
	}
	return false
}

// tunnelKey holds the exchange of a tunnelled call in its context.
type tunnelKey struct{}

// newTunnel returns what passes calls on that ask for another protocol, such as WebSocket: from then on bytes go both
// ways and nothing of them is read.
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
				if values = saidByUpstream(name, values); len(values) == 0 {
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

// tunnel passes on a call that asks for another protocol. It ends with the gateway, since its server does not know of
// it any more.
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
