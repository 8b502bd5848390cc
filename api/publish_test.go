package api_test

import (
	"bytes"
	"context"
	"encoding/hex"
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

func newPages(tb testing.TB) *pages {
	tb.Helper()
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
	tb.Cleanup(p.Close)
	return p
}

// set creates or changes a page and returns its address.
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

// newPress returns a node that publishes at a level. Its verifier may connect to the given networks.
func newPress(tb testing.TB, level int, allow ...string) *press {
	tb.Helper()
	p := &press{pages: newPages(tb)}
	p.node = openNode(tb, tb.TempDir(), func(n *node, o *api.Options) {
		p.publisher = &manifest.Publisher{Origin: n.URL, Level: level, Manifests: n.store}
		if level == 3 {
			keysAndLog(tb, p.publisher, n.store)
		}
		texts, reader := &snapshot.Texts{}, fetcher(tb, allow...)
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

func keysAndLog(tb testing.TB, p *manifest.Publisher, s *store.Store) {
	tb.Helper()
	p.Keys = keyring.Memory(nil)
	for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
		testenv.Must(p.Keys.New(&keyring.NewOptions{Use: use, At: time.Now().Add(-time.Hour)}))(tb)
	}
	_, signer, err := p.Keys.Signer(keyring.Log)
	testenv.OK(tb, err)
	p.Log = testenv.Must(tlog.Open(tb.Context(), &tlog.Options{Origin: strings.TrimPrefix(p.Origin, "http://") + "/log", Tiles: s.Tiles(), Key: signer}))(tb)
}

// fetcher returns a fetcher that may also connect to the given networks, and does not wait between requests.
func fetcher(tb testing.TB, allow ...string) *snapshot.Fetcher {
	tb.Helper()
	o := &snapshot.FetchOptions{Limits: snapshot.FetchLimits{PerHost: -1, Gap: -1, Backoff: -1}}
	for _, network := range allow {
		o.Allow = append(o.Allow, netip.MustParsePrefix(network))
	}
	f := snapshot.NewFetcher(o)
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// loopback is the network of the sources in these tests.
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

// eggs is a page, and quote the passage cited from it.
const (
	quote = "Grey herons usually lay four eggs, early in the spring"
	eggs  = "<title>Herons</title><p>About the birds of the harbour.</p><p>" + quote + ", and both parents sit on them.</p>"
)

// publish stores a call, a run of its own, and waits until the manifests of both are built.
func (p *press) publish(tb testing.TB, c *store.Call) {
	tb.Helper()
	c.Publish, c.Run = true, "run_"+strings.TrimPrefix(c.AnswerID, "ans_")
	p.put(tb, c)
	p.build(tb, c.Run, 2)
}

// build builds manifests until n of the run's have been reported.
func (p *press) build(tb testing.TB, run string, n int) {
	tb.Helper()
	w := testenv.Must(watch.NewPublishing(&watch.PublishingOptions{Store: p.store, Publisher: p.publisher, Fetcher: fetcher(tb, loopback), Logger: slog.New(slog.NewTextHandler(tb.Output(), nil))}))(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		events := testenv.Must(p.store.Events(tb.Context(), store.DefaultTenant, run, 0, 1000))(tb)
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
		tb.Fatal("the manifests were not built")
	}
	cancel()
	if err := <-done; err != nil {
		tb.Fatal(err)
	}
}

// where is the location of a manifest.
type where struct {
	Path, URL, State string
	SHA256, Salt     *string
	CitationSource   *string `json:"citation_source"`
}

// Published data is served to anyone, under any host name and to any web page, byte for byte and field for field as
// signed; nothing else is.
func TestPublished(t *testing.T) {
	p := newPress(t, 3, loopback)
	c := call("ans_1", cites(p.pages.set("/herons", eggs), quote))
	p.publish(t, c)
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	sum, _ := hex.DecodeString(*at.SHA256)
	if list, err := manifest.ParseHeader([]string{*at.CitationSource}); err != nil || len(list) != 1 ||
		list[0].Manifest != at.URL || !bytes.Equal(list[0].Digest, sum) {
		t.Errorf("citation_source %q: %v", *at.CitationSource, err)
	}
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
	salt := testenv.Must(p.store.Salt(t.Context(), store.DefaultTenant, "ans_1"))(t)
	testenv.Equal(t, "the salt", hex.EncodeToString(salt), *at.Salt)
}

func announced(t *testing.T, res *response) []manifest.Announcement {
	t.Helper()
	return testenv.Must(manifest.ParseHeader(res.Header.Values(manifest.HeaderName)))(t)
}

// A publisher that cannot work is an error at the start.
func TestBadPublisher(t *testing.T) {
	n := newNode(t, nil)
	for _, p := range []*manifest.Publisher{{Level: 1}, {Level: 3, Origin: "https://agent.example"}, {Level: 4, Origin: "https://agent.example"}} {
		if _, err := api.New(&api.Options{Store: n.store, Bus: n.bus, Guard: gateway.NewGuard(nil), Publisher: p}); err == nil {
			t.Errorf("level %d: no error", p.Level)
		}
	}
}
