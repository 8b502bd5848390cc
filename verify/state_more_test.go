package verify_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// A job that ran out of time stores no result for a source: the next job checks it.
func TestDeadlineIsNoVerdict(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.SourceTTL, v.FailureTTL = 0, 0
	w.handle("/source", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := v.URL(ctx, w.origin+anAnswer); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want the context's", err)
	}
	w.page("/source", "text/html; charset=utf-8", page)
	wants(t, w.report(v), verify.Trusted, "")
}

// KeepSources puts the sources into the bundle even if their results are remembered.
func TestKeepSourcesRecallsNothing(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.KeepSources, v.SourceTTL = true, 0
	for range 2 {
		r := w.report(v)
		if len(r.Manifests[0].Bundle.Sources) != 1 || r.Claims[0].Sources[0].Cached {
			t.Errorf("the bundle has %d sources:\n%s", len(r.Manifests[0].Bundle.Sources), text(r))
		}
	}
}

// A response that announces nothing has no level: a required level fails, and it is unknown whether a promised one
// applies.
func TestLevel0(t *testing.T) {
	w := newWorld(t)
	for level, state := range map[int]verify.State{0: verify.Unverifiable, 1: verify.Invalid, 3: verify.Invalid} {
		v := w.verifier()
		v.RequireLevel = level
		r := must(t)(v.Response(t.Context(), &verify.Response{URL: w.origin + "/x", Status: 200, Body: []byte("x")}))
		wants(t, r, state, verify.LevelNotMet)
		if has(r, verify.HeaderMissing) == nil || r.Level.Promised != 3 || r.Level.Observed != 0 {
			t.Errorf("level %+v:\n%s", r.Level, text(r))
		}
	}
	garbage := &verify.Response{Body: []byte("x"), Header: http.Header{"Citation-Source": {"garbage"}}}
	wants(t, must(t)(w.verifier().Response(t.Context(), garbage)), verify.Invalid, verify.HeaderMalformed)
	r := must(t)(w.verifier().Response(t.Context(), &verify.Response{Body: []byte("x")}))
	if wants(t, r, verify.Unverifiable, verify.HeaderMissing); has(r, verify.LevelNotMet) != nil {
		t.Errorf("a promise that nobody made is not kept:\n%s", text(r))
	}
}

// slow acts as if another writer had written between its reads and writes.
type slow struct {
	verify.MemoryMap
	kind     string
	recalls  []byte // what Recall returns
	remember []byte
	replaced int
}

func (s *slow) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	if kind == s.kind {
		return s.recalls, nil
	}
	return s.MemoryMap.Recall(ctx, kind, key)
}

func (s *slow) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	if kind == s.kind {
		return s.remember, nil
	}
	return s.MemoryMap.Remember(ctx, kind, key, value)
}

func (s *slow) Replace(ctx context.Context, kind, key string, value []byte) error {
	if kind == s.kind {
		s.replaced++
	}
	return s.MemoryMap.Replace(ctx, kind, key, value)
}

// Two concurrent jobs that see different manifests at one URL do not both accept theirs.
func TestManifestRace(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.Memory = &slow{kind: "manifest", remember: bytes.Repeat([]byte{1}, 32)}
	wants(t, w.report(v), verify.Invalid, verify.ManifestMutated)
}

// The largest checkpoint seen is kept, even if another job stored it meanwhile.
func TestCheckpointRace(t *testing.T) {
	w := published(t)
	first := &verify.MemoryMap{}
	v := w.verifier()
	v.Memory = first
	wants(t, w.report(v), verify.Trusted, verify.Logged)
	small, err := first.Recall(t.Context(), "checkpoint", w.origin+" "+w.host()+"/log")
	if err != nil || small == nil {
		t.Fatalf("no checkpoint is remembered: %v", err)
	}
	m := w.manifestAt("/runs/r1/cite/a2")
	w.publish(m)
	large := bytes.Replace(small, []byte(`"size":1,`), []byte(`"size":1000000,`), 1)
	for want, recalls := range [][]byte{large, small} {
		there := &slow{kind: "checkpoint", remember: small, recalls: recalls}
		v = w.verifier()
		v.Memory = there
		wants(t, w.report(v), verify.Trusted, verify.Logged)
		if there.replaced != want {
			t.Errorf("with %s there, it was replaced %d times, want %d", recalls, there.replaced, want)
		}
	}
}

// Manifests, keys and proofs are not sources: no copies of them are kept.
func TestCopiesAreOfSources(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	copies := &kept{}
	f := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: loopback(), Copies: copies})
	defer f.Close()
	v := w.verifier()
	v.Fetcher = f
	wants(t, w.report(v), verify.Trusted, verify.Logged)
	if got := strings.Join(copies.urls, " "); got != w.origin+anAnswer+" "+w.origin+"/source" {
		t.Errorf("there are copies of %s", got)
	}
	if s.TargetURI == "" {
		t.Error("the manifest has no address")
	}
}

// kept records the URLs of the copies that are kept.
type kept struct {
	snapshot.MemoryCopies
	urls []string
}

func (k *kept) Keep(ctx context.Context, s *snapshot.Snapshot) error {
	k.urls = append(k.urls, s.URL)
	return k.MemoryCopies.Keep(ctx, s)
}

// A manifest from a file has no address, and each source counts once.
func TestReportWords(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	m.Self = ""
	body, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	r := w.bytes(string(body), nil)
	if got := text(r); !strings.Contains(got, "Manifest (from a file)\n") || !strings.Contains(got, "The manifest has 1 claim.") {
		t.Error(got)
	}
	m = w.manifest()
	s := w.publish(m)
	at := manifest.Announcement{URL: w.origin + "/source", Manifest: s.TargetURI}
	w.announce(answer, at, at, manifest.Announcement{More: true, Manifest: s.TargetURI})
	if got := has(w.report(w.verifier()), verify.HeaderRead).Detail; got != "Citation-Source announces 1 source and 1 manifest." {
		t.Error(got)
	}
}
