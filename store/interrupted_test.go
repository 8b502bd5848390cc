package store_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A source and a manifest that end their process are set aside after three times, and nothing else is: not what was in
// progress beside them, nor what is done again later. Asking for a check makes them due again.
func (suite) SetAside(t *testing.T, dsn string) {
	t.Helper()
	const lease = time.Minute
	var clock atomic.Int64
	clock.Store(noon().Add(time.Hour).UnixNano())
	var log bytes.Buffer
	start := func() *store.Store {
		return testenv.Must(store.Open(t.Context(), dsn, &store.Options{
			Track: true, Now: func() time.Time { return time.Unix(0, clock.Load()) }, Wait: time.Minute,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
		}))(t)
	}
	s := start()
	bad := call(0, "Bees dance.", "bees.example")
	bad.Answer.Sources[0].URL += "?key=secret"
	bad.Publish = true
	put(t, s, bad)
	for n := 1; n < 6; n++ {
		c := call(n, "Wasps do not.", "wasps.example", string(rune('a'+n))+".example")
		c.Publish = n < 3
		put(t, s, c)
	}
	culprit := func(name string) bool { return strings.Contains(name, "bees.example") || name == "ans_0000" }

	// life does all work until nothing is due or the process dies, and reports what it did last.
	life := func(s *store.Store) (done []string, died bool) {
		defer func() { testenv.OK(t, s.Close()) }()
		for {
			sources := testenv.Must(s.DueRechecks(t.Context(), 10, lease))(t)
			manifests := testenv.Must(s.DuePublications(t.Context(), 10, lease))(t)
			if len(sources)+len(manifests) == 0 {
				return done, false
			}
			var begun []string
			for i := range sources {
				begun = append(begun, sources[i].URL)
			}
			for i := range manifests {
				begun = append(begun, manifests[i].AnswerID)
			}
			if done = append(done, begun...); slices.ContainsFunc(begun, culprit) {
				return begun, true
			}
			for i := range sources {
				testenv.OK(t, s.SetRecheck(t.Context(), &sources[i], s.Now().Add(24*time.Hour), false))
			}
			for i := range manifests {
				testenv.OK(t, s.PostponePublication(t.Context(), &manifests[i], "no key", 24*time.Hour))
			}
		}
	}
	lives := func(s *store.Store) map[string]int {
		met := map[string]int{}
		for n := 1; ; n++ {
			last, died := life(s)
			if !died {
				if slices.ContainsFunc(last, culprit) {
					t.Fatalf("life %d met %v", n, last)
				}
				return met
			}
			if n > 1 && len(last) != 1 {
				t.Errorf("life %d ended with %v, not with one alone", n, last)
			}
			for _, name := range last {
				met[name]++
			}
			clock.Add(int64(lease + time.Second))
			s = start()
		}
	}
	for name, n := range lives(s) {
		if want := map[bool]int{true: store.MaxDeaths, false: 1}[culprit(name)]; n != want {
			t.Errorf("%s was in progress %d times when the process ended, not %d", name, n, want)
		}
	}
	if strings.Count(log.String(), "work was set aside") != 2 || strings.Contains(log.String(), "secret") ||
		!strings.Contains(log.String(), "bees.example") {
		t.Errorf("the log has %s", &log)
	}

	clock.Add(int64(25 * time.Hour))
	s = start()
	alerts := testenv.Must(s.Alerts(t.Context(), store.DefaultTenant, &store.AlertQuery{Kind: store.AlertSetAside}))(t)
	var about []string
	for _, a := range alerts.Items {
		about = append(about, a.Subject.AnswerID+a.Subject.Source)
	}
	slices.Sort(about)
	diff(t, "alerts", about, []string{"ans_0000", bad.Answer.Sources[0].URL})
	// The rest is done as before, all at once.
	if list := testenv.Must(s.DueRechecks(t.Context(), 10, lease))(t); len(list) != 6 {
		t.Errorf("a day later, %d sources are due", len(list))
	}
	if n := testenv.Must(s.RecheckNow(t.Context(), bad, time.Hour))(t); n != 1 {
		t.Errorf("asked for a check, %d sources are due", n)
	}
	again := testenv.Must(s.DueRechecks(t.Context(), 10, lease))(t)
	if len(again) != 1 || !culprit(again[0].URL) {
		t.Errorf("asked for a check, due is %v", again)
	}
	due := testenv.Must(s.DuePublications(t.Context(), 10, lease))(t)
	if !slices.ContainsFunc(due, func(p store.Publication) bool { return culprit(p.AnswerID) }) {
		t.Errorf("asked for a check, due is %v", due)
	}
	testenv.OK(t, s.Close())
}

// A process that is asked to stop, or that reports a failure, is no evidence against its work, and neither is work that
// was rescheduled during its lease.
func (suite) NotSetAside(t *testing.T, dsn string) {
	t.Helper()
	const lease = time.Minute
	now := noon().Add(time.Hour)
	c := call(1, "Herons.", "herons.example")
	for n := range 2 * store.MaxDeaths {
		s := testenv.Must(store.Open(t.Context(), dsn, &store.Options{Track: true, Now: func() time.Time { return now }}))(t)
		put(t, s, c)
		list := testenv.Must(s.DueRechecks(t.Context(), 10, lease))(t)
		if len(list) != 1 {
			t.Fatalf("%d: %d are due", n, len(list))
		}
		if n%2 == 0 {
			testenv.OK(t, s.SetRecheck(t.Context(), &list[0], s.Now(), true))
		} else {
			testenv.Must(s.RecheckNow(t.Context(), c, 0))(t)
		}
		testenv.OK(t, s.Close())
		now = now.Add(lease + time.Second)
	}
}
