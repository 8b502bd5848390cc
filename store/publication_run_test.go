package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

// A run that was only recorded has a final manifest if it is to have one and there is an answer, and another one for another answer.
func exercisePublishRecorded(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	kept := call(1, "Kept back.")
	kept.Run = "work"
	put(t, s, kept)
	steps := []trail.Step{{Number: 1, Tool: "search"}}
	for _, test := range []struct {
		about string
		said  store.Recording
		due   string
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
		record(t, s, &test.said)
		list, paths := due(t, s, time.Hour)
		diff(t, test.about, paths, test.due)
		for i := range list {
			pub, err := s.Pub(t.Context(), store.DefaultTenant, test.said.Run)
			if err != nil || list[i].Pub != pub || list[i].Run != test.said.Run || list[i].AnswerID != "" || len(list[i].Salt) != 32 {
				t.Errorf("%s: %+v, %v", test.about, list[i], err)
			}
			keep(t, s, &list[i], test.about)
		}
	}
}

// A citation that several manifests pin is told of where what readers see of it changes, and only there.
func exerciseVerificationTold(t *testing.T, dsn string) {
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
	set(0, verify.Verified, verify.CountPass) // the other one is missing still
	set(1, verify.Gone, verify.CountUnverifiable)
	set(1, verify.Verified, verify.CountPass)
	events := testenv.Must(s.Events(t.Context(), store.DefaultTenant, "work", 0, 0))(t)
	var told []string
	for _, e := range events {
		_, rest, ok := strings.Cut(string(e.Data), `"status":`)
		if what, _, _ := strings.Cut(rest, `,"checked_at"`); ok && e.Kind == store.EventVerification {
			told = append(told, what)
		}
	}
	diff(t, "told", told, []string{
		`"verified","previous":null`, `"excerpt-missing","previous":"verified"`, `"gone","previous":"excerpt-missing"`, `"verified","previous":"gone"`,
	})
}

// What stands beside an incident is what it says, or somebody has changed it.
func exerciseIncidentColumns(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := range 2 {
		in := incident(n, verify.ExcerptMissing)
		in.SourceURL, in.ClaimID = in.SourceURL+"\xff\xff", in.ClaimID+"\x00\xff" // not as JSON has it
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
