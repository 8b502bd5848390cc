package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// pinsOf returns pins of the citations of a call.
func pinsOf(c *store.Call) []store.Pin {
	var list []store.Pin
	for i, citation := range c.Answer.Citations {
		for k, ref := range citation.Refs {
			list = append(list, store.Pin{
				URL: c.Answer.Source(ref.Source).URL, AnswerID: c.AnswerID, Run: c.Run, Citation: citation.ID,
				ClaimID: fmt.Sprint("c", i), SourceID: fmt.Sprint("s", k),
				Claim:  manifest.ClaimSource{URL: c.Answer.Source(ref.Source).URL, Excerpt: &manifest.Excerpt{Exact: ref.Quote}, ExcerptOffset: &manifest.Range{1, 2}},
				Source: manifest.Source{ID: fmt.Sprint("s", k), Hash: "sha256:11"},
			})
		}
	}
	return list
}

// pins returns the citations of a site of the tests.
func pins(t *testing.T, s *store.Store, site string) []store.Pin {
	t.Helper()
	return testenv.Must(s.Pins(t.Context(), store.DefaultTenant, "https://"+site+"/page"))(t)
}

// setStatus stores the result of checking a pin.
func setStatus(t *testing.T, s *store.Store, status store.PinStatus) {
	t.Helper()
	status.Detail = json.RawMessage(`{"why":"é"}`)
	testenv.OK(t, s.SetStatuses(t.Context(), store.DefaultTenant, []store.PinStatus{status}))
}

// Results of checks are returned with the citations, searchable, reported as events, and kept when an answer is
// republished.
func (suite) Pins(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	c := call(1, "Bees dance.", "bees.example", "wasps.example")
	c.Run, c.Conversation, c.Publish = "work", "talk", true
	put(t, s, c, call(2, "Ants do not.", "bees.example"), call(3, "Nobody was cited."))
	list, _ := due(t, s, time.Hour)
	testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c))) // before there is a manifest
	testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c)))
	got := pins(t, s, "bees.example")
	want := pinsOf(c)[0]
	want.ID = got[0].ID
	diff(t, "pins", got, []store.Pin{want})
	at := noon().Add(time.Hour)
	setStatus(t, s, store.PinStatus{ID: got[0].ID, Status: verify.DriftedExcerptIntact, Counts: verify.CountInfo, CheckedAt: at})
	keep(t, s, &list[0], "1", withPath(pinsOf(c), list[0].Path)...)
	got = pins(t, s, "bees.example")
	if len(got) != 1 || got[0].Path != list[0].Path || got[0].Status != verify.DriftedExcerptIntact || !got[0].CheckedAt.Equal(at) || got[0].Digest != "d" {
		t.Errorf("published: %+v", got)
	}
	// The same status again causes no event.
	setStatus(t, s, store.PinStatus{ID: got[0].ID, Status: verify.DriftedExcerptIntact, Counts: verify.CountInfo, CheckedAt: at.Add(time.Hour)})
	setStatus(t, s, store.PinStatus{ID: got[0].ID, Status: verify.ExcerptMissing, Counts: verify.CountFailure, CheckedAt: at.Add(2 * time.Hour)})
	diff(t, "events", kinds(t, s), "answer verification manifest verification")
	events := testenv.Must(s.Events(ctx, store.DefaultTenant, "work", 3, 0))(t)
	diff(t, "event", string(events[0].Data), fmt.Sprintf(`{"answer_id":"ans_0001","citation":%q,"source_url":"https://bees.example/page","claim_id":"c0",`+
		`"status":"excerpt-missing","previous":"source-drifted-excerpt-intact","checked_at":"2026-11-21T15:00:00Z","detail":{"why":"é"}}`, got[0].Citation))
	wantStatuses := []string{"excerpt-missing", "-"}
	one := testenv.Must(s.Call(ctx, store.DefaultTenant, "ans_0001"))(t)
	diff(t, "by id", statuses(one.Answer), wantStatuses)
	run := testenv.Must(s.Run(ctx, store.DefaultTenant, "work", nil))(t)
	diff(t, "of a run", statuses(run.Calls[0].Answer), wantStatuses)
	talk := testenv.Must(s.Conversation(ctx, store.DefaultTenant, "talk", nil))(t)
	diff(t, "of a conversation", statuses(talk.Calls[0].Answer), wantStatuses)
	whole := testenv.Must(s.Trail(ctx, store.DefaultTenant, "work"))(t)
	diff(t, "of a trail", statuses(whole.Final), wantStatuses)
	// It is not stored with the answer, where it would remain.
	record, err := (&store.Call{AnswerID: "a", Answer: one.Answer}).Encode()
	if err != nil || strings.Contains(string(record), "excerpt-missing") {
		t.Errorf("%s, %v", record, err)
	}
	// A later state without the citation has no status.
	later := call(4, "Bees dance.", "wasps.example")
	later.Of = "ans_0001"
	put(t, s, later)
	later.AnswerID = "ans_0001"
	list, _ = due(t, s, time.Hour)
	keep(t, s, &list[0], "2", withPath(pinsOf(later), list[0].Path)...)
	diff(t, "cited still", len(pins(t, s, "wasps.example")), 1)
	diff(t, "cited no more", len(pins(t, s, "bees.example")), 0)
	if err := s.SetStatuses(ctx, store.DefaultTenant, []store.PinStatus{{ID: got[0].ID, Status: "x"}}); err != nil {
		t.Errorf("of a pin that is gone: %v", err)
	}
	huge := pinsOf(c)
	huge[0].Claim.Excerpt.Exact = strings.Repeat("x", store.MaxPin)
	if err := s.AddPins(ctx, store.DefaultTenant, huge); !errors.Is(err, store.ErrLimit) {
		t.Errorf("a huge pin: %v", err)
	}
	testenv.OK(t, s.Delete(ctx, store.DefaultTenant, "ans_0001"))
	diff(t, "deleted", len(pins(t, s, "wasps.example")), 0)
}

func withPath(list []store.Pin, path string) []store.Pin {
	for i := range list {
		list[i].Path, list[i].Digest = path, "d"
	}
	return list
}

func refsOf(ids ...string) []ibid.Ref {
	var list []ibid.Ref
	for _, id := range ids {
		list = append(list, ibid.Ref{Source: id, Quote: "as said by " + id})
	}
	return list
}

// Answers are found by the results of their checks; the worst counts.
func (suite) Verification(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	at := noon()
	set := func(c *store.Call, words ...any) {
		testenv.OK(t, s.AddPins(t.Context(), c.Tenant, pinsOf(c)))
		for i := 0; i < len(words); i += 2 {
			list := pins(t, s, c.Answer.Sources[i/2].Site)
			k := slices.IndexFunc(list, func(p store.Pin) bool { return p.AnswerID == c.AnswerID })
			setStatus(t, s, store.PinStatus{ID: list[k].ID, Status: words[i].(verify.Status), Counts: words[i+1].(verify.Counts), CheckedAt: at})
		}
	}
	for n, words := range [][]any{
		1: {verify.Verified, verify.CountPass, verify.ExcerptMissing, verify.CountFailure},
		2: {verify.Verified, verify.CountPass, verify.Unreachable, verify.CountUnverifiable},
		3: {verify.Verified, verify.CountPass, verify.OffsetWrong, verify.CountWarning},
		4: {verify.Verified, verify.CountPass},
		5: {},
		6: {verify.Status("of tomorrow"), verify.Counts("unknown")},
		7: {verify.Unreachable, verify.CountUnverifiable, verify.ExcerptMissing, verify.CountFailure},
	} {
		if n == 0 {
			continue
		}
		c := call(n, fmt.Sprintf("The answer %d.", n), "a.example", "b.example")
		for i := range c.Answer.Sources {
			c.Answer.Sources[i].Site = []string{"a.example", "b.example"}[i]
		}
		put(t, s, c)
		set(c, words...)
	}
	other := call(8, "The answer 8.", "a.example")
	other.Tenant = "other"
	put(t, s, other)
	for what, want := range map[string]string{
		"": "7 6 5 4 3 2 1", store.VerifiedFailed: "7 1", store.VerifiedUnverifiable: "6 2", store.VerifiedPassed: "4 3", store.VerifiedUnchecked: "5",
		"offset-wrong": "3", "unreachable": "7 2", "verified": "4 3 2 1", "' OR 1=1": "",
	} {
		diff(t, what, strings.Join(ids(t, s, store.Query{Verification: what}), " "), want)
		diff(t, what+" and words", strings.Join(ids(t, s, store.Query{Verification: what, Text: "answer", Limit: 2}), " "), want)
	}
	// A citation of two sources has the status of the worse one.
	c := call(9, "Both say so.", "a.example", "b.example")
	c.Answer.Citations = nil
	refs := slices.Clone(pinsOf(call(9, "Both say so.", "a.example", "b.example")))
	testenv.OK(t, c.Answer.Cite(call(9, "Both say so.", "a.example").Answer.Citations[0].Span, refsOf("web:0", "web:1")...))
	put(t, s, c)
	for i := range refs {
		refs[i].Citation, refs[i].SourceID = c.Answer.Citations[0].ID, fmt.Sprint("s", i)
	}
	testenv.OK(t, s.AddPins(t.Context(), c.Tenant, refs))
	for _, test := range []struct {
		a, b verify.Status
		x, y verify.Counts
		want string
	}{
		{verify.Verified, verify.Gone, verify.CountPass, verify.CountUnverifiable, "gone"},
		{verify.ExcerptAltered, verify.Gone, verify.CountFailure, verify.CountUnverifiable, "excerpt-altered"},
		{verify.Verified, verify.OffsetWrong, verify.CountPass, verify.CountWarning, "offset-wrong"},
	} {
		for _, p := range pins(t, s, "a.example") {
			if p.AnswerID == c.AnswerID {
				setStatus(t, s, store.PinStatus{ID: p.ID, Status: test.a, Counts: test.x, CheckedAt: at})
			}
		}
		for _, p := range pins(t, s, "b.example") {
			if p.AnswerID == c.AnswerID {
				setStatus(t, s, store.PinStatus{ID: p.ID, Status: test.b, Counts: test.y, CheckedAt: at})
			}
		}
		own := map[verify.Status]bool{}
		for _, p := range testenv.Must(s.AnswerPins(t.Context(), c.Tenant, c.AnswerID))(t) {
			if p.AnswerID != c.AnswerID {
				t.Errorf("a pin of %s among those of %s", p.AnswerID, c.AnswerID)
			}
			own[p.Status] = true
		}
		if !own[test.a] || !own[test.b] {
			t.Errorf("the pins of %s have the statuses %v, want %s and %s", c.AnswerID, own, test.a, test.b)
		}
		one := testenv.Must(s.Call(t.Context(), c.Tenant, c.AnswerID))(t)
		diff(t, "of two", statuses(one.Answer), []string{test.want})
	}
}

// Cited sources are read again when they are due, by one node at a time.
func (suite) Rechecks(t *testing.T, dsn string) {
	t.Helper()
	plain, ctx := open(t, dsn), t.Context()
	put(t, plain, call(1, "Before.", "old.example"), call(2, "No page."))
	s := testenv.Must(store.Open(ctx, dsn, &store.Options{Track: true}))(t)
	t.Cleanup(func() { _ = s.Close() })
	list := func(lease time.Duration) (due []store.Recheck, urls string) {
		due = testenv.Must(s.DueRechecks(ctx, 0, lease))(t)
		var names []string
		for _, r := range due {
			names = append(names, strings.TrimPrefix(r.URL, "https://"))
		}
		slices.Sort(names)
		return due, strings.Join(names, " ")
	}
	c := call(3, "Tracked.", "bees.example", "wasps.example")
	c.Answer.Sources[1].URL = "ftp://wasps.example/page"
	far := call(4, "Far.", "far.example/"+strings.Repeat("x", 1000))
	uncited := call(5, "Uncited.", "none.example")
	uncited.Answer.Citations = nil
	put(t, s, c, far, uncited)
	later := call(6, "Later.", "later.example")
	later.Of = "ans_0003"
	put(t, s, later, later)
	address := strings.TrimPrefix(far.Answer.Sources[0].URL, "https://")
	_, urls := list(0)
	diff(t, "tracked", urls, "bees.example/page "+address+" later.example/page")
	for _, want := range []int{5, 0} {
		if n, err := s.TrackStored(ctx); n != want || err != nil {
			t.Errorf("looked at %d, %v; want %d", n, err, want)
		}
	}
	due, urls := list(time.Hour)
	diff(t, "all", urls, "bees.example/page "+address+" later.example/page old.example/page")
	if _, urls = list(time.Hour); urls != "" {
		t.Errorf("claimed twice: %s", urls)
	}
	for i := range due {
		r := &due[i]
		next := time.Now().Add(-time.Second)
		switch {
		case strings.Contains(r.URL, "old"):
			next = time.Time{}
		case strings.Contains(r.URL, "later"):
			next = time.Now().Add(time.Hour)
		}
		for range 2 { // the second one is no longer its to set
			testenv.OK(t, s.SetRecheck(ctx, r, next, strings.Contains(r.URL, "bees")))
		}
	}
	due, urls = list(time.Hour)
	diff(t, "again", urls, "bees.example/page "+address)
	for _, r := range due {
		if bees := strings.Contains(r.URL, "bees"); (r.Failures == 1) != bees || r.Checked.IsZero() != bees || r.Tenant != store.DefaultTenant {
			t.Errorf("%+v", r)
		}
	}
	// An immediate recheck applies only to tracked sources that were not read just now.
	for _, want := range []struct {
		answer *store.Call
		within time.Duration
		n      int
		urls   string
	}{{c, time.Hour, 1, "bees.example/page"}, {far, time.Hour, 0, ""}, {far, 0, 1, address}, {uncited, 0, 0, ""}} {
		if n, err := s.RecheckNow(ctx, want.answer, want.within); n != want.n || err != nil {
			t.Errorf("%s: %d are due, %v; want %d", want.answer.AnswerID, n, err, want.n)
		}
		_, urls := list(time.Hour)
		diff(t, "now", urls, want.urls)
	}
}

// Counts are per tenant, with each citation once, on the day of its answer.
func (suite) Stats(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	ctx := t.Context()
	empty, err := s.Counts(ctx, store.DefaultTenant)
	if err != nil || *empty != (store.Counts{}) {
		t.Fatalf("of nothing: %+v, %v", empty, err)
	}
	if broken, err := s.BrokenSources(ctx, store.DefaultTenant, 5); err != nil || len(broken) != 0 {
		t.Fatalf("of nothing: %v, %v", broken, err)
	}
	sites := func(n int) []string { return []string{"a.example", "b.example"}[:n] }
	for n, words := range [][]any{
		1: {verify.Verified, verify.CountPass, verify.ExcerptMissing, verify.CountFailure},
		2: {verify.ExcerptCut, verify.CountWarning, verify.Gone, verify.CountUnverifiable},
		3: {verify.Gone, verify.CountUnverifiable},
		4: {},
	} {
		c := call(n, fmt.Sprintf("The answer %d.", n), sites(max(1, len(words)/2))...)
		c.Conversation = "talk"
		if n == 3 {
			c.Started = c.Started.Add(48 * time.Hour)
		}
		if n == 0 {
			c.Tenant, words = "other", []any{verify.Gone, verify.CountUnverifiable}
		}
		for i := range c.Answer.Sources {
			c.Answer.Sources[i].Site = c.Answer.Sources[i].URL
		}
		put(t, s, c)
		testenv.OK(t, s.AddPins(ctx, c.Tenant, pinsOf(c)))
		for i := 0; i < len(words); i += 2 {
			list := testenv.Must(s.Pins(ctx, c.Tenant, c.Answer.Sources[i/2].URL))(t)
			last := list[len(list)-1]
			status := store.PinStatus{ID: last.ID, Status: words[i].(verify.Status), Counts: words[i+1].(verify.Counts), CheckedAt: noon()}
			testenv.OK(t, s.SetStatuses(ctx, c.Tenant, []store.PinStatus{status}))
		}
	}
	counts := testenv.Must(s.Counts(ctx, store.DefaultTenant))(t)
	diff(t, "counts", *counts, store.Counts{Answers: 4, Conversations: 1})
	days := testenv.Must(s.CheckedDays(ctx, store.DefaultTenant))(t)
	midnight := noon().Truncate(24 * time.Hour)
	diff(t, "days", days, []store.CheckedDay{
		{Day: midnight, Passed: 2, Unverifiable: 1, Failed: 1},
		{Day: midnight.Add(48 * time.Hour), Unverifiable: 1},
	})
	broken := testenv.Must(s.BrokenSources(ctx, store.DefaultTenant, 5))(t)
	got := ""
	for _, b := range broken {
		got += fmt.Sprintf("%s %s %s %d; ", b.URL, b.Status, b.AnswerID, b.Answers)
	}
	diff(t, "broken", got, "https://a.example/page gone ans_0003 1; https://b.example/page gone ans_0002 1; https://b.example/page excerpt-missing ans_0001 1; ")
	if broken, err = s.BrokenSources(ctx, store.DefaultTenant, 1); err != nil || len(broken) != 1 || broken[0].AnswerID != "ans_0003" {
		t.Errorf("the first of them: %+v, %v", broken, err)
	}
	incidentIsOnce(t, s)
}

func incidentIsOnce(t *testing.T, s *store.Store) {
	t.Helper()
	added := testenv.Must(s.AddIncidents(t.Context(), store.DefaultTenant, []verify.Incident{incident(0, verify.ExcerptMissing), incident(1, verify.ExcerptMissing)}))(t)
	for i := range added {
		found, _, err := s.Incident(t.Context(), store.DefaultTenant, store.IncidentKey(&added[i]))
		if err != nil || found.ID != added[i].ID {
			t.Errorf("incident %d: %+v, %v", i, found, err)
		}
		if _, _, err = s.Incident(t.Context(), "other", store.IncidentKey(&added[i])); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("incident %d of another tenant: %v", i, err)
		}
	}
	if counts, err := s.Counts(t.Context(), store.DefaultTenant); err != nil || counts.Incidents != 2 {
		t.Errorf("%+v, %v", counts, err)
	}
}

// Beyond the limit of counting, the result is one more.
func (suite) StatsBounded(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	batch := make([]*store.Call, 0, store.MaxLimit)
	for n := range store.MaxCounted + 5 {
		c := call(n, "Bees dance.")
		c.Run = ""
		if batch = append(batch, c); len(batch) == cap(batch) || n == store.MaxCounted+4 {
			put(t, s, batch...)
			batch = batch[:0]
		}
	}
	counts := testenv.Must(s.Counts(t.Context(), store.DefaultTenant))(t)
	diff(t, "counts", *counts, store.Counts{Answers: store.MaxCounted + 1})
}

// What a run recorded of sources is compared with them, like the citations of answers.
func (suite) Passages(t *testing.T, dsn string) {
	t.Helper()
	const page, other = "https://bees.example/page", "https://wasps.example/page"
	ctx := t.Context()
	recordRun := func(s *store.Store, tenant, run string, recorded *trail.Trail) {
		t.Helper()
		testenv.Must(s.Record(ctx, tenant, &store.Recording{Run: run, Trail: recorded, Finish: true}))(t)
	}
	passage := func(url, words string) trail.Source {
		return trail.Source{DocumentID: url, URL: url, Content: words, Used: true, Verification: &ibid.Verification{Status: "verified"}}
	}
	step := func(number int, sources ...trail.Source) trail.Step {
		return trail.Step{Number: number, Sources: sources}
	}
	listed := func(s *store.Store, url string) string {
		t.Helper()
		var list []string
		for _, p := range testenv.Must(s.Pins(ctx, store.DefaultTenant, url))(t) {
			words := "for " + p.Words
			if p.Claim.Excerpt != nil {
				words = p.Claim.ExcerptOrigin + " " + p.Claim.Excerpt.Exact
			}
			if !p.Noted() || p.AnswerID != "" || p.Run == "" || p.ClaimID == "" {
				t.Errorf("%+v", p)
			}
			list = append(list, words)
		}
		slices.Sort(list)
		return strings.Join(list, " | ")
	}
	plain := open(t, dsn)
	recordRun(plain, store.DefaultTenant, "before", &trail.Trail{Answer: "They dance.", Steps: []trail.Step{step(1, passage(page, "Bees dance to tell where flowers are."))}})
	diff(t, "while nothing is tracked", listed(plain, page), "")
	s := testenv.Must(store.Open(ctx, dsn, &store.Options{Track: true}))(t)
	t.Cleanup(func() { _ = s.Close() })
	for _, want := range []int{2, 0} { // the step and the run itself
		if n, err := s.TrackStored(ctx); n != want || err != nil {
			t.Errorf("looked at %d, %v; want %d", n, err, want)
		}
	}
	diff(t, "tracked later", listed(s, page), "publisher Bees dance to tell where flowers are.")
	recordRun(s, "other", "before", &trail.Trail{Steps: []trail.Step{step(1, passage(page, "Another tenant's bees dance, too."))}})
	due := testenv.Must(s.DueRechecks(ctx, 10, time.Hour))(t)
	if len(due) != 2 || due[0].URL != page || due[1].URL != page || due[0].Tenant == due[1].Tenant {
		t.Errorf("due: %+v", due)
	}

	final := &ibid.Answer{Provider: "openai", Text: "Wasps sting. Bees do, too.", Sources: []ibid.Source{{ID: "a", Kind: ibid.Web, URL: other}}}
	testenv.OK(t, final.Cite(ibid.Span{End: 12}, ibid.Ref{Source: "a", Quote: "A wasp may sting several times."}))
	testenv.OK(t, final.Cite(ibid.Span{Start: 13, End: 26}, ibid.Ref{Source: "a", Quote: "sting"})) // too short
	found := passage(other, "It was found, and nobody used it for anything.")
	found.Used, found.Retrieved = false, true
	excerpt := passage(page, "")
	excerpt.Excerpt = "… a hive has one queen for years …"
	span := trail.Step{ID: "span", Sources: []trail.Source{found}}
	recordRun(s, store.DefaultTenant, "work", &trail.Trail{Final: final, Steps: []trail.Step{
		step(1, passage(page, "Bees\n dance."), excerpt, passage("", "It has no address that anybody could read."), found),
		{Number: 2, Nested: &trail.Trail{Steps: []trail.Step{step(1, passage(page, "Drones have no sting at all."))}}},
		{Number: 3, NoSources: true, Sources: []trail.Source{found}},
		step(4, passage("ftp://bees.example/page", "Nobody reads it by this scheme.")),
	}})
	diff(t, "of steps", listed(s, page),
		"publisher Bees dance to tell where flowers are. | publisher Drones have no sting at all. | publisher a hive has one queen for years")
	diff(t, "of the answer", listed(s, other), "for Bees do, too. | provider A wasp may sting several times.")
	due = testenv.Must(s.DueRechecks(ctx, 10, time.Hour))(t)
	if len(due) != 2 { // the earlier one too: whoever is reading it may not have seen the new passage
		t.Errorf("due: %+v", due)
	}
	recordRun(s, store.DefaultTenant, "spans", &trail.Trail{Steps: []trail.Step{span}}) // without marks of what it used
	if n := len(testenv.Must(s.Pins(ctx, store.DefaultTenant, other))(t)); n != 3 {
		t.Errorf("%d pins with that of a span", n)
	}

	status := func(url, exact string, status verify.Status, counts verify.Counts) {
		t.Helper()
		for _, p := range testenv.Must(s.Pins(ctx, store.DefaultTenant, url))(t) {
			if p.Claim.Excerpt != nil && p.Claim.Excerpt.Exact == exact {
				p.Source = manifest.Source{URL: url, Hash: "sha256:11"}
				testenv.OK(t, s.SetPins(ctx, store.DefaultTenant, []store.Pin{p}))
				one := store.PinStatus{ID: p.ID, Status: status, Counts: counts, CheckedAt: noon()}
				testenv.OK(t, s.SetStatuses(ctx, store.DefaultTenant, []store.PinStatus{one}))
				p.Source.Hash = "sha256:22"
				testenv.OK(t, s.SetPins(ctx, store.DefaultTenant, []store.Pin{p})) // it was compared already
			}
		}
	}
	status(page, "a hive has one queen for years", verify.ExcerptAltered, verify.CountFailure)
	status(page, "Drones have no sting at all.", verify.Verified, verify.CountPass)
	status(other, "A wasp may sting several times.", verify.Gone, verify.CountUnverifiable)
	alerts := func() (subjects []store.AlertSubject) {
		t.Helper()
		for _, a := range testenv.Must(s.Alerts(ctx, store.DefaultTenant, nil))(t).Items {
			subjects = append(subjects, a.Subject)
			if a.Link != "/ui/runs/"+a.Subject.Run {
				t.Errorf("an alert leads to %s", a.Link)
			}
		}
		return subjects
	}
	diff(t, "alerts", alerts(), []store.AlertSubject{{Run: "work", Source: page}})
	run := testenv.Must(s.Trail(ctx, store.DefaultTenant, "work"))(t)
	shown := func(v *ibid.Verification) string {
		if v == nil {
			return "none"
		}
		return v.Status
	}
	rows := run.Steps[0].Sources
	got := []string{
		shown(rows[0].Verification), shown(rows[1].Verification), shown(rows[2].Verification), shown(run.Steps[1].Nested.Steps[0].Sources[0].Verification),
		shown(run.Final.Citations[0].Verification), shown(run.Final.Citations[1].Verification),
	}
	diff(t, "the run", got, []string{"none", "excerpt-altered", "none", "verified", "gone", "none"})
	for _, p := range testenv.Must(s.Pins(ctx, store.DefaultTenant, page))(t) {
		if p.Status != "" && (p.Noted() || p.Source.Hash != "sha256:11") {
			t.Errorf("%+v", p)
		}
	}
	if v := testenv.Must(s.Trail(ctx, "other", "before"))(t).Steps[0].Sources[0].Verification; v != nil {
		t.Errorf("another tenant sees %+v", v)
	}

	// A later record of a step, or of the answer, removes what the earlier one cited.
	recordRun(s, store.DefaultTenant, "work", &trail.Trail{Answer: "Wasps sting.", Steps: []trail.Step{step(1, excerpt), {Number: 2, Answer: "None."}}})
	if n := len(testenv.Must(s.Pins(ctx, store.DefaultTenant, other))(t)); n != 1 {
		t.Errorf("%d pins without the answer's", n)
	}
	if v := testenv.Must(s.Trail(ctx, store.DefaultTenant, "work"))(t).Steps[0].Sources[0].Verification; shown(v) != "excerpt-altered" {
		t.Errorf("repeated, a passage is %s", shown(v))
	}

	many := func(from, n int) []trail.Source {
		list := make([]trail.Source, 0, n)
		for i := range n {
			list = append(list, passage(page, fmt.Sprintf("In the year %d bees danced as before.", from+i)))
		}
		return list
	}
	recordRun(s, store.DefaultTenant, "many", &trail.Trail{Steps: []trail.Step{step(1, many(0, store.MaxPassages-3)...), step(2, many(5000, 10)...)}})
	kept := 0
	for _, p := range testenv.Must(s.Pins(ctx, store.DefaultTenant, page))(t) {
		if p.Run == "many" {
			kept++
		}
	}
	if kept != store.MaxPassages {
		t.Errorf("%d of many passages are kept, want %d", kept, store.MaxPassages)
	}
	var events []int64
	for _, e := range testenv.Must(s.Outbox(ctx, 1000, 0))(t) {
		events = append(events, e.ID)
	}
	testenv.OK(t, s.Relayed(ctx, events))
	testenv.Must(s.Prune(ctx, &store.Retention{Default: time.Nanosecond, Now: time.Now().Add(time.Hour)}))(t)
	if left := alerts(); len(left) != 0 {
		t.Errorf("alerts are left: %v", left)
	}
	for _, url := range []string{page, other} {
		if left := testenv.Must(s.Pins(ctx, store.DefaultTenant, url))(t); len(left) != 0 {
			t.Errorf("%d pins of %s are left", len(left), url)
		}
	}
}
