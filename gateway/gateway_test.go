package gateway_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

func TestNew(t *testing.T) {
	parse := func(s string) *url.URL {
		return testenv.Must(url.Parse(s))(t)
	}
	good := gateway.Upstream{Name: "up", URL: parse("https://example.com")}
	full := func(o gateway.Options) *gateway.Options {
		o.Store, o.Journal = &store.Store{}, &journal.Journal{}
		if o.Upstreams == nil {
			o.Upstreams = []gateway.Upstream{good}
		}
		return &o
	}
	registry := prometheus.NewRegistry()
	for _, o := range []*gateway.Options{full(gateway.Options{}), full(gateway.Options{Metrics: registry}), full(gateway.Options{Capture: gateway.Stored, Prompts: gateway.PromptsAll})} {
		if _, err := gateway.New(o); err != nil {
			t.Error(err)
		}
	}
	bad := map[string]*gateway.Options{
		"nothing":            nil,
		"no store":           {Upstreams: []gateway.Upstream{good}, Journal: &journal.Journal{}},
		"capture":            full(gateway.Options{Capture: "later"}),
		"prompts":            full(gateway.Options{Prompts: "some"}),
		"registered already": full(gateway.Options{Metrics: registry}),
		"twice":              full(gateway.Options{Upstreams: []gateway.Upstream{good, good}}),
	}
	for _, name := range append(gateway.Reserved(), "", "Up", "a/b", "a b", "é", strings.Repeat("x", 65)) {
		bad["name "+name] = full(gateway.Options{Upstreams: []gateway.Upstream{{Name: name, URL: good.URL}}})
	}
	for _, address := range []string{"ftp://example.com", "example.com", "https://", "https://user@example.com", "https://example.com?a", "https://example.com?", "https://example.com#a"} {
		bad["URL "+address] = full(gateway.Options{Upstreams: []gateway.Upstream{{Name: "up", URL: parse(address)}}})
	}
	bad["no URL"] = full(gateway.Options{Upstreams: []gateway.Upstream{{Name: "up"}}})
	for name, o := range bad {
		if _, err := gateway.New(o); err == nil || !strings.HasPrefix(err.Error(), "making a gateway: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The names reserved by the contract are reserved in the code.
func TestReserved(t *testing.T) {
	for _, name := range []string{"v1", "runs", "mcp", "healthz", "readyz", "metrics", "schema", "log", ".well-known", "ibid.js"} {
		if !slices.Contains(gateway.Reserved(), name) {
			t.Errorf("%s is not reserved", name)
		}
	}
}

// Shutdown lets calls end, and stores their answers.
func TestShutdown(t *testing.T) {
	parts := chatParts("So ", "it ", "is.")
	next := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, parts[0])
		flush(w)
		<-next
		fmt.Fprint(w, strings.Join(parts[1:], ""))
	}, nil)
	server := httptest.NewServer(w.gateway)
	defer server.Close()
	res, err := http.Post(server.URL+chat, "application/json", strings.NewReader(chatRequest))
	testenv.OK(t, err)
	defer res.Body.Close()
	down := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		down <- gateway.Shutdown(ctx, server.Config, w.gateway)
	}()
	close(next)
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != strings.Join(parts, "") {
		t.Errorf("got %q, %v", body, err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if _, err := w.store.Call(t.Context(), store.DefaultTenant, res.Header.Get("Ibid-Answer")); err != nil {
		t.Error(err)
	}
	refused, body := w.ask(t, nil)
	if refused.StatusCode != 503 || refused.Header.Get("Retry-After") == "" {
		t.Errorf("afterwards: %d %s", refused.StatusCode, body)
	}
}

// A stopping server still serves open connections, and announces with each response that it is the connection's last.
func TestFarewell(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }, nil)
	l := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := gateway.NewServer("", w.gateway, nil)
	go func() { _ = server.Serve(l) }()
	conn := testenv.Must(net.Dial("tcp", l.Addr().String()))(t)
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func() *http.Response {
		t.Helper()
		testenv.Must(fmt.Fprint(conn, "GET "+strings.Replace(chat, "chat/completions", "models", 1)+" HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		res := testenv.Must(http.ReadResponse(in, nil))(t)
		testenv.Must(io.ReadAll(res.Body))(t)
		return res
	}
	if res := ask(); res.Close || res.StatusCode != 200 { //nolint:bodyclose // ask reads it
		t.Fatalf("before: close %t, %s", res.Close, res.Status)
	}
	down := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		down <- gateway.Shutdown(ctx, server, w.gateway)
	}()
	for res := ask(); !res.Close; res = ask() { //nolint:bodyclose // ask reads it
		if res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	testenv.OK(t, <-down)
}

// When ctx ends, running calls are broken off, and their partial answers are kept.
func TestShutdownCuts(t *testing.T) {
	parts := chatParts("So ")
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, parts[0])
		flush(w)
		<-r.Context().Done()
	}, nil)
	server := httptest.NewServer(w.gateway)
	defer server.Close()
	res, err := http.Post(server.URL+chat, "application/json", strings.NewReader(chatRequest))
	testenv.OK(t, err)
	defer res.Body.Close()
	testenv.Must(io.ReadFull(res.Body, make([]byte, len(parts[0]))))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := gateway.Shutdown(ctx, server.Config, w.gateway); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != "So " || a.Complete {
		t.Errorf("answer: %+v", a)
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), nil)
	for range 2 {
		res, _ := w.ask(t, nil)
		w.stored(t, res.Header.Get("Ibid-Answer"))
	}
	w.do(t, w.request(t, "GET", "/up/v1/models", nil))
	w.do(t, w.request(t, "POST", chat, strings.NewReader(strings.Repeat("x", 33<<20))))
	want := `
# HELP ibid_gateway_calls_total Calls, by upstream, route and status class.
# TYPE ibid_gateway_calls_total counter
ibid_gateway_calls_total{class="2xx",route="/chat/completions",upstream="up"} 2
ibid_gateway_calls_total{class="2xx",route="other",upstream="up"} 1
ibid_gateway_calls_total{class="4xx",route="/chat/completions",upstream="up"} 1
# HELP ibid_gateway_answers_total Captured answers.
# TYPE ibid_gateway_answers_total counter
ibid_gateway_answers_total{complete="false",upstream="up"} 0
ibid_gateway_answers_total{complete="true",upstream="up"} 2
# HELP ibid_gateway_citations_total Citations of captured answers.
# TYPE ibid_gateway_citations_total counter
ibid_gateway_citations_total{upstream="up"} 2
# HELP ibid_gateway_indexed_total Answers moved from the journal into the store.
# TYPE ibid_gateway_indexed_total counter
ibid_gateway_indexed_total 2
# HELP ibid_gateway_journal_records Answers in the journal that are not in the store.
# TYPE ibid_gateway_journal_records gauge
ibid_gateway_journal_records 0
`
	err := testutil.GatherAndCompare(w.metrics, strings.NewReader(want), "ibid_gateway_calls_total", "ibid_gateway_answers_total",
		"ibid_gateway_citations_total", "ibid_gateway_indexed_total", "ibid_gateway_journal_records")
	if err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(w.metrics)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// A captured call is a span that follows the GenAI conventions, and a child of the client's span.
func TestSpan(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("ibid")
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{Tracer: tracer}})
	r := w.request(t, "POST", chat, strings.NewReader(chatRequest))
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.Header.Set("Ibid-Conversation", "conv")
	res, _ := w.do(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	testenv.OK(t, w.gateway.Close(ctx)) // the span ends after the response
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans", len(ended))
	}
	span := ended[0]
	if span.Name() != "chat gpt-test" || span.Parent().SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("span %s below %s", span.Name(), span.Parent().SpanID())
	}
	got := map[string]string{}
	for _, a := range span.Attributes() {
		if a.Key != "server.address" {
			got[string(a.Key)] = a.Value.String()
		}
	}
	want := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-test", "gen_ai.response.model": "gpt-test",
		"gen_ai.response.id": "c1", "gen_ai.response.finish_reasons": attribute.StringSliceValue([]string{"stop"}).String(),
		"gen_ai.conversation.id": "conv", "http.response.status_code": "200", "ibid.upstream": "up", "ibid.run": res.Header.Get("Ibid-Run"),
		"ibid.answer": res.Header.Get("Ibid-Answer"), "ibid.citations": "1", "ibid.sources": "1", "ibid.complete": "true",
	}
	testenv.Equal(t, "attributes", want, got)
}

// No goroutine outlives the tests.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// lockDatabase locks a SQLite file against writes until unlock is called. The store registers the driver.
func lockDatabase(tb testing.TB, name string) (unlock func()) {
	tb.Helper()
	db := testenv.Must(sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(10000)"))(tb)
	conn := testenv.Must(db.Conn(tb.Context()))(tb)
	testenv.Must(conn.ExecContext(tb.Context(), "BEGIN IMMEDIATE"))(tb)
	return func() {
		tb.Helper()
		if _, err := conn.ExecContext(tb.Context(), "ROLLBACK"); err != nil {
			tb.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// brokenLog panics while an answer is kept.
type brokenLog struct{ slog.Handler }

func (b brokenLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "answer" {
		panic("a mistake")
	}
	return b.Handler.Handle(ctx, r)
}

// A panic while an answer is kept does not affect the client.
func TestPanicWhileKeeping(t *testing.T) {
	log := &servertest.Log{}
	w := newWorld(t, answerParts(chatParts("So ", "it ", "is.")...), &setup{options: gateway.Options{
		Logger: slog.New(brokenLog{slog.NewJSONHandler(log, nil)}),
	}})
	res, body := w.ask(t, nil)
	if res.StatusCode != 200 || string(body) != strings.Join(chatParts("So ", "it ", "is."), "") {
		t.Errorf("got %d %q", res.StatusCode, body)
	}
	if n := w.metric(t, "panics_total"); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
	if !strings.Contains(log.String(), "brokenLog") || !strings.Contains(log.String(), res.Header.Get("Ibid-Answer")) {
		t.Errorf("the log has no stack: %s", log)
	}
	if n := w.metric(t, "held_bytes"); n != 0 {
		t.Errorf("%v bytes are held", n)
	}
}

// Every accepted step is one that the store accepts: only earlier steps, each once.
func FuzzParseStep(f *testing.F) {
	for _, s := range []string{"3", `3;tool="summarize";after="1,2"`, `3;after=""`, `3;tool="a\"b\\"`, `3; tool="x`, `9999999999999999999999`, ";"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		step, err := gateway.ParseStep(s)
		if err != nil {
			if step.Number != 0 || step.Tool != "" || step.After != nil {
				t.Errorf("%q: an error and %+v", s, step)
			}
			return
		}
		if step.Number < 1 || len(step.Tool) > gateway.MaxName {
			t.Errorf("%q: %+v", s, step)
		}
		seen := slices.Clone(step.After)
		slices.Sort(seen)
		if len(slices.Compact(seen)) != len(step.After) || len(seen) > 0 && (seen[0] < 1 || slices.Max(step.After) >= step.Number) {
			t.Errorf("%q: %+v", s, step)
		}
	})
}

// The gateway answers any request line and header.
func FuzzServe(f *testing.F) {
	for _, path := range []string{"/", "/up", "/up/v1/%2F", "//up", "/u%70/x", "/up/../x", "/up?%zz", "/up/v1/chat/completions"} {
		f.Add(path, "run", "1")
	}
	w := newWorld(f, answerJSON("{}"), nil)
	f.Fuzz(func(t *testing.T, path, run, step string) {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := r.URL.Parse(path)
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		r.Header.Set(gateway.RunHeader, run)
		r.Header.Set(gateway.StepHeader, step)
		res := httptest.NewRecorder()
		w.gateway.ServeHTTP(res, r)
		if res.Code != 200 && res.Code != 400 && res.Code != 404 {
			t.Errorf("%q: %d %s", path, res.Code, res.Body)
		}
	})
}
