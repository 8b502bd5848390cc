package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// canary stands in all that the tenant acme has. It is one word, so that it survives any rendering.
const canary = "heliotropecanary"

const (
	bootstrap = "bootstrap-of-the-test-0123456789abcdef"
	heron     = "https://heron.example/" + canary
	slow      = "take your time" // a question whose answer does not end
)

// probe is a request for something of acme's.
type probe struct {
	path, body, media string // media: of the body; empty: JSON
	own               int    // the status that acme gets; 0: 200
	tells             bool   // acme's response has the canary
	until             string // it is a stream, which does not end by itself: acme's has this
	ends              bool   // what it asks for is gone then: acme comes last
}

// probes has requests for each route of a server, by its method and pattern. A route without any fails the test: who
// adds one says here where it could show what is another tenant's. A route that has nothing of anybody's has an empty list.
func probes(w *tenantsWorld) map[string][]probe {
	const form = "application/x-www-form-urlencoded"
	a, src := w.ids, url.QueryEscape(heron)
	get := func(path ...string) (all []probe) {
		for _, p := range path {
			all = append(all, probe{path: p, tells: true})
		}
		return all
	}
	tool := func(name string, args any) probe {
		params, _ := json.Marshal(map[string]any{"name": name, "arguments": args})
		return probe{
			path: "/mcp", tells: true, body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + string(params) + `}`,
		}
	}
	return map[string][]probe{
		"POST /v1/decode":                                {},
		"POST /v1/prompt":                                {{path: "/v1/prompt", body: `{"sources":["` + heron + `"]}`, tells: true}},
		"GET /v1/answers":                                get("/v1/answers", "/v1/answers?q="+canary, "/v1/answers?run=r1", "/v1/answers?conversation=talk", "/v1/answers?source="+src),
		"GET /v1/answers/{id}":                           get("/v1/answers/"+a.answer, "/v1/answers/"+a.answer+"?as=plain", "/v1/answers/"+a.answer+"?as=bibtex"),
		"DELETE /v1/answers/{id}":                        {{path: "/v1/answers/" + a.answer, own: 204, ends: true}},
		"GET /v1/answers/{id}/manifest":                  {{path: "/v1/answers/" + a.open + "/manifest"}},
		"GET /v1/conversations":                          get("/v1/conversations"),
		"GET /v1/conversations/{id}":                     get("/v1/conversations/talk", "/v1/conversations/talk?as=ui"),
		"GET /v1/sources":                                get("/v1/sources?url=" + src),
		"GET /v1/sources/versions":                       get("/v1/sources/versions?url=" + src),
		"GET /v1/copies/{hash}":                          get("/v1/copies/" + a.hash),
		"GET /v1/feedback":                               get("/v1/feedback", "/v1/feedback?answer="+a.answer, "/v1/feedback?as=csv", "/v1/feedback?as=jsonl"),
		"POST /v1/feedback":                              {{path: "/v1/feedback", body: `{"answer_id":"` + a.answer + `","verdict":"right"}`, own: 201}},
		"GET /v1/runs":                                   get("/v1/runs"),
		"POST /v1/runs":                                  {{path: "/v1/runs", body: `{"run_id":"r1"}`}},
		"GET /v1/runs/{id}":                              get("/v1/runs/r1"),
		"POST /v1/runs/{id}/steps":                       {{path: "/v1/runs/r1/steps", body: `{"step_number":1,"intermediate_answer":"Ours."}`}},
		"POST /v1/runs/{id}/finish":                      {{path: "/v1/runs/r1/finish", body: `{"answer_id":"` + a.answer + `"}`}},
		"GET /v1/runs/{id}/summary":                      get("/v1/runs/r1/summary", "/v1/runs/r1/summary?as=prov", "/v1/runs/r1/summary?as=otlp"),
		"GET /v1/runs/{id}/events":                       {{path: "/v1/runs/r1/events", until: canary}},
		"GET /v1/runs/{id}/manifest":                     {{path: "/v1/runs/r2/manifest"}},
		"POST /v1/stream-token":                          {{path: "/v1/stream-token", body: `{"run":"r1"}`, own: 201}},
		"POST /v1/traces":                                {{path: "/v1/traces", body: `{"resourceSpans":[]}`}},
		"POST /v1/verify":                                {},
		"GET /v1/incidents":                              get("/v1/incidents", "/v1/incidents?source="+src),
		"GET /v1/alerts":                                 get("/v1/alerts", "/v1/alerts?seen=no"),
		"POST /v1/alerts/{id}":                           {{path: "/v1/alerts/" + a.alert, body: `{"seen":true}`, tells: true, ends: true}},
		"GET /ui/alerts":                                 get("/ui/alerts"),
		"POST /ui/alerts":                                {{path: "/ui/alerts", body: "id=" + a.alert, media: form, own: 303, ends: true}, {path: "/ui/alerts", media: form, own: 303, ends: true}},
		"GET /v1/tokens":                                 get("/v1/tokens"),
		"POST /v1/tokens":                                {{path: "/v1/tokens", body: `{"tenant":"acme","scopes":["read"]}`, own: 201}},
		"GET /v1/audit":                                  {{path: "/v1/audit", tells: true}, {path: "/v1/audit?tenant=acme", tells: true}},
		"DELETE /v1/tokens/{id}":                         {{path: "/v1/tokens/" + a.token, own: 204, ends: true}},
		"POST /v1/chat":                                  {{path: "/v1/chat?stream=no", body: `{"messages":[{"role":"user","content":"And herons?"}],"conversation":"talk","run":"r1"}`}},
		"GET /v1/chat/{id}/stream":                       {{path: "/v1/chat/slow/stream", until: canary}},
		"DELETE /v1/chat/{id}/stream":                    {{path: "/v1/chat/slow/stream", own: 204, ends: true}},
		"GET /ui/login":                                  {},
		"POST /ui/login":                                 {},
		"POST /ui/logout":                                {},
		"GET /ui/assets/{name...}":                       {},
		"GET /favicon.ico":                               {},
		"GET /ibid.js":                                   {},
		"GET /{$}":                                       get("/"),
		"GET /ui/overview":                               get("/ui/overview"),
		"GET /ui/search":                                 get("/ui/search?q="+canary, "/ui/search?source="+src),
		"GET /ui/conversations":                          get("/ui/conversations"),
		"GET /ui/conversations/{id}":                     get("/ui/conversations/talk"),
		"GET /ui/ask":                                    {{path: "/ui/ask"}},
		"POST /ui/ask":                                   {{path: "/ui/ask", body: "question=And+herons%3F&conversation=talk", media: form, own: 303}},
		"GET /ui/answers/{id}":                           get("/ui/answers/" + a.answer),
		"POST /ui/answers/{id}/stop":                     {{path: "/ui/answers/" + a.slow + "/stop", media: form, own: 303, ends: true}},
		"GET /ui/answers/{id}/live":                      {{path: "/ui/answers/" + a.slow + "/live?run=" + a.run, until: canary}},
		"GET /ui/answers/{id}/verification":              {{path: "/ui/answers/" + a.answer + "/verification"}},
		"GET /ui/answers/{id}/export":                    get("/ui/answers/" + a.answer + "/export?as=json"),
		"POST /ui/answers/{id}/check":                    {{path: "/ui/answers/" + a.answer + "/check", media: form, own: 303}},
		"GET /ui/copies/{hash}":                          get("/ui/copies/" + a.hash),
		"GET /ui/feedback":                               get("/ui/feedback?answer=" + a.answer),
		"POST /ui/feedback":                              {{path: "/ui/feedback", body: "verdict=right&answer=" + a.answer, media: form, own: 303}},
		"GET /ui/runs":                                   get("/ui/runs"),
		"GET /ui/runs/{id}":                              get("/ui/runs/r1"),
		"GET /ui/runs/{id}/export":                       get("/ui/runs/r1/export"),
		"GET /ui/runs/{id}/live":                         {{path: "/ui/runs/r2/live", until: "event: changed"}},
		"GET /ui/sources":                                get("/ui/sources?url="+src, "/ui/sources"),
		"GET /ui/incidents":                              get("/ui/incidents", "/ui/incidents?check=chain"),
		"GET /ui/incidents/{id}":                         get("/ui/incidents/" + a.incident),
		"GET /ui/verify":                                 {},
		"POST /ui/verify":                                {},
		"GET /ui/experiments":                            {{path: "/ui/experiments"}},
		"GET /healthz":                                   {{path: "/healthz"}},
		"GET /readyz":                                    {{path: "/readyz"}},
		"GET /metrics":                                   {{path: "/metrics"}},
		"GET /v1":                                        {},
		"GET /v1/openapi.json":                           {},
		"POST /{upstream}/{path...}":                     {{path: "/openai/v1/responses", body: `{"model":"m","input":"And herons?"}`}},
		"POST /mcp":                                      {tool("run_sources", map[string]any{"run": "r1"}), tool("find_answers", map[string]any{}), tool("find_answers", map[string]any{"answer_id": a.answer})},
		"GET /runs/{pub}/{cite}":                         {},
		"GET " + manifest.DiscoveryPath:                  {},
		"GET " + manifest.DirectoryPath:                  {},
		"GET " + manifest.KeysPath:                       {},
		"GET " + manifest.SchemaPath:                     {},
		"GET /ui/answers/{id}/display/{n}":               get("/ui/answers/" + a.answer + "/display/1"),
		"GET /ui/answers/{id}/sources/{n}":               get("/ui/answers/" + a.answer + "/sources/1"),
		"GET /ui/answers/{id}/sources/{n}/copies/{hash}": get("/ui/answers/" + a.answer + "/sources/1/copies/" + a.hash),
		"GET /ui/conversations/{id}/export":              get("/ui/conversations/talk/export?as=json"),
		"GET /runs/{pub}/cite/{answer_id}":               {{path: "/runs/" + a.pub + "/cite/" + a.answer, own: 404}},
		"GET " + manifest.LogPath + "{path...}":          {},
	}
}

// tenantsWorld is a server with something of each kind of the tenant acme.
type tenantsWorld struct {
	*servertest.World

	acme string                                                                      // its token
	ids  struct{ answer, open, slow, run, hash, alert, incident, token, pub string } // open: an answer that is published; run: that of the slow one

	mu    sync.Mutex
	asked bytes.Buffer // what the upstream was asked
}

// upstream answers as replay does, but a slow question with what has the canary, and no end.
func (w *tenantsWorld) upstream() http.Handler {
	others := replay.New(nil)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.asked.Write(body)
		w.mu.Unlock()
		if !bytes.Contains(body, []byte(slow)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			others.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"m1","type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":"Herons ` + canary + `. They "}`,
			`{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":"wade. And more "}`,
		} {
			var kind struct{ Type string }
			_ = json.Unmarshal([]byte(event), &kind)
			_, _ = fmt.Fprintf(rw, "event: %s\ndata: %s\n\n", kind.Type, event)
		}
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	})
}

func newTenantsWorld(t *testing.T) *tenantsWorld {
	t.Helper()
	w := &tenantsWorld{}
	w.World = servertest.Start(t, &servertest.Setup{
		Upstream: w.upstream(),
		Configure: func(c *server.Config) {
			c.BootstrapToken, c.Publish.Level, c.Publish.Recheck = bootstrap, "2", 24*time.Hour
			c.PublicURL = "https://ibid.example"
		},
	})
	ctx := t.Context()
	w.acme = w.token(t, "acme")
	other := &store.Token{Tenant: "acme", Name: canary, Scopes: []string{store.ScopeRead}}
	testenv.Must(w.Store.NewToken(ctx, other))(t)
	w.ids.token = other.ID

	const text = "Herons eat fish " + canary + "."
	span := ibid.Span{End: len(text)}
	call := &store.Call{
		AnswerID: "ans_of_acme", Tenant: "acme", Upstream: "openai", Route: "POST /v1/responses", Conversation: "talk", Run: "r1",
		Step: store.Step{Number: 3, Tool: canary}, Agent: canary, Status: 200, Started: time.Now().Add(-time.Hour),
		Prompt: []store.Message{{Role: store.RoleUser, Text: "What do herons eat, " + canary + "?"}},
		Answer: &ibid.Answer{
			Provider: "openai", Model: canary, Complete: true, Text: text,
			Sources: []ibid.Source{{ID: "s1", Kind: ibid.Web, Title: canary, URL: heron}},
			Display: []ibid.Display{{Kind: "search-suggestions", HTML: "<p>" + canary}},
			Citations: []ibid.Citation{{
				ID: "c1", Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider,
				Refs: []ibid.Ref{{Source: "s1", Quote: canary}},
			}},
		},
	}
	published := &store.Call{
		AnswerID: "ans_published", Tenant: "acme", Upstream: "openai", Route: "POST /v1/responses", Run: "r2", Conversation: "talk-" + canary, Status: 200,
		Started: time.Now(), Publish: true, Answer: &ibid.Answer{Provider: "openai", Complete: true, Text: "Herons wade."},
	}
	testenv.OK(t, w.Store.Put(ctx, []*store.Call{call, published}))
	w.ids.answer, w.ids.open = call.AnswerID, published.AnswerID
	finish := &store.Recording{Run: "r2", AnswerID: w.ids.open, Finish: true, Trail: &trail.Trail{}}
	testenv.Must(w.Store.Record(ctx, "acme", finish))(t)
	_, err := w.Store.Record(ctx, "acme", &store.Recording{Run: "r1", Trail: testenv.Must(trail.Read([]byte(
		`{"run_id":"r1","original_question":"` + canary + `?","reasoning_steps":[{"step_number":1,"intermediate_answer":"` + canary +
			`","source_attributions":[{"document_id":"d1","url":"` + heron + `","excerpt":"` + canary + `"}]}]}`)))(t)})
	testenv.OK(t, err)
	octets := []byte("<p>Herons eat fish " + canary)
	w.ids.hash = snapshot.Hash(octets)
	testenv.OK(t, w.Store.Copies("acme").Keep(ctx, &snapshot.Snapshot{
		URL: heron, FinalURL: heron, Status: 200, MediaType: "text/html", Octets: octets, Hash: w.ids.hash, FetchedAt: time.Now(),
	}))
	testenv.OK(t, w.Store.AddFeedback(ctx, "acme", &store.Feedback{AnswerID: w.ids.answer, Verdict: store.VerdictRight, By: canary, Note: canary}))
	incidents := testenv.Must(w.Store.AddIncidents(ctx, "acme", []verify.Incident{{
		ObservedAt: time.Now(), ManifestURL: "https://agent.example/m", SourceURL: heron, Status: verify.ExcerptAltered, Detail: canary,
	}}))(t)
	w.ids.incident = incidents[0].Key()
	alert := store.Alert{Kind: store.AlertDoubtful, Tenant: "acme", Summary: canary, Subject: store.AlertSubject{Source: heron}}
	alert.Fill()
	testenv.Must(w.Store.AddAlerts(ctx, []store.Alert{alert}))(t)
	w.ids.alert = alert.ID
	testenv.OK(t, w.Store.Audit(ctx, "acme", store.AuditEntry{Action: store.AuditAnswerDeleted, Object: canary}))
	w.ids.pub = testenv.Must(w.Store.Pub(ctx, "acme", "r1"))(t)

	res, err := w.do(ctx, w.acme, "POST", &probe{
		path: "/v1/chat", body: `{"provider":"openai","conversation":"slow","messages":[{"role":"user","content":"` + slow + " " + canary + `"}]}`,
	})
	testenv.OK(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	w.ids.slow, w.ids.run = res.Header.Get("Ibid-Answer"), res.Header.Get("Ibid-Run")
	return w
}

// token makes a token of a tenant that may do all.
func (w *tenantsWorld) token(t *testing.T, tenant string) string {
	t.Helper()
	return testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Tenant: tenant, Scopes: store.Scopes(), Publish: true}))(t)
}

// do makes a request with a token; empty: without.
func (w *tenantsWorld) do(ctx context.Context, token, method string, p *probe) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.URL+p.path, strings.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Ibid-Token", token)
	}
	r.Header.Set("Content-Type", "application/json")
	if p.media != "" {
		r.Header.Set("Content-Type", p.media)
	}
	r.Header.Set("Accept", "text/event-stream, text/html, application/json")
	if strings.HasPrefix(p.path, "/openai/") {
		r.Header.Set("Ibid-Conversation", "talk")
		r.Header.Set("Ibid-Run", "r1")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// read returns the status, and the header and body as text: of a stream up to what acme's has, or until ctx ends.
func (w *tenantsWorld) read(ctx context.Context, token, method string, p *probe) (status int, text string, err error) {
	res, err := w.do(ctx, token, method, p)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	var b strings.Builder
	_ = res.Header.Write(&b)
	buffer := make([]byte, 4<<10)
	for err == nil && (p.until == "" || !strings.Contains(b.String(), p.until)) {
		var n int
		n, err = res.Body.Read(buffer)
		b.Write(buffer[:n])
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return res.StatusCode, b.String(), err
}

// leaked returns what of acme's a response tells: ids count where the request did not name them.
func (w *tenantsWorld) leaked(p *probe, text string) []string {
	var all []string
	for _, secret := range []string{canary, w.ids.answer, w.ids.open, w.ids.slow, w.ids.run, w.ids.hash, w.ids.alert, w.ids.incident, w.ids.token} {
		asked := p.path + p.body
		if unescaped, err := url.QueryUnescape(asked); err == nil {
			asked += unescaped
		}
		if strings.Contains(text, secret) && !strings.Contains(asked, secret) {
			all = append(all, secret)
		}
	}
	return all
}

// Nothing that a tenant has is seen, changed or removed by another one, by the operator's own tenant, or by nobody in
// particular, on any route that the server has, by any method.
func TestTenantIsolation(t *testing.T) {
	w := newTenantsWorld(t)
	all := probes(w)
	routes := map[string]httpx.Route{}
	for _, rt := range slices.Concat(server.Routes(), page.Routes()) {
		key := rt.Method + " " + rt.Pattern
		if rt.Method == "" {
			key = "GET" + key
		}
		if there, ok := routes[key]; ok && there.Access != httpx.Open {
			continue // the page goes before the list of the API
		}
		routes[key] = rt
		if _, ok := all[key]; !ok {
			t.Errorf("%s: nobody says what of a tenant it could show: add it to probes", key)
		}
	}
	for key := range all {
		if _, ok := routes[key]; !ok {
			t.Errorf("%s: there is no such route", key)
		}
	}
	w.mu.Lock()
	w.asked.Reset()
	w.mu.Unlock()
	callers := map[string]string{"another tenant": w.token(t, "evil"), "the operator": bootstrap, "nobody": ""}
	for who, token := range callers {
		for key, list := range all {
			rt := routes[key]
			for i := range list {
				if who == "the operator" && rt.Tenant == httpx.AnyTenant {
					continue // who runs ibid manages everybody's tokens
				}
				w.attack(t, who, token, key, &rt, &list[i])
			}
		}
	}
	w.mu.Lock()
	if strings.Contains(w.asked.String(), canary) {
		t.Errorf("an upstream was asked on behalf of others with what is acme's: %s", w.asked.String())
	}
	w.mu.Unlock()

	// All of it is still there, and was there to be found.
	for _, last := range []bool{false, true} {
		for key, list := range all {
			for i := range list {
				if p := &list[i]; p.ends == last {
					w.own(t, key, p)
				}
			}
		}
	}
}

// attack makes one request for what is acme's, by all methods, as somebody else.
func (w *tenantsWorld) attack(t *testing.T, who, token, key string, rt *httpx.Route, p *probe) {
	t.Helper()
	of, _, _ := strings.Cut(key, " ")
	for _, method := range []string{of, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Minute, cancel)
		if p.until != "" {
			timer.Reset(300 * time.Millisecond) // one that tells nothing does not end by itself
		}
		status, text, err := w.read(ctx, token, method, p)
		timer.Stop()
		cancel()
		if err != nil && p.until == "" {
			t.Errorf("%s: %s %s: %v", who, method, p.path, err)
		}
		if p.until != "" && strings.Contains(text, p.until) {
			t.Errorf("%s: %s %s follows what is acme's", who, method, p.path)
		}
		if leaked := w.leaked(p, text); leaked != nil {
			t.Errorf("%s: %s %s tells %q:\n%.2000s", who, method, p.path, leaked, text)
		}
		needsToken := rt.Access != httpx.Open && rt.Access != httpx.Public
		if token == "" && method == of && needsToken && status != 401 && (status != 303 || !strings.Contains(text, "Location: /ui/login")) {
			t.Errorf("%s: %s %s: %d, though it needs a token", who, method, p.path, status)
		}
		isOne := regexp.MustCompile(`\{(id|hash)\}`).MatchString(key) && regexp.MustCompile("ans_|alert_|sha256:").MatchString(p.path)
		if token != "" && method == of && isOne && status != 404 && !strings.HasSuffix(key, "/stop") && p.until == "" {
			t.Errorf("%s: %s %s: %d, want 404", who, method, p.path, status)
		}
	}
}

// own makes one request as acme.
func (w *tenantsWorld) own(t *testing.T, key string, p *probe) {
	t.Helper()
	method, _, _ := strings.Cut(key, " ")
	status, text, err := w.read(t.Context(), w.acme, method, p)
	want := p.own
	if want == 0 {
		want = 200
	}
	if err != nil || status != want {
		t.Errorf("acme: %s %s: %d, want %d, %v:\n%.2000s", method, p.path, status, want, err, text)
	}
	if p.tells && !strings.Contains(text, canary) {
		t.Errorf("acme: %s %s does not tell what it should, and the test shows nothing of it: %d\n%.2000s", method, p.path, status, text)
	}
}
