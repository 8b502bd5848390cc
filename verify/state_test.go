package verify_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
)

// A change of the manifest is noticed only with a Memory.
func TestMutatedManifest(t *testing.T) {
	w := newWorld(t)
	v := w.verifier()
	m := w.manifest()
	s := w.sign(m, w.now)
	w.put(m, s, cite)
	wants(t, w.report(v), verify.Trusted, "")
	m.Claims[0].Confidence = manifest.ConfidenceLow
	w.put(m, w.sign(m, w.now), cite)
	r := w.report(v)
	wants(t, r, verify.Invalid, verify.ManifestMutated)
	if len(r.Claims) != 0 {
		t.Error("a manifest other than the announced one was read all the same")
	}
}

func TestReplayed(t *testing.T) {
	w := newWorld(t)
	v := w.verifier()
	m := w.manifest()
	s := w.publish(m)
	wants(t, w.report(v), verify.Trusted, "")
	w.announce("Something else.", w.announcement(s))
	wants(t, w.report(v), verify.Invalid, verify.Replayed)

	// Without an output, a manifest is about the response that it was first seen with.
	w = newWorld(t)
	v = w.verifier()
	m = w.manifest()
	m.Output = nil
	s = w.sign(m, w.now)
	w.serveSigned(s, cite)
	for _, test := range []struct {
		body  string
		state verify.State
		code  verify.Status
	}{
		{"one", verify.Valid, verify.OutputUnchecked}, {"one", verify.Valid, verify.OutputUnchecked}, {"two", verify.Invalid, verify.Replayed},
	} {
		w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Date", w.now.Format(http.TimeFormat))
			manifest.SetHeader(rw.Header(), manifest.Link, w.announcement(s))
			rw.Write([]byte(test.body))
		})
		wants(t, w.report(v), test.state, test.code)
	}
}

// The union of header, trailer and stream event is what is announced; "more" only announces a manifest.
func TestUnion(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	head, trailer := http.Header{"Content-Type": {"text/event-stream"}}, http.Header{}
	manifest.SetHeader(head, manifest.List, manifest.Announcement{More: true, Manifest: s.TargetURI})
	manifest.SetHeader(trailer, manifest.List, manifest.Announcement{URL: w.origin + "/source", Manifest: s.TargetURI})
	event := manifest.FormatHeader([]manifest.Announcement{{URL: w.origin + "/nowhere", Manifest: s.TargetURI}}, manifest.List)
	for _, test := range []struct {
		name  string
		r     verify.Response
		state verify.State
		code  verify.Status
	}{
		{"header", verify.Response{Header: head, Body: []byte(answer)}, verify.Trusted, verify.OutputBound},
		{"trailer", verify.Response{Header: head, Trailer: trailer, Body: []byte(answer)}, verify.Trusted, verify.OutputBound},
		{
			"event",
			verify.Response{Header: head, Body: []byte("data: x\n\nevent: citation-source\ndata: " + event + "\n\n")},
			verify.Invalid, verify.ManifestInconsistent, // the event announces what the manifest does not have
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.r.URL = w.origin
			wants(t, must(t)(w.verifier().Response(t.Context(), &test.r)), test.state, test.code)
		})
	}
}

// Fetched keys are good for a day while they cannot be fetched again, unless a newer list lacks them.
func TestKeyCache(t *testing.T) {
	w := newWorld(t)
	v := w.verifier()
	w.publish(w.manifest())
	wants(t, w.report(v), verify.Trusted, "")
	n := w.asked(manifest.DirectoryPath)
	wants(t, w.report(v), verify.Trusted, "")
	if w.asked(manifest.DirectoryPath) != n {
		t.Error("keys that are minutes old were fetched again")
	}
	w.status(manifest.DirectoryPath, http.StatusInternalServerError)
	w.advance(time.Hour)
	wants(t, w.report(v), verify.Trusted, "") // a failed fetch takes nothing away
	w.advance(24 * time.Hour)
	wants(t, w.report(v), verify.Unverifiable, verify.KeyUnavailable)
	w.page(manifest.DirectoryPath, keyring.MediaType, `{"keys":[]}`)
	w.discovery(`"levels":[3]`)
	wants(t, w.report(v), verify.Invalid, verify.KeyUnknown)
	w.status(manifest.DirectoryPath, http.StatusInternalServerError)
	wants(t, w.report(v), verify.Invalid, verify.KeyUnknown) // a successful fetch without the key took it away
}

// A retired key is in the list of former keys, and its manifests are valid.
func TestRetiredKey(t *testing.T) {
	w := published(t)
	w.advance(24 * time.Hour)
	for _, k := range w.ring.List() {
		if k.Use == keyring.Manifest {
			if err := w.ring.Retire(k.ID, w.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	key(t, w.ring, &keyring.NewOptions{At: w.now})
	w.advance(24 * time.Hour)
	wants(t, w.report(w.verifier()), verify.Trusted, "")
	w.status(manifest.KeysPath, http.StatusInternalServerError)
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.KeyUnavailable)
}

// Manifests of another origin may speak for a response only if the response's origin says so.
func TestDelegated(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	s := w.publish(w.manifest())
	other.announce(answer, w.announcement(s))
	verified := func() *verify.Report {
		return must(t)(w.verifier().URL(t.Context(), other.origin+anAnswer))
	}
	wants(t, verified(), verify.Invalid, verify.AuthorityMismatch)
	other.pub.ManifestOrigins = []string{w.origin}
	wants(t, verified(), verify.Trusted, verify.AuthorityVerified)
}

func TestTrust(t *testing.T) {
	w := published(t)
	id := w.report(w.verifier()).Manifests[0].KeyID
	for entry, state := range map[string]verify.State{
		strings.ToUpper(w.host()): verify.Trusted, id: verify.Trusted, id[1:]: verify.Valid, "127.0.0.1": verify.Valid, "": verify.Valid,
	} {
		v := w.verifier()
		v.Trust = []string{entry}
		wants(t, w.report(v), state, "")
	}
}

// A log that was rewritten is noticed by whoever saw both states.
func TestThreatLogRewritten(t *testing.T) {
	w := newWorld(t)
	v := w.verifier()
	s := w.publish(w.manifest())
	wants(t, w.report(v), verify.Trusted, verify.Logged)
	rewritten := newLog(t, w.host()+"/log", logSigner(t, w.ring))
	if _, err := rewritten.Append(t.Context(), [32]byte{1}, [32]byte{2}); err != nil {
		t.Fatal(err)
	}
	w.proof(rewritten, s.Digest())
	w.pub.Log = rewritten
	r := w.report(v)
	wants(t, r, verify.Invalid, verify.LogInconsistent)

	// A log that has only grown is consistent, which its tiles prove; without them it is unknown.
	w = newWorld(t)
	v = w.verifier()
	s = w.publish(w.manifest())
	wants(t, w.report(v), verify.Trusted, verify.Logged)
	if _, err := w.log.Append(t.Context(), [32]byte{1}, [32]byte{2}); err != nil {
		t.Fatal(err)
	}
	w.proof(w.log, s.Digest())
	w.status("/log/tile/0/000.p/3", http.StatusInternalServerError)
	wants(t, w.report(v), verify.Unverifiable, verify.LogUnavailable)
	w.handle("/log/tile/0/000.p/3", nil)
	r = w.report(v)
	wants(t, r, verify.Trusted, verify.Logged)
	if r.Manifests[0].LogSize != 3 {
		t.Errorf("the log has %d entries, want 3", r.Manifests[0].LogSize)
	}
}

// A log that shows a verifier another history than before is noticed, whatever its size, and also after it went back to
// a part of the first one, which cannot be compared.
func TestThreatLogSplitView(t *testing.T) {
	leaf := func(n byte) tlog.Leaf { return tlog.Leaf{n} }
	w := newWorld(t)
	s := w.publish(w.manifest())
	digest := s.Digest()
	history := func(leaves ...tlog.Leaf) *tlog.Log {
		l := newLog(t, w.host()+"/log", logSigner(t, w.ring))
		if _, err := l.Append(t.Context(), leaves...); err != nil {
			t.Fatal(err)
		}
		return l
	}
	seen := []tlog.Leaf{digest, leaf(1), leaf(2), leaf(3)}
	type view struct {
		leaves []tlog.Leaf
		state  verify.State
		code   verify.Status
	}
	for name, views := range map[string][]view{
		"same size":                 {{[]tlog.Leaf{digest, leaf(1), leaf(2), leaf(9)}, verify.Invalid, verify.LogInconsistent}},
		"other order":               {{[]tlog.Leaf{leaf(1), digest, leaf(2), leaf(3)}, verify.Invalid, verify.LogInconsistent}},
		"larger":                    {{[]tlog.Leaf{digest, leaf(1), leaf(2), leaf(9), leaf(4), leaf(5)}, verify.Invalid, verify.LogInconsistent}},
		"smaller":                   {{[]tlog.Leaf{digest, leaf(9)}, verify.Unverifiable, verify.LogUnavailable}},
		"rollback":                  {{seen[:1], verify.Unverifiable, verify.LogUnavailable}, {seen, verify.Trusted, verify.Logged}},
		"rollback, then a fork":     {{seen[:2], verify.Unverifiable, verify.LogUnavailable}, {[]tlog.Leaf{digest, leaf(1), leaf(9), leaf(3), leaf(4)}, verify.Invalid, verify.LogInconsistent}},
		"growth, rollback and fork": {{append(seen[:4:4], leaf(4)), verify.Trusted, verify.Logged}, {seen, verify.Unverifiable, verify.LogUnavailable}, {append(seen[:4:4], leaf(8)), verify.Invalid, verify.LogInconsistent}},
	} {
		t.Run(name, func(t *testing.T) {
			v := w.verifier()
			v.Memory = &verify.MemoryMap{}
			for _, next := range append([]view{{seen, verify.Trusted, verify.Logged}}, views...) {
				l := history(next.leaves...)
				w.proof(l, digest)
				w.pub.Log = l
				wants(t, w.report(v), next.state, next.code)
			}
		})
	}
}

// A job fetches no more than its limits; anything beyond cannot be verified.
func TestLimits(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.Limits.Fetches = 6 // answer, manifest, discovery, two lists of keys, proof: the source is the seventh
	r := w.report(v)
	wants(t, r, verify.Unverifiable, verify.Blocked)
	if got := r.Claims[0].Sources[0].Result.Reason; got != "limit" {
		t.Errorf("the reason is %q, want limit", got)
	}
	if w.asked("/source") != 0 {
		t.Error("the source was fetched beyond the limit")
	}
	v = w.verifier()
	v.Limits.Hosts = 1
	w.announce(answer, manifest.Announcement{URL: "http://127.0.0.2:1/"})
	r = w.report(v)
	wants(t, r, verify.Invalid, verify.Blocked)
}

// A result for a source is reused for a while, and the report marks it as cached.
func TestVerdictCache(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.SourceTTL, v.FailureTTL = 0, 0
	look := func(state verify.State, hits int, cached bool) {
		t.Helper()
		r := w.report(v)
		wants(t, r, state, "")
		if s := r.Claims[0].Sources[0]; w.asked("/source") != hits || s.Cached != cached {
			t.Errorf("the source was requested %d times, cached %t; want %d, %t", w.asked("/source"), s.Cached, hits, cached)
		}
	}
	look(verify.Trusted, 1, false)
	w.page("/source", "text/html", strings.Replace(page, "1874", "1875", 1))
	w.advance(23 * time.Hour)
	look(verify.Trusted, 1, true)
	w.advance(2 * time.Hour)
	look(verify.Invalid, 2, false)
	w.page("/source", "text/html; charset=utf-8", page)
	w.advance(10 * time.Minute)
	look(verify.Invalid, 2, true)
	w.advance(6 * time.Minute)
	look(verify.Trusted, 3, false)
}

// Keys that were fetched a moment ago are used again, except with a negative KeyTTL.
func TestKeyTTL(t *testing.T) {
	w := published(t)
	v := w.verifier()
	for i, want := range []int{1, 1, 2, 3} {
		if i >= 2 {
			v.KeyTTL = -1
		}
		wants(t, w.report(v), verify.Trusted, "")
		if got := w.asked(manifest.DirectoryPath); got != want {
			t.Errorf("after %d jobs the keys were requested %d times, want %d", i+1, got, want)
		}
		w.advance(time.Second)
	}
}

func TestArchive(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	archive := newWorld(t)
	m.Sources[0].ArchiveURL = archive.origin + "/archive"
	w.publish(m)
	w.status("/source", http.StatusGone)
	for _, test := range []struct {
		name, body string
		archives   []string
		state      verify.State
		note       string
	}{
		{"the recorded octets", page, nil, verify.Trusted, "its copy at " + archive.host() + " was compared"},
		{"other octets", page + "<!-- -->", nil, verify.Unverifiable, "is not the one that was recorded"},
		{"other octets, from an accepted archive", page + "<!-- -->", []string{archive.host()}, verify.Trusted, "its copy at " + archive.host()},
		{"another text", "<p>Nothing of that.</p>", []string{archive.host()}, verify.Unverifiable, ""},
	} {
		archive.page("/archive", "text/html; charset=utf-8", test.body)
		v := w.verifier()
		v.Archives = test.archives
		r := w.report(v)
		got, want := r.Claims[0].Sources[0].Result, verify.Gone
		if test.state == verify.Trusted {
			want = verify.VerifiedFromArchive
		}
		if want == verify.VerifiedFromArchive && (got.Reason != "gone" || got.Counts != verify.CountInfo) {
			t.Errorf("%s: %s, for the reason %q", test.name, got.Counts, got.Reason)
		}
		if r.State != test.state || got.Status != want || !strings.Contains(got.Note, test.note) {
			t.Errorf("%s: %s, the source is %s: %s", test.name, r.State, got.Status, got.Note)
		}
	}

	// A copy on the agent's own host proves nothing, whatever it is called.
	m.Self, m.Sources[0].ArchiveURL = w.origin+"/runs/r1/cite/own", w.origin+"/archive"
	w.page("/archive", "text/html; charset=utf-8", page)
	w.publish(m)
	v := w.verifier()
	v.Archives = []string{w.host()}
	wants(t, w.report(v), verify.Unverifiable, verify.Gone)
}

// A page that many claims cite is fetched once.
func TestFetchedOnce(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	for range 20 {
		c := m.Claims[0]
		c.ID += "x"
		c.ID = strings.Repeat("x", len(m.Claims)) + c.ID
		m.Claims = append(m.Claims, c)
	}
	w.publish(m)
	r := w.report(w.verifier())
	wants(t, r, verify.Trusted, "")
	if n := w.asked("/source"); n != 1 || len(r.Claims) != 21 {
		t.Errorf("the source of %d claims was fetched %d times, want once", len(r.Claims), n)
	}
}

// upstreamWorld has an answer whose source is the answer of another agent.
func upstreamWorld(t *testing.T) (w, up *world, m *manifest.Manifest) {
	t.Helper()
	w, up = newWorld(t), newWorld(t)
	s := up.publish(up.manifest())
	m = w.manifest()
	src := &m.Sources[0]
	src.URL, src.FinalURL, src.UpstreamManifest = up.origin+anAnswer, up.origin+anAnswer, s.TargetURI
	src.MediaType, src.Hash, src.TextHash = "text/plain", snapshot.Hash([]byte(answer)), snapshot.Hash([]byte(answer))
	length := len(answer)
	src.TextLength = &length
	cs := &m.Claims[0].Sources[0]
	cs.URL, cs.Hash, cs.ExcerptOffset = src.URL, src.Hash, &manifest.Range{0, len(claim)}
	cs.Excerpt, cs.ExcerptHash = &manifest.Excerpt{Exact: claim}, snapshot.Hash([]byte(claim))
	m.Chain[0].Sources, m.Chain[1].Sources = []string{src.URL}, []string{src.URL}
	return w, up, m
}

func TestUpstream(t *testing.T) {
	w, up, m := upstreamWorld(t)
	w.publish(m)
	r := w.report(w.verifier())
	wants(t, r, verify.Trusted, verify.UpstreamVerified)
	if len(r.Upstream) != 1 || r.Upstream[0].State != verify.Valid {
		t.Fatalf("upstream: %v, want one valid report", r.Upstream)
	}
	v := w.verifier()
	v.Limits.Upstream = -1
	wants(t, w.report(v), verify.Unverifiable, verify.UpstreamUnverifiable)
	up.page("/source", "text/html", "<p>The old bridge was torn down.</p>")
	wants(t, w.report(w.verifier()), verify.Invalid, verify.UpstreamInvalid)
}

// Manifests that name each other do not loop.
func TestUpstreamCircle(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	m.Sources[0].UpstreamManifest = m.Self
	w.publish(m)
	r := w.report(w.verifier())
	wants(t, r, verify.Invalid, verify.UpstreamInvalid) // it is about the answer, not about the source
	if n := w.asked(cite); n != 1 {
		t.Errorf("the manifest was fetched %d times, want once", n)
	}
}

func TestRequireLevel(t *testing.T) {
	for level, state := range map[int]verify.State{2: verify.Valid, 3: verify.Invalid} {
		w := newWorld(t)
		w.pub.Level = 2
		w.publish(w.manifest())
		v := w.verifier()
		v.RequireLevel = level
		wants(t, w.report(v), state, "")
	}
}

// Level 1: only sources are announced. They are fetched, and nothing is trusted.
func TestLevel1(t *testing.T) {
	w := newWorld(t)
	w.pub.Level = 1
	w.announce(answer, manifest.Announcement{URL: w.origin + "/source"})
	r := w.report(w.verifier())
	wants(t, r, verify.Valid, verify.SourceRead)
	if r.Level.Observed != 1 {
		t.Errorf("level %d, want 1", r.Level.Observed)
	}
	w.status("/source", http.StatusNotFound)
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.Gone)
}

// A publisher that states why a source could not be read breaks no promise; one that leaves it out does.
func TestShortfall(t *testing.T) {
	for why, counts := range map[string]verify.Counts{"access-denied": verify.CountWarning, "": verify.CountFailure} {
		w := newWorld(t)
		m := w.manifest()
		src, cs := &m.Sources[0], &m.Claims[0].Sources[0]
		src.Hash, src.TextHash, src.TextLength, src.Unavailable = "", "", nil, why
		cs.Hash, cs.ExcerptOffset, cs.Unavailable = "", nil, why
		w.put(m, w.sign(m, w.now), cite)
		r := w.report(w.verifier())
		f := has(r, verify.LevelNotMet)
		if f == nil || f.Counts != counts {
			t.Errorf("unavailable %q: level-not-met is %+v, want it to count as %s:\n%s", why, f, counts, text(r))
		}
		if got := r.Claims[0].Sources[0].Result.Status; got != verify.ExcerptFound {
			t.Errorf("the source is %s, want excerpt-found", got)
		}
	}
}
