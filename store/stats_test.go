package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// What is added up is the tenant's own, each citation once, on the day of its answer.
func exerciseStats(t *testing.T, dsn string) {
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
	diff(t, "counts", *counts, store.Counts{Answers: 4, Conversations: 1, Runs: 4})
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
	exerciseOneIncident(t, s)
}

func exerciseOneIncident(t *testing.T, s *store.Store) {
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

// Of more than is counted there is one more.
func exerciseStatsBounded(t *testing.T, dsn string) {
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
