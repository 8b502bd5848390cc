package store_test

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// published is the n-th call of a test, to be published in a run.
func published(n int, run string) *store.Call {
	c := call(n, fmt.Sprintf("Answer %d.", n), "bees.example")
	c.Run, c.Publish = run, true
	return c
}

// due claims due publications and returns their paths.
func due(t *testing.T, s *store.Store, lease time.Duration) (list []store.Publication, paths string) {
	t.Helper()
	list = testenv.Must(s.DuePublications(t.Context(), 0, lease))(t)
	for _, p := range list {
		name := strings.Replace(p.Path, p.Pub, "P", 1)
		if p.Supersedes != "" {
			name += "<" + strings.Replace(p.Supersedes, p.Pub, "P", 1)
		}
		paths += " " + name
	}
	return list, strings.TrimSpace(paths)
}

// bundle is a manifest with a body.
func bundle(body string) *manifest.Signed {
	return &manifest.Signed{TargetURI: "https://agent.example/x", Status: 200, ContentType: "application/json", Body: []byte(body), Proof: []byte("proof\x00")}
}

func keep(t *testing.T, s *store.Store, p *store.Publication, body string, pins ...store.Pin) {
	t.Helper()
	testenv.OK(t, s.KeepPublication(t.Context(), p, bundle(body), pins))
}

// kinds lists the kinds of the events of the run "work".
func kinds(t *testing.T, s *store.Store) string {
	t.Helper()
	events := testenv.Must(s.Events(t.Context(), store.DefaultTenant, "work", 0, 0))(t)
	var list []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		list = append(list, e.Kind)
	}
	return strings.Join(list, " ")
}

// A run may be reported finished before its last answer is stored: then its final manifest is due at once.
func (suite) PublishLate(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	record(t, s, &store.Recording{Run: "work", Trail: &trail.Trail{Question: "Why?"}, Finish: true})
	put(t, s, published(1, "work"), published(2, "other"))
	_, paths := due(t, s, time.Hour)
	diff(t, "due", strings.Count(paths, "/runs/"), 3) // each answer, and the final manifest of the finished run
}

// Public ids are the same on every node and after every start, and reveal nothing.
func (suite) Pub(t *testing.T, dsn string) {
	t.Helper()
	a, b := open(t, dsn), open(t, dsn)
	got := make([]string, 8)
	var wait sync.WaitGroup
	for i := range got { // the first callers create the secret
		wait.Go(func() {
			var err error
			if got[i], err = []*store.Store{a, b}[i%2].Pub(t.Context(), "tenant", "run"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	names := testenv.Must(open(t, dsn).Publications(t.Context()))(t)
	seen := map[string]bool{}
	for _, of := range [][2]string{{"tenant", "run"}, {"tenant", "run2"}, {"tenantr", "un"}, {"", "tenantrun"}, {"tenant", ""}, {"other", "run"}} {
		pub := names.Of(of[0], of[1])
		if seen[pub] || !regexp.MustCompile(`^[a-z2-7]{26}$`).MatchString(pub) {
			t.Errorf("%q: %q", of, pub)
		}
		seen[pub] = true
	}
	for _, pub := range got {
		if pub != names.Of("tenant", "run") {
			t.Errorf("one says %q, another %q", pub, names.Of("tenant", "run"))
		}
	}
	other, err := open(t, filepath.Join(t.TempDir(), "other.db")).Pub(t.Context(), "tenant", "run")
	if err != nil || other == got[0] {
		t.Errorf("another store has the same secret, or %v", err)
	}
}

// A publication becomes due once and is served after it was built.
func (suite) Publish(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	put(t, s, call(1, "Not for everybody."), published(2, "work"), published(3, "work"))
	put(t, s, published(2, "work"), published(3, "work"))
	pub := testenv.Must(s.Pub(ctx, store.DefaultTenant, "work"))(t)
	final, first := "/runs/"+pub+"/cite", "/runs/"+pub+"/cite/ans_0002"
	for _, path := range []string{final, first} {
		if _, err := s.Manifest(ctx, path); !errors.Is(err, manifest.ErrPending) {
			t.Errorf("%s: %v", path, err)
		}
	}
	list, paths := due(t, s, time.Hour)
	diff(t, "due", paths, "/runs/P/cite/ans_0003 /runs/P/cite/ans_0002")
	if _, again := due(t, s, time.Hour); again != "" {
		t.Errorf("claimed twice: %s", again)
	}
	p := list[1]
	if p.Tenant != store.DefaultTenant || p.Run != "work" || p.AnswerID != "ans_0002" || p.Pub != pub || p.Revision != 1 || p.Attempts != 1 || len(p.Salt) != 32 {
		t.Errorf("%+v", p)
	}
	salt, err := s.Salt(ctx, store.DefaultTenant, "ans_0002")
	if err != nil || string(salt) != string(p.Salt) {
		t.Errorf("salt %x, %v; want %x", salt, err, p.Salt)
	}
	if _, err := s.Salt(ctx, "other", "ans_0002"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another's salt: %v", err)
	}
	keep(t, s, &p, `{"one":1}`)
	keep(t, s, &p, `{"one":1}`) // after a crash
	if err := s.KeepPublication(ctx, &p, bundle(`{"one":2}`), nil); !errors.Is(err, manifest.ErrMutated) || store.IsTemporary(err) {
		t.Errorf("other bytes: %v", err)
	}
	if err := s.KeepManifest(ctx, first, bundle(`{"one":2}`)); !errors.Is(err, manifest.ErrMutated) {
		t.Errorf("other bytes: %v", err)
	}
	got := testenv.Must(s.Manifest(ctx, first))(t)
	diff(t, "bundle", got, bundle(`{"one":1}`))
	diff(t, "events", kinds(t, s), "answer answer manifest")
	events := testenv.Must(s.Events(ctx, store.DefaultTenant, "work", 2, 0))(t)
	sum := bundle(`{"one":1}`).Digest()
	diff(t, "event", string(events[0].Data), fmt.Sprintf(`{"answer_id":"ans_0002","path":%q,"sha256":"%x","revision":1,"supersedes":null}`, first, sum))
	// The run ends twice, with different answers.
	for _, answer := range []string{"done", "done", "done otherwise"} {
		record(t, s, &store.Recording{Run: "work", Trail: &trail.Trail{Answer: answer}, Finish: true})
	}
	list, paths = due(t, s, time.Hour)
	diff(t, "at its end", paths, "/runs/P/cite")
	keep(t, s, &list[0], `{"final":1}`)
	record(t, s, &store.Recording{Run: "work", Trail: &trail.Trail{Answer: "done at last"}})
	list, paths = due(t, s, time.Hour)
	diff(t, "after its end", paths, "/runs/P/cite.2</runs/P/cite")
	keep(t, s, &list[0], `{"final":2}`)
	diff(t, "events", kinds(t, s), "answer answer manifest finish finish manifest finish manifest")
	for _, path := range []string{"/runs/" + pub, "/runs/" + pub + "/cite/ans_0001", "/x\x00\xff"} {
		if _, err := s.Manifest(ctx, path); !errors.Is(err, manifest.ErrNotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An answer that changes gets another manifest, and so does its run if it had ended.
func (suite) PublishAgain(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	put(t, s, published(1, "run_0001")) // made for this call alone
	later := func(n int, text string) *store.Call {
		c := call(n, text, "bees.example")
		c.Of, c.Run, c.Publish = "ans_0001", "run_0001", true
		return c
	}
	list, paths := due(t, s, time.Hour)
	diff(t, "due", paths, "/runs/P/cite/ans_0001 /runs/P/cite")
	put(t, s, later(2, "While it is built.")) // may or may not be in the build
	for range 2 {
		keep(t, s, &list[0], "1")
	}
	list2, paths := due(t, s, time.Hour)
	diff(t, "changed meanwhile", paths, "/runs/P/cite/ans_0001.2</runs/P/cite/ans_0001")
	if string(list2[0].Salt) != string(list[0].Salt) {
		t.Error("another salt")
	}
	testenv.OK(t, s.PostponePublication(t.Context(), &list[1], "later", 0))
	keep(t, s, &list2[0], "2")
	list, paths = due(t, s, time.Hour)
	diff(t, "postponed", paths, "/runs/P/cite")
	if list[0].Error != "later" || list[0].Attempts != 2 {
		t.Errorf("%+v", list[0])
	}
	keep(t, s, &list[0], "final")
	if _, paths = due(t, s, time.Hour); paths != "" {
		t.Errorf("due: %s", paths)
	}
	put(t, s, later(3, "After it was built."))
	list, paths = due(t, s, time.Hour)
	diff(t, "changed", paths, "/runs/P/cite/ans_0001.3</runs/P/cite/ans_0001.2 /runs/P/cite.2</runs/P/cite")
	put(t, s, later(3, "After it was built.")) // replayed
	keep(t, s, &list[0], "3")
	keep(t, s, &list[1], "final 2")
	if _, paths = due(t, s, time.Hour); paths != "" {
		t.Errorf("due: %s", paths)
	}
	got, err := s.Manifest(t.Context(), list[0].Supersedes)
	if err != nil || string(got.Body) != "2" {
		t.Errorf("the one before: %v, %v", got, err)
	}
}

// Idle runs end, and so do leases.
func (suite) PublishIdle(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	alone := published(1, "")
	put(t, s, alone, published(2, "work"))
	list, paths := due(t, s, 0)
	diff(t, "due", paths, "/runs/P/cite/ans_0002 /runs/P/cite/ans_0001") // a call outside of runs has no run's manifest
	// Each is alone, as its first process is taken for dead.
	for range list {
		again, _ := due(t, other, time.Hour)
		if len(again) != 1 {
			t.Fatalf("after the lease %d are due", len(again))
		}
		testenv.OK(t, other.PostponePublication(t.Context(), &again[0], "no key", time.Hour))
	}
	for i := range list { // no longer ours
		testenv.OK(t, s.FailPublication(t.Context(), &list[i], "too late"))
		if _, err := s.Manifest(t.Context(), list[i].Path); !errors.Is(err, manifest.ErrPending) {
			t.Errorf("%s: %v", list[i].Path, err)
		}
	}
	private := call(4, "Not published.")
	private.Run, private.Started = "work", time.Now().Add(time.Hour) // by another node's clock
	put(t, s, private)
	for _, test := range []struct {
		idle time.Duration
		n    int
	}{{time.Hour, 0}, {0, 0}, {-2 * time.Hour, 1}, {-2 * time.Hour, 0}} {
		if n, err := s.PublishIdle(t.Context(), test.idle); n != test.n || err != nil {
			t.Errorf("idle for %v: %d, %v", test.idle, n, err)
		}
	}
	list, paths = due(t, s, time.Hour)
	diff(t, "idle", paths, "/runs/P/cite")
	testenv.OK(t, s.FailPublication(t.Context(), &list[0], strings.Repeat("é", 4000)))
	if _, err := s.Manifest(t.Context(), list[0].Path); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("failed: %v", err)
	}
	put(t, s, published(3, "work")) // there is something new to try
	if _, err := s.Manifest(t.Context(), list[0].Path); !errors.Is(err, manifest.ErrPending) {
		t.Errorf("failed and changed: %v", err)
	}
}

// Each of many nodes builds other manifests.
func (suite) PublishTogether(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	var calls []*store.Call
	for n := range 60 {
		calls = append(calls, published(n+1, fmt.Sprintf("work%d", n%7)))
	}
	put(t, s, calls...)
	var mu sync.Mutex
	seen := map[string]int{}
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for range 40 {
				list, err := []*store.Store{s, other}[i%2].DuePublications(t.Context(), 4, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, p := range list {
					seen[p.Path]++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for path, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", path, n)
		}
	}
	diff(t, "claimed", len(seen), 60)
}

// Deleted answers are no longer published; what was published stays until it expires, and nothing else replaces it.
func (suite) PublishDeleted(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	put(t, s, published(1, "work"), published(2, "work"))
	list, paths := due(t, s, time.Hour)
	diff(t, "due", paths, "/runs/P/cite/ans_0002 /runs/P/cite/ans_0001")
	keep(t, s, &list[1], "1")
	for _, id := range []string{"ans_0001", "ans_0002"} {
		testenv.OK(t, s.Delete(ctx, store.DefaultTenant, id))
		if _, err := s.Salt(ctx, store.DefaultTenant, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the salt of %s: %v", id, err)
		}
	}
	if err := s.KeepPublication(ctx, &list[0], bundle("2"), nil); !errors.Is(err, store.ErrNotFound) || store.IsTemporary(err) {
		t.Errorf("kept what was deleted: %v", err)
	}
	if _, err := s.Manifest(ctx, list[0].Path); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("not built and deleted: %v", err)
	}
	if got, err := s.Manifest(ctx, list[1].Path); err != nil || string(got.Body) != "1" {
		t.Errorf("built and deleted: %v", err)
	}
	r := &store.Retention{Manifests: time.Hour, Now: time.Now().Add(time.Minute)}
	for _, want := range []int{0, 1, 1, 0} {
		report, err := s.Prune(ctx, r)
		if err != nil || report.Manifests != want {
			t.Errorf("%+v: %+v, %v", r, report, err)
		}
		r.Now = time.Now().Add(2 * time.Hour)
		r.DryRun = !r.DryRun && want == 0
	}
	if _, err := s.Manifest(ctx, list[1].Path); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("pruned: %v", err)
	}
	if err := s.KeepManifest(ctx, list[1].Path, bundle("3")); !errors.Is(err, manifest.ErrMutated) {
		t.Errorf("another in its place: %v", err)
	}
	// An agent with paths of its own.
	path := "/agent/" + url.PathEscape("ä b")
	if err := s.KeepManifest(ctx, path, bundle("a")); err != nil {
		t.Error(err)
	}
	if err := s.KeepManifest(ctx, path, bundle("b")); !errors.Is(err, manifest.ErrMutated) {
		t.Errorf("b: %v", err)
	}
	got, err := s.Manifest(ctx, path)
	if err != nil || string(got.Body) != "a" {
		t.Errorf("%v, %v", got, err)
	}
	if err := s.KeepManifest(ctx, "/x\x00", bundle("a")); err == nil {
		t.Error("NUL in a path")
	}
}

// Names of any length and bytes are published and checked like others.
func (suite) PublishHostile(t *testing.T, dsn string) {
	t.Helper()
	s := testenv.Must(store.Open(t.Context(), dsn, &store.Options{Track: true}))(t)
	t.Cleanup(func() { _ = s.Close() })
	ctx := t.Context()
	odd := "é\x00\xff'\"../?#%00\n" + strings.Repeat("x\u2028", 1000)
	c := published(1, odd+"run")
	id := strings.ToValidUTF8(odd, "") // we mint them ourselves
	c.Tenant, c.AnswerID = odd, id
	c.Answer.Sources[0].URL = "https://bees.example/" + odd
	put(t, s, c)
	list, err := s.DuePublications(ctx, 0, time.Hour)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d are due, %v", len(list), err)
	}
	p := &list[0]
	pub, err := s.Pub(ctx, odd, odd+"run")
	if err != nil || p.Pub != pub || !strings.HasPrefix(p.Path, "/runs/"+pub+"/cite/") || strings.ContainsAny(p.Path, "\x00\n?#\"") {
		t.Errorf("%s, %v", p.Path, err)
	}
	got, err := s.Call(ctx, p.Tenant, p.AnswerID)
	if err != nil || got.AnswerID != id {
		t.Fatalf("the call of a publication: %v", err)
	}
	pin := store.Pin{URL: odd, AnswerID: id, Run: odd + "run", Citation: got.Answer.Citations[0].ID, ClaimID: odd, SourceID: odd, Path: p.Path, Digest: odd}
	pin.Claim.Excerpt = &manifest.Excerpt{Exact: odd}
	keep(t, s, p, "1", pin)
	keep(t, s, p, "1", pin)
	pins, err := s.Pins(ctx, odd, odd)
	if err != nil || len(pins) != 1 {
		t.Fatalf("%+v, %v", pins, err)
	}
	if err := s.SetStatuses(ctx, odd, []store.PinStatus{{ID: pins[0].ID, Status: verify.Gone, Counts: verify.CountUnverifiable, Detail: []byte(`"\u0000"`)}}); err != nil {
		t.Error(err)
	}
	bad := incident(1, verify.Status(odd))
	bad.SourceURL, bad.ClaimID, bad.ManifestSHA256 = odd, odd, odd
	for _, want := range []int{1, 0} {
		if added, err := s.AddIncidents(ctx, odd, []verify.Incident{bad}); err != nil || len(added) != want {
			t.Errorf("%d incidents, %v", len(added), err)
		}
	}
	if n, err := s.CheckIncidents(ctx, odd); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if found, err := s.Incidents(ctx, odd, &store.IncidentQuery{Source: odd, Status: odd, Manifest: odd}); err != nil || len(found.Items) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	read := page("x", 0)
	read.URL, read.MediaType, read.UserAgent = odd, odd, odd
	if err := s.Copies(odd).Keep(ctx, read); err != nil {
		t.Error(err)
	}
	if v, err := s.Versions(ctx, odd, odd, nil); err != nil || len(v.Items) != 1 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := s.DueRechecks(ctx, 0, time.Hour); err != nil {
		t.Error(err)
	}
	got, err = s.Call(ctx, odd, id)
	if err != nil || statuses(got.Answer)[0] != "gone" {
		t.Errorf("%v", err)
	}
}

// A record of an older version decodes, and unknown members survive.
func TestCallBody(t *testing.T) {
	c := call(1, "x")
	c.Publish, c.Body = true, &store.CallBody{Hash: "sha256:00", MediaType: "text/plain"}
	record := testenv.Must(c.Encode())(t)
	got := testenv.Must(store.DecodeCall(record))(t)
	diff(t, "body", got.Body, c.Body)
	diff(t, "publish", got.Publish, true)
	old := strings.Replace(string(record), `,"publish":true,"body":{"hash":"sha256:00","media_type":"text/plain"}`, "", 1)
	old, _, _ = strings.Cut(old, `,"sum":`)
	old += "}"
	if got, err := store.DecodeCall([]byte(old)); err != nil || got.Publish || got.Body != nil || strings.Contains(old, "publish") {
		t.Errorf("an old record: %+v, %v", got, err)
	}
}

// statuses lists the statuses of an answer's citations.
func statuses(a *ibid.Answer) []string {
	var list []string
	for i := range a.Citations {
		if v := a.Citations[i].Verification; v == nil {
			list = append(list, "-")
		} else {
			list = append(list, v.Status)
		}
	}
	return list
}

// A run that was only recorded has a final manifest if it requests one and has an answer, and another one for another
// answer.
func (suite) PublishRecorded(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	kept := call(1, "Kept back.")
	kept.Run = "work"
	put(t, s, kept)
	steps := []trail.Step{{Number: 1, Tool: "search"}}
	for _, test := range []struct {
		about     string
		recording store.Recording
		due       string
	}{
		{"not asked for", store.Recording{Run: "none", Trail: &trail.Trail{Answer: "done"}, Finish: true}, ""},
		{"asked for later", store.Recording{Run: "none", Finish: true, Publish: true}, "/runs/P/cite"},
		{"without an answer", store.Recording{Run: "empty", Finish: true, Publish: true}, ""},
		{"of a call", store.Recording{Run: "work", Finish: true, Publish: true}, "/runs/P/cite"},
		{"it goes on", store.Recording{Run: "some", Trail: &trail.Trail{Steps: steps}, Publish: true}, ""},
		{"an answer", store.Recording{Run: "some", Trail: &trail.Trail{Answer: "done"}, Publish: true}, "/runs/P/cite"},
		{"the same", store.Recording{Run: "some", Trail: &trail.Trail{Answer: "done"}, Publish: true}, ""},
		{"the end", store.Recording{Run: "other", Trail: &trail.Trail{Answer: "done"}, Finish: true, Publish: true}, "/runs/P/cite"},
		{"the same end", store.Recording{Run: "other", Trail: &trail.Trail{Answer: "done"}, Finish: true, Publish: true}, ""},
		{"another end", store.Recording{Run: "other", Trail: &trail.Trail{Answer: "done otherwise"}, Finish: true, Publish: true}, "/runs/P/cite.2</runs/P/cite"},
	} {
		record(t, s, &test.recording)
		list, paths := due(t, s, time.Hour)
		diff(t, test.about, paths, test.due)
		for i := range list {
			pub, err := s.Pub(t.Context(), store.DefaultTenant, test.recording.Run)
			if err != nil || list[i].Pub != pub || list[i].Run != test.recording.Run || list[i].AnswerID != "" || len(list[i].Salt) != 32 {
				t.Errorf("%s: %+v, %v", test.about, list[i], err)
			}
			keep(t, s, &list[i], test.about)
		}
	}
}

// A citation pinned by several manifests causes an event only if its visible status changes.
func (suite) VerificationEvents(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := published(1, "work")
	put(t, s, c)
	record(t, s, &store.Recording{Run: "work", Finish: true})
	list, _ := due(t, s, time.Hour)
	diff(t, "due", len(list), 2)
	at := noon()
	set := func(place int, status verify.Status, counts verify.Counts) {
		t.Helper()
		at = at.Add(time.Minute)
		setStatus(t, s, store.PinStatus{ID: pins(t, s, "bees.example")[place].ID, Status: status, Counts: counts, CheckedAt: at})
	}
	for i := range list { // the answer's, then its run's
		keep(t, s, &list[i], fmt.Sprint(i), withPath(pinsOf(c), list[i].Path)...)
		set(i, verify.Verified, verify.CountPass)
	}
	set(0, verify.ExcerptMissing, verify.CountFailure)
	set(1, verify.ExcerptMissing, verify.CountFailure)
	set(0, verify.Verified, verify.CountPass) // the other one is still missing
	set(1, verify.Gone, verify.CountUnverifiable)
	set(1, verify.Verified, verify.CountPass)
	events := testenv.Must(s.Events(t.Context(), store.DefaultTenant, "work", 0, 0))(t)
	var changes []string
	for _, e := range events {
		_, rest, ok := strings.Cut(string(e.Data), `"status":`)
		if what, _, _ := strings.Cut(rest, `,"checked_at"`); ok && e.Kind == store.EventVerification {
			changes = append(changes, what)
		}
	}
	diff(t, "events", changes, []string{
		`"verified","previous":null`, `"excerpt-missing","previous":"verified"`, `"gone","previous":"excerpt-missing"`, `"verified","previous":"gone"`,
	})
}

// The columns of an incident match it, or somebody has changed them.
func (suite) IncidentColumns(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := range 2 {
		in := incident(n, verify.ExcerptMissing)
		in.SourceURL, in.ClaimID = in.SourceURL+"\xff\xff", in.ClaimID+"\x00\xff" // unlike in JSON
		testenv.Must(s.AddIncidents(t.Context(), "one", []verify.Incident{in}))(t)
	}
	db := raw(t, dsn)
	for _, column := range []string{"key", "manifest", "source", "status"} {
		before := ""
		testenv.OK(t, db.QueryRowContext(t.Context(), "SELECT "+column+" FROM incidents WHERE seq = 2").Scan(&before))
		for value, want := range map[string]bool{"other": false, before: true} {
			testenv.Must(db.ExecContext(t.Context(), "UPDATE incidents SET "+column+" = $1 WHERE seq = 2", value))(t)
			n, err := s.CheckIncidents(t.Context(), "one")
			if want && (n != 2 || err != nil) || !want && (n != 1 || err == nil) {
				t.Errorf("%s is %.30q: %d in order, %v", column, value, n, err)
			}
			testenv.Must(db.ExecContext(t.Context(), "UPDATE incidents SET "+column+" = $1 WHERE seq = 2", before))(t)
		}
	}
}
