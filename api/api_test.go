package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// node is an API over a real store and bus, behind a server.
type node struct {
	*httptest.Server

	api    *api.API
	store  *store.Store
	bus    *bus.Bus
	log    *servertest.Log
	dir    string         // of the database and the journal
	ending []func() error // functions that end it, run in reverse order
}

// openNode starts a node in a directory, with options that configure changes, and ends it with the test. configure can
// read the server's URL.
func openNode(tb testing.TB, dir string, configure func(n *node, o *api.Options)) *node {
	tb.Helper()
	n := &node{Server: httptest.NewUnstartedServer(nil), log: &servertest.Log{}, dir: dir}
	n.URL = "http://" + n.Listener.Addr().String()
	tb.Cleanup(func() { n.end(tb) })
	n.bus = testenv.Must(bus.Open(tb.Context(), "", nil))(tb)
	n.ending = append(n.ending, n.bus.Close)
	n.store = testenv.Must(store.Open(tb.Context(), filepath.Join(dir, "ibid.db"), &store.Options{Committed: n.bus.Committed()}))(tb)
	n.ending = append(n.ending, n.store.Close)
	o := &api.Options{
		Store: n.store, Bus: n.bus, Guard: gateway.NewGuard(&gateway.GuardOptions{Store: n.store}), Version: "v1.2.3",
		Metrics: prometheus.NewRegistry(),
		Logger:  slog.New(slog.NewJSONHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	configure(n, o)
	n.api = testenv.Must(api.New(o))(tb)
	n.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/openai/") || strings.HasPrefix(r.URL.Path, "/gemini/") {
			if o.Gateway != nil {
				o.Gateway.ServeHTTP(w, r)
				return
			}
		}
		n.api.ServeHTTP(w, r)
	})
	n.URL = "" // Start sets it
	n.Start()
	n.ending = append(n.ending, func() error {
		n.api.Close()
		n.Close()
		return nil
	})
	return n
}

// newNode starts a node with a guard; if it is nil, tokens are the only protection.
func newNode(tb testing.TB, guard *gateway.GuardOptions) *node {
	tb.Helper()
	return openNode(tb, tb.TempDir(), func(n *node, o *api.Options) {
		if guard != nil {
			guard.Store = n.store
			o.Guard = gateway.NewGuard(guard)
		}
	})
}

// start runs something in the background until the node ends.
func (n *node) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	n.ending = append(n.ending, func() error {
		cancel()
		<-done
		return nil
	})
}

// end ends a node unless it has ended.
func (n *node) end(tb testing.TB) {
	tb.Helper()
	for _, end := range slices.Backward(n.ending) {
		if err := end(); err != nil {
			tb.Error(err)
		}
	}
	n.ending = nil
}

// response is a response and its body.
type response struct {
	*http.Response

	body string
}

// do makes a request. fields are alternating names and values of header fields; "Host" sets the host.
func (n *node) do(tb testing.TB, method, path, body string, fields ...string) *response {
	tb.Helper()
	r := testenv.Must(http.NewRequestWithContext(tb.Context(), method, n.URL, strings.NewReader(body)))(tb)
	// Hostile paths must be sent unchanged.
	r.URL.Opaque = path
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
			continue
		}
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	testenv.OK(tb, err)
	defer res.Body.Close()
	got := testenv.Must(io.ReadAll(res.Body))(tb)
	return &response{res, string(got)}
}

func (n *node) get(tb testing.TB, path string, fields ...string) *response {
	tb.Helper()
	return n.do(tb, http.MethodGet, path, "", fields...)
}

// read gets path, which must succeed, and decodes the JSON.
func (n *node) read(tb testing.TB, path string, v any) {
	tb.Helper()
	res := n.get(tb, path)
	if res.StatusCode != http.StatusOK {
		tb.Fatalf("GET %s: %d %s", path, res.StatusCode, res.body)
	}
	if err := json.Unmarshal([]byte(res.body), v); err != nil {
		tb.Fatalf("GET %s: %v in %s", path, err, res.body)
	}
}

// bearer returns the header field of an access token.
func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// codes maps statuses to problem codes. 403 may also be gateway.CodeForeign.
var codes = map[int]string{
	400: gateway.CodeBadRequest, 401: gateway.CodeToken, 403: gateway.CodeScope, 404: gateway.CodeNotFound,
	405: gateway.CodeMethod, 409: gateway.CodeConflict, 413: gateway.CodeTooLarge, 415: gateway.CodeMediaType,
	422: gateway.CodeUnreadable, 429: gateway.CodeTooMany, 500: gateway.CodeInternal, 503: gateway.CodeUnavailable,
}

// wantProblem checks that res is a problem with that status.
func wantProblem(t *testing.T, res *response, status int) {
	t.Helper()
	wantCode(t, res, status, codes[status])
}

func wantCode(t *testing.T, res *response, status int, code string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(res.body), &p); err != nil {
		t.Errorf("status %d, no problem: %v in %q", res.StatusCode, err, res.body)
		return
	}
	_, got, _ := strings.Cut(p.Type, "#")
	if res.StatusCode != status || p.Status != status || got != code {
		t.Errorf("status %d, code %q, want %d, %q: %s", res.StatusCode, got, status, code, res.body)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if p.Title == "" || p.Detail == "" {
		t.Errorf("no words: %s", res.body)
	}
}

// golden compares got with a file in testdata.
func golden(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		testenv.OK(tb, os.WriteFile(file, []byte(got), 0o644))
	}
	want := testenv.Must(os.ReadFile(file))(tb)
	testenv.Equal(tb, file, string(want), got)
}

// goldenJSON is golden for JSON, which is indented in the file.
func goldenJSON(tb testing.TB, name, got string) {
	tb.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(got), "", "  "); err != nil {
		tb.Fatalf("%v in %q", err, got)
	}
	golden(tb, name, strings.TrimSuffix(b.String(), "\n")+"\n")
}

// herons returns an answer that cites pages, one for each URL.
func herons(urls ...string) *ibid.Answer {
	a := &ibid.Answer{
		ID: "resp_1", Provider: "openai", Format: "openai-responses", Model: "gpt-heron-1", Created: time.Unix(1756000000, 0).UTC(),
		Complete: true, Finish: ibid.FinishStop, Queries: []string{"herons"},
	}
	for i, u := range urls {
		start := len(a.Text)
		a.Text += "🐦 Herons <build> & sleep. "
		id := "web:" + string(rune('0'+i))
		a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.Web, Title: "Herons of " + u, URL: u})
		if err := a.Cite(ibid.Span{Start: start, End: len(a.Text) - 1}, ibid.Ref{Source: id, Quote: "herons do"}); err != nil {
			panic(err)
		}
	}
	a.Parts = []ibid.Part{{Span: ibid.Span{End: len(a.Text)}, Kind: ibid.AnswerPart}}
	return a
}

// started is when the calls of these tests began.
var started = time.Date(2026, 11, 21, 10, 0, 0, 123456000, time.UTC)

// call returns a captured call of the tenant default.
func call(id string, a *ibid.Answer) *store.Call {
	return &store.Call{
		AnswerID: id, Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Run: "run_" + id, Status: 200,
		Started: started, FirstByte: 120 * time.Millisecond, Duration: 2500*time.Millisecond + 250*time.Microsecond, Bytes: 4096,
		Prompt: []store.Message{{Role: "user", Text: "Do herons build?"}}, Answer: a,
	}
}

func (n *node) put(tb testing.TB, calls ...*store.Call) {
	tb.Helper()
	testenv.OK(tb, n.store.Put(tb.Context(), calls))
}

// token makes an access token.
func (n *node) token(tb testing.TB, tenant string, scopes ...string) (secret string) {
	tb.Helper()
	return testenv.Must(n.store.NewToken(tb.Context(), &store.Token{Tenant: tenant, Scopes: scopes}))(tb)
}

func TestNewNeedsParts(t *testing.T) {
	for _, o := range []*api.Options{nil, {}, {Guard: gateway.NewGuard(nil)}} {
		if _, err := api.New(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// Every path accepts only its methods, and lists them.
func TestMethods(t *testing.T) {
	n := newNode(t, nil)
	for _, test := range testenv.Table[struct {
		Path  string
		Allow string
	}](t, "testdata/methods.txt") {
		path, allow := test.Path, test.Allow
		for _, method := range []string{"PUT", "OPTIONS", "BREW"} {
			res := n.do(t, method, path, "")
			wantProblem(t, res, 405)
			if got := res.Header.Get("Allow"); got != allow {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got, allow)
			}
		}
	}
	if res := n.do(t, "HEAD", "/v1/answers", ""); res.StatusCode != 200 || res.body != "" || res.ContentLength < 20 {
		t.Errorf("HEAD: %d, %d bytes of %d", res.StatusCode, len(res.body), res.ContentLength)
	}
	for _, path := range []string{
		"/v1/", "/v1/nothing", "/v1/answers/", "/v1/answers/a/b", "/favicon.ico", "/v1/answers/..", "/v1//answers", "/healthz/",
		"/v1/answers/%2e%2e", "/./healthz", "/v1/runs//events", "/v2/answers", "/openai/v1/responses",
	} {
		wantProblem(t, n.get(t, path), 404)
	}
}

// Unknown ids are not found, whatever characters they contain.
func TestHostileIDs(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	long := strings.Repeat("x", 10<<10)
	for _, id := range []string{"ans_2", "ans_1%2F", "ans_1%2f..%2f", "%00", "ans_1%00", "%0a", "%ff", "%F0%9F%90%A6", "'--", "%25", long, "ans_1;", "*"} {
		for _, list := range []string{"answers", "conversations", "runs"} {
			wantProblem(t, n.get(t, "/v1/"+list+"/"+id), 404)
		}
		wantProblem(t, n.do(t, "DELETE", "/v1/answers/"+id, ""), 404)
		wantProblem(t, n.do(t, "DELETE", "/v1/tokens/"+id, ""), 404)
	}
	for _, id := range []string{"%00", "%ff", long} {
		wantProblem(t, n.get(t, "/v1/runs/"+id+"/events"), 404)
		wantProblem(t, n.get(t, "/v1/runs/"+id+"/summary"), 404)
		wantProblem(t, n.do(t, "POST", "/v1/runs/"+id+"/steps", `{"step_number": 1}`), 400)
	}
	if got := n.get(t, "/v1/answers/ans_1").StatusCode; got != 200 {
		t.Errorf("the answer: %d", got)
	}
}

func TestBadQueries(t *testing.T) {
	n := newNode(t, nil)
	wantProblem(t, n.get(t, "/v1/answers?q="+strings.Repeat("x", 20<<10)), 400)
	res := n.get(t, "/v1/answers?talk=c")
	if !strings.Contains(res.body, "q, source, conversation, run, verification, cursor, limit, unit, style") {
		t.Errorf("the parameters are not listed: %s", res.body)
	}
	if res := n.get(t, "/v1/conversations/c?as=xml"); !strings.Contains(res.body, "it is one of json, ui") {
		t.Errorf("the values are not listed: %s", res.body)
	}
}

// Invalid input is refused with the reason. Feedback errors do not mention Go types.
func TestRefused(t *testing.T) {
	p := newPress(t, 0)
	p.put(t, call("ans_1", herons("https://heron.example/")))
	p.post(t, 201, "/v1/runs/r/steps", `[{"step_number": 1, "id": "a"}, {"step_number": 2}]`)
	for _, row := range testenv.Cases(t, "testdata/refused.txt", 5) {
		res := p.do(t, row[0], row[1], row[2])
		wantProblem(t, res, testenv.Must(strconv.Atoi(row[3]))(t))
		if !strings.Contains(res.body, row[4]) || len(res.body) > 2000 || row[1] == "/v1/feedback" && strings.Contains(res.body, "Go ") {
			t.Errorf("%s %s %.60s: %s", row[0], row[1], row[2], res.body)
		}
	}
	var run struct{ Steps []any }
	if p.read(t, "/v1/runs/r", &run); len(run.Steps) != 2 {
		t.Errorf("%d steps", len(run.Steps))
	}
}

// The log tells requests apart by tenant and token, and contains no secrets or content.
func TestLog(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	secret := n.token(t, "acme", store.ScopeRead)
	as := bearer(secret)
	for _, path := range []string{"/v1/answers?q=secretquery", "/v1/nothing?q=secretquery", "/v1/runs/r/events?access_token=secretquery"} {
		n.get(t, path)
	}
	n.get(t, "/v1/answers?q=secretquery", as...)
	n.do(t, "POST", "/v1/decode", `{"text": "secretbody"}`, as...)
	res := n.do(t, "POST", "/v1/decode", "secretbody\x00", as...)
	testenv.OK(t, n.store.Close())
	n.get(t, "/v1/answers?q=secretquery", as...)
	n.Close() // the last lines are written after the response
	log := n.log.String()
	for _, word := range []string{secret, "secretquery", "secretbody", "herons"} {
		if strings.Contains(log, word) {
			t.Errorf("the log holds %q:\n%s", word, log)
		}
	}
	for _, want := range []string{
		`"msg":"request","request":"` + res.Header.Get("X-Request-Id") + `","method":"POST","route":"/v1/decode","tenant":"acme","token":"tok_`,
		`"level":"ERROR","msg":"a request was not answered"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

func query(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + v.Encode()
}
