package manifest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/tlog"
)

const (
	origin = "https://agent.example"
	path   = "/runs/r1/cite"
)

// publisher returns a publisher of a level, with keys and a log if the level has them.
func publisher(tb testing.TB, level int) *manifest.Publisher {
	tb.Helper()
	p := &manifest.Publisher{
		Origin: origin, Level: level, Contact: "mailto:desk@agent.example", Now: noon,
		OnError: func(_ context.Context, err error) { tb.Error(err) },
	}
	if level == 3 {
		p.Keys = keyring.Memory(&keyring.Options{Now: noon})
		for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
			if _, err := p.Keys.New(&keyring.NewOptions{Use: use, At: noon().Add(-time.Hour)}); err != nil {
				tb.Fatal(err)
			}
		}
		_, signer, err := p.Keys.Signer(keyring.Log)
		if err != nil {
			tb.Fatal(err)
		}
		p.Log, err = tlog.Open(tb.Context(), &tlog.Options{Origin: "agent.example/ibid", Tiles: &tlog.MemoryTiles{}, Key: signer})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

func sound(tb testing.TB) *manifest.Manifest {
	tb.Helper()
	a := quoted(tb)
	return build(tb, builder(herony), a, nil)
}

// reply is a response, whose body a test reads once.
type reply struct {
	Status          string
	StatusCode      int
	Header, Trailer http.Header
	ContentLength   int64
	Body            io.Reader
}

func replyOf(tb testing.TB, r *http.Response) *reply {
	tb.Helper()
	tb.Cleanup(func() { r.Body.Close() })
	if r.Trailer == nil {
		r.Trailer = http.Header{}
	}
	return &reply{r.Status, r.StatusCode, r.Header, r.Trailer, r.ContentLength, r.Body}
}

func get(tb testing.TB, h http.Handler, method, target string, header ...string) *reply {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	response := w.Result()
	return replyOf(tb, response)
}

func body(tb testing.TB, r *reply) []byte {
	tb.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// verifyServed checks a manifest response as a third party would: digest, signature with a published key, self.
func verifyServed(tb testing.TB, r *reply, url string, directory []byte) *manifest.Manifest {
	tb.Helper()
	b := body(tb, r)
	if err := httpsig.CheckDigest(r.Header.Values("Content-Digest"), b); err != nil {
		tb.Fatal(err)
	}
	keys, err := keyring.ParseDirectory(directory, nil)
	if err != nil {
		tb.Fatal(err)
	}
	message := &httpsig.Message{
		Status: r.StatusCode, Header: r.Header, Request: &httpsig.Message{Method: http.MethodGet, TargetURI: url},
	}
	list, err := httpsig.Parse(message)
	if err != nil || len(list) != 1 {
		tb.Fatalf("%d signatures, %v", len(list), err)
	}
	if tag := list[0].Tag; tag != manifest.SignatureTag {
		tb.Errorf("tag %q", tag)
	}
	if list[0].KeyID != keys[0].ID {
		tb.Errorf("key %q is not published", list[0].KeyID)
	}
	if err := list[0].Verify(message, keys[0].Public); err != nil {
		tb.Error(err)
	}
	m, err := manifest.Parse(b)
	if err != nil {
		tb.Fatal(err)
	}
	if m.Self != url {
		tb.Errorf("self is %s", m.Self)
	}
	return m
}

func TestPublishedManifestIsSignedLoggedAndServed(t *testing.T) {
	p := publisher(t, 3)
	s, err := p.Publish(t.Context(), path, sound(t))
	if err != nil {
		t.Fatal(err)
	}
	h := p.Handler()
	directory := body(t, get(t, h, "GET", manifest.DirectoryPath))
	r := get(t, h, "GET", path)
	digest := s.Digest()
	tag := `"` + hex.EncodeToString(digest[:]) + `"`
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Etag": tag, "Content-Encoding": "", "Access-Control-Allow-Origin": "*",
		"Cache-Control": "public, max-age=31536000, immutable, no-transform",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	verifyServed(t, r, origin+path, directory)

	if r := get(t, h, "HEAD", path); r.StatusCode != 200 || len(body(t, r)) != 0 || r.Header.Get("Signature") == "" || r.ContentLength != int64(len(s.Body)) {
		t.Errorf("HEAD: %d, %v", r.StatusCode, r.Header)
	}
	for field, status := range map[string]int{tag: 304, `"x", W/` + tag: 304, "*": 304, `"x"`: 200} {
		if r := get(t, h, "GET", path, "If-None-Match", field); r.StatusCode != status {
			t.Errorf("If-None-Match %s: %d", field, r.StatusCode)
		}
	}
	if r := get(t, h, "GET", path, "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" || !bytes.Equal(body(t, r), s.Body) {
		t.Error("it has a content coding")
	}
	if r := get(t, h, "POST", path); r.StatusCode != 405 {
		t.Errorf("POST: %d", r.StatusCode)
	}
	for _, proof := range [][]byte{s.Proof, body(t, get(t, h, "GET", path+manifest.ProofSuffix))} {
		if _, err := tlog.VerifyProof(proof, digest, p.Log.VerifierKey()); err != nil {
			t.Error(err)
		}
	}
	if r := get(t, h, "GET", "/log/checkpoint"); r.StatusCode != 200 || !strings.HasPrefix(string(body(t, r)), "agent.example/ibid\n1\n") {
		t.Errorf("checkpoint: %d", r.StatusCode)
	}
}

func TestPublishOnce(t *testing.T) {
	p := publisher(t, 3)
	first, err := p.Publish(t.Context(), path, sound(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Publish(t.Context(), path, sound(t))
	if err != nil || again.Signature != first.Signature {
		t.Errorf("the same again: %v", err)
	}
	other := sound(t)
	other.EmittedAt = manifest.At(noon().Add(time.Second))
	if _, err := p.Publish(t.Context(), path, other); !errors.Is(err, manifest.ErrMutated) {
		t.Errorf("another one: %v", err)
	}
	checkpoint, err := p.Log.Checkpoint(t.Context())
	if err != nil || !strings.HasPrefix(string(checkpoint), "agent.example/ibid\n1\n") {
		t.Errorf("what was refused is logged: %s, %v", checkpoint, err)
	}
}

// The same manifest can be published concurrently.
func TestPublishAtOnce(t *testing.T) {
	p := publisher(t, 3)
	m := sound(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := p.Publish(t.Context(), path, m); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func TestPublishNothingInconsistent(t *testing.T) {
	for name, change := range map[string]func(*manifest.Manifest){
		"another URL":             func(m *manifest.Manifest) { m.Self = origin + "/runs/r2/cite" },
		"no URL":                  func(m *manifest.Manifest) { m.Self = "" },
		"another agent":           func(m *manifest.Manifest) { m.AgentID = "other.example/v1" },
		"a time in the future":    func(m *manifest.Manifest) { m.EmittedAt = manifest.At(noon().Add(time.Hour)) },
		"read after it was built": func(m *manifest.Manifest) { m.EmittedAt = manifest.At(noon().Add(-time.Hour)) },
		"an excerpt's hash":       func(m *manifest.Manifest) { m.Claims[0].Sources[0].ExcerptHash = m.Output.Hash },
		"a source's hash":         func(m *manifest.Manifest) { m.Claims[0].Sources[0].Hash = m.Output.Hash },
		"a source":                func(m *manifest.Manifest) { m.Claims[0].Sources[0].Source = "s9" },
		"a span":                  func(m *manifest.Manifest) { m.Claims[0].Span[1]++ },
		"the chain":               func(m *manifest.Manifest) { m.Chain[0].InputsRef = []string{"runs/r1/step/1"} },
		"a chain without it":      func(m *manifest.Manifest) { m.Chain[0].Sources = nil },
		"what cannot be written":  func(m *manifest.Manifest) { m.RunID = "\xff" },
	} {
		t.Run(name, func(t *testing.T) {
			p := publisher(t, 3)
			m := sound(t)
			change(m)
			if s, err := p.Publish(t.Context(), path, m); err == nil {
				t.Errorf("published: %s", s.Body)
			}
			if r := get(t, p.Handler(), "GET", path); r.StatusCode != 404 {
				t.Errorf("served: %d", r.StatusCode)
			}
		})
	}
	for _, bad := range []string{"", "/", "/runs/r1", "/runs/r1/cite/", "/runs//cite", "/runs/../cite", "/runs/r1/cite/a/b", "/runs/r1/cite/a.tlog-proof", "/runs/r 1/cite"} {
		m := sound(t)
		m.Self = origin + bad
		if _, err := publisher(t, 3).Publish(t.Context(), bad, m); err == nil {
			t.Errorf("published at %q", bad)
		}
	}
}

func TestPublishNeedsAKey(t *testing.T) {
	p := publisher(t, 3)
	for _, key := range p.Keys.List() {
		if err := p.Keys.Revoke(key.ID, noon(), "lost"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Publish(t.Context(), path, sound(t)); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if r := get(t, p.Handler(), "GET", path); r.StatusCode != 404 {
		t.Errorf("served without a signature: %d", r.StatusCode)
	}
}

func TestPublisherCheck(t *testing.T) {
	for _, bad := range []string{
		"", "agent.example", "ftp://agent.example", "https://", "https://agent.example/", "https://agent.example/x", "https://agent.example?x",
		"https://agent.example#x", "https://me:secret@agent.example", "https://AGENT.example", "https:agent.example", "https://a b", "https://%zz",
	} {
		p := publisher(t, 2)
		p.Origin, p.AgentID = bad, "agent.example/v1"
		err := p.Check()
		if err == nil {
			t.Errorf("%q is an origin", bad)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password in an error: %v", err)
		}
	}
	for agent, ok := range map[string]bool{
		"agent.example": true, "agent.example/v1": true, "agent.example:443/v1": false, "other.example": false, "xagent.example/v1": false, "agent.example/ä": false,
	} {
		p := publisher(t, 2)
		p.AgentID = agent
		if err := p.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", agent, err)
		}
	}
	p := &manifest.Publisher{Origin: "http://127.0.0.1:8080", Level: 2}
	if err := p.Check(); err != nil || p.Agent() != "127.0.0.1:8080/v1" {
		t.Errorf("%s, %v", p.Agent(), err)
	}
	for _, level := range []int{-1, 4} {
		if err := publisher(t, level).Check(); err == nil {
			t.Errorf("level %d", level)
		}
	}
	if err := (&manifest.Publisher{Origin: origin, Level: 3}).Check(); err == nil {
		t.Error("level 3 without keys")
	}
	if err := new(manifest.Publisher).Check(); err != nil {
		t.Error(err)
	}
}

// Wrapping an agent fails if its publisher cannot sign, rather than silently publishing nothing.
func TestMiddlewareNeedsAKey(t *testing.T) {
	retired := publisher(t, 3)
	key, _, err := retired.Keys.Signer(keyring.Manifest)
	if err == nil {
		err = retired.Keys.Retire(key.ID, noon().Add(-time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*manifest.Publisher{
		"no keyring":    {Origin: origin, Level: 3},
		"no key":        {Origin: origin, Level: 3, Keys: keyring.Memory(nil)},
		"a retired key": retired,
		"no origin":     {Level: 1},
	} {
		if h, err := p.Middleware(http.NotFoundHandler()); err == nil || h != nil {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
}

// Errors are logged if there is no OnError.
func TestErrorsAreLogged(t *testing.T) {
	var log strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	(&manifest.Publisher{Origin: origin, Level: 3}).Handler()
	if !strings.Contains(log.String(), "level 3 needs keys") {
		t.Errorf("the log says %q", &log)
	}
}

// A publisher that publishes nothing, or cannot publish, serves nothing.
func TestNothingIsServedUnlessChosen(t *testing.T) {
	paths := []string{manifest.DiscoveryPath, manifest.DirectoryPath, manifest.KeysPath, manifest.SchemaPath, "/log/checkpoint", path}
	for name, c := range map[string]struct {
		p      *manifest.Publisher
		served []string
	}{
		"the zero value": {&manifest.Publisher{}, nil},
		"level 0":        {publisher(t, 0), nil},
		"no origin":      {&manifest.Publisher{Level: 3}, nil},
		"level 1":        {publisher(t, 1), paths[:1]},
		"level 2":        {publisher(t, 2), []string{manifest.DiscoveryPath, manifest.SchemaPath}},
		"level 3":        {publisher(t, 3), paths[:5]},
	} {
		h := c.p.Handler()
		var served []string
		for _, path := range paths {
			if get(t, h, "GET", path).StatusCode == 200 {
				served = append(served, path)
			}
		}
		same(t, name, c.served, served)
	}
	if _, err := publisher(t, 1).Publish(t.Context(), path, sound(t)); err == nil {
		t.Error("level 1 has manifests")
	}
}

func TestLevel2IsUnsigned(t *testing.T) {
	p := publisher(t, 2)
	s, err := p.Publish(t.Context(), path, sound(t))
	if err != nil || s.Signature != "" || s.SignatureInput != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	h := p.Handler()
	r := get(t, h, "GET", path)
	if _, signed := r.Header["Signature"]; signed || r.StatusCode != 200 || httpsig.CheckDigest(r.Header.Values("Content-Digest"), body(t, r)) != nil {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
	if r := get(t, h, "GET", path+manifest.ProofSuffix); r.StatusCode != 404 {
		t.Errorf("a proof without a log: %d", r.StatusCode)
	}
}

func TestDiscovery(t *testing.T) {
	p := publisher(t, 3)
	p.IncidentEndpoint = origin + "/v1/incidents"
	p.ManifestOrigins = []string{"https://cdn.agent.example"}
	r := get(t, p.Handler(), "GET", manifest.DiscoveryPath)
	if got := r.Header.Get("Cache-Control"); got != "public, max-age=3600" {
		t.Errorf("Cache-Control: %s", got)
	}
	var got map[string]any
	if err := json.Unmarshal(body(t, r), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"version": "1.0", "header_versions": []any{"1"}, "manifest_schema": origin + "/schema/manifest-v1.json",
		"supported_signing": []any{"http-message-signatures"}, "signing_algorithms": []any{"ed25519"}, "contact": "mailto:desk@agent.example",
		"levels": []any{1.0, 2.0, 3.0}, "jwks_uri": origin + manifest.DirectoryPath, "manifest_keys_uri": origin + manifest.KeysPath,
		"manifest_origins": []any{"https://cdn.agent.example"}, "incident_endpoint": origin + "/v1/incidents",
		"log": map[string]any{"origin": "agent.example/ibid", "url": origin + "/log/", "vkey": p.Log.VerifierKey()},
	}
	same(t, "it", want, got)
	for path, mediaType := range map[string]string{
		manifest.DirectoryPath: "application/http-message-signatures-directory+json", manifest.KeysPath: "application/http-message-signatures-directory+json",
		manifest.SchemaPath: "application/schema+json",
	} {
		if r := get(t, p.Handler(), "GET", path); r.Header.Get("Content-Type") != mediaType {
			t.Errorf("%s: %s", path, r.Header.Get("Content-Type"))
		}
	}
}

// Signatures of a retired key must be verifiable for years.
func TestRetiredKeysAreServedElsewhere(t *testing.T) {
	p := publisher(t, 3)
	old, _, err := p.Keys.Signer(keyring.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Keys.Retire(old.ID, noon().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Keys.New(nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{manifest.DirectoryPath: false, manifest.KeysPath: true} {
		if got := bytes.Contains(body(t, get(t, p.Handler(), "GET", path)), []byte(old.ID)); got != want {
			t.Errorf("%s has it: %t", path, got)
		}
	}
}

type pending struct{ manifest.MemoryManifests }

func (*pending) Manifest(_ context.Context, path string) (*manifest.Signed, error) {
	if strings.HasSuffix(path, "broken") {
		return nil, errors.New("no disk")
	}
	return nil, manifest.ErrPending
}

func TestPendingManifest(t *testing.T) {
	p := publisher(t, 2)
	p.Manifests = &pending{}
	var told []error
	p.OnError = func(_ context.Context, err error) { told = append(told, err) }
	r := get(t, p.Handler(), "GET", path)
	if r.StatusCode != 202 || r.Header.Get("Retry-After") != "2" || r.Header.Get("Cache-Control") != "no-store" || string(body(t, r)) != `{"status":"pending"}` {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
	if r := get(t, p.Handler(), "GET", "/runs/r1/cite/broken"); r.StatusCode != 500 || len(told) != 1 || strings.Contains(string(body(t, r)), "disk") {
		t.Errorf("%d, %v", r.StatusCode, told)
	}
}

func TestBundle(t *testing.T) {
	p := publisher(t, 3)
	s, err := p.Publish(t.Context(), path, sound(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*manifest.Signed{
		"published": s,
		"seen":      {TargetURI: origin, Status: 200, Body: []byte("<&>\u2028 \x00"), JWKS: []byte(`{"keys":[]}`), Sources: []manifest.SignedSource{{URL: page, Octets: []byte{0xff}}}},
		"no UTF-8":  {Body: []byte{0xff, 0}, JWKS: []byte("no JSON")},
		"a string":  {Body: []byte("x"), JWKS: []byte(`"a string"`)},
		"empty":     {Body: []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var got manifest.Signed
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			same(t, "it", c, &got)
		})
	}
	for _, bad := range []string{`{}`, `[]`, `{"body":"a","body_base64":"YQ=="}`, `{"body_base64":"%"}`, `{"body":1}`} {
		if err := new(manifest.Signed).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is a bundle", bad)
		}
	}
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	m := &manifest.MemoryManifests{Limit: 10}
	for _, path := range []string{"/1", "/2", "/3"} {
		if err := m.KeepManifest(t.Context(), path, &manifest.Signed{Body: []byte("1234")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Manifest(t.Context(), "/1"); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("/1: %v", err)
	}
	if _, err := m.Manifest(t.Context(), "/2"); err != nil {
		t.Errorf("/2: %v", err)
	}
	if err := m.KeepManifest(t.Context(), "/2", &manifest.Signed{Body: []byte("other")}); !errors.Is(err, manifest.ErrMutated) {
		t.Errorf("mutated: %v", err)
	}
}

func TestSalt(t *testing.T) {
	p := &manifest.Publisher{Secret: []byte("secret")}
	if p.Salt("/a") == nil || len(p.Salt("/a")) != manifest.SaltSize || bytes.Equal(p.Salt("/a"), p.Salt("/b")) || !bytes.Equal(p.Salt("/a"), p.Salt("/a")) {
		t.Error("salts do not depend on their paths")
	}
	if new(manifest.Publisher).Salt("/a") != nil {
		t.Error("a salt without a secret")
	}
}

func TestSpeaks(t *testing.T) {
	for _, c := range []struct {
		url, agent string
		want       bool
	}{
		{"https://agent.example/runs/1/cite", "agent.example/v1", true},
		{"https://agent.example/runs/1/cite", "Agent.Example", true},
		{"http://agent.example:81/x", "agent.example/v1", true},
		{"http://agent.example:81/x", "agent.example:81/v1", true},
		{"http://agent.example:81/x", "agent.example:82/v1", false},
		{"https://agent.example.evil.example/x", "agent.example/v1", false},
		{"https://evil.example/agent.example", "agent.example/v1", false},
		{"https://agent.example@evil.example/x", "agent.example/v1", false},
		{"https://agent.example/x", "", false},
		{"https://agent.example/x", "/v1", false},
		{"agent.example/x", "agent.example/x", false},
		{"https:///x", "/x", false},
	} {
		if got := manifest.Speaks(c.url, c.agent); got != c.want {
			t.Errorf("%s for %s: %t", c.url, c.agent, got)
		}
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}
