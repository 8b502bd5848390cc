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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// somebody is who calls from inside.
var somebody = gateway.Identity{Tenant: "acme", Token: "tok", Scopes: []string{store.ScopeProxy}}

// twin makes the same call over a listener and from inside.
type twin struct {
	*world
	inside *http.Client
}

func newTwin(tb testing.TB, upstream http.HandlerFunc, s *setup) *twin {
	tb.Helper()
	w := newWorld(tb, upstream, s)
	return &twin{w, &http.Client{Transport: w.gateway.Transport(somebody)}}
}

// got is what a caller sees of a response.
type got struct {
	Status, Proto   string
	Code            int
	Header, Trailer http.Header
	Length          int64
	Body            string
	Err             bool // while the body was read
	NoBody          bool
}

func see(tb testing.TB, c *http.Client, method, address, body string) got {
	tb.Helper()
	var r *http.Request
	var err error
	if r, err = http.NewRequestWithContext(tb.Context(), method, address, strings.NewReader(body)); err != nil {
		tb.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("User-Agent", "test")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set(gateway.RunHeader, "run")
	res := testenv.Must(c.Do(r))(tb)
	defer res.Body.Close()
	none := res.Body == http.NoBody
	data, err := io.ReadAll(res.Body)
	return got{res.Status, res.Proto, res.StatusCode, res.Header, res.Trailer, res.ContentLength, string(data), err != nil, none}
}

// same compares two responses but for what cannot be the same.
func same(tb testing.TB, outside, inside got) {
	tb.Helper()
	for _, h := range []http.Header{outside.Header, inside.Header} {
		h.Del("Date") // a server's
		h.Del(gateway.AnswerHeader)
	}
	if outside.Length >= 0 && inside.Length < 0 { // a server knows the length of what is short
		outside.Length = -1
		outside.Header.Del("Content-Length")
	}
	if diff := cmp.Diff(outside, inside, cmpopts.EquateEmpty()); diff != "" {
		tb.Errorf("inside (-over a listener +inside):\n%s", diff)
	}
}

// record answers the same bytes, in the same pieces, to the same question.
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

// insideAsks are calls of every format, with and without a stream.
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

// A call from inside is, byte for byte, the one over a listener, for every format; and its answer is kept, as whoever it is
// said to be.
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
			ignore := cmpopts.IgnoreFields(store.Call{}, "Started", "FirstByte", "Duration", "Bytes") // of them, those after the end mark may come later
			if diff := cmp.Diff(want, c, ignore, cmpopts.IgnoreUnexported(store.Call{})); diff != "" {
				t.Errorf("what is kept (-over a listener +inside):\n%s", diff)
			}
			if !c.Answer.Complete || c.Answer.Text == "" {
				t.Errorf("the answer is not whole: %+v", c.Answer)
			}
		})
	}
}

// Only the request that was handed over is who it is said to be.
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
		res := testenv.Must(w.gateway.Transport(gateway.Identity{Tenant: "acme", Publish: publish}).RoundTrip(r))(t)
		if _ = res.Body.Close(); res.StatusCode != want {
			t.Errorf("who may publish, %t: %d", publish, res.StatusCode)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Calls from inside are counted and waited for like others, refused once the gateway is closed, and cut when it may not wait.
func TestInsideClose(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w)
		<-r.Context().Done()
	}, nil)
	res := testenv.Must(w.inside.Get("http://ibid.invalid/up/v1/x"))(t)
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
