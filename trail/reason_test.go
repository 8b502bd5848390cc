package trail_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// reasoner answers with what it was given.
func reasoner(questions ...trail.Question) *trail.Reason {
	return &trail.Reason{
		RunID:     "r1",
		Options:   trail.RecorderOptions{Agent: "tutor"},
		Decompose: func(context.Context, string) ([]trail.Question, error) { return questions, nil },
		Retrieve: func(_ context.Context, question string) ([]trail.Result, error) {
			return []trail.Result{{DocumentID: "doc " + question, Score: new(0.8), Content: "About " + question + "."}}, nil
		},
		Answer: func(_ context.Context, in *trail.Input) (*trail.Output, error) {
			words := []string{in.Question}
			for _, s := range in.Previous {
				words = append(words, s.Answer)
			}
			return &trail.Output{Text: strings.Join(words, "<"), Confidence: new(0.5)}, nil
		},
		Synthesise: func(_ context.Context, question string, steps []trail.Step) (*trail.Output, error) {
			return &trail.Output{Text: fmt.Sprintf("%s: %d steps, %s", question, len(steps), steps[len(steps)-1].Answer)}, nil
		},
	}
}

// Independent steps run at once; each gets the answers of those before it.
func TestReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reasoner(trail.Question{Text: "a", After: []int{}}, trail.Question{Text: "b", After: []int{}, Tool: "t"}, trail.Question{Text: "c", After: []int{1, 2}}, trail.Question{Text: "d"})
		answer := r.Answer
		r.Answer = func(ctx context.Context, in *trail.Input) (*trail.Output, error) {
			advance(time.Second)
			return answer(ctx, in)
		}
		run := testenv.Must(r.Run(t.Context(), "Q?"))(t)
		if took := run.Finished.Sub(run.Started); took != 3*time.Second {
			t.Errorf("it took %v, want 3s with a and b at once", took)
		}
		if run.Answer != "Q?: 4 steps, d<c<a<b" || run.ID != "r1" || run.Agent != "tutor" || run.Question != "Q?" {
			t.Errorf("run %+v", run)
		}
		if path, took := run.CriticalPath(); took != 3*time.Second || len(path) != 3 {
			t.Errorf("critical path %v, %v", path, took)
		}
		s := run.Summary(nil)
		var used []string
		for _, u := range s.Steps {
			used = append(used, fmt.Sprint(u.Number, u.Documents, u.Retrieved, len(u.Best)))
		}
		testenv.Equal(t, "usage", []string{"1 [doc a] 1 1", "2 [doc b] 1 1", "3 [doc c] 1 1", "4 [doc d] 1 1"}, used)
		if c := run.Steps[0].Confidence; c == nil || *c != 0.5 || run.Steps[1].Tool != "t" {
			t.Errorf("step %+v", run.Steps[0])
		}
	})
}

// An error belongs to its step. Steps that need that one are skipped, the others run.
func TestReasonStepFails(t *testing.T) {
	r := reasoner(trail.Question{Text: "a"}, trail.Question{Text: "bad", After: []int{}}, trail.Question{Text: "c", After: []int{2}}, trail.Question{Text: "d", After: []int{1}})
	retrieve := r.Retrieve
	r.Retrieve = func(ctx context.Context, q string) ([]trail.Result, error) {
		if q == "bad" {
			return nil, errDown
		}
		return retrieve(ctx, q)
	}
	run := testenv.Must(r.Run(t.Context(), "Q?"))(t)
	var got []string
	for _, s := range run.Steps {
		got = append(got, s.Answer+"/"+s.Error)
	}
	want := []string{"a/", "/retrieve: the judge is down", "/skipped: step 2 failed", "d<a/"}
	testenv.Equal(t, "steps", want, got)
}

// If the question cannot be answered at all, Run returns an error and the trail so far.
func TestReasonFails(t *testing.T) {
	question := trail.Question{Text: "a"}
	fails := func(context.Context, *trail.Input) (*trail.Output, error) { return nil, errDown }
	for name, c := range map[string]struct {
		reason *trail.Reason
		change func(*trail.Reason)
		want   string
		steps  int
	}{
		"decompose": {reasoner(), func(r *trail.Reason) {
			r.Decompose = func(context.Context, string) ([]trail.Question, error) { return nil, errDown }
		}, "decompose the question: the judge is down", 0},
		"no questions": {reasoner(), nil, "decompose the question: there are no questions", 0},
		"cycle":        {reasoner(trail.Question{After: []int{2}}, question), nil, "decompose the question: steps 1 → 2 → 1", 0},
		"dangling":     {reasoner(trail.Question{After: []int{7}}), nil, "decompose the question: step 1: after 7, which does not exist", 0},
		"no answer":    {reasoner(question, question), func(r *trail.Reason) { r.Answer = fails }, "no step was answered: answer: the judge is down", 2},
		"nil answer": {reasoner(question), func(r *trail.Reason) {
			r.Answer = func(context.Context, *trail.Input) (*trail.Output, error) { return nil, nil }
		}, "no step was answered: answer: there is none", 1},
		"synthesis": {reasoner(question), func(r *trail.Reason) {
			r.Synthesise = func(context.Context, string, []trail.Step) (*trail.Output, error) { return nil, errDown }
		}, "synthesise: the judge is down", 1},
		"nil synthesis": {reasoner(question), func(r *trail.Reason) {
			r.Synthesise = func(context.Context, string, []trail.Step) (*trail.Output, error) { return nil, nil }
		}, "synthesise: there is no answer", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.reason)
			}
			run, err := c.reason.Run(t.Context(), "Q?")
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if run == nil || len(run.Steps) != c.steps || run.Finished.IsZero() {
				t.Errorf("trail %+v, want a finished one of %d steps", run, c.steps)
			}
		})
	}
}

// If the context ends, running steps finish and no others begin.
func TestReasonCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := reasoner(trail.Question{Text: "a"}, trail.Question{Text: "b"}, trail.Question{Text: "c", After: []int{}})
	r.Parallel = 1
	var begun atomic.Int32
	r.Answer = func(ctx context.Context, _ *trail.Input) (*trail.Output, error) {
		begun.Add(1)
		cancel(errDown)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	run, err := r.Run(ctx, "Q?")
	if !errors.Is(err, errDown) || begun.Load() != 1 {
		t.Errorf("error %v, %d steps begun; want the cause, and one", err, begun.Load())
	}
	if len(run.Steps) != 3 || run.Steps[2].Error != context.Canceled.Error() {
		t.Errorf("steps %+v", run.Steps)
	}
}

// A panic in one of the functions comes out of Run, whatever goroutine it happened in.
func TestReasonPanics(t *testing.T) {
	r := reasoner(trail.Question{Text: "a"}, trail.Question{Text: "b"})
	r.Answer = func(context.Context, *trail.Input) (*trail.Output, error) { panic("boom") }
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("panic %v, want boom", p)
		}
	}()
	_, _ = r.Run(t.Context(), "Q?")
	t.Error("no panic")
}

// A question that is not decomposed is one step; its captured answer, with its citations, is the final one.
func TestReasonCaptured(t *testing.T) {
	a := &ibid.Answer{Text: "Herons nest in trees.", Sources: []ibid.Source{{ID: "doc Q?"}, {ID: "other"}}}
	testenv.OK(t, a.Cite(ibid.Span{End: 20}, ibid.Ref{Source: "doc Q?"}))
	r := reasoner()
	r.Decompose, r.Synthesise = nil, nil
	r.Answer = func(context.Context, *trail.Input) (*trail.Output, error) { return &trail.Output{Answer: a}, nil }
	run, err := r.Run(t.Context(), "Q?")
	if err != nil || run.Final != a || len(run.Steps) != 1 {
		t.Fatalf("run %+v, %v", run, err)
	}
	testenv.Equal(t, "used", []string{"doc Q?"}, run.Summary(nil).Steps[0].Documents)
	if _, got := link(t, run, nil); got[0].On[0] != "inferred doc Q? via []" { // Cite was called by hand, so it is not the provider's
		t.Errorf("links %+v", got)
	}
	r.Answer = func(context.Context, *trail.Input) (*trail.Output, error) {
		return &trail.Output{Text: "Nothing.", Used: []string{}}, nil
	}
	if run, err = r.Run(t.Context(), "Q?"); err != nil || !run.Steps[0].NoSources || run.Answer != "Nothing." {
		t.Errorf("run %+v, %v", run, err)
	}
}

// If the last question has no answer, another one's is not used.
func TestReasonLastStep(t *testing.T) {
	r := reasoner(trail.Question{Text: "a", After: []int{}}, trail.Question{Text: "b"})
	r.Synthesise = nil
	answer := r.Answer
	r.Answer = func(ctx context.Context, in *trail.Input) (*trail.Output, error) {
		if in.Question == "b" {
			return nil, errors.New("the library is closed")
		}
		return answer(ctx, in)
	}
	run, err := r.Run(t.Context(), "Q?")
	if err == nil || !strings.Contains(err.Error(), "the last step was not answered") || run.Answer != "" || run.Steps[0].Answer != "a" {
		t.Errorf("answer %q, error %v", run.Answer, err)
	}
}

// A step may capture a nil answer.
func TestReasonCapturesNil(t *testing.T) {
	r := reasoner(trail.Question{Text: "a", After: []int{}})
	r.Synthesise = nil
	answer := r.Answer
	r.Answer = func(ctx context.Context, in *trail.Input) (*trail.Output, error) {
		in.Step.Captured("ans_1", nil)
		return answer(ctx, in)
	}
	if run, err := r.Run(t.Context(), "Q?"); err != nil || run.Answer != "a" {
		t.Errorf("answer %q, error %v", run.Answer, err)
	}
}
