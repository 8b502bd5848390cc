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
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// canary occurs in all data of the tenant acme. It is one word, so that it survives any rendering.
const canary = "heliotropecanary"

const (
	bootstrap = "bootstrap-of-the-test-0123456789abcdef"
	heron     = "https://heron.example/" + canary
	slow      = "take your time" // a question whose answer does not end
)

// probe is a request for data of acme.
type probe struct {
	path, body, media string // media: of the body; empty means JSON
	own               int    // the status for acme
	tells             bool   // acme's response contains the canary
	until             string // for a stream that does not end by itself: the text up to which acme reads
	ends              bool   // it deletes what it requests, so acme comes last
}

// probes reads the requests in testdata/probes.txt by route. A route without any fails the test, so that its author
// adds requests that could reveal another tenant's data.
func probes(t *testing.T, w *tenantsWorld) map[string][]probe {
	t.Helper()
	names := map[string]string{
		"CANARY": canary, "HERON": heron, "SRC": url.QueryEscape(heron), "ANSWER": w.ids.answer, "OPEN": w.ids.open,
		"SLOW": w.ids.slow, "RUN": w.ids.run, "HASH": w.ids.hash, "ALERT": w.ids.alert, "INCIDENT": w.ids.incident,
		"TOKEN": w.ids.token, "PUB": w.ids.pub,
	}
	expand := func(s string) string { return os.Expand(s, func(name string) string { return names[name] }) }
	all := map[string][]probe{}
	for line := range strings.Lines(string(testenv.Must(os.ReadFile("testdata/probes.txt"))(t))) {
		columns := append(strings.Split(strings.TrimSpace(line), "\t"), "", "", "")
		if strings.HasPrefix(line, "#") {
			continue
		}
		route := columns[0]
		all[route] = append([]probe{}, all[route]...)
		if columns[1] == "" {
			continue
		}
		status, how, _ := strings.Cut(columns[1], " ")
		how, until, _ := strings.Cut(how, "until=")
		p := probe{path: expand(columns[2]), body: expand(columns[3]), until: expand(until)}
		p.own = testenv.Must(strconv.Atoi(status))(t)
		p.tells, p.ends = strings.Contains(how, "tells"), strings.Contains(how, "ends")
		if strings.Contains(how, "form") {
			p.media = "application/x-www-form-urlencoded"
		}
		all[route] = append(all[route], p)
	}
	return all
}

// tenantsWorld is a server with data of each kind for the tenant acme.
type tenantsWorld struct {
	*servertest.World

	acme string                                                                      // its token
	ids  struct{ answer, open, slow, run, hash, alert, incident, token, pub string } // open: a published answer; run: the run of the slow answer

	mu    sync.Mutex
	asked bytes.Buffer // requests to the upstream
}

// upstream answers like replay, except for a slow question, whose answer contains the canary and does not end.
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
			c.BootstrapToken, c.Publish.Level, c.Publish.Recheck = bootstrap, "2", server.Recheck{Every: 24 * time.Hour}
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
	alert := store.Alert{Kind: store.AlertDiffers, Tenant: "acme", Summary: canary, Subject: store.AlertSubject{Source: heron}}
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

// token creates a token of a tenant with all scopes.
func (w *tenantsWorld) token(t *testing.T, tenant string) string {
	t.Helper()
	return testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Tenant: tenant, Scopes: store.Scopes(), Publish: true}))(t)
}

// do makes a request with a token; empty means without.
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

// read returns the status, and the header and body as text. It reads a stream up to acme's text, or until ctx ends.
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

// leaked returns the data of acme in a response. Ids count unless they were in the request.
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

// Data of a tenant cannot be seen, changed or deleted by another tenant, by the operator's own tenant, or without a
// token, on any route by any method.
func TestTenantIsolation(t *testing.T) {
	w := newTenantsWorld(t)
	all := probes(t, w)
	routes := map[string]httpx.Route{}
	for _, rt := range slices.Concat(server.Routes(), page.Routes()) {
		key := rt.Method + " " + rt.Pattern
		if rt.Method == "" {
			key = "GET" + key
		}
		if there, ok := routes[key]; ok && there.Access != httpx.Open {
			continue // the page takes precedence over the list of the API
		}
		routes[key] = rt
		if _, ok := all[key]; !ok {
			t.Errorf("%s: add requests to probes that could reveal a tenant's data", key)
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
					continue // the operator manages the tokens of all tenants
				}
				w.attack(t, who, token, key, &rt, &list[i])
			}
		}
	}
	w.mu.Lock()
	if strings.Contains(w.asked.String(), canary) {
		t.Errorf("an upstream got data of acme from a request of others: %s", w.asked.String())
	}
	w.mu.Unlock()

	// Everything still exists, and could have been found.
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

// attack makes one request for acme's data, by all methods, as someone else.
func (w *tenantsWorld) attack(t *testing.T, who, token, key string, rt *httpx.Route, p *probe) {
	t.Helper()
	of, _, _ := strings.Cut(key, " ")
	for _, method := range []string{of, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Minute, cancel)
		if p.until != "" {
			timer.Reset(300 * time.Millisecond) // a stream without data does not end by itself
		}
		status, text, err := w.read(ctx, token, method, p)
		timer.Stop()
		cancel()
		if err != nil && p.until == "" {
			t.Errorf("%s: %s %s: %v", who, method, p.path, err)
		}
		if p.until != "" && strings.Contains(text, p.until) {
			t.Errorf("%s: %s %s streams acme's data", who, method, p.path)
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
	if err != nil || status != p.own {
		t.Errorf("acme: %s %s: %d, want %d, %v:\n%.2000s", method, p.path, status, p.own, err, text)
	}
	if p.tells && !strings.Contains(text, canary) {
		t.Errorf("acme: %s %s does not return acme's data, so the test proves nothing: %d\n%.2000s", method, p.path, status, text)
	}
}
