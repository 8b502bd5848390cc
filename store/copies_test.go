package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/tlog/tlogtest"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/verify/verifytest"
)

// page is the test's page as read at a minute.
func page(octets string, minutes int) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		URL: "https://bees.example/page", FinalURL: "https://bees.example/p", Hops: []string{"https://bees.example/q"}, Status: 200,
		Header: http.Header{"X-Odd": {"a\x00b"}, "Date": {"now"}}, MediaType: "text/html", ETag: `"1"`,
		FetchedAt: noon().Add(time.Duration(minutes) * time.Minute), UserAgent: "ibid", Octets: []byte(octets), Hash: snapshot.Hash([]byte(octets)),
	}
}

// Sources are kept as they were read, once, and only for those who read them.
func (suite) Copies(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	copies := s.Copies("one")
	if got, err := copies.Latest(ctx, page("", 0).URL); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	long := strings.Repeat("Bees dance. ", 1000)
	noise := make([]byte, 1000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	same := page(long, 1)
	same.ETag = `"2"`
	unchanged := page(long, 2)
	unchanged.NotModified = true
	for _, p := range []*snapshot.Snapshot{page(long, 0), same, unchanged, page(string(noise), 3), page("", 4), page(long, 5)} {
		testenv.OK(t, copies.Keep(ctx, p))
		got := testenv.Must(copies.Latest(ctx, p.URL))(t)
		if !bytes.Equal(got.Octets, p.Octets) || got.Octets == nil || got.Hash != p.Hash || !got.FetchedAt.Equal(p.FetchedAt) || got.FinalURL != p.FinalURL {
			t.Errorf("%v: %v", p, got)
		}
	}
	versions := func(tenant string) (list []store.Version) {
		for q := (store.Query{Limit: 3}); ; {
			found := testenv.Must(s.Versions(ctx, tenant, page("", 0).URL, &q))(t)
			list = append(list, found.Items...)
			if q.Cursor = found.Next; q.Cursor == "" {
				return list
			}
		}
	}
	list := versions("one")
	if len(list) != 4 || !list[0].Kept || list[3].LastSeen.Sub(list[3].FetchedAt) != 2*time.Minute || list[3].ETag != `"1"` || list[3].Octets != nil {
		t.Errorf("versions: %+v", list)
	}
	want := page(long, 0)
	got := list[3].Snapshot
	want.Octets, want.Header = nil, got.Header
	diff(t, "version", got, *want)
	// Another tenant gets the octets only after reading them itself.
	if v, err := s.Copy(ctx, "one", want.Hash); err != nil || string(v.Octets) != long {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := s.Copy(ctx, "two", want.Hash); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another's copy: %v", err)
	}
	testenv.OK(t, s.Copies("two").Keep(ctx, page(long, 9)))
	if _, err := s.Copy(ctx, "two", want.Hash); err != nil {
		t.Errorf("read, too: %v", err)
	}
	// Of octets that are too large, or do not match their hash, only the metadata is kept.
	forged := page("forged", 10)
	forged.Hash = want.Hash
	for about, p := range map[string]*snapshot.Snapshot{"large": page(strings.Repeat("x", store.MaxCopy+1), 11), "forged": forged} {
		p.URL = "https://" + about + ".example/"
		if err := copies.Keep(ctx, p); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
	got2, err := copies.Latest(ctx, "https://large.example/")
	if err != nil || got2 == nil || got2.Octets != nil {
		t.Errorf("large: %v", err)
	}
	if got2, err = copies.Latest(ctx, "https://forged.example/"); err != nil || string(got2.Octets) != long {
		t.Errorf("forged: %v", err)
	}
	pruneCopies(t, s, versions)
}

// pruneCopies continues suite.Copies.
func pruneCopies(t *testing.T, s *store.Store, versions func(string) []store.Version) {
	t.Helper()
	ctx := t.Context()
	hash := snapshot.Hash([]byte{})
	r := &store.Retention{Copies: 3 * time.Minute, Now: noon().Add(7*time.Minute + time.Second)}
	for _, dry := range []bool{true, false} {
		r.DryRun = dry
		if report, err := s.Prune(ctx, r); err != nil || report != (store.PruneReport{Copies: 2, Versions: 3}) {
			t.Errorf("%+v, %v", report, err)
		}
	}
	diff(t, "versions left", len(versions("one")), 1)
	if _, err := s.Copy(ctx, "one", hash); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("pruned: %v", err)
	}
	if report, err := s.Prune(ctx, &store.Retention{}); err != nil || report != (store.PruneReport{}) {
		t.Errorf("for ever: %+v, %v", report, err)
	}
	// Versions of cited sources stay, without their octets.
	c := call(1, "Cited.", "bees.example")
	c.Tenant = "one"
	put(t, s, c)
	testenv.OK(t, s.AddPins(ctx, "one", pinsOf(c)))
	r.Now = noon().Add(time.Hour)
	testenv.Must(s.Prune(ctx, r))(t)
	if left := versions("one"); len(left) != 1 || left[0].Kept {
		t.Errorf("cited: %+v", left)
	}
	if got, err := s.Copies("one").Latest(ctx, c.Answer.Sources[0].URL); err != nil || got == nil || got.Octets != nil {
		t.Errorf("without octets: %v, %v", got, err)
	}
}

// Many read one page at the same time.
func (suite) CopiesTogether(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			if err := []*store.Store{s, other}[i%2].Copies("one").Keep(t.Context(), page("the same", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	found, err := s.Versions(t.Context(), "one", page("", 0).URL, nil)
	if err != nil || len(found.Items) != 1 || !found.Items[0].LastSeen.Equal(noon().Add(7*time.Minute)) {
		t.Errorf("%+v, %v", found, err)
	}
}

func incident(n int, status verify.Status) verify.Incident {
	return verify.Incident{
		ObservedAt: noon().Add(time.Duration(n) * time.Nanosecond), Verifier: "v", ManifestURL: "https://agent.example/m", ManifestSHA256: strings.Repeat("ab", 32),
		ClaimID: fmt.Sprint("c", n), SourceURL: "https://bees.example/page", Status: status, Detail: "é",
	}
}

// Incidents form a chain for each tenant, each is reported once, and none is ever changed.
func (suite) Incidents(t *testing.T, dsn string) {
	t.Helper()
	s, other := open(t, dsn), open(t, dsn)
	ctx := t.Context()
	var wait sync.WaitGroup
	const many = 24
	for i := range many { // each of them twice
		wait.Go(func() {
			if _, err := []*store.Store{s, other}[i%2].AddIncidents(ctx, "one", []verify.Incident{incident(i/2, verify.ExcerptMissing)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n, err := s.CheckIncidents(ctx, "one"); n != many/2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	all := []verify.Incident{}
	for q := (store.IncidentQuery{Limit: 5, Source: "https://bees.example/page"}); ; {
		found := testenv.Must(s.Incidents(ctx, "one", &q))(t)
		all = append(all, found.Items...)
		if q.Cursor = found.Next; q.Cursor == "" {
			break
		}
	}
	for i := range all[:len(all)-1] {
		if all[i].Prev != all[i+1].ID || all[i].ID == "" {
			t.Errorf("%d: %+v", i, all[i])
		}
	}
	diff(t, "incidents", len(all), many/2)
	// An incident of ours causes an event of its run.
	c := published(1, "work")
	put(t, s, c)
	list, _ := due(t, s, time.Hour)
	keep(t, s, &list[0], "1", withPath(pinsOf(c), list[0].Path)...)
	ours := incident(0, verify.ExcerptAltered)
	ours.ManifestSHA256 = fmt.Sprintf("sha256:%x", bundle("1").Digest())
	added, err := s.AddIncidents(ctx, store.DefaultTenant, []verify.Incident{ours, ours})
	if err != nil || len(added) != 1 || added[0].Prev != "" || ours.ID != "" {
		t.Errorf("%+v, %v", added, err)
	}
	diff(t, "events", kinds(t, s), "answer manifest incident")
	for _, test := range []struct {
		tenant string
		q      store.IncidentQuery
		n      int
	}{
		{store.DefaultTenant, store.IncidentQuery{}, 1},
		{store.DefaultTenant, store.IncidentQuery{AnswerID: "ans_0001"}, 1},
		{store.DefaultTenant, store.IncidentQuery{AnswerID: "ans_0002"}, 0},
		{store.DefaultTenant, store.IncidentQuery{Manifest: ours.ManifestSHA256, Status: "excerpt-altered"}, 1},
		{store.DefaultTenant, store.IncidentQuery{Status: "excerpt-missing"}, 0},
		{"one", store.IncidentQuery{Manifest: strings.Repeat("ab", 32)}, many / 2},
		{"two", store.IncidentQuery{}, 0},
	} {
		found, err := s.Incidents(ctx, test.tenant, &test.q)
		if err != nil || len(found.Items) != test.n {
			t.Errorf("%+v: %d, %v", test, len(found.Items), err)
		}
	}
	if _, err := s.Incidents(ctx, "one", &store.IncidentQuery{Cursor: "x"}); !errors.Is(err, store.ErrCursor) {
		t.Errorf("a cursor: %v", err)
	}
	huge := incident(1, "x")
	huge.Detail = strings.Repeat("x", store.MaxIncident)
	if _, err := s.AddIncidents(ctx, "one", []verify.Incident{incident(2, "y"), huge}); !errors.Is(err, store.ErrLimit) {
		t.Errorf("a huge one: %v", err)
	}
	if n, err := s.CheckIncidents(ctx, "one"); n != many/2 || err != nil {
		t.Errorf("all or nothing: %d, %v", n, err)
	}
}

// What verifiers remember is separate for each tenant, and what only saves work expires.
func (suite) Memory(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	m := s.Memory("one")
	if got, err := m.Remember(ctx, "manifest", "k\x00", []byte{}); err != nil || got == nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := m.Remember(ctx, "manifest", "k\x00", []byte("later")); err != nil || got == nil || len(got) != 0 {
		t.Errorf("the first stays: %q, %v", got, err)
	}
	for _, kind := range []string{"manifest", "verdict", "keys"} {
		testenv.OK(t, m.Replace(ctx, kind, "k", []byte("v")))
	}
	if got, err := s.Memory("two").Recall(ctx, "manifest", "k"); got != nil || err != nil {
		t.Errorf("another's: %q, %v", got, err)
	}
	if err := m.Replace(ctx, "manifest", "k", make([]byte, store.MaxRemembered+1)); !errors.Is(err, store.ErrLimit) {
		t.Errorf("a huge value: %v", err)
	}
	testenv.Must(s.Prune(ctx, &store.Retention{Now: time.Now().Add(31 * 24 * time.Hour)}))(t)
	for kind, want := range map[string]string{"manifest": "v", "verdict": "", "keys": ""} {
		if got, err := m.Recall(ctx, kind, "k"); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

// named opens stores by name: SQLite files, or databases of a server.
func named(t *testing.T, dsn func(*testing.T) string) func(name string) *store.Store {
	t.Helper()
	dsns := map[string]string{}
	return func(name string) *store.Store {
		if dsns[name] == "" {
			dsns[name] = dsn(t)
		}
		return open(t, dsns[name])
	}
}

func TestTiles(t *testing.T) {
	engines(t, func(t *testing.T, dsn func(*testing.T) string) {
		t.Helper()
		tlogtest.TestTiles(t, func(t *testing.T) tlogtest.Opener {
			t.Helper()
			handle := named(t, dsn)
			return func(name string) tlog.Tiles { return handle(name).Tiles() }
		})
	})
}

func TestMemory(t *testing.T) {
	engines(t, func(t *testing.T, dsn func(*testing.T) string) {
		t.Helper()
		verifytest.Memory(t, func(t *testing.T) verify.Memory { t.Helper(); return open(t, dsn(t)).Memory("one") })
	})
}

// Any change to the incidents of a database is detected.
func TestIncidentsTampered(t *testing.T) {
	all := make([]verify.Incident, 520)
	for i := range all {
		all[i] = incident(i, verify.ExcerptMissing)
	}
	for about, test := range map[string]struct {
		change string
		intact int
	}{
		"nothing":         {"", 520},
		"a word":          {"UPDATE incidents SET incident = replace(incident, 'é', 'e') WHERE seq = 510", 500},
		"the first":       {"DELETE FROM incidents WHERE seq = 1", 0},
		"one of them":     {"DELETE FROM incidents WHERE seq = 500", 0},
		"one, and closed": {"DELETE FROM incidents WHERE seq = 501; UPDATE incidents SET seq = -seq WHERE seq > 501; UPDATE incidents SET seq = -seq - 1 WHERE seq < 0", 500},
		"two change":      {"UPDATE incidents SET seq = 0 WHERE seq = 7; UPDATE incidents SET seq = 7 WHERE seq = 8; UPDATE incidents SET seq = 8 WHERE seq = 0", 0},
		"no JSON":         {"UPDATE incidents SET incident = '{' WHERE seq = 3", 0},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "ibid.db")
			s := open(t, name)
			testenv.Must(s.AddIncidents(t.Context(), "one", all))(t)
			testenv.Must(raw(t, name).ExecContext(t.Context(), test.change))(t)
			n, err := s.CheckIncidents(t.Context(), "one")
			if n != test.intact || (err == nil) != (test.change == "") || store.IsTemporary(err) {
				t.Errorf("%d are in order, %v; want %d", n, err, test.intact)
			}
		})
	}
}
