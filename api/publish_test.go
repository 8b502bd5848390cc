package api_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

// pages is a site whose pages can change.
type pages struct {
	*httptest.Server

	mu   sync.Mutex
	text map[string]string
}

func newPages(t *testing.T) *pages {
	t.Helper()
	p := &pages{text: map[string]string{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		text, ok := p.text[r.URL.Path]
		p.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(p.Close)
	return p
}

// set puts a page, and returns its address.
func (p *pages) set(path, text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text[path] = text
	return p.URL + path
}

// press is a node that publishes and verifies.
type press struct {
	*node

	publisher *manifest.Publisher
	pages     *pages
}

// newPress returns a node that publishes at a level. Its verifier may reach the networks.
func newPress(t *testing.T, level int, allow ...string) *press {
	t.Helper()
	p := &press{pages: newPages(t)}
	p.node = openNode(t, t.TempDir(), func(n *node, o *api.Options) {
		p.publisher = &manifest.Publisher{Origin: n.URL, Level: level, Manifests: n.store}
		if level == 3 {
			keysAndLog(t, p.publisher, n.store)
		}
		texts, reader := &snapshot.Texts{}, fetcher(t, allow...)
		o.Publisher = p.publisher
		o.Verifier = func(tenant string) *verify.Verifier {
			return &verify.Verifier{
				Fetcher: reader, Texts: texts, Memory: n.store.Memory(tenant), Copies: n.store.Copies(tenant),
				Name: "the desk", Version: "v1.2.3",
			}
		}
	})
	return p
}

func keysAndLog(t *testing.T, p *manifest.Publisher, s *store.Store) {
	t.Helper()
	p.Keys = keyring.Memory(nil)
	for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
		if _, err := p.Keys.New(&keyring.NewOptions{Use: use, At: time.Now().Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	_, signer, err := p.Keys.Signer(keyring.Log)
	if err != nil {
		t.Fatal(err)
	}
	p.Log = testenv.Must(tlog.Open(t.Context(), &tlog.Options{Origin: strings.TrimPrefix(p.Origin, "http://") + "/log", Tiles: s.Tiles(), Key: signer}))(t)
}

// fetcher returns one that may reach the networks besides the public ones, and waits for nothing.
func fetcher(t *testing.T, allow ...string) *snapshot.Fetcher {
	t.Helper()
	o := &snapshot.FetchOptions{Limits: snapshot.FetchLimits{PerHost: -1, Gap: -1, Backoff: -1}}
	for _, network := range allow {
		o.Allow = append(o.Allow, netip.MustParsePrefix(network))
	}
	f := snapshot.NewFetcher(o)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// loopback is where the sources of these tests are.
const loopback = "127.0.0.0/8"

// cites returns an answer that quotes a page.
func cites(url, quote string) *ibid.Answer {
	a := &ibid.Answer{
		ID: "resp_1", Provider: "openai", Format: "openai-responses", Model: "gpt-heron-1", Complete: true, Finish: ibid.FinishStop,
		Text: "Grey herons lay four eggs in early spring. More is not known.", Sources: []ibid.Source{{ID: "s1", Kind: ibid.Web, Title: "Herons", URL: url}},
	}
	if err := a.Cite(ibid.Span{End: len("Grey herons lay four eggs in early spring.")}, ibid.Ref{Source: "s1", Quote: quote}); err != nil {
		panic(err)
	}
	a.Parts = []ibid.Part{{Span: ibid.Span{End: len(a.Text)}, Kind: ibid.AnswerPart}}
	return a
}

// eggs is a page, and quote what is cited of it.
const (
	quote = "Grey herons usually lay four eggs, early in the spring"
	eggs  = "<title>Herons</title><p>About the birds of the harbour.</p><p>" + quote + ", and both parents sit on them.</p>"
)

// publish stores a call that is to be published and is a run by itself, and waits until the manifests of both are built.
func (p *press) publish(t *testing.T, c *store.Call) {
	t.Helper()
	c.Publish, c.Run = true, "run_"+strings.TrimPrefix(c.AnswerID, "ans_")
	p.put(t, c)
	p.build(t, c.Run, 2)
}

// build builds what is to be published until so many manifests of a run were told of.
func (p *press) build(t *testing.T, run string, n int) {
	t.Helper()
	w := testenv.Must(watch.NewPublishing(&watch.PublishingOptions{Store: p.store, Publisher: p.publisher, Fetcher: fetcher(t, loopback), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		events := testenv.Must(p.store.Events(t.Context(), store.DefaultTenant, run, 0, 1000))(t)
		built := 0
		for i := range events {
			if events[i].Kind == store.EventManifest {
				built++
			}
		}
		if built >= n || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatal("the manifests were not built")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// where is what the API says of a manifest.
type where struct {
	Path, URL, State string
	SHA256, Salt     *string
}

// A stranger reads what is published, under any name and from any page, octet for octet and field for field as it is signed; nothing
// else.
func TestPublished(t *testing.T) {
	p := newPress(t, 3, loopback)
	c := call("ans_1", cites(p.pages.set("/herons", eggs), quote))
	p.publish(t, c)
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	direct := httptest.NewServer(p.publisher.Handler())
	defer direct.Close()
	for _, path := range []string{
		at.Path, at.Path + manifest.ProofSuffix, manifest.DiscoveryPath, manifest.DirectoryPath, manifest.KeysPath, manifest.SchemaPath,
		"/log/checkpoint", "/log/tile/0/000.p/2",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			want := (&node{Server: direct}).do(t, method, path, "")
			got := p.do(t, method, path, "", "Host", "agent.example", "Origin", "https://page.example", "Sec-Fetch-Site", "cross-site")
			want.Header.Del("Date")
			got.Header.Del("Date")
			if got.StatusCode != 200 || got.body != want.body || got.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: %d %v %.200s", method, path, got.StatusCode, got.Header, got.body)
			}
			if diff := cmp.Diff(want.Header, got.Header); diff != "" {
				t.Errorf("%s %s: header (-published +served):\n%s", method, path, diff)
			}
		}
	}
	served := p.get(t, at.Path)
	if got := p.get(t, at.Path, "If-None-Match", served.Header.Get("ETag")); got.StatusCode != 304 || got.body != "" {
		t.Errorf("again: %d %q", got.StatusCode, got.body)
	}
	if served.Header.Get("Signature") == "" || served.Header.Get("Content-Encoding") != "" {
		t.Errorf("%v", served.Header)
	}
	for _, path := range []string{"/runs/x/cite", "/runs/x/cite/ans_1", "/runs/x/cite.tlog-proof", "/runs/x/other", at.Path + ".2", "/log/nothing", "/log/"} {
		got := p.get(t, path, "Host", "agent.example")
		wantProblem(t, got, 404)
	}
	for _, path := range []string{"/runs/x", "/v1/answers", "/.well-known/other", "/schema/other"} {
		wantForeign(t, p.get(t, path, "Host", "agent.example"))
	}
	wantProblem(t, p.do(t, "POST", at.Path, "", "Host", "agent.example"), 405)
}

// What is not built yet is 202, also where the answer is on its way into the store; and what is published needs no token.
func TestPublishedPending(t *testing.T) {
	p := newPress(t, 3)
	c := call("ans_1", cites("https://heron.example/", quote))
	c.Publish = true
	p.put(t, c)
	secret := p.token(t, store.DefaultTenant, store.ScopeRead)
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at, bearer(secret)...)
	if at.State != "pending" || at.SHA256 != nil || at.URL != p.URL+at.Path || at.Salt != nil {
		t.Errorf("%+v", at)
	}
	got := p.get(t, at.Path)
	if got.StatusCode != 202 || got.Header.Get("Retry-After") == "" || got.body != `{"status":"pending"}` {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	answer := p.get(t, "/v1/answers/ans_1", bearer(secret)...)
	want := []manifest.Announcement{{URL: "https://heron.example/", Manifest: at.URL}}
	testenv.Equal(t, "Citation-Source", want, announced(t, answer))
	wantProblem(t, p.get(t, "/v1/answers/ans_1/manifest"), 401)
	other := p.token(t, "acme", store.ScopeRead)
	wantProblem(t, p.get(t, "/v1/answers/ans_1/manifest", bearer(other)...), 404)
	wantProblem(t, p.get(t, "/v1/runs/run_ans_1/manifest", bearer(other)...), 404)
}

func announced(t *testing.T, res *response) []manifest.Announcement {
	t.Helper()
	return testenv.Must(manifest.ParseHeader(res.Header.Values(manifest.HeaderName)))(t)
}

// The document of a published answer announces its manifest with the digest; what else is made of the answer is no response
// that the manifest is about.
func TestAnswerManifest(t *testing.T) {
	p := newPress(t, 3, loopback)
	url := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(url, quote)))
	p.put(t, call("ans_2", cites(url, quote)))
	var at, run where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	p.read(t, "/v1/runs/run_1/manifest", &run)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	sum := signed.Digest()
	salt := testenv.Must(p.store.Salt(t.Context(), store.DefaultTenant, "ans_1"))(t)
	sha, hexSalt := hex.EncodeToString(sum[:]), hex.EncodeToString(salt)
	want := where{Path: signed.TargetURI[len(p.URL):], URL: signed.TargetURI, State: "built", SHA256: &sha, Salt: &hexSalt}
	testenv.Equal(t, "", want, at)
	if run.State != "built" || !strings.HasSuffix(run.Path, "/cite") || *run.SHA256 == sha || run.Salt == nil || *run.Salt == hexSalt {
		t.Errorf("of the run: %+v", run)
	}
	answer := p.get(t, "/v1/answers/ans_1")
	announcement := []manifest.Announcement{{URL: url, Manifest: at.URL, Digest: sum[:]}}
	testenv.Equal(t, "Citation-Source", announcement, announced(t, answer))
	for _, path := range []string{"/v1/answers/ans_1?as=markdown", "/v1/answers/ans_2"} {
		if got := p.get(t, path); got.StatusCode != 200 || got.Header[manifest.HeaderName] != nil {
			t.Errorf("%s: %d %v", path, got.StatusCode, got.Header)
		}
	}
	wantProblem(t, p.get(t, "/v1/answers/ans_2/manifest"), 404)
	wantProblem(t, p.get(t, "/v1/answers/ans_3/manifest"), 404)
}

// Who may publish or administer is told the salt of private hashes, and nobody else.
func TestManifestSalt(t *testing.T) {
	p := newPress(t, 3, loopback)
	p.publish(t, call("ans_1", cites(p.pages.set("/herons", eggs), quote)))
	for scope, told := range map[string]bool{store.ScopeRead: false, store.ScopeAdmin: true, store.ScopePublish: true} {
		scopes := []string{store.ScopeRead}
		if scope != store.ScopeRead {
			scopes = append(scopes, scope)
		}
		var at where
		p.read(t, "/v1/answers/ans_1/manifest", &at, "Authorization", "Bearer "+p.token(t, store.DefaultTenant, scopes...))
		if (at.Salt != nil) != told {
			t.Errorf("with scope %s: salt %v", scope, at.Salt)
		}
	}
}

// An answer that changes gets another revision, and that is the one which is announced.
func TestAnswerManifestRevision(t *testing.T) {
	p := newPress(t, 3, loopback)
	url := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(url, quote)))
	changed := call("ans_9", cites(url, "both parents sit on them"))
	changed.Of = "ans_1"
	p.put(t, changed)
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	if at.State != "pending" || !strings.HasSuffix(at.Path, "/cite/ans_1.2") {
		t.Errorf("%+v", at)
	}
	if got := announced(t, p.get(t, "/v1/answers/ans_1")); len(got) != 1 || got[0].Manifest != at.URL || got[0].Digest != nil {
		t.Errorf("%+v", got)
	}
	middle := time.Now()
	p.build(t, "run_1", 4)
	var run where
	p.read(t, "/v1/runs/run_1/manifest", &run)
	if !strings.HasSuffix(run.Path, "/cite.2") || run.State != "built" || p.get(t, run.Path).StatusCode != 200 {
		t.Errorf("of the run: %+v", run)
	}
	for _, about := range []string{"built", "after the time of the first one"} {
		if got := announced(t, p.get(t, "/v1/answers/ans_1")); len(got) != 1 || got[0].Manifest != at.URL || got[0].Digest == nil {
			t.Errorf("%s: %+v", about, got)
		}
		if _, err := p.store.Prune(t.Context(), &store.Retention{Manifests: time.Hour, Now: middle.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Where nothing is published, and below the level that has it, a path is not found, and the problem says how to change that.
func TestNothingPublished(t *testing.T) {
	paths := map[string]int{ // by the level from which on they are there
		"/runs/x/cite": 2, "/runs/x/cite/ans_1": 2, manifest.SchemaPath: 2, "/log/checkpoint": 2, manifest.DiscoveryPath: 1,
		manifest.DirectoryPath: 3, manifest.KeysPath: 3,
	}
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	for path := range paths {
		res := n.get(t, path, "Host", "agent.example")
		wantProblem(t, res, 404)
		if !strings.Contains(res.body, "--publish") {
			t.Errorf("%s: %s", path, res.body)
		}
	}
	wantProblem(t, n.get(t, "/v1/answers/ans_1/manifest"), 404)
	if got := n.get(t, "/v1/answers/ans_1"); got.Header[manifest.HeaderName] != nil {
		t.Errorf("%v", got.Header)
	}
	for _, path := range []string{"/runs/x/cite/ans_1", "/log/other"} {
		res := newPress(t, 3).get(t, path)
		if wantProblem(t, res, 404); strings.Contains(res.body, "--publish") {
			t.Errorf("at level 3 it is not the level: %s", res.body)
		}
	}
	for level := range 3 {
		p := newPress(t, level)
		for path, least := range paths {
			res := p.get(t, path)
			if level >= least && !strings.HasPrefix(path, "/runs/") && !strings.HasPrefix(path, "/log/") {
				if res.StatusCode != 200 {
					t.Errorf("level %d, %s: %d", level, path, res.StatusCode)
				}
				continue
			}
			wantProblem(t, res, 404)
		}
	}
}

// A store that is away is a problem that passes, and no manifest that is not there: a verifier tries again.
func TestPublishedStoreAway(t *testing.T) {
	p := newPress(t, 3)
	testenv.OK(t, p.store.Close())
	res := p.get(t, "/runs/x/cite/ans_1")
	if wantProblem(t, res, 503); res.Header.Get("Retry-After") == "" {
		t.Errorf("%v", res.Header)
	}
	if got := p.get(t, manifest.DiscoveryPath).StatusCode; got != 200 {
		t.Errorf("discovery: %d", got)
	}
}

// A publisher that cannot work is told at the start.
func TestBadPublisher(t *testing.T) {
	n := newNode(t, nil)
	for _, p := range []*manifest.Publisher{{Level: 1}, {Level: 3, Origin: "https://agent.example"}, {Level: 4, Origin: "https://agent.example"}} {
		if _, err := api.New(&api.Options{Store: n.store, Bus: n.bus, Guard: gateway.NewGuard(nil), Publisher: p}); err == nil {
			t.Errorf("level %d: no error", p.Level)
		}
	}
}

// What came of checking a citation stands in answers, lists, runs and conversations, and answers can be listed by it.
func TestVerification(t *testing.T) {
	p := newPress(t, 3, loopback)
	statuses := map[string]store.PinStatus{
		"ans_1": {Status: verify.Verified, Counts: verify.CountPass}, "ans_2": {Status: verify.ExcerptMissing, Counts: verify.CountFailure},
		"ans_3": {Status: verify.Gone, Counts: verify.CountUnverifiable}, "ans_4": {},
	}
	for i := range len(statuses) {
		id := fmt.Sprint("ans_", i+1)
		c := call(id, cites(p.pages.set("/"+id, eggs), quote))
		c.Conversation = "c_" + id
		p.publish(t, c)
		status := statuses[id]
		pins, err := p.store.Pins(t.Context(), store.DefaultTenant, p.pages.URL+"/"+id)
		if err != nil || len(pins) == 0 {
			t.Fatalf("%d pins: %v", len(pins), err)
		}
		for k := range pins {
			if status.ID, status.CheckedAt = pins[k].ID, started; status.Status != "" {
				testenv.OK(t, p.store.SetStatuses(t.Context(), store.DefaultTenant, []store.PinStatus{status}))
			}
		}
		for _, path := range []string{"/v1/answers/" + id, "/v1/runs/" + c.Run, "/v1/conversations/c_" + id, "/v1/answers?run=" + c.Run} {
			want := `"verification":null`
			if status.Status != "" {
				want = `"verification":{"status":"` + string(status.Status) + `","checked_at":"2026-11-21T10:00:00.123456Z"}`
			}
			if got := p.get(t, path); got.StatusCode != 200 || !strings.Contains(got.body, want) {
				t.Errorf("%s lacks %s: %d %s", path, want, got.StatusCode, got.body)
			}
		}
	}
	for word, id := range map[string]string{
		"passed": "ans_1", "failed": "ans_2", "unverifiable": "ans_3", "unchecked": "ans_4", "excerpt-missing": "ans_2", "gone": "ans_3", "nonsense": "",
	} {
		var list struct {
			Answers []struct {
				ID string `json:"answer_id"`
			}
		}
		p.read(t, "/v1/answers?verification="+word, &list)
		ids := ""
		for _, a := range list.Answers {
			ids += a.ID
		}
		if ids != id {
			t.Errorf("%s: %q, want %q", word, ids, id)
		}
	}
}
