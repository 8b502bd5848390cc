package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// somebody is the identity of in-process callers.
var somebody = gateway.Identity{Tenant: "acme", Token: "tok", Scopes: []string{store.ScopeProxy}}

// twin makes the same call over a listener and in-process.
type twin struct {
	*world
	inside *http.Client
}

func newTwin(tb testing.TB, upstream http.HandlerFunc, s *setup) *twin {
	tb.Helper()
	w := newWorld(tb, upstream, s)
	return &twin{w, &http.Client{Transport: w.gateway.Transport(somebody)}}
}

// got is a response as seen by its caller.
type got struct {
	Status, Proto   string
	Code            int
	Header, Trailer http.Header
	Length          int64
	Body            string
	Err             bool // reading the body failed
	NoBody          bool
}

func see(tb testing.TB, c *http.Client, method, address, body string) got {
	tb.Helper()
	var r *http.Request
	var err error
	r = testenv.Must(http.NewRequestWithContext(tb.Context(), method, address, strings.NewReader(body)))(tb)
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("User-Agent", "test")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set(gateway.RunHeader, "run")
	res, err := c.Do(r)
	testenv.OK(tb, err)
	defer res.Body.Close()
	none := res.Body == http.NoBody
	data, err := io.ReadAll(res.Body)
	return got{res.Status, res.Proto, res.StatusCode, res.Header, res.Trailer, res.ContentLength, string(data), err != nil, none}
}

// same compares two responses, except for unavoidable differences.
func same(tb testing.TB, outside, inside got) {
	tb.Helper()
	for _, h := range []http.Header{outside.Header, inside.Header} {
		h.Del("Date") // set by a server
		h.Del(gateway.AnswerHeader)
	}
	if outside.Length >= 0 && inside.Length < 0 { // servers know the length of short bodies
		outside.Length = -1
		outside.Header.Del("Content-Length")
	}
	if diff := cmp.Diff(outside, inside, cmpopts.EquateEmpty()); diff != "" {
		tb.Errorf("inside (-over a listener +inside):\n%s", diff)
	}
}

// record repeats the same bytes, in the same pieces, for the same request.
func record(h http.Handler) http.HandlerFunc {
	type tape struct {
		header http.Header
		status int
		parts  []string
	}
	var mu sync.Mutex
	tapes := map[string]*tape{}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		question := r.URL.String() + string(body)
		mu.Lock()
		t := tapes[question]
		if t == nil {
			rec := &recorder{ResponseRecorder: httptest.NewRecorder()}
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(rec, r)
			t = &tape{rec.Header(), rec.Code, rec.parts}
			tapes[question] = t
		}
		mu.Unlock()
		maps.Copy(w.Header(), t.header)
		w.WriteHeader(t.status)
		for _, part := range t.parts {
			_, _ = io.WriteString(w, part)
			flush(w)
		}
	}
}

type recorder struct {
	*httptest.ResponseRecorder
	parts []string
}

func (r *recorder) Write(p []byte) (int, error) {
	r.parts = append(r.parts, string(p))
	return r.ResponseRecorder.Write(p)
}

// insideAsks are calls of every format, streaming and not.
var insideAsks = []struct{ upstream, path, body string }{
	{"openai", "/v1/responses", `{"model":"m","input":"Herons?"}`},
	{"openai", "/v1/responses", `{"model":"m","stream":true,"input":"Herons?"}`},
	{"openai", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Herons?"}]}`},
	{"openai", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Herons?"}]}`},
	{"gemini", "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Herons?"}]}]}`},
	{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Herons?"}]}]}`},
	{"gemini", "/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"Herons?"}]}]}`},
	{"anthropic", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Herons?"}]}`},
	{"anthropic", "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"Herons?"}]}`},
	{"cohere", "/v2/chat", `{"model":"m","messages":[{"role":"user","content":"Herons?"}]}`},
	{"cohere", "/v2/chat", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Herons?"}]}`},
	{"perplexity", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Herons?"}]}`},
	{"perplexity", "/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Herons?"}]}`},
	{"mistral", "/v1/conversations", `{"model":"m","inputs":"Herons?"}`},
	{"mistral", "/v1/conversations", `{"model":"m","stream":true,"inputs":[{"role":"user","content":"Herons?"}]}`},
	{"mistral", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Herons?"}]}`},
}

// For every format, an in-process call equals the one over a listener byte for byte, and its answer is kept under the
// given identity.
func TestInside(t *testing.T) {
	upstream := httptest.NewServer(record(replay.New(nil)))
	defer upstream.Close()
	var ups []gateway.Upstream
	for _, name := range []string{"openai", "gemini", "anthropic", "cohere", "perplexity", "mistral"} {
		u, _ := url.Parse(upstream.URL + "/" + name)
		ups = append(ups, gateway.Upstream{Name: name, URL: u, Provider: name})
	}
	w := newTwin(t, nil, &setup{options: gateway.Options{Upstreams: ups}})
	for _, ask := range insideAsks {
		t.Run(ask.upstream+ask.path, func(t *testing.T) {
			outside := see(t, w.client, "POST", w.url+"/"+ask.upstream+ask.path, ask.body)
			inside := see(t, w.inside, "POST", "http://ibid.invalid/"+ask.upstream+ask.path, ask.body)
			first, second := outside.Header.Get(gateway.AnswerHeader), inside.Header.Get(gateway.AnswerHeader)
			if outside.Code != 200 || first == "" || second == "" || first == second || inside.Header.Get(gateway.RunHeader) != "run" {
				t.Fatalf("%d, answers %q and %q, run %q", outside.Code, first, second, inside.Header.Get(gateway.RunHeader))
			}
			same(t, outside, inside)
			want := w.stored(t, first)
			c := testenv.Must(w.store.Call(t.Context(), somebody.Tenant, second))(t)
			want.AnswerID, want.Tenant = c.AnswerID, c.Tenant
			ignore := cmpopts.IgnoreFields(store.Call{}, "Started", "FirstByte", "Duration", "Bytes") // bytes after the end mark may arrive later
			if diff := cmp.Diff(want, c, ignore, cmpopts.IgnoreUnexported(store.Call{})); diff != "" {
				t.Errorf("the stored call (-over a listener +inside):\n%s", diff)
			}
			if !c.Answer.Complete || c.Answer.Text == "" {
				t.Errorf("the answer is not whole: %+v", c.Answer)
			}
		})
	}
}

// Only the request passed to the transport has its identity.
func TestInsideIdentity(t *testing.T) {
	var g *gateway.Gateway
	var nested int
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequest("GET", "/up/v1/x", nil).WithContext(r.Context()))
		nested = rec.Code
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	w := newTwin(t, nil, &setup{options: gateway.Options{
		Guard: gateway.NewGuard(&gateway.GuardOptions{Bootstrap: bootstrap}), Transport: transport,
	}})
	g = w.gateway
	if res := see(t, w.client, "GET", w.url+"/up/v1/x", ""); res.Code != 401 {
		t.Errorf("without a token a client gets %d", res.Code)
	}
	if res := see(t, w.inside, "GET", "http://ibid.invalid/up/v1/x", ""); res.Code != 200 || nested != 401 {
		t.Errorf("from inside: %d; another request with its context: %d", res.Code, nested)
	}
	for publish, want := range map[bool]int{false: 403, true: 200} {
		r := w.request(t, "POST", captured, strings.NewReader("{}"))
		r.Header.Set(gateway.PublishHeader, "yes")
		res, err := w.gateway.Transport(gateway.Identity{Tenant: "acme", Publish: publish}).RoundTrip(r)
		testenv.OK(t, err)
		if _ = res.Body.Close(); res.StatusCode != want {
			t.Errorf("may publish %t: %d", publish, res.StatusCode)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// In-process calls are counted and waited for like others, refused once the gateway is closed, and cut off at a
// timeout.
func TestInsideClose(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w)
		<-r.Context().Done()
	}, nil)
	res, err := w.inside.Get("http://ibid.invalid/up/v1/x")
	testenv.OK(t, err)
	defer res.Body.Close()
	if n := w.metric(t, "in_flight"); n != 1 {
		t.Errorf("%v calls are being served", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.gateway.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	if n := w.metric(t, "in_flight"); n != 0 {
		t.Errorf("%v calls are being served", n)
	}
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a call that was cut: %v", err)
	}
	if res := see(t, w.inside, "GET", "http://ibid.invalid/up/v1/x", ""); res.Code != 503 {
		t.Errorf("then: %d", res.Code)
	}
}

const insideURL = "http://ibid.invalid"

// drip sends a line, then nothing, and reports when its client has gone.
func drip(gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "line\n")
		flush(w)
		<-r.Context().Done()
		gone <- struct{}{}
	}
}

// Closing the body or ending the context ends the call, including upstream.
func TestInsideLeave(t *testing.T) {
	gone := make(chan struct{}, 1)
	w := newTwin(t, drip(gone), nil)
	for _, path := range []string{captured, streamed} {
		for name, leave := range map[string]func(*http.Response, context.CancelCauseFunc){
			"close":  func(res *http.Response, _ context.CancelCauseFunc) { _ = res.Body.Close() },
			"cancel": func(_ *http.Response, cancel context.CancelCauseFunc) { cancel(errLeft) },
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", insideURL+path, strings.NewReader("{}"))
			res, err := w.gateway.Transport(somebody).RoundTrip(r)
			testenv.OK(t, err)
			line := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, line); err != nil || string(line) != "line\n" {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
			leave(res, cancel)
			<-gone
			if n, err := res.Body.Read(line); n != 0 || err == nil || name == "cancel" && !errors.Is(err, errLeft) {
				t.Errorf("%s: then %d, %v", name, n, err)
			}
			_ = res.Body.Close()
			cancel(nil)
		}
	}
}

var errLeft = errors.New("the caller has left")

// An upstream that does not read blocks neither the caller nor Close.
func TestInsideHangs(t *testing.T) {
	free, entered := make(chan struct{}), make(chan struct{}, 1)
	w := newTwin(t, nil, &setup{options: gateway.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		entered <- struct{}{}
		<-free
		return nil, errors.New("late")
	})}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-entered
		cancel()
	}()
	r, _ := http.NewRequestWithContext(ctx, "POST", insideURL+captured, strings.NewReader("{}"))
	if _, _, err := w.call(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := w.metric(t, "in_flight"); n != 1 {
		t.Errorf("%v calls are being served", n)
	}
	close(free)
}

// A panic ends the call and nothing else.
func TestInsidePanic(t *testing.T) {
	w := newTwin(t, nil, &setup{options: gateway.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		panic("a mistake")
	})}})
	_, _, err := w.call(w.request(t, "POST", captured, strings.NewReader("{}")))
	if err == nil {
		t.Error("the call has an answer")
	}
	w.holds(t, 0)
	if !strings.Contains(w.log.String(), "inside_test.go") {
		t.Errorf("the log has no stack: %s", w.log)
	}
}

// reader is a body that records whether it was closed.
type reader struct {
	io.Reader
	closed atomic.Int32
}

func (r *reader) Close() error {
	r.closed.Add(1)
	return nil
}

// failing fails when it is read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errLeft }

// The request's body is always closed once, and its own error is the call's.
func TestInsideBody(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, nil)
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		path   string
		want   string
		err    error // io.ErrUnexpectedEOF stands for any error
	}{
		{name: "whole", body: strings.NewReader("{}"), length: 2, path: captured, want: "{}"},
		{name: "of unknown length", body: strings.NewReader("{}"), length: 0, path: captured, want: "{}"},
		{name: "chunked", body: strings.NewReader("{}"), length: -1, path: streamed, want: "{}"},
		{name: "unread", body: strings.NewReader("{}"), length: 2, path: "/nowhere", want: "no upstream"},
		{name: "too short", body: strings.NewReader("{}"), length: 3, path: captured, err: io.ErrUnexpectedEOF},
		{name: "too long", body: strings.NewReader("{}"), length: 1, path: captured, err: io.ErrUnexpectedEOF},
		{name: "failing", body: failing{}, length: -1, path: captured, err: errLeft},
		{name: "failing while it streams", body: failing{}, length: -1, path: streamed, err: errLeft},
	} {
		body := &reader{Reader: test.body}
		r := w.request(t, "POST", test.path, body)
		r.ContentLength = test.length
		_, got, err := w.call(r)
		if errors.Is(test.err, io.ErrUnexpectedEOF) && err != nil {
			err = test.err
		}
		if !errors.Is(err, test.err) || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, %v, want %v", test.name, got, err, test.err)
		}
		w.holds(t, 0)
		if n := body.closed.Load(); n != 1 {
			t.Errorf("%s: the body was closed %d times", test.name, n)
		}
	}
	body := &reader{Reader: strings.NewReader("")}
	if _, _, err := w.call(&http.Request{Body: body}); err == nil || body.closed.Load() != 1 {
		t.Errorf("without a URL: %v, closed %d times", err, body.closed.Load())
	}
}

// call makes an in-process call and reads its response.
func (w *twin) call(r *http.Request) (status int, body string, err error) {
	res, err := w.gateway.Transport(somebody).RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// A caller that does not read is disconnected, as is one that does not send.
func TestInsideIdle(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, 1<<20)) // more than is buffered
	}, &setup{options: gateway.Options{Limits: gateway.Limits{Idle: 50 * time.Millisecond, RequestTime: 50 * time.Millisecond}}})
	res, err := w.inside.Post(insideURL+captured, "", strings.NewReader("{}"))
	testenv.OK(t, err)
	defer res.Body.Close()
	w.holds(t, 0)
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a caller that does not read gets %v", err)
	}
	from, _ := io.Pipe()
	defer from.Close() // an ordinary client's request waits for it
	r := w.request(t, "POST", captured, from)
	r.ContentLength = 7
	if got, _, err := w.call(r); err != nil || got != http.StatusRequestTimeout {
		t.Errorf("a caller that does not send gets %d, %v", got, err)
	}
	w.holds(t, 0)
}

// No call changes the protocol: a server may ignore the offer.
func TestInsideUpgrade(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Upgrade"] != nil || r.Header["Connection"] != nil {
			t.Errorf("the upstream is asked for another protocol: %v", r.Header)
		}
		_, _ = io.WriteString(w, "no")
	}, nil)
	r := w.request(t, "GET", streamed, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	if status, _, err := w.call(r); err != nil || status != http.StatusOK {
		t.Errorf("%d, %v", status, err)
	}
}
