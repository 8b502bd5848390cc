package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// exchange is one call on its way through: a request and its response.
type exchange struct {
	g      *Gateway
	up     *upstream
	w      http.ResponseWriter
	in     *http.Request
	out    *http.Request
	to     url.URL // where out goes
	labels labels
	tenant string
	who    Identity

	publishes bool      // the answer is to be published
	inside    bool      // the call was made by this process
	full      bool      // the tenant's answers are not kept
	policies  *Policies // nil: none
	holds     bool      // all of the response is held
	judging   *judged   // the answer that the response waits with; nil: it waits for no policy

	route    call.Route
	captured bool   // the route is one whose answers are captured
	upgrades bool   // the client asks for another protocol, and may have it
	pattern  string // of the route, for metrics and logs
	answerID string

	body    []byte  // of a captured request, as long as somebody needs it
	held    int64   // how much of it counts in Gateway.bodies
	decoded int64   // how much of the response counts in Gateway.decoding
	upload  *upload // the body of a request that streams; nil: it does not
	model   string  // that the request asks for
	stream  bool    // it asks for a stream
	prompt  []store.Message
	packed  packed // of body or prompt, while the response is a stream

	messages int // of the request
	trace    httptrace.ClientTrace
	mu       sync.Mutex // guards the response's header against late 1xx responses
	answered bool

	patience *patience // with the client; nil: the call has not gone on yet

	started  time.Time
	first    time.Duration // until the first byte of the response's body; 0: there was none
	status   int
	received int64 // bytes of the response's body
	sent     int64 // of them
	res      *http.Response
	answer   *ibid.Answer // for the span; nil: there is none
	live     *live        // nil: there is no bus
	cited    *citation    // nil: the response does not say what was consulted
	kept     bool         // the answer is, or is about to be
	ended    bool         // the response has been sent, to its end
}

// leavesBase reports whether a path, unescaped, leads above where it begins, in any server's reading: it would leave
// the base path of the upstream's URL.
func leavesBase(path string) bool {
	if !strings.Contains(path, "..") {
		return false
	}
	depth := 0
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch segment, _, _ = strings.Cut(segment, ";"); segment {
		case "..":
			if depth--; depth < 0 {
				return true
			}
		case ".", "":
		default:
			depth++
		}
	}
	return false
}

// sigV4 begins the Authorization header of a request that is signed for one host.
const sigV4 = "AWS4-HMAC-SHA256"

// admit says where the call goes, and who makes it, where that is not known. The error is a problem.
func (e *exchange) admit(known *Identity) error {
	e.started = time.Now()
	who := Identity{Tenant: store.DefaultTenant, Publish: true}
	var err error
	switch {
	case known != nil:
		who = *known
	case e.g.options.Guard != nil:
		if who, err = e.g.options.Guard.Proxy(e.in); err != nil {
			return err
		}
	}
	e.who, e.tenant = who, who.Tenant
	name, path, rawPath := splitPath(e.in.URL)
	if e.up = e.g.upstreams[name]; e.up == nil {
		if p := e.g.MissingUpstream(e.in); p != nil {
			return p
		}
		p := NewProblem(CodeNotFound, "the path does not begin with the name of an upstream",
			"the upstreams are "+strings.Join(e.g.names, ", "))
		if name != "" && CheckName(name) == "" {
			p.Detail = fmt.Sprintf("there is no upstream %q", name)
		}
		return p
	}
	if leavesBase(path) {
		return NewProblem(CodeBadRequest, "the path leads out of what the upstream serves under its URL",
			"leave out the segments `..`")
	}
	h := e.in.Header
	if strings.HasPrefix(h.Get("Authorization"), sigV4) {
		return NewProblem(CodeBadRequest, "the request is signed for another host (AWS Signature Version 4)",
			"use a bearer key for the provider, or tee.Transport inside the program: it signs for the provider itself")
	}
	if e.labels, err = readLabels(h); err != nil {
		return err
	}
	if e.publishes, err = who.publishes(e.labels.publish); err != nil {
		return err
	}
	e.up.target(&e.to, e.in.URL, path, rawPath)
	e.route, e.captured = call.FindRoute(e.up.Provider, e.in.Method, e.to.EscapedPath())
	if e.upgrades = isUpgrade(e.in, e.captured); e.upgrades {
		e.captured = false
	}
	if e.pattern = otherRoute; e.captured {
		e.pattern = e.route.Pattern
	}
	return nil
}

// serve passes an admitted call through.
func (e *exchange) serve() {
	defer e.end()
	if e.upgrades {
		e.tunnel()
		return
	}
	if e.captured {
		e.answerID = newAnswerID()
		if !e.labels.named {
			e.labels.run = runPrefix + strings.TrimPrefix(e.answerID, answerPrefix) // of this call only
		}
		if err := e.receive(); err != nil {
			e.refuse(err)
			return
		}
	}
	e.patience = e.g.patience.Get().(*patience)
	e.patience.watch(e.w, e.g.options.Limits.Idle)
	defer func() { // nobody is to read the request any more
		switch {
		case e.upload == nil:
		case !e.ended:
			e.upload.abort()
		case e.upload.finish(e.flush) != nil:
			panic(http.ErrAbortHandler) // what comes of it yet must not be taken for the connection's next request
		}
	}()
	e.prepare()
	res, err := e.up.transport.RoundTrip(e.out)
	e.mu.Lock()
	e.answered = true
	e.mu.Unlock()
	if err == nil && res.StatusCode < http.StatusOK {
		_ = res.Body.Close()
		err = errProtocol
	}
	if err != nil {
		e.upstreamFailed(err)
	} else {
		e.res, e.status = res, res.StatusCode
		e.respond()
	}
	e.ended = true
}

// end lets go of what the call held and counts it, whatever became of it.
func (e *exchange) end() {
	if e.out != nil {
		_ = e.out.Body.Close() // the transport may still want to read it, and must not
	}
	if e.patience != nil {
		e.patience.end()
		e.g.patience.Put(e.patience)
	}
	e.release()
	e.g.decoding.Release(e.who, e.decoded)
	e.g.metrics.count(e.up.Name, e.pattern, e.status)
	e.g.metrics.bytes.WithLabelValues(e.up.Name).Add(float64(e.received))
	e.traceCall()
}

// refuse answers with a problem instead of the upstream.
func (e *exchange) refuse(err error) {
	e.status = ProblemOf(err).status()
	e.g.refuse(e.w, e.in, err)
}

// prepare makes the request to the upstream of the client's.
func (e *exchange) prepare() {
	h := e.in.Header
	wantsTrailers := hasToken(h["Te"], "trailers")
	removeHopByHop(h)
	if wantsTrailers {
		h["Te"] = []string{"trailers"}
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // or the transport would add its own
	}
	e.trace.Got1xxResponse = e.forward1xx
	out := e.in.WithContext(httptrace.WithClientTrace(e.in.Context(), &e.trace))
	out.URL, out.Host, out.RequestURI, out.Close = &e.to, "", "", false
	e.out = out
	if e.captured {
		delete(h, "Expect") // the body is here already
		if !e.g.options.KeepEncoding {
			h["Accept-Encoding"] = []string{"identity"}
		}
		out.TransferEncoding, out.Trailer = nil, nil
		if out.ContentLength = int64(len(e.body)); out.ContentLength == 0 {
			out.Body = http.NoBody
			return
		}
		out.Body = call.NewBody(e.body)
		// The transport asks for it only where the upstream did not process the request (HTTP/2 says so), or where the
		// client gave it an idempotency key. Nothing else is sent twice.
		out.GetBody = func() (io.ReadCloser, error) { return call.NewBody(e.body), nil }
		return
	}
	if e.in.ContentLength == 0 {
		out.Body = http.NoBody // a length of 0 with a body would mean that it is not known
		return
	}
	_ = http.NewResponseController(e.w).EnableFullDuplex() // HTTP/2 is
	e.upload = &upload{body: e.in.Body, w: e.w, idle: e.g.options.Limits.Idle}
	out.Body = e.upload
}

// forward1xx passes a 1xx response on.
func (e *exchange) forward1xx(code int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answered || !e.in.ProtoAtLeast(1, 1) || code == http.StatusContinue && e.captured {
		return nil
	}
	h := e.w.Header()
	before := maps.Clone(h)
	removeHopByHop(http.Header(header))
	for name, values := range header {
		if _, had := h[name]; had {
			continue
		}
		if values = saidByUpstream(name, values); len(values) > 0 {
			h[name] = values
		}
	}
	e.patience.writing()
	e.w.WriteHeader(code)
	e.patience.written()
	clear(h) // the server keeps it for the final response
	maps.Copy(h, before)
	return nil
}

// upstreamFailed answers for an upstream that gave no response.
func (e *exchange) upstreamFailed(err error) {
	if e.in.Context().Err() != nil {
		e.status = statusClientGone
		panic(http.ErrAbortHandler) // who is gone must not see an answer that never was
	}
	p := upstreamProblem(e.up.Name, err)
	e.g.log.LogAttrs(e.in.Context(), slog.LevelWarn, "an upstream gave no response", slog.String("upstream", e.up.Name),
		slog.String("route", e.pattern), slog.Int("status", p.Status), slog.String("error", reason(err)))
	e.refuse(p)
}

// statusClientGone counts calls whose client left before there was a response.
const statusClientGone = 499
