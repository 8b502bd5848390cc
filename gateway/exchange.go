package gateway

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tee"
	"github.com/ibidhq/ibid/trail"
)

// exchange is one call on its way through: a request and its response.
type exchange struct {
	g      *Gateway
	up     *upstream
	w      http.ResponseWriter
	in     *http.Request // from the client
	out    *http.Request // to the upstream
	to     url.URL       // the URL of out
	labels labels
	tenant string
	who    Identity

	publishes bool      // the answer will be published
	inProcess bool      // made by this process, through Gateway.Transport
	overQuota bool      // the tenant is over its quota: the answer is not kept
	policies  *Policies // may be nil
	holds     bool      // the whole response is held
	judging   *judged   // the answer for which the response waits for policies; nil if it does not wait

	route    call.Route
	captured bool   // responses of the route are captured
	upgrades bool   // the client asks for another protocol and may have it
	pattern  string // the route's pattern, for metrics and logs
	answerID string

	body    []byte // a captured request's body, until it is no longer needed
	held    int64  // bytes of it held in Gateway.memory
	decoded int64  // bytes of memory held there to decode the response
	// bytes of the response for which memory is held before it is decoded
	decodable int64
	upload    *upload // the streamed request body; nil if it was read whole
	model     string  // as requested
	stream    bool    // the request asks for a stream
	prompt    []store.Message
	results   []trail.Step // what tools returned, as the request shows
	packed    packed       // body or prompt compressed, while the response is a stream

	messages int // number of messages in the request
	trace    httptrace.ClientTrace
	mu       sync.Mutex // guards the response's header against late 1xx responses
	answered bool

	idleTimer *idleTimer // watches writes to the client; nil before the call is forwarded

	started  time.Time
	first    time.Duration // time until the first byte of the response's body; 0 if there was none
	status   int
	received int64 // bytes of the response's body received
	sent     int64 // bytes of it sent
	res      *http.Response
	answer   *ibid.Answer // for the span; may be nil
	live     *live        // nil without a bus
	cited    *citation    // nil if the response does not name its sources
	kept     bool         // the answer is kept or about to be
	ended    bool         // the response was sent completely
}

// leavesBase reports whether an unescaped path leads above its start, as any server might interpret it: it would leave
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

// sigV4 is the prefix of the Authorization header of a request that is signed for one host.
const sigV4 = "AWS4-HMAC-SHA256"

// admit identifies the caller, unless known, and determines where the call goes. The error is a problem.
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
	if !httpguts.ValidHeaderFieldName(e.in.Method) { // a token, as names of headers are
		return NewProblem(CodeBadRequest, "the request's method is not a token", "")
	}
	if leavesBase(path) {
		return NewProblem(CodeBadRequest, "the path leaves the upstream's base URL",
			"remove the `..` segments")
	}
	h := e.in.Header
	if strings.HasPrefix(h.Get("Authorization"), sigV4) {
		return NewProblem(CodeBadRequest, "the request is signed for another host (AWS Signature Version 4)",
			"use a bearer key for the provider, or tee.Transport in the program, which signs for the provider itself")
	}
	if e.labels, err = readLabels(h); err != nil {
		return err
	}
	if e.publishes, err = who.publishes(e.labels.publish); err != nil {
		return err
	}
	e.up.target(&e.to, e.in.URL, path, rawPath)
	e.route, e.captured = call.FindOwnRoute(e.up.Path, e.up.Provider, e.in.Method, e.to.EscapedPath())
	if e.upgrades = isUpgrade(e.in, e.captured); e.upgrades {
		e.captured = false
	}
	if e.pattern = otherRoute; e.captured {
		e.pattern = e.route.Pattern
	}
	return nil
}

// serve forwards an admitted call.
func (e *exchange) serve() {
	defer e.end()
	if e.upgrades {
		e.tunnel()
		return
	}
	if e.captured {
		e.answerID = NewAnswerID()
		if !e.labels.named {
			if e.labels.run = traceOf(e.in.Header); e.labels.run == "" {
				e.labels.run = runPrefix + strings.TrimPrefix(e.answerID, answerPrefix) // a run of this call alone
			}
		}
		err := e.receive()
		if err == nil {
			if err = e.holdDecoding(tee.HoldStep); err == nil {
				e.decodable = tee.HoldStep
			}
		}
		if err != nil {
			e.refuse(err)
			return
		}
	}
	e.idleTimer = e.g.idleTimers.Get().(*idleTimer)
	e.idleTimer.watch(e.w, e.g.options.Limits.Idle)
	defer func() { // nothing may read the request any more
		switch {
		case e.upload == nil:
		case !e.ended:
			e.upload.abort()
		case e.upload.finish(e.flush) != nil:
			panic(http.ErrAbortHandler) // what still arrives must not be taken for the connection's next request
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

// end releases what the call held, and counts it, however it ended.
func (e *exchange) end() {
	if e.out != nil {
		_ = e.out.Body.Close() // the transport must not read it any more
	}
	if e.idleTimer != nil {
		e.idleTimer.end()
		e.g.idleTimers.Put(e.idleTimer)
	}
	e.release()
	e.g.memory.Release(e.who, e.decoded)
	e.g.metrics.count(e.up.Name, e.pattern, e.status)
	e.g.metrics.bytes.WithLabelValues(e.up.Name).Add(float64(e.received))
	e.traceCall()
}

// refuse answers with a problem in place of the upstream's response.
func (e *exchange) refuse(err error) {
	e.status = ProblemOf(err).status()
	e.g.refuse(e.w, e.in, err)
}

// prepare makes the upstream's request from the client's.
func (e *exchange) prepare() {
	h := e.in.Header
	wantsTrailers := hasToken(h["Te"], "trailers")
	removeHopByHop(h)
	if wantsTrailers {
		h["Te"] = []string{"trailers"}
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // else the transport would add its own
	}
	e.trace.Got1xxResponse = e.forward1xx
	out := e.in.WithContext(httptrace.WithClientTrace(e.in.Context(), &e.trace))
	out.URL, out.Host, out.RequestURI, out.Close = &e.to, "", "", false
	e.out = out
	if e.captured {
		delete(h, "Expect") // the body has been read already
		if !e.g.options.KeepEncoding {
			h["Accept-Encoding"] = []string{"identity"}
		}
		out.TransferEncoding, out.Trailer = nil, nil
		if out.ContentLength = int64(len(e.body)); out.ContentLength == 0 {
			out.Body = http.NoBody
			return
		}
		out.Body = call.NewBody(e.body)
		// The transport calls it only if the upstream did not process the request (as HTTP/2 reports), or if the client
		// set an idempotency key. Nothing else is sent twice.
		out.GetBody = func() (io.ReadCloser, error) { return call.NewBody(e.body), nil }
		return
	}
	if e.in.ContentLength == 0 {
		out.Body = http.NoBody // a length of 0 with a body would mean an unknown length
		return
	}
	_ = http.NewResponseController(e.w).EnableFullDuplex() // HTTP/2 always is full duplex
	e.upload = &upload{body: e.in.Body, w: e.w, idle: e.g.options.Limits.Idle}
	out.Body = e.upload
}

// forward1xx forwards a 1xx response.
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
		if values = forwardedValues(name, values); len(values) > 0 {
			h[name] = values
		}
	}
	e.idleTimer.writing()
	e.w.WriteHeader(code)
	e.idleTimer.written()
	clear(h) // the server would keep it for the final response
	maps.Copy(h, before)
	return nil
}

// upstreamFailed answers for an upstream that sent no response.
func (e *exchange) upstreamFailed(err error) {
	var unread error // the client's fault: the upstream was not asked
	if e.upload != nil {
		if failed := e.upload.failed.Load(); failed != nil {
			unread = *failed
		}
	}
	late := errors.Is(unread, os.ErrDeadlineExceeded) // the server takes that for the end of the connection
	if e.in.Context().Err() != nil && !late {
		e.status = statusClientGone
		panic(http.ErrAbortHandler) // a client that left must not see an answer that never was
	}
	if unread != nil {
		e.w.Header().Set("Connection", "close") // the start of the next request is not known
		e.refuse(unreadable(unread, false))
		return
	}
	p := upstreamProblem(e.up.Name, err)
	e.g.log.LogAttrs(e.in.Context(), slog.LevelWarn, "an upstream sent no response", slog.String("upstream", e.up.Name),
		slog.String("route", e.pattern), slog.Int("status", p.Status), slog.String("error", reason(err)))
	e.refuse(p)
}

// statusClientGone is the status under which calls are counted whose client left before there was a response.
const statusClientGone = 499
