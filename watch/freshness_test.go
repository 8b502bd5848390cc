package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

// often is the interval of checks in these tests.
const often = 40 * time.Millisecond

// checks runs a Freshness on a store.
func checks(t *testing.T, s *store.Store, change func(*watch.FreshnessOptions)) (log *lines, stop func()) {
	t.Helper()
	log = &lines{note: make(chan struct{}, 1)}
	o := &watch.FreshnessOptions{
		Store: s, Fetcher: fetcher(t, snapshot.FetchOptions{}), Every: often, Verifier: "https://ibid.example", Version: "1", Origin: "https://agent.example",
		Logger: (&house{log: log}).logger(), Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(o)
	}
	f := testenv.Must(watch.NewFreshness(o))(t)
	return log, start(t, f.Run)
}

// becomes waits until the first citation of an answer has a status.
func becomes(t *testing.T, s *store.Store, id string, status verify.Status) {
	t.Helper()
	testenv.Until(t, id+" is "+string(status), func() bool {
		c := testenv.Must(s.Call(t.Context(), store.DefaultTenant, id))(t)
		v := c.Answer.Citations[0].Verification
		return v != nil && v.Status == string(status)
	})
}

// statuses returns the statuses of a run's citations in its events, in order.
func statuses(t *testing.T, s *store.Store, run string) string {
	t.Helper()
	var list []string
	for _, e := range told(t, s, run, store.EventVerification) {
		list = append(list, fmt.Sprint(e["previous"], ">", e["status"]))
	}
	return strings.Join(list, " ")
}

// found lists the answers that match a query.
func found(t *testing.T, s *store.Store, verification string) int {
	t.Helper()
	page := testenv.Must(s.Calls(t.Context(), store.DefaultTenant, &store.Query{Verification: verification}))(t)
	return len(page.Items)
}

// A source is fetched when it is cited, and again later; its state then is compared with the earlier one.
func TestFreshness(t *testing.T) {
	for _, etag := range []bool{false, true} {
		web := site(t, map[string]string{"/tides": tidePage})
		web.etag = etag
		s := newStore(t)
		metrics := prometheus.NewRegistry()
		incidentsCounted := func(want int) {
			t.Helper()
			metric := fmt.Sprintf("# HELP ibid_source_incidents_total New incidents found by fetching sources again.\n"+
				"# TYPE ibid_source_incidents_total counter\nibid_source_incidents_total %d\n", want)
			testenv.OK(t, testutil.GatherAndCompare(metrics, strings.NewReader(metric), "ibid_source_incidents_total"))
		}
		put(t, s, cites(t, "ans_1", "work", web.URL+"/tides"))
		checks(t, s, func(o *watch.FreshnessOptions) { o.Metrics = metrics })
		becomes(t, s, "ans_1", verify.Verified)
		incidentsCounted(0)
		n, kept := web.count("/tides"), web.count("304")
		testenv.Until(t, "it is read again", func() bool { return web.count("/tides") > n+2 && (!etag || web.count("304") > kept) })
		web.set("/tides", strings.Replace(tidePage, "03:12", "04:12", 1))
		becomes(t, s, "ans_1", verify.ExcerptAltered)
		if found(t, s, store.VerifiedFailed) != 1 || found(t, s, string(verify.ExcerptAltered)) != 1 || found(t, s, store.VerifiedPassed) != 0 {
			t.Error("it is not found among those that failed")
		}
		n = web.count("/tides")
		testenv.Until(t, "it is read again", func() bool { return web.count("/tides") > n+2 })
		incidents, err := s.Incidents(t.Context(), store.DefaultTenant, nil)
		if err != nil || len(incidents.Items) != 1 {
			t.Fatalf("%d incidents, %v", len(incidents.Items), err)
		}
		incidentsCounted(1)
		in := incidents.Items[0]
		if in.Status != verify.ExcerptAltered || in.SourceURL != web.URL+"/tides" || !strings.Contains(in.Observed.Nearest, "04:12") ||
			in.ResponseURL != "https://agent.example/v1/answers/ans_1" || in.Expected.Hash != snapshot.Hash([]byte(tidePage)) {
			t.Errorf("%+v", in)
		}
		web.set("/tides", tidePage)
		becomes(t, s, "ans_1", verify.Verified)
		web.set("/tides", tidePage+"<p>More.</p>")
		becomes(t, s, "ans_1", verify.DriftedExcerptIntact)
		want := "<nil>>verified verified>excerpt-altered excerpt-altered>verified verified>source-drifted-excerpt-intact"
		if diff := cmp.Diff(want, statuses(t, s, "work")); diff != "" {
			t.Error(diff)
		}
		if v, err := s.Versions(t.Context(), store.DefaultTenant, web.URL+"/tides", nil); err != nil || len(v.Items) < 4 {
			t.Errorf("%d versions, %v", len(v.Items), err)
		}
		if _, err := s.CheckIncidents(t.Context(), store.DefaultTenant); err != nil {
			t.Error(err)
		}
	}
}

// A source is compared with what its manifest states, even if the manifest was built after the first check.
func TestFreshnessPublished(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage})
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "run_1", web.URL+"/tides"))...)
	checks(t, s, func(o *watch.FreshnessOptions) { o.Origin = h.Origin })
	becomes(t, s, "ans_1", verify.Verified)
	start(t, h.publishing(t, nil).Run)
	path := h.path(t, "run_1", "ans_1")
	h.served(t, path)
	h.served(t, h.path(t, "run_1", ""))
	web.set("/tides", strings.Replace(tidePage, "Ostend", "Dover", 1))
	becomes(t, s, "ans_1", verify.ExcerptAltered)
	testenv.Until(t, "both manifests have an incident", func() bool { return len(told(t, s, "run_1", store.EventIncident)) == 2 })
	page, err := s.Incidents(t.Context(), store.DefaultTenant, &store.IncidentQuery{AnswerID: "ans_1"})
	if err != nil || len(page.Items) == 0 {
		t.Fatalf("%d incidents, %v", len(page.Items), err)
	}
	for _, in := range page.Items {
		if !strings.HasPrefix(in.ManifestURL, h.Origin+"/runs/") || in.ManifestSHA256 == "" || in.Expected.ExcerptHash == "" {
			t.Errorf("%+v", in)
		}
	}
	if r := h.report(t, path); r.State != verify.Invalid {
		t.Errorf("others see %s", r.State)
	}
}

// A source that was unavailable when the manifest was built is fetched again, and another revision includes it, once.
func TestFreshnessAway(t *testing.T) {
	web := site(t, map[string]string{})
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "run_1", web.URL+"/tides"))...)
	start(t, h.publishing(t, nil).Run)
	path := h.path(t, "run_1", "ans_1")
	if m := h.served(t, path); m.Sources[0].Hash != "" || m.Sources[0].Unavailable != string(verify.Gone) {
		t.Fatalf("%+v", m.Sources[0])
	}
	web.set("/tides", tidePage)
	checks(t, s, func(o *watch.FreshnessOptions) { o.Origin = h.Origin })
	testenv.Until(t, "there is another revision", func() bool {
		code, _ := h.get(t, path+".2")
		return code != http.StatusNotFound
	})
	m := h.served(t, path+".2")
	if m.Supersedes != h.Origin+path || m.Sources[0].Hash == "" || m.Claims[0].Sources[0].Excerpt == nil {
		t.Errorf("supersedes %q: %+v, %+v", m.Supersedes, m.Sources[0], m.Claims[0].Sources[0])
	}
	becomes(t, s, "ans_1", verify.Verified)
	if code, _ := h.get(t, path+".3"); code != http.StatusNotFound {
		t.Errorf("a third revision answers %d", code)
	}
}

// An unavailable source is no finding; one that is gone, or refuses to be read, is.
func TestFreshnessUnread(t *testing.T) {
	web := site(t, map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private\n", "/page": tidePage, "/private": tidePage, "/later": tidePage})
	s := newStore(t)
	put(t, s, cites(t, "ans_1", "one", web.URL+"/page"), cites(t, "ans_2", "two", web.URL+"/never"), cites(t, "ans_3", "three", web.URL+"/later"))
	private := cites(t, "ans_4", "four", web.URL+"/private")
	put(t, s, published(private)...)
	h := publishes(t, s, 2)
	start(t, h.publishing(t, nil).Run)
	h.served(t, h.path(t, "four", "ans_4"))
	checks(t, s, nil)
	becomes(t, s, "ans_1", verify.Verified)
	becomes(t, s, "ans_2", verify.Gone) // it was never fetched
	becomes(t, s, "ans_4", verify.RobotsDisallowed)
	web.set("/page", "")
	becomes(t, s, "ans_1", verify.Gone)
	if n := found(t, s, store.VerifiedUnverifiable); n != 3 {
		t.Errorf("%d answers cannot be verified", n)
	}
	web.set("/page", tidePage)
	becomes(t, s, "ans_1", verify.Verified)
	page, err := s.Incidents(t.Context(), store.DefaultTenant, nil)
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%d incidents, %v", len(page.Items), err)
	}
	becomes(t, s, "ans_3", verify.Verified)
	web.CloseClientConnections()
	web.Config.SetKeepAlivesEnabled(false)
	web.Listener.Close()
	becomes(t, s, "ans_3", verify.Unreachable)
	if got := statuses(t, s, "three"); got != "<nil>>verified verified>unreachable" {
		t.Error(got)
	}
}

// Many sources of many answers are fetched concurrently; those no longer cited are not.
func TestFreshnessMany(t *testing.T) {
	const hosts = 30
	waiting := make(chan struct{}, hosts)
	open := make(chan struct{})
	web := site(t, map[string]string{"/tides": tidePage, "/deleted": tidePage})
	plain := web.Config.Handler
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tides" {
			select {
			case <-open:
			default:
				waiting <- struct{}{}
				<-open
			}
		}
		plain.ServeHTTP(w, r)
	})
	s := newStore(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(web.URL, "http://"), ":")
	for i := range hosts {
		put(t, s, cites(t, fmt.Sprint("ans_", i), "work", fmt.Sprintf("http://127.0.0.1:%s/tides?host=%d", port, i)))
	}
	put(t, s, cites(t, "ans_deleted", "work", web.URL+"/deleted"))
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_deleted"))
	checks(t, s, func(o *watch.FreshnessOptions) { o.Every = time.Hour })
	for range hosts {
		<-waiting // all at once
	}
	close(open)
	for i := range hosts {
		becomes(t, s, fmt.Sprint("ans_", i), verify.Verified)
	}
	if n := web.count("/deleted"); n != 0 {
		t.Errorf("what nobody cites was read %d times", n)
	}
	if due, err := s.DueRechecks(t.Context(), 100, time.Hour); err != nil || len(due) != 0 {
		t.Errorf("%d are due again, %v", len(due), err)
	}
}

// recorded is what an agent records of a run: a step that used a passage of a page, another that repeats it, and a
// final answer that states it.
func recorded(t *testing.T, s *store.Store, run, url string) {
	t.Helper()
	passage := trail.Source{DocumentID: "tides", Title: "Tides", URL: url, Content: highTide + ", as the harbour office says.", Used: true}
	claimed := passage // only the store knows the result of a check
	claimed.Verification = &ibid.Verification{Status: string(verify.Verified), CheckedAt: time.Now()}
	idle := trail.Source{DocumentID: "idle", URL: url + "-idle", Content: "It was found, and nobody used what it says.", Retrieved: true}
	testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: run, Finish: true, Trail: &trail.Trail{
		Question: "When is high water?", Answer: highTide + ".",
		Steps: []trail.Step{
			{Number: 1, Tool: "search", Sources: []trail.Source{claimed, idle}},
			{Number: 2, Answer: highTide + ".", Sources: []trail.Source{passage}},
		},
	}}))(t)
}

// passageIs waits until a check of the first passage of the recorded run work has a status.
func passageIs(t *testing.T, s *store.Store, status verify.Status) {
	t.Helper()
	testenv.Until(t, "work is "+string(status), func() bool {
		v := testenv.Must(s.Trail(t.Context(), store.DefaultTenant, "work"))(t).Steps[0].Sources[0].Verification
		return v != nil && v.Status == string(status)
	})
}

// Passages that an agent records are checked like citations of captured answers, and reported once.
func TestFreshnessRecorded(t *testing.T) {
	for engine, opened := range map[string]func(t *testing.T) *store.Store{
		"sqlite":   newStore,
		"postgres": func(t *testing.T) *store.Store { t.Helper(); return openStore(t, testenv.Postgres(t).DSN) },
	} {
		t.Run(engine, func(t *testing.T) { freshnessRecorded(t, opened(t)) })
	}
}

func freshnessRecorded(t *testing.T, s *store.Store) {
	t.Helper()
	web := site(t, map[string]string{"/tides": tidePage})
	recorded(t, s, "work", web.URL+"/tides")
	if v := testenv.Must(s.Trail(t.Context(), store.DefaultTenant, "work"))(t).Steps[0].Sources[0].Verification; v != nil {
		t.Errorf("before anything is checked: %+v", v)
	}
	checks(t, s, nil)
	passageIs(t, s, verify.Verified)
	web.set("/tides", strings.Replace(tidePage, "03:12", "04:12", 1))
	passageIs(t, s, verify.ExcerptAltered)
	n := web.count("/tides")
	testenv.Until(t, "it is read again", func() bool { return web.count("/tides") > n+2 })
	if n := web.count("/tides-idle"); n != 0 {
		t.Errorf("what nobody used was read %d times", n)
	}
	page := testenv.Must(s.Incidents(t.Context(), store.DefaultTenant, nil))(t)
	if len(page.Items) != 1 {
		t.Fatalf("%d incidents: %+v", len(page.Items), page.Items)
	}
	in := page.Items[0]
	if in.Status != verify.ExcerptAltered || in.ResponseURL != "https://agent.example/v1/runs/work" || in.SourceURL != web.URL+"/tides" ||
		!strings.Contains(in.Observed.Nearest, "04:12") || in.Expected.Hash != snapshot.Hash([]byte(tidePage)) || in.ManifestURL != "" {
		t.Errorf("%+v", in)
	}
	events := told(t, s, "work", store.EventVerification)
	if len(events) == 0 || events[0]["answer_id"] != nil || events[0]["citation"] != nil || events[0]["status"] != string(verify.Verified) {
		t.Errorf("told: %v", events)
	}
	// The summary shows it for the passages of the sentence and of the document.
	run := testenv.Must(s.Trail(t.Context(), store.DefaultTenant, "work"))(t)
	sum := run.Summary(nil)
	sum.SetLinks(testenv.Must(run.Link(t.Context(), nil, nil))(t))
	text := string(testenv.Must(json.Marshal(sum))(t))
	if n := strings.Count(text, `"verification":{"status":"excerpt-altered"`); n != 6 { // two rows, the document twice, its passage, the sentence's
		t.Errorf("the summary has it %d times: %s", n, text)
	}
	// A later recording of a step removes its passage, and the last one removes the source.
	for number := 1; number <= 2; number++ {
		testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "work", Trail: &trail.Trail{
			Steps: []trail.Step{{Number: number, Answer: "Nothing was found."}},
		}}))(t)
		if pins := testenv.Must(s.Pins(t.Context(), store.DefaultTenant, web.URL+"/tides"))(t); len(pins) != 2-number {
			t.Errorf("without step %d there are %d pins", number, len(pins))
		}
	}
	// Removing a run removes everything.
	recorded(t, s, "work", web.URL+"/tides")
	passageIs(t, s, verify.ExcerptAltered)          // the page may have changed since the run read it
	testenv.Until(t, "it is removed", func() bool { // its events are relayed first
		var ids []int64
		for _, e := range testenv.Must(s.Outbox(t.Context(), 1000, 0))(t) {
			ids = append(ids, e.ID)
		}
		testenv.OK(t, s.Relayed(t.Context(), ids))
		testenv.Must(s.Prune(t.Context(), &store.Retention{Default: time.Nanosecond, Now: time.Now().Add(time.Hour)}))(t)
		_, err := s.Trail(t.Context(), store.DefaultTenant, "work")
		return errors.Is(err, store.ErrNotFound)
	})
	if pins := testenv.Must(s.Pins(t.Context(), store.DefaultTenant, web.URL+"/tides"))(t); len(pins) != 0 {
		t.Errorf("%d pins are left", len(pins))
	}
}

// What a run's own manifest states is checked as well; an incident names the manifest, and the agent as the origin of
// the quote.
func TestFreshnessRecordedPublished(t *testing.T) {
	web := site(t, map[string]string{})
	s := newStore(t)
	h := publishes(t, s, 3)
	start(t, h.publishing(t, nil).Run)
	recorded(t, s, "work", web.URL+"/tides")
	testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "work", Finish: true, Publish: true}))(t)
	path := h.path(t, "work", "")
	m := h.served(t, path)
	if len(m.Claims) != 1 || len(m.Claims[0].Sources) != 1 {
		t.Fatalf("%+v", m.Claims)
	}
	cs := m.Claims[0].Sources[0]
	if cs.Hash != "" || cs.Unavailable != string(verify.Gone) || cs.Excerpt == nil || cs.ExcerptOffset != nil || cs.ExcerptOrigin != manifest.OriginPublisher {
		t.Errorf("of a source that is away: %+v", cs)
	}
	web.set("/tides", tidePage)
	checks(t, s, func(o *watch.FreshnessOptions) { o.Origin = h.Origin })
	testenv.Until(t, "there is another revision", func() bool {
		code, _ := h.get(t, path+".2")
		return code != http.StatusNotFound
	})
	m = h.served(t, path+".2")
	cs = m.Claims[0].Sources[0]
	if cs.Hash == "" || cs.ExcerptOffset == nil || cs.Excerpt.Exact != highTide+", as the harbour office says." || cs.ExcerptOrigin != manifest.OriginPublisher ||
		m.Sources[0].RetrievedBy != manifest.ByObserver {
		t.Errorf("%+v of %+v", cs, m.Sources[0])
	}
	if r := h.report(t, path+".2"); r.State != verify.Trusted {
		t.Errorf("others see %s: %s", r.State, r.Why())
	}
	passageIs(t, s, verify.Verified)
	web.set("/tides", strings.Replace(tidePage, "Ostend", "Dover", 1))
	passageIs(t, s, verify.ExcerptAltered)
	n := web.count("/tides")
	testenv.Until(t, "it is read again", func() bool { return web.count("/tides") > n+2 })
	page := testenv.Must(s.Incidents(t.Context(), store.DefaultTenant, nil))(t)
	if len(page.Items) != 1 || page.Items[0].ManifestURL != h.Origin+path+".2" || page.Items[0].ResponseURL != h.Origin+"/v1/runs/work" {
		t.Errorf("%+v", page.Items)
	}
}

// oddChecker is a checker that panics.
type oddChecker struct{ support.Lexical }

func (*oddChecker) Check(context.Context, []support.Pair) ([]support.Verdict, error) {
	panic("a mistake")
}

// Citations added to an answer later are checked as well.
func TestFreshnessBackfilled(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage})
	s := newStore(t)
	put(t, s, cites(t, "ans_1", "work", web.URL+"/tides"))
	checks(t, s, nil)
	becomes(t, s, "ans_1", verify.Verified)
	later := cites(t, "ans_later", "work", web.URL+"/tides")
	later.Of = "ans_1"
	testenv.OK(t, later.Answer.Cite(ibid.Span{End: len(later.Answer.Text)}, ibid.Ref{Source: "web:0", Quote: "the lighthouse keeper has seven cats"}))
	put(t, s, later)
	testenv.Until(t, "the new one is checked", func() bool {
		return found(t, s, string(verify.ExcerptMissing))+found(t, s, string(verify.ExcerptMismatch)) == 1
	})
}

// Answers stored before checks were enabled are checked as well.
func TestFreshnessStored(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage})
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	t.Cleanup(func() { _ = s.Close() })
	put(t, s, cites(t, "ans_1", "work", web.URL+"/tides"))
	checks(t, s, nil)
	becomes(t, s, "ans_1", verify.Verified)
}

// Unreachable sources are retried soon, then less and less often; missing or refused ones on the usual schedule at
// first.
func TestFreshnessAfter(t *testing.T) {
	f := testenv.Must(watch.NewFreshness(&watch.FreshnessOptions{Store: newStore(t), Fetcher: fetcher(t, snapshot.FetchOptions{}), Every: 24 * time.Hour}))(t)
	away, gone := &snapshot.FetchError{Kind: snapshot.Unreachable}, &snapshot.FetchError{Kind: snapshot.Gone}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		failures int
		err      error
		want     time.Duration
	}{
		{0, nil, day},
		{9, nil, day},
		{0, away, 15 * time.Minute},
		{1, away, 30 * time.Minute},
		{2, away, time.Hour},
		{9, away, 128 * time.Hour},
		{1000, away, 7 * day},
		{0, gone, day},
		{1, gone, 2 * day},
		{2, gone, 4 * day},
		{3, gone, 7 * day},
		{1000, gone, 7 * day},
		{0, errors.New("the store is away"), 15 * time.Minute},
		{0, &snapshot.FetchError{Kind: snapshot.Unreachable, RetryAfter: 3 * time.Hour}, 3 * time.Hour},
		{0, &snapshot.FetchError{Kind: snapshot.Unreachable, RetryAfter: 1000 * day}, 7 * day},
	} {
		if got := f.After(tt.failures, tt.err); got != tt.want {
			t.Errorf("after %d failures and %v: %v, want %v", tt.failures, tt.err, got, tt.want)
		}
	}
	seen := map[time.Duration]bool{}
	for range 100 {
		d := watch.Jittered(day)
		if d < day*9/10 || d > day*11/10 {
			t.Errorf("a day became %v", d)
		}
		seen[d] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d different times of 100", len(seen))
	}
}

// A panic is caught, and the source is retried.
func TestFreshnessPanic(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage, "/quoted": tidePage})
	s := newStore(t)
	odd := cites(t, "ans_1", "work", web.URL+"/tides")
	odd.Answer.Citations[0].Refs[0].Quote = ""
	put(t, s, odd, cites(t, "ans_2", "work", web.URL+"/quoted"))
	log, stop := checks(t, s, func(o *watch.FreshnessOptions) { o.Checker = &oddChecker{} })
	becomes(t, s, "ans_2", verify.Verified)
	testenv.Until(t, "it is caught", func() bool { return strings.Contains(log.String(), "a panic was caught") })
	stop()
	checks(t, s, nil)
	becomes(t, s, "ans_1", verify.Verified)
}

func TestNewFreshness(t *testing.T) {
	s := newStore(t)
	for name, o := range map[string]*watch.FreshnessOptions{
		"nothing":  nil,
		"never":    {Store: s, Fetcher: fetcher(t, snapshot.FetchOptions{}), Every: -1},
		"no store": {Fetcher: fetcher(t, snapshot.FetchOptions{}), Every: time.Hour},
	} {
		if _, err := watch.NewFreshness(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
