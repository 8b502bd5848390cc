package trail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ibidhq/ibid"
)

// defaultParallel is how many steps [Reason] runs at once by default.
const defaultParallel = 4

// Reason answers a question in steps and records its trail. The program supplies the functions, since trail itself has
// no model and no search. They are called from several goroutines at once.
type Reason struct {
	// Decompose splits a question into those that its answer requires, in an order in which they can be answered. If it
	// is nil, the question is the only one.
	Decompose func(ctx context.Context, question string) ([]Question, error)
	// Retrieve finds what may answer a question. If it is nil, nothing is retrieved.
	Retrieve func(ctx context.Context, question string) ([]Result, error)
	// Answer answers one of the questions.
	Answer func(ctx context.Context, in *Input) (*Output, error)
	// Synthesise makes the final answer from the steps, which have their answers and sources. If it is nil, the final
	// answer is the last step's.
	Synthesise func(ctx context.Context, question string, steps []Step) (*Output, error)

	Parallel int // how many steps run at once; 0 means 4
	RunID    string
	Options  RecorderOptions // Question is set by Run
}

// Question is one step of a plan.
type Question struct {
	Text  string
	After []int // the numbers, from 1, of those whose answers it requires; nil means the one before, empty means none
	Tool  string
}

// Input has what Answer needs to answer a question.
type Input struct {
	Question string
	Results  []Result // what was retrieved for it
	Previous []Step   // the steps that it builds on
	Step     *Active  // the step, for recording more about it
}

// Output is an answer.
type Output struct {
	Text       string
	Answer     *ibid.Answer // the provider's answer with its citations; nil if only its text is known
	Confidence *float64
	Reasoning  string
	Used       []string // the document ids of the results that were used; if nil, see Active.Retrieve
}

// Run answers a question. Questions that do not depend on each other are answered at once, up to Parallel at a time.
//
// An error of a step is recorded in it, and the steps that build on it are skipped; the others go on. Run returns an
// error if the question could not be decomposed, if no step or, without Synthesise, not the last step was answered, if
// the synthesis failed, or if ctx ended; then no more steps begin, and Run waits for those that are running. The trail
// is never nil.
func (r *Reason) Run(ctx context.Context, question string) (*Trail, error) {
	o := r.Options
	o.Question = question
	w := &reasoning{Reason: r, recorder: NewRecorder(r.RunID, &o), question: question}
	questions := []Question{{Text: question, After: []int{}}}
	if r.Decompose != nil {
		var err error
		if questions, err = r.Decompose(ctx, question); err != nil {
			return w.recorder.Finish(""), fmt.Errorf("decompose the question: %w", err)
		}
	}
	if err := w.plan(questions); err != nil {
		return w.recorder.Finish(""), fmt.Errorf("decompose the question: %w", err)
	}
	w.run(ctx)
	if err := ctx.Err(); err != nil {
		return w.recorder.Finish(""), context.Cause(ctx)
	}
	return w.synthesise(ctx)
}

// reasoning is one call of Run.
type reasoning struct {
	*Reason
	recorder  *Recorder
	question  string
	questions []Question
	before    [][]int
	steps     []*Active
	failed    []error // by step; read after the step's done is closed
	done      []chan struct{}
}

// plan checks the questions and makes their graph.
func (w *reasoning) plan(questions []Question) error {
	if len(questions) == 0 {
		return errors.New("there are no questions")
	}
	if len(questions) > maxSteps {
		return fmt.Errorf("%w: more than %d questions", ErrLimit, maxSteps)
	}
	t := Trail{Steps: make([]Step, len(questions))}
	for i, q := range questions {
		t.Steps[i] = Step{Number: i + 1, After: q.After}
	}
	if issues := t.Check(); len(issues) > 0 {
		return errors.New(issues[0].Detail)
	}
	w.questions, w.before = questions, t.Graph()
	w.steps, w.failed = make([]*Active, len(questions)), make([]error, len(questions))
	w.done = make([]chan struct{}, len(questions))
	for i := range w.done {
		w.done[i] = make(chan struct{})
	}
	return nil
}

// run answers the questions. Workers take them in the order of the graph, so the steps that one waits for have been
// taken already.
func (w *reasoning) run(ctx context.Context) {
	n := w.Parallel
	if n <= 0 {
		n = defaultParallel
	}
	todo, _ := order(w.before)
	next := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var thrown any
	for range min(n, len(todo)) {
		wg.Go(func() {
			for i := range next {
				func() {
					defer close(w.done[i])
					defer func() {
						if p := recover(); p != nil {
							w.failed[i] = fmt.Errorf("panic: %v", p)
							once.Do(func() { thrown = p })
						}
					}()
					w.failed[i] = w.step(ctx, i)
				}()
			}
		})
	}
	for _, i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	if thrown != nil {
		panic(thrown) // in the caller's goroutine, as if there were no others
	}
}

// step answers one question, once those before it are answered.
func (w *reasoning) step(ctx context.Context, i int) error {
	q := &w.questions[i]
	var skip error
	in := &Input{Question: q.Text}
	for _, b := range w.before[i] {
		<-w.done[b]
		if w.failed[b] != nil {
			skip = fmt.Errorf("skipped: step %d failed", b+1)
		}
	}
	if err := ctx.Err(); err != nil {
		skip = err
	}
	return w.recorder.Do(
		ctx, &StepOptions{Number: i + 1, After: q.After, Tool: q.Tool, Question: q.Text},
		func(ctx context.Context, step *Active) error {
			w.steps[i] = step
			if skip != nil {
				return skip
			}
			for _, b := range w.before[i] {
				in.Previous = append(in.Previous, w.steps[b].snapshot())
			}
			in.Step = step
			return w.answer(ctx, in)
		},
	)
}

func (w *reasoning) answer(ctx context.Context, in *Input) error {
	if w.Retrieve != nil {
		var err error
		if in.Results, err = w.Retrieve(ctx, in.Question); err != nil {
			return fmt.Errorf("retrieve: %w", err)
		}
		in.Step.Retrieve(in.Results...)
	}
	out, err := w.Answer(ctx, in)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if out == nil {
		return errors.New("answer: there is none")
	}
	in.Step.output(out)
	return nil
}

// output records an answer.
func (a *Active) output(out *Output) {
	if out.Answer != nil {
		a.Captured("", out.Answer)
	}
	a.change(func(s *Step) {
		s.Answer = cmp.Or(out.Text, s.Answer)
		s.Reasoning = cmp.Or(out.Reasoning, s.Reasoning)
		if out.Confidence != nil {
			s.Confidence = out.Confidence
		}
		if out.Used == nil {
			return
		}
		s.NoSources = true
		for k := range s.Sources {
			f := &s.Sources[k]
			f.Used = f.Used || slices.Contains(out.Used, f.DocumentID)
			s.NoSources = s.NoSources && !f.counts()
		}
	})
}

func (w *reasoning) synthesise(ctx context.Context) (*Trail, error) {
	var steps []Step
	answered := 0
	for i, a := range w.steps {
		steps = append(steps, a.snapshot())
		if w.failed[i] == nil {
			answered++
		}
	}
	last := len(steps) - 1
	switch {
	case answered == 0:
		return w.recorder.Finish(""), fmt.Errorf("no step was answered: %w", w.failed[0])
	case w.Synthesise == nil && w.failed[last] != nil: // another step's answer is about another question
		return w.recorder.Finish(""), fmt.Errorf("the last step was not answered: %w", w.failed[last])
	case w.Synthesise == nil:
		if n := len(steps[last].Answers); n > 0 && steps[last].Answers[n-1].Answer != nil &&
			steps[last].Answers[n-1].Answer.Text == steps[last].Answer {
			return w.recorder.FinishAnswer(steps[last].Answers[n-1].Answer), nil
		}
		return w.recorder.Finish(steps[last].Answer), nil
	}
	out, err := w.Synthesise(ctx, w.question, steps)
	switch {
	case err != nil:
		return w.recorder.Finish(""), fmt.Errorf("synthesise: %w", err)
	case out == nil:
		return w.recorder.Finish(""), errors.New("synthesise: there is no answer")
	case out.Answer != nil:
		return w.recorder.FinishAnswer(out.Answer), nil
	default:
		return w.recorder.Finish(out.Text), nil
	}
}
