package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// record records a run, which must succeed.
func record(tb testing.TB, s *store.Store, r *store.Recording) *store.Recorded {
	tb.Helper()
	return testenv.Must(s.Record(tb.Context(), store.DefaultTenant, r))(tb)
}

// steps records steps of the run "run".
func steps(tb testing.TB, s *store.Store, list ...trail.Step) []store.RecordedStep {
	tb.Helper()
	return record(tb, s, &store.Recording{Run: "run", Trail: &trail.Trail{Steps: list}}).Steps
}

func theTrail(tb testing.TB, s *store.Store) *trail.Trail {
	tb.Helper()
	return testenv.Must(s.Trail(tb.Context(), store.DefaultTenant, "run"))(tb)
}

// numbered lists the steps of a trail as "number:question".
func numbered(t *trail.Trail) string {
	list := make([]string, 0, len(t.Steps))
	for i := range t.Steps {
		list = append(list, fmt.Sprint(t.Steps[i].Number, ":", t.Steps[i].Question))
	}
	return strings.Join(list, " ")
}

// A recording is returned as it was stored, and storing it again changes nothing.
func (suite) Record(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	whole := testenv.Must(trail.Read([]byte(`{
		"agent": "planner", "original_question": "Why \u0000 do herons nest?", "final_answer": "For safety.", "parent_run_id": "outer",
		"strategy": "bm25@2", "started_at": "2026-11-21T11:00:00Z", "finished_at": "2026-11-21T11:01:00Z", "mood": "curious",
		"reasoning_steps": [
			{"step_number": 1, "id": "a", "tool": "search", "question": "herons", "after": ["x"], "confidence_score": 1.5, "execution_time": 0.25,
			 "started_at": "2026-11-21T11:00:01Z", "inputs": {"b": 1, "a": [1e2]}, "error": "none", "rare": {"x": null},
			 "source_attributions": [{"document_id": "d1", "document_title": "Herons", "relevance_score": 0.9, "excerpt": "They nest.", "chunk_index": 0, "retrieval_rank": 1}]},
			{"step_number": 2, "question": "why", "context_used": ["id:d1 They nest in alders."], "intermediate_answer": "Because."}
		]}`)))(t)
	recording := &store.Recording{Run: "run", Trail: whole}
	done := record(t, s, recording)
	diff(t, "recorded", done, &store.Recorded{Created: true, Steps: []store.RecordedStep{{ID: "a", Number: 1, Created: true}, {Number: 2, Created: true}}})
	got := theTrail(t, s)
	if whole.ID = "run"; len(whole.Steps[0].Issues) == 0 {
		t.Fatal("the test lacks an issue")
	}
	diff(t, "trail", got, whole)
	done = record(t, s, recording)
	diff(t, "recorded again", done, &store.Recorded{Steps: []store.RecordedStep{{ID: "a", Number: 1}, {Number: 2}}})
	// Given fields are updated, others stay.
	done = record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Agent: "writer", Extra: map[string]json.RawMessage{"more": json.RawMessage("1")}}})
	if !done.Changed || done.Created {
		t.Errorf("%+v", done)
	}
	got = theTrail(t, s)
	whole.Agent, whole.Extra["more"] = "writer", json.RawMessage("1")
	diff(t, "merged", got, whole)
	page := testenv.Must(s.Runs(t.Context(), store.DefaultTenant, nil))(t)
	began := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	diff(t, "runs", page.Items, []store.Run{{
		ID: "run", Agent: "writer", Question: "Why \ufffd do herons nest?", Strategy: "bm25@2", Started: began, Ended: began.Add(time.Minute),
		Finished: began.Add(time.Minute), Recorded: 2,
	}})
	for _, tenant := range []string{"other", ""} {
		if _, err := s.Trail(t.Context(), tenant, "run"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v", tenant, err)
		}
	}
	if _, err := s.Record(t.Context(), "", recording); err == nil {
		t.Error("of no tenant")
	}
	if run, err := s.Run(t.Context(), store.DefaultTenant, "run", nil); err != nil || run.Parent != "outer" || run.Answer != "For safety." || len(run.Recordings) != 2 {
		t.Errorf("run: %+v, %v", run, err)
	}
}

// Steps come in any order, before their run and after its end.
func (suite) RecordOrder(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	began := noon()
	diff(t, "a step before its run", steps(t, s, trail.Step{Number: 3, Question: "third"}), []store.RecordedStep{{Number: 3, Created: true}})
	if got := theTrail(t, s); got.Question != "" || len(got.Steps) != 1 {
		t.Errorf("before its run: %+v", got)
	}
	if done := record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Question: "Q"}}); done.Created {
		t.Error("the run was there")
	}
	diff(t, "the next number", steps(t, s, trail.Step{Question: "fourth"}, trail.Step{Number: 7, Question: "seventh"}, trail.Step{Question: "later"}),
		[]store.RecordedStep{{Number: 8, Created: true}, {Number: 7, Created: true}, {Number: 9, Created: true}})
	record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Finished: began, Answer: "A"}})
	steps(t, s, trail.Step{Number: 1, Question: "first", Started: began.Add(-time.Second)}, trail.Step{Number: 2, Question: "second", Started: began.Add(time.Second)})
	steps(t, s, trail.Step{ID: "y", Question: "unnumbered", Started: began.Add(time.Minute)}, trail.Step{ID: "x", Question: "earlier", Started: began})
	got := theTrail(t, s)
	diff(t, "steps", numbered(got), "1:first 2:second 3:third 7:seventh 8:fourth 9:later 10:earlier 11:unnumbered")
	if got.Answer != "A" || !got.Finished.Equal(began) || !got.Started.Equal(began.Add(-time.Second)) {
		t.Errorf("run: %+v", got)
	}
	issues := fmt.Sprint(got.Check())
	if strings.Count(issues, "step-after-finish") != 2 {
		t.Errorf("issues: %s", issues)
	}
	// A later record replaces an earlier one: by id, by number, and with a number that is given later.
	diff(t, "by number", steps(t, s, trail.Step{Number: 3, Question: "3rd"}), []store.RecordedStep{{Number: 3, Replaced: true}})
	diff(t, "a number that comes later", steps(t, s, trail.Step{ID: "x", Number: 5, Question: "x"}), []store.RecordedStep{{ID: "x", Number: 5, Replaced: true}})
	diff(t, "the number stays", steps(t, s, trail.Step{ID: "x", Question: "xx"}), []store.RecordedStep{{ID: "x", Number: 5, Replaced: true}})
	diff(t, "by its number only", steps(t, s, trail.Step{Number: 5, Question: "xxx"}), []store.RecordedStep{{ID: "x", Number: 5, Replaced: true}})
	diff(t, "the same", steps(t, s, trail.Step{ID: "x", Question: "xxx"}), []store.RecordedStep{{ID: "x", Number: 5}})
	diff(t, "another number", steps(t, s, trail.Step{ID: "x", Number: 6, Question: "xxx"}), []store.RecordedStep{{ID: "x", Number: 6, Replaced: true}})
	diff(t, "steps", numbered(theTrail(t, s)), "1:first 2:second 3:3rd 6:xxx 7:seventh 8:fourth 9:later 10:unnumbered")
	// The first reported end counts, unless a time is given.
	for i, test := range []struct {
		recording store.Recording
		want      time.Time
		final     string
	}{
		{store.Recording{Finish: true, Trail: &trail.Trail{}}, began, "A"},
		{store.Recording{Finish: true, Trail: &trail.Trail{Answer: "B", Finished: began.Add(time.Hour)}}, began.Add(time.Hour), "B"},
		{store.Recording{Finish: true}, began.Add(time.Hour), "B"},
	} {
		test.recording.Run = "run"
		record(t, s, &test.recording)
		if got := theTrail(t, s); !got.Finished.Equal(test.want) || got.Answer != test.final {
			t.Errorf("end %d: %v %q", i, got.Finished, got.Answer)
		}
	}
}

// What cannot be recorded changes nothing.
func (suite) RecordRefused(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	steps(t, s, trail.Step{ID: "a", Number: 1, Question: "a"}, trail.Step{Number: 2, Question: "b"})
	sources := func(n int) []trail.Source {
		list := make([]trail.Source, n)
		for i := range list {
			list[i].DocumentID = fmt.Sprint("d", i)
		}
		return list
	}
	many := make([]trail.Step, store.MaxSteps+1)
	for i := range many {
		many[i].Number = i + 1
	}
	long := strings.Repeat("x", store.MaxRecord)
	for about, test := range map[string]struct {
		trail trail.Trail
		cause error
		want  string
	}{
		"a number twice":       {trail.Trail{Steps: []trail.Step{{Number: 4, Question: "x"}, {Number: 4, Question: "y"}}}, store.ErrConflict, "step 4: it appears twice with different content"},
		"another id":           {trail.Trail{Steps: []trail.Step{{Number: 3}, {ID: "z", Number: 1}}}, store.ErrConflict, `the step with the id "z": another step of the run has the number 1`},
		"a number without id":  {trail.Trail{Steps: []trail.Step{{ID: "z", Number: 2}}}, store.ErrConflict, "has the number 2"},
		"numbers change hands": {trail.Trail{Steps: []trail.Step{{ID: "a", Number: 2}}}, store.ErrConflict, "has the number 2"},
		"a high number":        {trail.Trail{Steps: []trail.Step{{Number: store.MaxNumber + 1}}}, store.ErrLimit, "from 1 to 1000000"},
		"no next number":       {trail.Trail{Steps: []trail.Step{{Number: store.MaxNumber}, {}}}, store.ErrLimit, "the highest number, 1000000"},
		"a negative number":    {trail.Trail{Steps: []trail.Step{{Number: -1}}}, store.ErrLimit, "step -1: numbers"},
		"many sources":         {trail.Trail{Steps: []trail.Step{{Number: 9, Sources: sources(store.MaxSources + 1)}}}, store.ErrLimit, "step 9: 1001 sources"},
		"a long id":            {trail.Trail{Steps: []trail.Step{{ID: strings.Repeat("x", store.MaxStepID+1)}}}, store.ErrLimit, "256 bytes"},
		"a long step":          {trail.Trail{Steps: []trail.Step{{Number: 9, Answer: long}}}, store.ErrLimit, "step 9: "},
		"a long question":      {trail.Trail{Question: long}, store.ErrLimit, "the run itself: "},
		"many steps":           {trail.Trail{Steps: many}, store.ErrLimit, "10001 steps"},
	} {
		_, err := s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "run", Trail: &test.trail})
		refused, ok := errors.AsType[*store.RefusedError](err)
		if !errors.Is(err, test.cause) || store.IsTemporary(err) || !ok || !strings.Contains(refused.Detail, test.want) {
			t.Errorf("%s: %v", about, err)
		}
	}
	diff(t, "what is left", numbered(theTrail(t, s)), "1:a 2:b")
	largest := trail.Step{Number: 3, Sources: sources(store.MaxSources), ID: strings.Repeat("x", store.MaxStepID)}
	steps(t, s, largest, trail.Step{Number: store.MaxNumber})
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 0, 0)
	if err != nil || len(events) != 4 {
		t.Errorf("%d events, %v", len(events), err)
	}
	// At most ten thousand in all.
	fill := many[:store.MaxSteps-4]
	for i := range fill {
		fill[i] = trail.Step{ID: fmt.Sprint("s", i)}
	}
	steps(t, s, fill...)
	_, err = s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "run", Trail: &trail.Trail{Steps: []trail.Step{{ID: "more"}}}})
	if !errors.Is(err, store.ErrLimit) || !strings.Contains(err.Error(), "10001 recorded steps; the limit is 10000") {
		t.Errorf("one more: %v", err)
	}
	steps(t, s, trail.Step{ID: "s1", Question: "changed"}) // existing steps can still change
	// The limit of bytes in all.
	large := strings.Repeat("x", store.MaxRecord-1000)
	n := 0
	for ; err == nil || n == 0; n++ {
		_, err = s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "bytes", Trail: &trail.Trail{Steps: []trail.Step{{Number: n + 1, Answer: large}}}})
	}
	if !errors.Is(err, store.ErrLimit) || n != 65 {
		t.Errorf("after %d large steps: %v", n, err)
	}
	record(t, s, &store.Recording{Run: "bytes", Trail: &trail.Trail{Steps: []trail.Step{{Number: 1, Answer: "short"}}}})
	record(t, s, &store.Recording{Run: "bytes", Trail: &trail.Trail{Steps: []trail.Step{{Number: 65, Answer: large}}}})
}

// Names and texts may contain anything and are distinguished by it.
func (suite) RecordHostile(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	odd := []string{"a", "a\x00", "a\xff", "a\ufffd", "'; DROP TABLE records; --", strings.Repeat("x", 500), strings.Repeat("x", 499) + "y", "n:1", "id:a"}
	for i, name := range odd {
		at := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		if i%2 == 0 {
			at = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		for range 2 {
			_, err := s.Record(t.Context(), name, &store.Recording{Run: name, Trail: &trail.Trail{
				Agent: name, Question: name, Strategy: name, Started: at, Finished: at, Extra: map[string]json.RawMessage{"x\x00": json.RawMessage(`"\u0000\xff"`)},
				Steps: []trail.Step{{ID: name[:min(len(name), store.MaxStepID)], Tool: name, Started: at, Duration: math.MaxInt64 / 2}, {Number: 1, Answer: name}},
			}})
			if err != nil {
				t.Fatalf("%.20q: %v", name, err)
			}
		}
	}
	for _, name := range odd {
		got, err := s.Trail(t.Context(), name, name)
		if err != nil || got.ID != name || len(got.Steps) != 2 {
			t.Errorf("%.20q: %+v, %v", name, got, err)
			continue
		}
		if want := strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", "\ufffd"), "\ufffd"); strings.ReplaceAll(got.Steps[0].Answer, "\x00", "\ufffd") != want {
			t.Errorf("%.20q: %.20q", name, got.Steps[0].Answer)
		}
		if page, err := s.Runs(t.Context(), name, nil); err != nil || len(page.Items) != 1 || page.Items[0].Recorded != 2 {
			t.Errorf("%.20q: runs %+v, %v", name, page, err)
		}
	}
}

func (suite) RecordEvents(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	before := time.Now().Add(-time.Second)
	future := time.Now().Add(24 * time.Hour)
	c := call(1, "Words.")
	c.Run = "run"
	put(t, s, c)
	step := trail.Step{ID: "a", Number: 2, Tool: "search", Started: future, Sources: []trail.Source{{DocumentID: "d", Retrieved: true}, {DocumentID: "e", Cited: true}}}
	steps(t, s, step)
	steps(t, s, step) // nothing new
	step.Error = "broken"
	steps(t, s, step)
	steps(t, s, trail.Step{ID: "later"})
	record(t, s, &store.Recording{Run: "run", Finish: true})
	record(t, s, &store.Recording{Run: "run", Finish: true})
	record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Agent: "planner"}})
	record(t, s, &store.Recording{Run: "run", AnswerID: "ans_0001"})
	events := testenv.Must(s.Events(t.Context(), store.DefaultTenant, "run", 1, 0))(t)
	var got []string
	for i, e := range events {
		got = append(got, e.Kind+" "+string(e.Data))
		if e.Seq != int64(i+2) || e.At.Before(before) || e.At.After(time.Now().Add(time.Second)) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	diff(t, "events", got, []string{
		`step {"step":2,"id":"a","tool":"search","sources":2,"cited":1,"error":false,"replaced":false}`,
		`step {"step":2,"id":"a","tool":"search","sources":2,"cited":1,"error":true,"replaced":true}`,
		`step {"step":null,"id":"later","tool":null,"sources":0,"cited":0,"error":false,"replaced":false}`,
		`finish {"answer_id":null,"answered":false}`,
		`finish {"answer_id":"ans_0001","answered":true}`,
	})
	if outbox, err := s.Outbox(t.Context(), 0, 0); err != nil || len(outbox) != 6 {
		t.Errorf("outbox: %d, %v", len(outbox), err)
	}
}

// An explicit number belongs to its step: counted steps give way, whichever came first.
func (suite) RecordCounted(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	n := 0
	capture := func(run, question string, number int) *store.Call {
		n++
		c := call(n, "Words.")
		c.Run, c.Step.Number, c.Prompt = run, number, []store.Message{{Role: "user", Text: question}}
		return c
	}
	say := func(run string, list ...trail.Step) {
		record(t, s, &store.Recording{Run: run, Trail: &trail.Trail{Steps: list}})
	}
	counted := func(run string) {
		put(t, s, capture(run, "a call", 0), capture(run, "another", 0))
		say(run, trail.Step{Question: "a step"})
	}
	recorded := func(run string) {
		say(run, trail.Step{Number: 1, Question: "one"}, trail.Step{ID: "two", Number: 2, Question: "two"}, trail.Step{Number: 3, Question: "three"})
	}
	captured := func(run string) {
		put(t, s, capture(run, "one", 1), capture(run, "two", 2), capture(run, "three", 3))
	}
	for run, order := range map[string][]func(string){
		"counted, recorded": {counted, recorded}, "recorded, counted": {recorded, counted}, "again": {counted, recorded, recorded},
		"counted, captured": {counted, captured}, "captured, counted": {captured, counted},
	} {
		for _, do := range order {
			do(run)
		}
		got := testenv.Must(s.Trail(t.Context(), store.DefaultTenant, run))(t)
		diff(t, run, numbered(got), "1:one 2:two 3:three 4:a call 5:another 6:a step")
		page, err := s.Run(t.Context(), store.DefaultTenant, run, nil)
		if err != nil || len(page.Calls)+len(page.Recordings) != 6 || page.Calls[len(page.Calls)-1].Step.Number < 3 {
			t.Errorf("%s: %+v, %v", run, page, err)
		}
	}
	put(t, s, capture("batch", "counted", 0), capture("batch", "said", 1)) // at once
	got := testenv.Must(s.Trail(t.Context(), store.DefaultTenant, "batch"))(t)
	diff(t, "at once", numbered(got), "1:said 2:counted")
}

// The strategy of captured calls takes precedence over the recorded one.
func (suite) RecordStrategy(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "Words.")
	c.Run, c.Strategy = "run", "a@1"
	for i, do := range []func(){
		func() { record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Strategy: "b@1"}}) },
		func() { put(t, s, c) },
		func() { record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Strategy: "c@1"}}) },
	} {
		do()
		want := []string{"b@1", "a@1", "a@1"}[i]
		runs, err := s.Runs(t.Context(), store.DefaultTenant, nil)
		if err != nil || runs.Items[0].Strategy != want || theTrail(t, s).Strategy != want {
			t.Errorf("%d: %+v, %v", i, runs, err)
		}
	}
}

// A run began at the earliest known time, in the list and in the trail.
func (suite) RecordStarted(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	began := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, test := range []struct {
		trail trail.Trail
		want  time.Time // zero for the time of arrival
	}{
		{trail.Trail{}, time.Time{}},
		{trail.Trail{Finished: began.Add(time.Hour)}, began.Add(time.Hour)},
		{trail.Trail{Started: began.Add(time.Minute)}, began.Add(time.Minute)},
		{trail.Trail{Steps: []trail.Step{{Number: 1, Started: began}}}, began},
		{trail.Trail{Started: began.Add(time.Minute)}, began},
	} {
		record(t, s, &store.Recording{Run: "run", Trail: &test.trail})
		run := testenv.Must(s.Run(t.Context(), store.DefaultTenant, "run", nil))(t)
		if in := theTrail(t, s).Started; !in.Equal(run.Started) || !test.want.IsZero() && !in.Equal(test.want) || in.IsZero() || run.Ended.Before(in) {
			t.Errorf("%d: %v and %v until %v, want %v", i, in, run.Started, run.Ended, test.want)
		}
	}
}

// On request, refused steps do not prevent storing the others.
func (suite) RecordPartly(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	many := make([]trail.Step, store.MaxSteps+50)
	for i := range many {
		many[i].ID = fmt.Sprint("s", i)
	}
	many[3].Sources = make([]trail.Source, store.MaxSources+1)
	done := record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Steps: many}, Partly: true})
	if len(done.Steps) != store.MaxSteps || done.Refused != 50 || !strings.Contains(done.Why, "1001 sources") {
		t.Errorf("%d steps, %d refused: %s", len(done.Steps), done.Refused, done.Why)
	}
	if weight, err := s.Weight(t.Context(), store.DefaultTenant, "run"); err != nil || weight < 100*store.MaxSteps {
		t.Errorf("%d, %v", weight, err)
	}
	if _, err := s.Weight(t.Context(), store.DefaultTenant, "none"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// Many agents record the same run at once while calls of it are stored: no step is lost, and no number is given twice.
func (suite) RecordTogether(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	const writers, each = 4, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				_, err := s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "run", Trail: &trail.Trail{Steps: []trail.Step{
					{Question: fmt.Sprint("q", w, "-", i)}, {ID: fmt.Sprint("same", i), Question: "same"},
				}}})
				if err != nil {
					t.Error(err)
				}
				c := call(w*each+i+1, "Words.")
				c.Run = "run"
				if err := s.Put(t.Context(), []*store.Call{c}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got := theTrail(t, s)
	if want := writers*each*2 + each; len(got.Steps) != want {
		t.Errorf("%d steps, want %d", len(got.Steps), want)
	}
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 0, 500)
	if want := writers*each*2 + each; err != nil || len(events) != want {
		t.Errorf("%d events, %v; want %d", len(events), err, want)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
	}
}

// A run is read a page at a time, calls and recorded steps together.
func (suite) RecordPaging(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 5; n++ {
		c := call(2*n, "Words.")
		c.Run, c.Step.Number = "run", 2*n
		put(t, s, c)
		steps(t, s, trail.Step{Number: 2*n + 1, Started: noon().Add(time.Duration(2*n+1) * time.Second)})
	}
	var got []string
	for q := (&store.Query{Limit: 4}); ; {
		page := testenv.Must(s.Run(t.Context(), store.DefaultTenant, "run", q))(t)
		for _, c := range page.Calls {
			got = append(got, fmt.Sprint("c", c.Step.Number))
		}
		for _, step := range page.Recordings {
			got = append(got, fmt.Sprint("r", step.Number))
		}
		got = append(got, "|")
		if page.Answers != 5 || page.Recorded != 5 {
			t.Errorf("%d answers, %d recorded", page.Answers, page.Recorded)
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	diff(t, "pages", strings.Join(got, " "), "c8 c10 r9 r11 | c4 c6 r5 r7 | c2 r3 |")
	// Runs with only records are listed, too, by their latest change.
	record(t, s, &store.Recording{Run: "empty"})
	record(t, s, &store.Recording{Run: "other", Trail: &trail.Trail{Question: strings.Repeat("é", 1000)}})
	steps(t, s, trail.Step{Number: 3, Question: "changed"})
	var ids []string
	for q := (&store.Query{Limit: 1}); ; {
		page := testenv.Must(s.Runs(t.Context(), store.DefaultTenant, q))(t)
		for _, r := range page.Items {
			ids = append(ids, r.ID)
			if r.Started.IsZero() || r.Ended.IsZero() || len(r.Question) > 1024 || strings.ContainsRune(r.Question, '\ufffd') {
				t.Errorf("%+v", r)
			}
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	diff(t, "runs", ids, []string{"run", "other", "empty"})
	if run, err := s.Run(t.Context(), store.DefaultTenant, "empty", nil); err != nil || len(run.Recordings)+len(run.Calls) != 0 {
		t.Errorf("an empty run: %+v, %v", run, err)
	}
}

// A recorded step and a captured call with its number are merged.
func (suite) Trail(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	var calls []*store.Call
	for n, step := range []store.Step{{Number: 2, Tool: "answer", After: []int{1}}, {Number: 3}, {Number: 3, Tool: "again"}} {
		c := call(n+1, fmt.Sprintf("Answer %d.", n), "a.example")
		c.Run, c.Step, c.Agent = "run", step, "gate"
		c.Prompt = []store.Message{{Role: "user", Text: fmt.Sprint("asked ", n)}, {Role: "assistant", Text: "no"}}
		calls = append(calls, c)
	}
	calls[0].Answer.Sources = append(calls[0].Answer.Sources, ibid.Source{ID: "x", Kind: ibid.Web, URL: "https://unused.example/"})
	put(t, s, calls...)
	began := noon().Add(-time.Minute)
	steps(t, s, trail.Step{Number: 1, Tool: "search", Started: began, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "d1", Score: new(0.9), Content: "Bees dance."}})},
		trail.Step{Number: 2, Question: "recorded", Confidence: new(0.5), Sources: []trail.Source{{DocumentID: "d1", Used: true}}})
	got := theTrail(t, s)
	if len(got.Steps) != 3 || got.Agent != "gate" || !got.Started.Equal(began) || got.Question != "asked 0" {
		t.Fatalf("trail: %+v", got)
	}
	two, three := got.Steps[1], got.Steps[2]
	if two.Question != "recorded" || two.Tool != "answer" || *two.Confidence != 0.5 || two.Answer != "Answer 0." || !slices.Equal(two.After, []int{1}) ||
		len(two.Answers) != 1 || two.Answers[0].ID != "ans_0001" || two.Duration != time.Second || !two.Started.Equal(calls[0].Started) {
		t.Errorf("step 2: %+v", two)
	}
	var sources []string
	for _, f := range two.Sources {
		sources = append(sources, fmt.Sprint(f.DocumentID, " ", f.Retrieved, f.Used, f.Cited))
	}
	diff(t, "sources of step 2", sources, []string{"d1 false true false", "https://a.example/page true false true", "x true false false"})
	if three.Question != "asked 1" || three.Tool != "again" || three.After != nil || len(three.Answers) != 2 || three.Answer != "Answer 1." || three.Duration != 2*time.Second {
		t.Errorf("step 3: %+v", three)
	}
	if got.Answer != "Answer 2." || got.Final == nil || len(got.Final.Citations) != 1 {
		t.Errorf("final answer: %q, %+v", got.Answer, got.Final)
	}
	// The content of a deleted answer is gone; the recorded step stays.
	for _, id := range []string{"ans_0001", "ans_0002", "ans_0003"} {
		testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, id))
	}
	got = theTrail(t, s)
	if len(got.Steps) != 2 || got.Steps[1].Answer != "" || got.Answer != "" || got.Final != nil {
		t.Errorf("after deletion: %+v", got)
	}
}

// The final answer is the recorded one, with its citations if they are known.
func (suite) TrailAnswer(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n, text := range []string{"Bees dance.", "Wasps do not.", ""} {
		c := call(n+1, text, "a.example")
		if text == "" {
			c.Answer.Citations = nil
		}
		c.Run = "run"
		put(t, s, c)
	}
	stranger := call(9, "From another run.")
	put(t, s, stranger)
	for _, test := range []struct {
		recording store.Recording
		answer    string
		citations int // -1 for no answer document
	}{
		{store.Recording{}, "Wasps do not.", 1},
		{store.Recording{Trail: &trail.Trail{Answer: " Bees dance.\n"}}, "Bees dance.", 1},
		{store.Recording{Trail: &trail.Trail{Answer: "Nobody said that."}}, "Nobody said that.", -1},
		{store.Recording{AnswerID: "ans_0002"}, "Wasps do not.", 1},
		{store.Recording{AnswerID: "ans_0009"}, "From another run.", 0},
		{store.Recording{Trail: &trail.Trail{Final: call(1, "Given.", "a.example", "b.example").Answer}}, "Given.", 2},
		{store.Recording{Trail: &trail.Trail{Answer: "Given. "}}, "Given. ", 2}, // repeated
		{store.Recording{AnswerID: "ans_none"}, "", -1},
	} {
		test.recording.Run = "run"
		record(t, s, &test.recording)
		got := theTrail(t, s)
		citations := -1
		if got.Final != nil {
			citations = len(got.Final.Citations)
		}
		if got.Answer != test.answer || citations != test.citations {
			t.Errorf("%+v: %q with %d citations", test.recording, got.Answer, citations)
		}
	}
	if issues := theTrail(t, s).Issues; len(issues) != 1 || issues[0].Code != "answer-missing" {
		t.Errorf("issues: %v", issues)
	}
}

// Spans of a trace come one by one, in any order and repeatedly, beside other data of the run.
func (suite) TrailSpans(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	span := func(id, parent, kind, input, output string, at int) string {
		return fmt.Sprintf(`{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"%s","parentSpanId":"%s","name":"n","startTimeUnixNano":"%d","endTimeUnixNano":"%d",`+
			`"attributes":[{"key":"openinference.span.kind","value":{"stringValue":"%s"}},{"key":"input.value","value":{"stringValue":"%s"}},{"key":"output.value","value":{"stringValue":"%s"}}]}`,
			id, parent, noon().Add(time.Duration(at)*time.Second).UnixNano(), noon().Add(time.Duration(at+1)*time.Second).UnixNano(), kind, input, output)
	}
	post := func(spans ...string) []store.RecordedStep {
		runs, err := otel.ReadSpans(otel.JSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(spans, ",")+`]}]}]}`), nil)
		if err != nil || len(runs.Runs) != 1 {
			t.Fatalf("%v, %v", runs, err)
		}
		return record(t, s, &store.Recording{Run: "run", Trail: runs.Runs[0]}).Steps
	}
	root := span("00f067aa0ba902b0", "", "AGENT", "Why?", "Because.", 0)
	llm := span("00f067aa0ba902b1", "00f067aa0ba902b0", "LLM", "think", "thought", 3)
	tool := span("00f067aa0ba902b2", "00f067aa0ba902b0", "TOOL", "look", "seen", 1)
	if done := post(llm); len(done) != 1 || !done[0].Created || done[0].Number != 0 || done[0].ID != "00f067aa0ba902b1" {
		t.Fatalf("%+v", done)
	}
	steps(t, s, trail.Step{Number: 1, Question: "recorded"})
	post(tool, root)
	for _, done := range post(root, llm, tool) {
		if done.Created || done.Replaced {
			t.Errorf("again: %+v", done)
		}
	}
	got := theTrail(t, s)
	diff(t, "steps", numbered(got), "1:recorded 2:look 3:think")
	if got.Question != "Why?" || got.Answer != "Because." || !slices.Equal(got.Steps[2].After, []int{2}) {
		t.Errorf("trail: %+v", got)
	}
}

// If a run has too many captured calls, the trail contains the latest and an issue.
func (suite) TrailLimits(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	odd := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	n := store.MaxTrailBytes>>20 + 2
	for i := 1; i <= n; i++ {
		c := call(i, "Words.")
		c.Run, c.Answer.Metadata = "run", map[string]json.RawMessage{"odd": odd}
		put(t, s, c)
	}
	got := theTrail(t, s)
	if len(got.Steps) != n-3 || got.Steps[0].Number != 4 || len(got.Issues) != 1 || got.Issues[0].Code != "calls-left-out" {
		t.Errorf("%d steps from %d on, %v", len(got.Steps), got.Steps[0].Number, got.Issues)
	}
}

func (suite) PruneRecords(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	relay := func() {
		for {
			events := testenv.Must(s.Outbox(t.Context(), 500, 0))(t)
			if len(events) == 0 {
				return
			}
			var ids []int64
			for _, e := range events {
				ids = append(ids, e.ID)
			}
			testenv.OK(t, s.Relayed(t.Context(), ids))
		}
	}
	many := make([]trail.Step, 600)
	for i := range many {
		many[i].Number = i + 1
	}
	record(t, s, &store.Recording{Run: "long", Trail: &trail.Trail{Parent: "outer", Steps: many}})
	record(t, s, &store.Recording{Run: "both", Trail: &trail.Trail{Question: "Q", Steps: many[:1]}})
	c := call(1, "Words.")
	c.Run, c.Started = "both", time.Now()
	put(t, s, c)
	relay()
	// Retention counts from when records were stored, not from times that agents report.
	record(t, s, &store.Recording{Run: "old", Trail: &trail.Trail{Started: noon().Add(-10000 * time.Hour), Finished: noon().Add(10000 * time.Hour)}})
	report, err := s.Prune(t.Context(), &store.Retention{Default: time.Hour})
	if err != nil || report != (store.PruneReport{}) {
		t.Errorf("nothing is old: %+v, %v", report, err)
	}
	r := &store.Retention{Default: time.Hour, ByProvider: map[string]time.Duration{"openai": 0}, Now: time.Now().Add(2 * time.Hour), DryRun: true}
	want := store.PruneReport{Steps: 601, Runs: 1, Events: 600} // the event of old is not relayed yet
	r.Progress = func(store.PruneReport) {                      // the record of the run itself is removed last
		if run, err := s.Run(t.Context(), store.DefaultTenant, "long", nil); err == nil && run.Parent != "outer" {
			t.Errorf("%d steps are left of a run without its head", run.Recorded)
		}
	}
	for range 2 {
		report = testenv.Must(s.Prune(t.Context(), r))(t)
		diff(t, "pruned", report, want)
		r.DryRun = false
	}
	if report, err = s.Prune(t.Context(), r); err != nil || report != (store.PruneReport{}) {
		t.Errorf("again: %+v, %v", report, err)
	}
	both, err := s.Run(t.Context(), store.DefaultTenant, "both", nil)
	if err != nil || len(both.Calls) != 1 || both.Recorded != 0 || len(both.Recordings) != 0 {
		t.Errorf("a run with a captured call: %+v, %v", both, err)
	}
	for _, run := range []string{"long", "old"} {
		if _, err := s.Trail(t.Context(), store.DefaultTenant, run); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", run, err)
		}
	}
	relay()
	if report, err = s.Prune(t.Context(), r); err != nil || report != (store.PruneReport{Runs: 1, Events: 1}) {
		t.Errorf("what was waiting: %+v, %v", report, err)
	}
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, c.AnswerID))
	relay()
	if done := record(t, s, &store.Recording{Run: "both", Trail: &trail.Trail{Steps: many[:2]}}); !done.Created {
		t.Error("what is begun again is new")
	}
}

func (suite) Feedback(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "Bees dance.", "a.example")
	c.Run = "run"
	put(t, s, c)
	record(t, s, &store.Recording{Run: "run", Trail: &trail.Trail{Strategy: "bm25@2"}})
	record(t, s, &store.Recording{Run: "other", Trail: &trail.Trail{Strategy: "bm25@3"}})
	add := func(f store.Feedback) store.Feedback {
		t.Helper()
		testenv.OK(t, s.AddFeedback(t.Context(), store.DefaultTenant, &f))
		return f
	}
	verdict := func(by, verdict string) store.Feedback {
		return add(store.Feedback{By: by, AnswerID: c.AnswerID, Citation: "c1", Verdict: verdict, Note: "n"})
	}
	rate := func(run, source string, relevance float64) store.Feedback {
		return add(store.Feedback{By: "ann", Run: run, Step: 1, Source: source, Relevance: &relevance})
	}
	all := []store.Feedback{
		verdict("ann", store.VerdictRight), verdict("bob", store.VerdictRight), verdict("ann", store.VerdictNotSaid), verdict("", store.VerdictOther),
		verdict("", store.VerdictOther), rate("run", "d1", 0), rate("run", "d1", 1), rate("run", "d2", 0.5), rate("other", "d2", 0),
	}
	if all[0].Run != "run" || !strings.HasPrefix(all[0].ID, "fb_") || all[0].At.IsZero() {
		t.Errorf("%+v", all[0])
	}
	counts := func(not, right, other, ratings int, mean float64) *store.FeedbackCounts {
		c := &store.FeedbackCounts{Verdicts: map[string]int{"right": right, "wrong-source": 0, "not-said": not, "other": other}, Ratings: ratings}
		if ratings > 0 {
			c.Relevance = &mean
		}
		if not > 0 {
			c.Citations = 1 // whose last verdict is not "right"
		}
		return c
	}
	for about, test := range map[string]struct {
		q    store.FeedbackQuery
		want []int // newest first
		sum  *store.FeedbackCounts
	}{
		"all":      {store.FeedbackQuery{}, []int{8, 7, 6, 5, 4, 3, 2, 1, 0}, counts(1, 1, 2, 3, 0.5)},
		"answer":   {store.FeedbackQuery{AnswerID: c.AnswerID}, []int{4, 3, 2, 1, 0}, counts(1, 1, 2, 0, 0)},
		"run":      {store.FeedbackQuery{Run: "other"}, []int{8}, counts(0, 0, 0, 1, 0)},
		"source":   {store.FeedbackQuery{Source: "d2"}, []int{8, 7}, counts(0, 0, 0, 2, 0.25)},
		"strategy": {store.FeedbackQuery{Strategy: "bm25@2"}, []int{7, 6, 5, 4, 3, 2, 1, 0}, counts(1, 1, 2, 2, 0.75)},
		"both":     {store.FeedbackQuery{Strategy: "bm25@2", Source: "d2"}, []int{7}, counts(0, 0, 0, 1, 0.5)},
		"none":     {store.FeedbackQuery{Run: "nobody's"}, nil, counts(0, 0, 0, 0, 0)},
	} {
		var got, want []store.Feedback
		test.q.Limit = 2
		for {
			page := testenv.Must(s.Feedback(t.Context(), store.DefaultTenant, &test.q))(t)
			got = append(got, page.Items...)
			if test.q.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		for _, i := range test.want {
			want = append(want, all[i])
		}
		diff(t, about, got, want)
		sum := testenv.Must(s.FeedbackCounts(t.Context(), store.DefaultTenant, &test.q))(t)
		diff(t, about+", counted", sum, test.sum)
	}
	// The last verdict on a citation counts once, whoever gave it and however often; one on the whole answer does not
	// count.
	for _, test := range []struct {
		feedback         store.Feedback
		citations, right int
	}{
		{store.Feedback{Citation: "c1", Verdict: store.VerdictRight}, 1, 1},
		{store.Feedback{Citation: "c1", Verdict: store.VerdictRight}, 1, 1},
		{store.Feedback{Citation: "c1", Verdict: store.VerdictOther}, 1, 1},
		{store.Feedback{Citation: "c2", Verdict: store.VerdictWrongSource}, 2, 1},
		{store.Feedback{Verdict: store.VerdictRight}, 2, 1},
	} {
		test.feedback.AnswerID = c.AnswerID
		add(test.feedback)
		sum, err := s.FeedbackCounts(t.Context(), store.DefaultTenant, &store.FeedbackQuery{AnswerID: c.AnswerID})
		if err != nil || sum.Citations != test.citations || sum.Right != test.right {
			t.Errorf("after %+v: %+v, %v", test.feedback, sum, err)
		}
	}
	if err := s.AddFeedback(t.Context(), store.DefaultTenant, &store.Feedback{AnswerID: c.AnswerID, Run: "other", Verdict: "right"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("of another run: %v", err)
	}
	if page, err := s.Feedback(t.Context(), "other", nil); err != nil || len(page.Items) != 0 {
		t.Errorf("another tenant's: %+v, %v", page, err)
	}
	if _, err := s.Feedback(t.Context(), store.DefaultTenant, &store.FeedbackQuery{Cursor: "!"}); !errors.Is(err, store.ErrCursor) {
		t.Error(err)
	}
	nan := math.NaN()
	for about, bad := range map[string]store.Feedback{
		"nothing": {}, "both": {AnswerID: "a", Run: "r", Source: "s", Verdict: "right", Relevance: new(0.5)}, "word": {AnswerID: "a", Verdict: "wrong"},
		"no answer": {Verdict: "right"}, "no source": {Run: "run", Relevance: new(0.5)}, "over": {Run: "run", Source: "s", Relevance: new(1.1)},
		"not a number": {Run: "run", Source: "s", Relevance: &nan}, "step": {Run: "run", Source: "s", Step: -1, Relevance: new(0.5)},
		"note": {AnswerID: "a", Verdict: "right", Note: strings.Repeat("x", store.MaxNote+1)}, "by": {AnswerID: "a", Verdict: "right", By: "\xff"},
	} {
		if bad.Check() == nil || s.AddFeedback(t.Context(), store.DefaultTenant, &bad) == nil {
			t.Errorf("%s is taken", about)
		}
	}
	for _, f := range []store.Feedback{{AnswerID: "ans_none", Verdict: "right"}, {Run: "none", Source: "s", Relevance: new(0.5)}} {
		if err := s.AddFeedback(t.Context(), store.DefaultTenant, &f); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// Feedback on an answer or a run is deleted with it.
func (suite) FeedbackDeleted(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 2; n++ {
		c := call(n, "Words.")
		c.Run = "run"
		put(t, s, c)
		f := &store.Feedback{AnswerID: c.AnswerID, Verdict: store.VerdictRight}
		testenv.OK(t, s.AddFeedback(t.Context(), store.DefaultTenant, f))
	}
	testenv.OK(t, s.AddFeedback(t.Context(), store.DefaultTenant, &store.Feedback{Run: "run", Source: "d", Relevance: new(1.0)}))
	left := func() int {
		page := testenv.Must(s.Feedback(t.Context(), store.DefaultTenant, nil))(t)
		return len(page.Items)
	}
	events := testenv.Must(s.Outbox(t.Context(), 0, 0))(t)
	testenv.OK(t, s.Relayed(t.Context(), []int64{events[0].ID, events[1].ID}))
	for _, test := range []struct {
		id   string
		want int
	}{{"ans_0001", 2}, {"ans_0002", 0}} {
		testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, test.id))
		if got := left(); got != test.want {
			t.Errorf("after %s %d are left", test.id, got)
		}
	}
}
