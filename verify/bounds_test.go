package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

// allocates fails if do allocates more than most bytes, as quadratic code does.
func allocates(t *testing.T, most uint64, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("it allocated %d MiB, want at most %d", n>>20, most>>20)
	}
}

// many publishes a manifest with n more claims, each with its own source, and makes the answer announce it.
func (w *world) many(n int, change func(i int, s *manifest.Source, cs *manifest.ClaimSource)) {
	m := w.manifest()
	for i := range n {
		c, src := m.Claims[0], m.Sources[0]
		cs := c.Sources[0]
		c.ID, src.ID = fmt.Sprintf("x%d", i), fmt.Sprintf("x%d", i)
		src.URL = fmt.Sprintf("%s/many/%d", w.origin, i)
		change(i, &src, &cs)
		src.FinalURL, cs.Source, cs.URL = src.URL, src.ID, src.URL
		c.Sources = []manifest.ClaimSource{cs}
		m.Sources, m.Claims = append(m.Sources, src), append(m.Claims, c)
		m.Chain[0].Sources = append(m.Chain[0].Sources, src.ID)
	}
	s := w.publish(m)
	w.announce(answer, manifest.Announcement{More: true, Manifest: s.TargetURI})
}

// requests returns the number of requests to the world.
func (w *world) requests() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, hits := range w.hits {
		n += hits
	}
	return n
}

// Endless events, and a trailer of thousands of lines, are read in linear time.
func TestBoundResponse(t *testing.T) {
	w := newWorld(t)
	w.many(0, nil)
	v := w.verifier()
	lines := strings.Repeat("data:abcdef\n", 50_000)
	for name, body := range map[string]string{
		"no event": lines, "of another name": "event: x\n" + lines, "ours": lines + "event: citation-source\n\n",
	} {
		allocates(t, 64<<20, func() {
			r, err := v.Response(t.Context(), &verify.Response{
				URL: w.origin, Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(body),
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]verify.Status{true: verify.HeaderMalformed, false: verify.HeaderMissing}[name == "ours"]
			if has(r, want) == nil {
				t.Errorf("%s: not %s:\n%s", name, want, text(r))
			}
		})
	}
	printed := "HTTP/1.1 200 OK\r\nTrailer: X, Citation-Source\r\n\r\n" + strings.Repeat("y", 1<<20) + "\n" + strings.Repeat("x: ab\n", 4000)
	allocates(t, 64<<20, func() {
		if _, err := v.Bytes(t.Context(), []byte(printed), nil); err != nil {
			t.Fatal(err)
		}
	})
}

// A job ends with its context, even between two comparisons.
func TestBoundContext(t *testing.T) {
	w := newWorld(t)
	w.many(300, func(i int, s *manifest.Source, cs *manifest.ClaimSource) {
		s.URL = w.origin + "/source"
		e := *cs.Excerpt
		e.Exact = fmt.Sprintf("%d %s", i, e.Exact)
		cs.Excerpt, cs.ExcerptHash, cs.ExcerptOffset = &e, "", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v := w.verifier()
	done := 0
	v.Progress = func(p verify.Progress) {
		if p.Stage == "source" {
			done++
			cancel()
		}
	}
	if _, err := v.URL(ctx, w.origin+anAnswer); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's", err)
	}
	if done > 2 { // one that was under way
		t.Errorf("%d sources were checked after the job had ended", done-1)
	}
}

// Matching claims with sources is linear in their number, even if their addresses are slow to clean.
func TestBoundSources(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	read := m.Sources[0].RetrievedAt
	m.Claims, m.Sources, m.Chain, m.Output = nil, nil, nil, nil
	for i := range 1024 {
		m.Sources = append(m.Sources, manifest.Source{ID: fmt.Sprint("s", i), URL: fmt.Sprintf("http://\u00e4.b/%d", i), RetrievedAt: read})
		c := manifest.Claim{ID: fmt.Sprintf("x%d", i), Text: "t"}
		for k := range 8 {
			c.Sources = append(c.Sources, manifest.ClaimSource{URL: fmt.Sprintf("urn:ibid:src:%d", k), RetrievedAt: read})
		}
		m.Claims = append(m.Claims, c)
	}
	s := w.sign(m, w.now)
	allocates(t, 512<<20, func() {
		r := w.bytes(string(s.Body), nil)
		if len(r.Claims) != 1024 {
			t.Errorf("%d claims:\n%.500s", len(r.Claims), text(r))
		}
	})
}

// Redirects count, even those that lead nowhere: fetches that are under way when the limit is reached go on, and no
// others start.
func TestBoundRedirects(t *testing.T) {
	w := newWorld(t)
	w.many(240, func(i int, s *manifest.Source, _ *manifest.ClaimSource) {
		s.URL = fmt.Sprintf("%s/hop/%d/0", w.origin, i)
		for k := range 6 {
			w.handle(fmt.Sprintf("/hop/%d/%d", i, k), func(rw http.ResponseWriter, r *http.Request) {
				if k == 5 {
					rw.WriteHeader(http.StatusNotFound)
					return
				}
				http.Redirect(rw, r, strings.TrimSuffix(r.URL.Path, strconv.Itoa(k))+strconv.Itoa(k+1), http.StatusFound)
			})
		}
	})
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.Blocked)
	if n := w.requests(); n > 256+16*5 {
		t.Errorf("one job made %d requests", n)
	}
}

// A job holds at most Limits.Octets.
func TestBoundOctets(t *testing.T) {
	w := newWorld(t)
	big := bytes.Repeat([]byte("lorem ipsum "), 1<<20/12)
	w.many(12, func(i int, _ *manifest.Source, _ *manifest.ClaimSource) {
		w.page(fmt.Sprintf("/many/%d", i), "application/octet-stream", string(big))
	})
	v := w.verifier()
	v.Limits.Octets = 4<<20 + 64<<10 // four of them, the answer, the manifest, keys
	r := w.report(v)
	read := 0
	for i := range r.Claims[1:] {
		switch got := r.Claims[1+i].Sources[0].Result; {
		case got.Hash != "":
			read++
		case got.Status != verify.Blocked || got.Reason != "limit":
			t.Errorf("source %d is %s (%s), want it blocked by the limit", i, got.Status, got.Reason)
		}
	}
	if read != 4 {
		t.Errorf("%d of 12 sources of 1 MiB were read within 4 MiB:\n%s", read, text(r))
	}
}

// A bundle is hashed once, however many failures there are.
func TestBoundIncidents(t *testing.T) {
	const url = "https://a.example/m"
	r := &verify.Report{Manifests: []verify.ManifestReport{{
		URL: url, SHA256: "x", Bundle: &manifest.Signed{TargetURI: url, Body: bytes.Repeat([]byte("a\u00e9<"), 1<<18)},
	}}}
	for i := range 1000 {
		r.Failure = append(r.Failure, verify.Finding{Code: verify.ExcerptMissing, Counts: verify.CountFailure, Manifest: url, Claim: fmt.Sprint(i)})
	}
	allocates(t, 64<<20, func() {
		if list := verify.Incidents(r); len(list) != 1000 || list[999].BundleSHA256 == "" {
			t.Errorf("%d incidents", len(list))
		}
	})
}

// The oldest values are dropped when there are too many of their kind, and those of other kinds stay.
func TestMemoryMapForgets(t *testing.T) {
	m := &verify.MemoryMap{Limit: 100_000}
	if _, err := m.Remember(t.Context(), "manifest", "a", []byte("first")); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := m.Replace(t.Context(), "verdict", strconv.Itoa(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := m.Replace(t.Context(), "keys", "the same", make([]byte, i)); err != nil { // replaces the earlier value
			t.Fatal(err)
		}
	}
	for at, want := range map[[2]string]bool{
		{"manifest", "a"}: true, {"keys", "the same"}: true, {"verdict", "999"}: true, {"verdict", "930"}: true, {"verdict", "900"}: false, {"verdict", "0"}: false,
	} {
		if got, err := m.Recall(t.Context(), at[0], at[1]); (got != nil) != want || err != nil {
			t.Errorf("%v is remembered: %t, want %t (%v)", at, got != nil, want, err)
		}
	}
	if got, err := m.Remember(t.Context(), "verdict", "0", []byte("again")); string(got) != "again" || err != nil {
		t.Errorf("a forgotten value is remembered again as %q, %v", got, err)
	}
}
