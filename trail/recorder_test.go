package trail_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// The trail of a run with overlapping steps has when each began, how long it took and what it used.
func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := trail.NewRecorder("r1", &trail.RecorderOptions{Question: "How many?", Agent: "tutor", Strategy: "s@1"})
		search := r.Begin(&trail.StepOptions{Tool: "search", After: []int{}, Inputs: map[string]int{"k": 3}})
		search.Retrieve(trail.Result{DocumentID: "a", Score: new(0.9), Content: "Words."}, trail.Result{DocumentID: "b"})
		var wg sync.WaitGroup
		for n := range 3 {
			step := r.Begin(&trail.StepOptions{Number: n + 2, After: []int{1}})
			wg.Go(func() {
				defer step.End()
				advance(time.Duration(n+1) * time.Second)
				step.Use(trail.Source{DocumentID: fmt.Sprint("c", n)})
				step.Cite(trail.Source{DocumentID: fmt.Sprint("c", n), Content: "Said."})
			})
		}
		wg.Wait()
		search.Outputs([]string{"a", "b"})
		search.End()
		search.End()
		last := r.Begin(nil)
		last.Answer("Three.")
		last.Confidence(0.5)
		last.Reasoning("one")
		last.Reasoning("two")
		last.NoSources()
		last.Fail(nil)
		last.Fail(errors.New("late"))
		last.Fail(errors.New("later"))
		open := r.Trail()
		last.End()
		done := r.Finish("Three.")
		if open.Steps[4].Duration != 0 || !open.Finished.IsZero() || open.Answer != "" {
			t.Errorf("the run looked finished before it was: %+v", open)
		}
		late := r.Begin(nil)
		advance(time.Second)
		late.End()

		if got, want := done.Finished.Sub(start), 3*time.Second; got != want || !done.Started.Equal(start) {
			t.Errorf("the run took %v from %v, want %v", got, done.Started, want)
		}
		type row struct {
			Number     int
			After      []int
			Took       time.Duration
			Error      string
			Used, Last string
		}
		var got []row
		for _, s := range r.Trail().Steps {
			x := row{Number: s.Number, After: s.After, Took: s.Duration, Error: s.Error, Last: s.Answer + s.Reasoning + string(s.Inputs) + string(s.Outputs)}
			for _, f := range s.Sources {
				x.Used += fmt.Sprint(f.DocumentID, f.Retrieved, f.Used, f.Cited, f.Excerpt, " ")
			}
			got = append(got, x)
		}
		want := []row{
			{Number: 1, After: []int{}, Took: 3 * time.Second, Used: "atrue true falseWords. btrue true false ", Last: `{"k":3}["a","b"]`},
			{Number: 2, After: []int{1}, Took: 1 * time.Second, Used: "c0false true trueSaid. "},
			{Number: 3, After: []int{1}, Took: 2 * time.Second, Used: "c1false true trueSaid. "},
			{Number: 4, After: []int{1}, Took: 3 * time.Second, Used: "c2false true trueSaid. "},
			{Number: 5, Took: 1, Error: "late", Last: "Three.one\ntwo"},
			{Number: 6, Took: time.Second},
		}
		testenv.Equal(t, "steps", want, got)
		if late := r.Trail(); len(late.Check()) != 0 {
			t.Errorf("issues %v", late.Check()) // it began at the instant when the run ended
		}
	})
}

// advance advances the clock of a synctest bubble.
func advance(d time.Duration) { <-time.After(d) }

// Search results that a step does not use are not used, once the step tells what it used.
func TestRecorderAssumesUse(t *testing.T) {
	r := trail.NewRecorder("r", nil)
	results := []trail.Result{{DocumentID: "a"}, {DocumentID: "b"}}
	for _, do := range []func(*trail.Active){
		func(s *trail.Active) { s.Use(trail.Source{DocumentID: "b"}) },
		func(s *trail.Active) { s.NoSources() },
		func(s *trail.Active) { s.Fail(errors.New("no answer")) },
		func(s *trail.Active) { s.Captured("ans_1", &ibid.Answer{Text: "Without a citation."}) },
		func(s *trail.Active) { s.Answer("All of it.") },
	} {
		step := r.Begin(nil)
		step.Retrieve(results...)
		do(step)
		step.End()
	}
	var got [][]string
	for _, u := range r.Finish("").Summary(nil).Steps {
		got = append(got, u.Documents)
	}
	testenv.Equal(t, "used", [][]string{{"b"}, {}, {}, {}, {"a", "b"}}, got)
}

// sink records the steps it receives.
type sink struct {
	mu    sync.Mutex
	steps []string
}

func (s *sink) Step(run string, step *trail.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, fmt.Sprintf("%s %d %s %s", run, step.Number, step.Answer, step.Error))
}

// A panic becomes the step's error and continues, also through nested steps.
func TestRecorderPanics(t *testing.T) {
	var received sink
	r := trail.NewRecorder("r", &trail.RecorderOptions{Sink: &received})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("panic %v, want boom", p)
			}
		}()
		_ = r.Do(t.Context(), nil, func(ctx context.Context, _ *trail.Active) error {
			return trail.FromContext(ctx).Recorder().Do(ctx, nil, func(context.Context, *trail.Active) error { panic("boom") })
		})
	}()
	if err := r.Do(t.Context(), nil, func(context.Context, *trail.Active) error { return errDown }); !errors.Is(err, errDown) {
		t.Errorf("error %v", err)
	}
	want := []string{"r 2  panic: boom", "r 1  panic: boom", "r 3  the judge is down"}
	testenv.Equal(t, "steps", want, received.steps)
}

// A run nested in a step has a trail of its own, which is the step's, and inherits options from its parent.
func TestRecorderNests(t *testing.T) {
	var received sink
	outer := trail.NewRecorder("outer", &trail.RecorderOptions{Agent: "tutor", Sink: &received})
	step := outer.Begin(&trail.StepOptions{Tool: "agent"})
	inner := step.Nested("inner", &trail.RecorderOptions{Question: "Sub?"})
	sub := inner.Begin(nil)
	sub.Use(trail.Source{DocumentID: "a", Relevance: new(0.75), Origin: ibid.ScoreRetriever})
	sub.End()
	inner.Finish("Sub!")
	step.End()
	run := outer.Finish("Done.")
	nested := run.Steps[0].Nested
	if nested == nil || nested.ID != "inner" || nested.Parent != "outer" || nested.Agent != "tutor" || nested.Answer != "Sub!" || run.Steps[0].Answer != "Sub!" {
		t.Fatalf("nested run %+v in step %+v", nested, run.Steps[0])
	}
	testenv.Equal(t, "used by the outer step", []string{"a"}, run.Summary(nil).Steps[0].Documents)
	testenv.Equal(t, "received", []string{"inner 1  ", "outer 1 Sub! "}, received.steps)
	data := testenv.Must(json.Marshal(run))(t)
	again, err := trail.Read(data)
	if err != nil || again.Steps[0].Nested.Steps[0].Sources[0].DocumentID != "a" {
		t.Errorf("read again: %v", err)
	}
}

// A step that starts several runs keeps all: each but the first gets a step of its own.
func TestRecorderNestedTwice(t *testing.T) {
	r := trail.NewRecorder("outer", &trail.RecorderOptions{DigestOnly: true})
	step := r.Begin(&trail.StepOptions{Tool: "research"})
	for i, id := range []string{"one", "two", "three"} {
		inner := step.Nested(id, &trail.RecorderOptions{Question: id + "?"})
		within := inner.Begin(&trail.StepOptions{Inputs: map[string]any{"key": "secret"}})
		within.Use(trail.Source{DocumentID: strconv.Itoa(i)})
		within.Outputs("secret")
		within.End()
		if i < 2 {
			inner.Finish(id + "!")
		}
	}
	step.End()
	run := r.Finish("Done.")
	var got []string
	for i := range run.Steps {
		s := &run.Steps[i]
		in := &s.Nested.Steps[0]
		kept := in.Inputs != nil || in.Outputs != nil || in.InputsDigest == ""
		got = append(got, fmt.Sprintf("%d after %v: %s %q %q, ended %t, nested %s with %s, kept %t",
			s.Number, s.After, s.Tool, s.Question, s.Answer, s.Duration > 0, s.Nested.ID, in.Sources[0].DocumentID, kept))
	}
	// The third has not ended.
	want := []string{
		`1 after []: research "" "one!", ended true, nested one with 0, kept false`,
		`2 after [1]: research "two?" "two!", ended true, nested two with 1, kept false`,
		`3 after [1]: research "three?" "", ended false, nested three with 2, kept false`,
	}
	testenv.Equal(t, "", want, got)
	if issues := run.Check(); len(issues) > 0 {
		t.Errorf("issues %v", issues)
	}
	if sum := sha256.Sum256([]byte(`"secret"`)); run.Steps[0].Nested.Steps[0].OutputsDigest != fmt.Sprintf("sha256:%x", sum) {
		t.Errorf("digest %s", run.Steps[0].Nested.Steps[0].OutputsDigest)
	}
	if data, err := json.Marshal(run); err != nil || strings.Contains(string(data), "secret") {
		t.Errorf("the inputs leak: %s %v", data, err)
	}
}

// With nil recorders everything may be called, does nothing and allocates nothing.
func TestRecorderNil(t *testing.T) {
	ctx, results := t.Context(), []trail.Result{{DocumentID: "a", Content: "Words."}}
	work := func() {
		var r *trail.Recorder
		step := r.Begin(nil)
		step.Use()
		step.Cite()
		step.Retrieve(results...)
		step.Answer("x")
		step.Fail(errDown)
		step.Nested("x", nil).Begin(nil).End()
		trail.FromContext(trail.NewContext(ctx, step)).Recorder().Begin(nil).End()
		step.End()
		if step.Number() != 0 || r.Finish("x") != nil || r.Trail() != nil {
			t.Error("a nil recorder returned something")
		}
	}
	if n := testing.AllocsPerRun(100, work); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	var r *trail.Recorder
	called := false
	if err := r.Do(ctx, nil, func(context.Context, *trail.Active) error { called = true; return errDown }); !called || !errors.Is(err, errDown) {
		t.Errorf("called %v, error %v", called, err)
	}
}

// Concurrent readers see whole steps.
func TestRecorderRace(t *testing.T) {
	r := trail.NewRecorder("r", nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				step := r.Begin(nil)
				wg.Go(func() { step.Context("id:a x", "y") })
				step.Retrieve(trail.Result{DocumentID: "a"}, trail.Result{DocumentID: "b", Content: "c"})
				step.Cite(trail.Source{DocumentID: "b"})
				r.Trail().Summary(nil)
				step.End()
			}
		})
	}
	wg.Wait()
	run := r.Finish("Done.")
	if len(run.Steps) != 400 || run.Steps[399].Number != 400 || len(run.Check()) > 0 {
		t.Errorf("%d steps, issues %v", len(run.Steps), run.Check())
	}
}
