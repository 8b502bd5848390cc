package verify_test

import (
	"bytes"
	"context"
	"crypto"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
)

const (
	page = "<!doctype html><title>Bridges</title><nav>Home</nav><h1>Bridges</h1><p>The old bridge was finished in 1874 and is " +
		"not open to cars.</p><p>It carries 1,200 people a day.</p>"
	excerpt  = "The old bridge was finished in 1874 and is not open to cars."
	answer   = "The old bridge was finished in 1874 [1]."
	claim    = "The old bridge was finished in 1874"
	cite     = "/runs/r1/cite/a1"
	anAnswer = "/answer"
)

// world is an agent, its publisher and the sources, all on one loopback server. Tests change it as they need.
type world struct {
	t      testing.TB
	origin string
	fetch  *snapshot.Fetcher
	ring   *keyring.Ring
	log    *tlog.Log
	pub    *manifest.Publisher

	mu    sync.Mutex
	now   time.Time
	serve map[string]http.HandlerFunc // by path, before the publisher
	hits  map[string]int
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{
		t: tb, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), serve: map[string]http.HandlerFunc{}, hits: map[string]int{},
	}
	srv := httptest.NewServer(w)
	tb.Cleanup(srv.Close)
	w.origin = srv.URL
	w.fetch = fetcher(tb)
	w.ring = keyring.Memory(&keyring.Options{Now: w.clock})
	key(tb, w.ring, &keyring.NewOptions{At: w.now.AddDate(-1, 0, 0)})
	key(tb, w.ring, &keyring.NewOptions{Use: keyring.Log, At: w.now.AddDate(-1, 0, 0)})
	w.log = newLog(tb, w.host()+"/log", logSigner(tb, w.ring))
	w.pub = &manifest.Publisher{
		Origin: w.origin, Level: 3, Keys: w.ring, Log: w.log, Now: w.clock, IncidentEndpoint: w.origin + "/incidents",
	}
	w.page("/source", "text/html; charset=utf-8", page)
	return w
}

// published returns a world whose answer announces its manifest, which is published.
func published(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb)
	w.publish(w.manifest())
	return w
}

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func fetcher(tb testing.TB) *snapshot.Fetcher {
	tb.Helper()
	f := snapshot.NewFetcher(&snapshot.FetchOptions{
		Allow:  loopback(),
		Limits: snapshot.FetchLimits{PerHost: -1, Gap: -1, Backoff: -1},
	})
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

func key(tb testing.TB, ring *keyring.Ring, o *keyring.NewOptions) *keyring.Key {
	tb.Helper()
	k, err := ring.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func signer(tb testing.TB, ring *keyring.Ring) (*keyring.Key, crypto.Signer) {
	tb.Helper()
	k, private, err := ring.Signer(keyring.Manifest)
	if err != nil {
		tb.Fatal(err)
	}
	return k, private
}

func logSigner(tb testing.TB, ring *keyring.Ring) crypto.Signer {
	tb.Helper()
	_, s, err := ring.Signer(keyring.Log)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func newLog(tb testing.TB, origin string, s crypto.Signer) *tlog.Log {
	tb.Helper()
	l, err := tlog.Open(tb.Context(), &tlog.Options{Origin: origin, Tiles: &tlog.MemoryTiles{}, Key: s})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.hits[r.URL.Path]++
	h := w.serve[r.URL.Path]
	w.mu.Unlock()
	if h == nil {
		h = w.pub.Handler().ServeHTTP //nolint:contextcheck // it uses the request's context
	}
	h(rw, r)
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) asked(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hits[path]
}

func (w *world) host() string { return strings.TrimPrefix(w.origin, "http://") }

func (w *world) handle(path string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve[path] = h
}

func (w *world) page(path, mediaType, body string) {
	w.handle(path, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", mediaType)
		rw.Write([]byte(body))
	})
}

func (w *world) status(path string, code int) {
	w.handle(path, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) })
}

// manifest returns the manifest of the answer: one claim, one source, a chain of two steps.
func (w *world) manifest() *manifest.Manifest {
	return w.manifestAt(cite)
}

func (w *world) manifestAt(path string) *manifest.Manifest {
	w.t.Helper()
	src := w.origin + "/source"
	text, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"})
	if err != nil {
		w.t.Fatal(err)
	}
	at, ok := snapshot.Find(text.Content, &snapshot.Quote{Exact: excerpt})
	if !ok {
		w.t.Fatal("the page does not have the excerpt")
	}
	q := quoteAt(text.Content, at.Start, at.End)
	length, answered := utf8.RuneCountInString(text.Content), utf8.RuneCountInString(answer)
	read := manifest.At(w.now.Add(-time.Minute))
	cited := true
	return &manifest.Manifest{
		Version: "1.0", Self: w.origin + path, RunID: "r1", AgentID: w.host() + "/v1", EmittedAt: manifest.At(w.now),
		TextProfile: manifest.TextProfile,
		Output: &manifest.Output{
			MediaType: "text/plain; charset=utf-8", Hash: snapshot.Hash([]byte(answer)),
			TextHash: snapshot.Hash([]byte(answer)), TextLength: &answered,
		},
		Sources: []manifest.Source{{
			ID: "s1", URL: src, FinalURL: src, RetrievedAt: read, RetrievedBy: manifest.ByPublisher, Status: 200,
			MediaType: "text/html; charset=utf-8", Hash: snapshot.Hash([]byte(page)), TextHash: snapshot.Hash([]byte(text.Content)),
			TextLength: &length, Cited: &cited,
		}},
		Claims: []manifest.Claim{{
			ID: manifest.ClaimID(claim), Text: claim, Span: &manifest.Range{0, utf8.RuneCountInString(claim)}, Steps: []int{2},
			Sources: []manifest.ClaimSource{{
				Source: "s1", URL: src, RetrievedAt: read, Hash: snapshot.Hash([]byte(page)),
				ExcerptOffset: &manifest.Range{at.Start, at.End}, ExcerptHash: snapshot.Hash([]byte(q.Exact)),
				Excerpt:       &manifest.Excerpt{Exact: q.Exact, Prefix: strings.TrimSpace(q.Prefix), Suffix: strings.TrimSpace(q.Suffix)},
				ExcerptOrigin: manifest.OriginPublisher, Relation: manifest.RelationSupports,
			}},
		}},
		Chain: []manifest.Step{
			{Step: 1, Tool: "search", OutputsRef: "r1/1", Sources: []string{src}},
			{Step: 2, Tool: "write", InputsRef: []string{"r1/1"}, OutputsRef: "r1/2", OutputsHash: snapshot.Hash([]byte(answer)), Sources: []string{src}},
		},
	}
}

// publish signs, logs and stores a manifest, and makes the answer announce it.
func (w *world) publish(m *manifest.Manifest) *manifest.Signed {
	w.t.Helper()
	s, err := w.pub.Publish(w.t.Context(), strings.TrimPrefix(m.Self, w.origin), m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.answers(m, s)
	return s
}

// answers makes the answer announce a manifest.
func (w *world) answers(m *manifest.Manifest, s *manifest.Signed) {
	sum := s.Digest()
	var list []manifest.Announcement
	for i := range m.Sources {
		list = append(list, manifest.Announcement{URL: m.Sources[i].URL, Manifest: s.TargetURI, Digest: sum[:]})
	}
	w.announce(answer, list...)
}

func (w *world) announce(body string, list ...manifest.Announcement) {
	w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		manifest.SetHeader(rw.Header(), manifest.Link, list...)
		rw.Write([]byte(body))
	})
}

// sign signs a manifest by hand, at a time, and returns it as it is served.
func (w *world) sign(m *manifest.Manifest, at time.Time) *manifest.Signed {
	w.t.Helper()
	k, private := signer(w.t, w.ring)
	signed, err := manifest.Sign(m, k, private, at)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

// put serves a signed manifest at a path, and makes the answer announce it.
func (w *world) put(m *manifest.Manifest, s *manifest.Signed, path string) {
	w.serveSigned(s, path)
	w.answers(m, s)
}

func (w *world) serveSigned(s *manifest.Signed, path string) {
	w.handle(path, func(rw http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Content-Type": s.ContentType, "Content-Digest": s.ContentDigest, "Signature-Input": s.SignatureInput, "Signature": s.Signature,
		} {
			if value != "" {
				rw.Header().Set(name, value)
			}
		}
		rw.WriteHeader(s.Status)
		rw.Write(s.Body)
	})
}

// verifier returns a verifier that trusts the publisher.
func (w *world) verifier() *verify.Verifier {
	return &verify.Verifier{Fetcher: w.fetch, Trust: []string{w.host()}, Now: w.clock, SourceTTL: -1, FailureTTL: -1, Version: "test"}
}

func (w *world) report(v *verify.Verifier) *verify.Report {
	w.t.Helper()
	return must(w.t)(v.URL(w.t.Context(), w.origin+anAnswer))
}

// must returns a function that returns its report, and ends the test if there is an error.
func must(tb testing.TB) func(*verify.Report, error) *verify.Report {
	tb.Helper()
	return func(r *verify.Report, err error) *verify.Report {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
}

// announcement returns the announcement of the world's source with a manifest and its digest.
func (w *world) announcement(s *manifest.Signed) manifest.Announcement {
	sum := s.Digest()
	return manifest.Announcement{URL: w.origin + "/source", Manifest: s.TargetURI, Digest: sum[:]}
}

// has returns the finding with a code, or nil if there is none.
func has(r *verify.Report, code verify.Status) *verify.Finding {
	for _, list := range [][]verify.Finding{r.Failure, r.Info, r.Success} {
		for i := range list {
			if list[i].Code == code {
				return &list[i]
			}
		}
	}
	return nil
}

func text(r *verify.Report) string {
	var b bytes.Buffer
	_ = r.WriteText(&b, false)
	return b.String()
}

// wants checks a state and, if there is one, a code.
func wants(tb testing.TB, r *verify.Report, state verify.State, code verify.Status) {
	tb.Helper()
	if r.State != state || code != "" && has(r, code) == nil {
		tb.Errorf("state %s, want %s with %q:\n%s", r.State, state, code, text(r))
	}
}

// quoteAt returns the quote of the code points [start, end) of a text, with up to 32 before and after it.
func quoteAt(text string, start, end int) snapshot.Quote {
	runes := []rune(text)
	return snapshot.Quote{
		Exact: string(runes[start:end]), Start: start, End: end,
		Prefix: string(runes[max(0, start-32):start]), Suffix: string(runes[end:min(len(runes), end+32)]),
	}
}

// read fetches a source for a manifest.
func (w *world) read(ctx context.Context, url string) (*snapshot.Snapshot, error) {
	return w.fetch.Fetch(ctx, &snapshot.FetchRequest{URL: url})
}
