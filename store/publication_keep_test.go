package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// What was deleted while a manifest was built is not published by it: neither the answer's own nor its run's.
func (suite) PublishDeletedMeanwhile(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	calls := []*store.Call{published(1, "work"), published(2, "work"), published(3, "other")}
	put(t, s, calls...)
	if n, err := s.PublishIdle(ctx, -time.Hour); n != 2 || err != nil {
		t.Fatalf("%d idle runs, %v", n, err)
	}
	list, _ := due(t, s, time.Hour)
	testenv.OK(t, s.Delete(ctx, store.DefaultTenant, "ans_0002"))
	kept := 0
	for i := range list {
		p := &list[i]
		err := s.KeepPublication(ctx, p, bundle(p.Path), withPath(pinsOf(calls[1]), p.Path))
		switch {
		case p.Run == "other" && err == nil:
			kept++
			continue
		case p.AnswerID == "ans_0002" && errors.Is(err, store.ErrNotFound), p.AnswerID != "ans_0002" && errors.Is(err, store.ErrConflict):
		default:
			t.Errorf("%s: %v", p.Path, err)
		}
		if m, err := s.Manifest(ctx, p.Path); m != nil {
			t.Errorf("%s is served: %v", p.Path, err)
		}
		if err := s.FailPublication(ctx, p, "not found"); err != nil { // it is no longer leased
			t.Error(err)
		}
	}
	diff(t, "of another run", kept, 2)
	_, paths := due(t, s, time.Hour)
	diff(t, "built without it", paths, "/runs/P/cite/ans_0001 /runs/P/cite")
	// The records of a run are in its manifests, too.
	put(t, s, published(4, "recorded"))
	record(t, s, &store.Recording{Run: "recorded", Trail: &trail.Trail{Answer: "done"}, Finish: true})
	list, _ = due(t, s, time.Hour)
	r := &store.Retention{Default: time.Hour, ByProvider: map[string]time.Duration{"openai": 0}, Now: time.Now().Add(2 * time.Hour)}
	testenv.Must(s.Prune(ctx, r))(t)
	for i := range list {
		if err := s.KeepPublication(ctx, &list[i], bundle("x"), nil); !errors.Is(err, store.ErrConflict) || store.IsTemporary(err) {
			t.Errorf("%s: %v", list[i].Path, err)
		}
	}
	diff(t, "of a run whose records went", len(list), 2)
}

// An answer is deleted at the moment its manifest is kept: either comes first, completely, without a deadlock.
func (suite) PublishDeletedTogether(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const rounds = 40
	kept := 0
	for n := 0; n < 2*rounds; n += 2 {
		c := published(n+1, fmt.Sprintf("work%d", n))
		c.Answer.Sources[0].URL = fmt.Sprintf("https://bees.example/%d", n)
		put(t, s, c, published(n+2, c.Run))
		list, _ := due(t, s, time.Hour)
		for i := range list {
			p := &list[i]
			if p.AnswerID != c.AnswerID {
				keep(t, s, p, p.Path)
				continue
			}
			var wait sync.WaitGroup
			var err error
			wait.Go(func() { err = s.KeepPublication(ctx, p, bundle(p.Path), withPath(pinsOf(c), p.Path)) })
			wait.Go(func() {
				if err := other.Delete(ctx, store.DefaultTenant, c.AnswerID); err != nil {
					t.Error(err)
				}
			})
			wait.Wait()
			_, served := s.Manifest(ctx, p.Path)
			switch {
			case err == nil && served == nil:
				kept++
			case errors.Is(err, store.ErrNotFound) && errors.Is(served, manifest.ErrNotFound):
			default:
				t.Errorf("kept: %v; served: %v", err, served)
			}
			left, err := s.Pins(ctx, store.DefaultTenant, c.Answer.Sources[0].URL)
			if err != nil || len(left) > 0 {
				t.Fatalf("round %d: %d pins of a deleted answer, %v", n/2, len(left), err)
			}
		}
	}
	t.Logf("%d of %d were kept", kept, rounds)
	// Unpublished citations of deleted answers are not recorded either.
	c := call(1000, "Bees.", "late.example")
	testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c)))
	diff(t, "noted", len(pins(t, s, "late.example")), 0)
	if store.IsPostgres(dsn) {
		deadlocks := 0
		if err := raw(t, dsn).QueryRowContext(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil || deadlocks > 0 {
			t.Errorf("%d deadlocks, %v", deadlocks, err)
		}
	}
}

// No answer's name is the path of another's revision.
func (suite) PublishPaths(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	put(t, s, published(1, "work"))
	list, _ := due(t, s, time.Hour)
	keep(t, s, &list[0], "1")
	later := call(2, "Otherwise.", "bees.example")
	later.Of = "ans_0001"
	odd := published(3, "work")
	odd.AnswerID = "ans_0001.2"
	put(t, s, later)
	put(t, s, odd, published(4, "work"))
	_, paths := due(t, s, time.Hour)
	diff(t, "due", paths, "/runs/P/cite/ans_0001.2</runs/P/cite/ans_0001 /runs/P/cite/ans_0004 /runs/P/cite/ans_0001~2E2")
}

// A constraint that is violated every time is not a temporary error.
func TestIsTemporary(t *testing.T) {
	for code, want := range map[string]bool{"23505": false, "22003": false, "40001": true, "40P01": true, "57P01": true, "": true} {
		if got := store.IsTemporary(fmt.Errorf("storing: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%q: %t", code, got)
		}
	}
}

// The last revision is the one that is served or still to be built, whatever happened to those before and after it.
func (suite) PublishLast(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	pub := testenv.Must(s.Pub(ctx, store.DefaultTenant, "work"))(t)
	last := func(about, answer, want, body string) {
		t.Helper()
		path, digest, err := s.LastManifest(ctx, pub, answer)
		if want == "" && !errors.Is(err, manifest.ErrNotFound) || want != "" && err != nil {
			t.Errorf("%s: %v", about, err)
		}
		sum := ""
		if body != "" {
			sum = fmt.Sprintf("%x", bundle(body).Digest())
		}
		diff(t, about, []string{strings.Replace(path, pub, "P", 1), digest}, []string{want, sum})
	}
	change := func(n int) {
		later := call(n, fmt.Sprint("Otherwise ", n), "bees.example")
		later.Of = "ans_0001"
		put(t, s, later)
	}
	build := func(body string) {
		list, _ := due(t, s, time.Hour)
		keep(t, s, &list[0], body)
	}
	expire := func(before time.Time) {
		testenv.Must(s.Prune(ctx, &store.Retention{Manifests: time.Hour, Now: before.Add(time.Hour)}))(t)
	}
	last("nothing", "ans_0001", "", "")
	put(t, s, published(1, "work"))
	last("pending", "ans_0001", "/runs/P/cite/ans_0001", "")
	last("waiting", "", "/runs/P/cite", "")
	build("1")
	last("built", "ans_0001", "/runs/P/cite/ans_0001", "1")
	middle := time.Now()
	change(2)
	last("changed", "ans_0001", "/runs/P/cite/ans_0001.2", "")
	build("2")
	expire(middle)
	last("the first expired", "ans_0001", "/runs/P/cite/ans_0001.2", "2")
	change(3)
	list, _ := due(t, s, time.Hour)
	testenv.OK(t, s.FailPublication(ctx, &list[0], "no"))
	last("the next failed", "ans_0001", "/runs/P/cite/ans_0001.2", "2")
	expire(time.Now().Add(time.Hour))
	last("all expired", "ans_0001", "", "")
	last("of another", "ans_0002", "", "")
}

// An expired manifest is not found, even if it is kept again.
func (suite) PublishExpired(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	put(t, s, published(1, "work"))
	list, _ := due(t, s, time.Hour)
	keep(t, s, &list[0], "1")
	testenv.OK(t, s.KeepManifest(ctx, "/own", bundle("1")))
	if report, err := s.Prune(ctx, &store.Retention{Manifests: time.Second, Now: time.Now().Add(time.Hour)}); err != nil || report.Manifests != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	if err := s.KeepPublication(ctx, &list[0], bundle("1"), nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the same: %v", err)
	}
	for body, want := range map[string]error{"1": store.ErrNotFound, "2": manifest.ErrMutated} {
		for _, path := range []string{list[0].Path, "/own"} {
			if err := s.KeepManifest(ctx, path, bundle(body)); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v", path, body, err)
			}
		}
	}
}

// Locked runs are not waited for, and of many none is left out.
func (suite) PublishIdleTogether(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	const many = 600
	var calls []*store.Call
	for n := range many {
		calls = append(calls, published(n+1, fmt.Sprintf("work%d", n)))
	}
	put(t, s, calls...)
	want := many
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if store.IsPostgres(dsn) {
		tx := testenv.Must(raw(t, dsn).BeginTx(ctx, nil))(t)
		defer func() { _ = tx.Rollback() }()
		testenv.Must(tx.ExecContext(ctx, "SELECT 1 FROM publications WHERE run = 'work7' AND answer_id = '' FOR UPDATE"))(t)
		want--
	}
	if n, err := s.PublishIdle(ctx, -time.Hour); n != want || err != nil {
		t.Errorf("%d are due, %v; want %d", n, err, want)
	}
}

// Octets that are read again are kept, even at the moment they expire.
func (suite) CopiesPruned(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	ctx := t.Context()
	for n := range 40 {
		old, again := page(fmt.Sprint("the page ", n), 0), page(fmt.Sprint("the page ", n), 120)
		testenv.OK(t, s.Copies("one").Keep(ctx, old))
		var wait sync.WaitGroup
		wait.Go(func() {
			if err := s.Copies("one").Keep(ctx, again); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			if _, err := other.Prune(ctx, &store.Retention{Copies: time.Hour, Now: again.FetchedAt}); err != nil {
				t.Error(err)
			}
		})
		wait.Wait()
		if _, err := s.Copy(ctx, "one", again.Hash); err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
	}
}

// Versions of cited sources stay, however many there are, and do not hide those that expire.
func (suite) VersionsPruned(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	const many = 600
	c := call(1, "Cited.", "bees.example")
	put(t, s, c)
	testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c)))
	for n := range many + 20 { // of one page, all last seen at the same time
		p := page(fmt.Sprint(n), 0)
		if n >= many {
			p.URL = fmt.Sprintf("https://wasps.example/%d", n)
		}
		testenv.OK(t, s.Copies(store.DefaultTenant).Keep(ctx, p))
	}
	r := &store.Retention{Copies: time.Hour, Now: noon().Add(2 * time.Hour), DryRun: true}
	for range 2 {
		if report, err := s.Prune(ctx, r); err != nil || report != (store.PruneReport{Copies: many + 20, Versions: 20}) {
			t.Errorf("%+v, %v", report, err)
		}
		r.DryRun = false
	}
	if found, err := s.Versions(ctx, store.DefaultTenant, page("", 0).URL, nil); err != nil || len(found.Items) != store.DefaultLimit || found.Items[0].Hash != snapshot.Hash([]byte("599")) {
		t.Errorf("%d versions, %v", len(found.Items), err)
	}
}

// A verifier remembers a limited number of values of a kind: the oldest are removed.
func (suite) MemoryFull(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	const over = 300
	testenv.Must(raw(t, dsn).ExecContext(ctx, "INSERT INTO memory (tenant, kind, key, at, value) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < "+
		fmt.Sprint(store.MaxOfKind+over)+") SELECT 'one', 'manifest', 'k' || n, n, 'v' FROM c"))(t)
	testenv.OK(t, s.Memory("two").Replace(ctx, "manifest", "k1", []byte("v")))
	testenv.Must(s.Prune(ctx, &store.Retention{}))(t)
	for _, test := range []struct {
		tenant, key string
		there       bool
	}{{"one", "k1", false}, {"one", fmt.Sprint("k", over), false}, {"one", fmt.Sprint("k", over+1), true}, {"two", "k1", true}} {
		if got, err := s.Memory(test.tenant).Recall(ctx, "manifest", test.key); (got != nil) != test.there || err != nil {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

// Problems of a manifest that could not be read are reported once for each address.
func (suite) IncidentsUnread(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	var list []verify.Incident
	for _, in := range []verify.Incident{
		{ManifestURL: "https://a.example/m"},
		{ManifestURL: "https://b.example/m"},
		{ResponseURL: "https://c.example/"},
		{ResponseURL: "https://d.example/"},
	} {
		in.Status, in.ObservedAt, in.Verifier = verify.ManifestUnreachable, noon(), "v"
		list = append(list, in, in)
	}
	for _, want := range []int{4, 0} {
		added, err := s.AddIncidents(t.Context(), "one", list)
		if err != nil || len(added) != want {
			t.Errorf("%d are new, %v; want %d", len(added), err, want)
		}
	}
	bare, whole := incident(1, verify.ExcerptMissing), incident(1, verify.ExcerptMissing)
	whole.ManifestSHA256 = "sha256:" + strings.ToUpper(bare.ManifestSHA256)
	if added, err := s.AddIncidents(t.Context(), "one", []verify.Incident{bare, whole}); err != nil || len(added) != 1 {
		t.Errorf("of one digest, written in two ways: %d, %v", len(added), err)
	}
}
