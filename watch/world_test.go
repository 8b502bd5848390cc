package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

const (
	highTide = "High water at Ostend is at 03:12 on Friday"
	tidePage = "<h1>Tides</h1><p>" + highTide + ", as the harbour office says.</p><p>The harbour closes at noon.</p>"
)

// pages is a site whose pages can be changed.
type pages struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string // by path; a missing one is a 404
	asked map[string]int
	etag  bool // the site supports conditional requests
}

func site(t *testing.T, list map[string]string) *pages {
	t.Helper()
	p := &pages{pages: list, asked: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	text, ok := p.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if tag := `"` + snapshot.Hash([]byte(text)) + `"`; p.etag {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			p.asked["304"]++
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, text)
}

// set changes a page; an empty text removes it.
func (p *pages) set(path, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pages[path] = text; text == "" {
		delete(p.pages, path)
	}
}

func (p *pages) count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func openStore(t *testing.T, dsn string) *store.Store {
	t.Helper()
	s := testenv.Must(store.Open(context.Background(), dsn, &store.Options{Track: true}))(t)
	t.Cleanup(func() {
		testenv.OK(t, s.Close())
	})
	return s
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "ibid.db"))
}

func fetcher(t *testing.T, o snapshot.FetchOptions) *snapshot.Fetcher {
	t.Helper()
	o.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.Limits.PerHost, o.Limits.Gap, o.Limits.Backoff = -1, -1, -1
	f := snapshot.NewFetcher(&o)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// house publishes at a level, on its own address.
type house struct {
	*manifest.Publisher
	store *store.Store
	log   *lines
}

func publishes(t *testing.T, s *store.Store, level int) *house {
	t.Helper()
	h := &house{store: s, log: &lines{note: make(chan struct{}, 1)}}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p := &manifest.Publisher{Origin: server.URL, Level: level, Manifests: s, OnError: func(_ context.Context, err error) { t.Error(err) }}
	h.Publisher = p
	if level == 3 {
		p.Keys = keyring.Memory(nil)
		for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
			testenv.Must(p.Keys.New(&keyring.NewOptions{Use: use}))(t)
		}
		_, signer, err := p.Keys.Signer(keyring.Log)
		testenv.OK(t, err)
		if p.Log, err = tlog.Open(t.Context(), &tlog.Options{Origin: "agent.example/ibid", Tiles: s.Tiles(), Key: signer}); err != nil {
			t.Fatal(err)
		}
	}
	handler = p.Handler()
	return h
}

func (h *house) logger() *slog.Logger { return slog.New(slog.NewTextHandler(h.log, nil)) }

// publishing prepares a worker.
func (h *house) publishing(t *testing.T, change func(*watch.PublishingOptions)) *watch.Publishing {
	t.Helper()
	o := &watch.PublishingOptions{
		Store: h.store, Publisher: h.Publisher, Fetcher: fetcher(t, snapshot.FetchOptions{}), Logger: h.logger(), Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(o)
	}
	return testenv.Must(watch.NewPublishing(o))(t)
}

// start runs a worker, and returns a function that stops it and waits.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// get returns the status and body of a path.
func (h *house) get(t *testing.T, path string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, h.Origin+path, nil))
	return rec.Code, rec.Body.String()
}

// path returns the path of the manifest of a call of a run, or of the run if id is empty.
func (h *house) path(t *testing.T, run, id string) string {
	t.Helper()
	pub := testenv.Must(h.store.Pub(t.Context(), store.DefaultTenant, run))(t)
	return strings.TrimSuffix("/runs/"+pub+"/cite/"+id, "/")
}

// served waits for a manifest.
func (h *house) served(t *testing.T, path string) *manifest.Manifest {
	t.Helper()
	var m *manifest.Manifest
	testenv.Until(t, path+" is served", func() bool {
		code, body := h.get(t, path)
		if code == http.StatusAccepted {
			return false
		}
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s\n%s", path, code, body, h.log)
		}
		m = testenv.Must(manifest.Parse([]byte(body)))(t)
		return true
	})
	return m
}

// report verifies the manifest at a path as anyone who trusts the house would.
func (h *house) report(t *testing.T, path string) *verify.Report {
	t.Helper()
	v := &verify.Verifier{Fetcher: fetcher(t, snapshot.FetchOptions{}), Trust: []string{strings.TrimPrefix(h.Origin, "http://")}}
	return testenv.Must(v.Manifest(t.Context(), h.Origin+path))(t)
}

// cites returns a captured call of a run whose answer states highTide and cites the URLs for it.
func cites(t *testing.T, id, run string, urls ...string) *store.Call {
	t.Helper()
	a := &ibid.Answer{
		Provider: "openai", Format: "openai-responses", Model: "m", Text: highTide + ". The keeper has seven cats.", Complete: true, Finish: ibid.FinishStop,
	}
	for i, url := range urls {
		a.Sources = append(a.Sources, ibid.Source{ID: fmt.Sprint("web:", i), Kind: ibid.Web, Title: "Tides", URL: url})
		testenv.OK(t, a.Cite(ibid.Span{End: len(highTide)}, ibid.Ref{Source: a.Sources[i].ID, Quote: highTide}))
	}
	return &store.Call{
		AnswerID: id, Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Run: run, Status: 200,
		Started: time.Now().Add(-time.Minute), Answer: a,
	}
}

func put(t *testing.T, s *store.Store, calls ...*store.Call) {
	t.Helper()
	testenv.OK(t, s.Put(t.Context(), calls))
}

// published marks calls for publication.
func published(calls ...*store.Call) []*store.Call {
	for _, c := range calls {
		c.Publish = true
	}
	return calls
}

// told returns the data of the events of a kind.
func told(t *testing.T, s *store.Store, run, kind string) []map[string]any {
	t.Helper()
	events := testenv.Must(s.Events(t.Context(), store.DefaultTenant, run, 0, 1000))(t)
	var list []map[string]any
	for i := range events {
		if events[i].Kind != kind {
			continue
		}
		data := map[string]any{}
		testenv.OK(t, json.Unmarshal(events[i].Data, &data))
		list = append(list, data)
	}
	return list
}
