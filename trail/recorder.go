package trail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
)

// Sink takes the steps of a run as they end, to post them to a gateway say. It is called by whoever ends the step, for
// several steps at once if they end at once; the step is its own copy.
type Sink interface {
	Step(run string, s *Step)
}

// RecorderOptions says what is known of a run when it begins. The zero value, and nil, mean: nothing.
type RecorderOptions struct {
	Question string
	Agent    string
	Strategy string
	Sink     Sink // nil: nobody is told
	// DigestOnly keeps of what steps are called with and what comes of them only the SHA-256: Step.InputsDigest and
	// OutputsDigest, of the JSON. It holds for nested runs, too.
	DigestOnly bool
}

// Recorder writes down the run of a Go program while it happens. Get one from [NewRecorder] or [Active.Nested].
//
// All methods may be called at any time from any goroutine. A nil *Recorder records nothing, and neither does the nil
// *Active that it gives out: programs need not ask whether they are recorded, and pay a comparison with nil where they
// are not.
type Recorder struct {
	sink    Sink
	digests bool    // inputs and outputs are kept as digests
	parent  *Active // nil: the run is not nested
	own     bool    // the parent was begun for the run, and ends with it
	mu      sync.Mutex
	run     Trail // but for its steps
	steps   []*Active
	highest int
}

// NewRecorder begins a run, now.
func NewRecorder(runID string, o *RecorderOptions) *Recorder {
	r := &Recorder{run: Trail{ID: runID, Started: time.Now()}}
	if o != nil {
		r.run.Question, r.run.Agent, r.run.Strategy = o.Question, o.Agent, o.Strategy
		r.sink, r.digests = o.Sink, o.DigestOnly
	}
	return r
}

// StepOptions says what is known of a step when it begins. The zero value, and nil, mean: nothing.
type StepOptions struct {
	Number   int    // 0: the next free one
	After    []int  // the steps that it builds on; nil: the one before, empty: none
	ID       string // the program's own
	Tool     string
	Question string
	Inputs   any // kept as JSON, or as its digest
}

// Begin begins a step, now. Its end must be recorded, in its goroutine and best by defer: a panic is then recorded as
// the step's error, and goes on.
//
//	step := recorder.Begin(&trail.StepOptions{Tool: "search", Question: question})
//	defer step.End()
//
// A step that begins after the run has finished is recorded all the same, and [Trail.Check] reports it.
func (r *Recorder) Begin(o *StepOptions) *Active {
	if r == nil {
		return nil
	}
	a := &Active{recorder: r}
	if o != nil {
		a.step = Step{Number: o.Number, After: slices.Clone(o.After), ID: o.ID, Tool: o.Tool, Question: o.Question}
		a.step.Inputs, a.step.InputsDigest = r.kept(o.Inputs)
		if o.After != nil && a.step.After == nil {
			a.step.After = []int{}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.step.Number <= 0 {
		a.step.Number = r.highest + 1
	}
	r.highest = max(r.highest, a.step.Number)
	a.step.Started = time.Now()
	r.steps = append(r.steps, a)
	return a
}

// Do records what do does as a step, with its error or its panic. The context that do gets carries the step: see
// [FromContext]. A nil *Recorder just calls do.
func (r *Recorder) Do(ctx context.Context, o *StepOptions, do func(ctx context.Context, step *Active) error) error {
	step := r.Begin(o)
	defer step.End()
	err := do(NewContext(ctx, step), step)
	step.Fail(err)
	return err
}

// Finish ends the run with its answer, and returns its trail. It may be called again: the last answer counts, and the
// first end. Steps that have not ended are in the trail as far as they are known. A run that is nested in a step ends
// the trail that the step has of it, and answers the step if that has no answer of its own.
func (r *Recorder) Finish(answer string) *Trail {
	return r.finish(answer, nil)
}

// FinishAnswer is Finish with a captured answer, whose citations tie it to its sources.
func (r *Recorder) FinishAnswer(a *ibid.Answer) *Trail {
	if a == nil {
		return r.Finish("")
	}
	return r.finish(a.Text, a)
}

func (r *Recorder) finish(answer string, a *ibid.Answer) *Trail {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.run.Answer, r.run.Final = answer, a
	if r.run.Finished.IsZero() {
		r.run.Finished = time.Now()
	}
	r.mu.Unlock()
	if r.parent != nil {
		r.parent.change(func(s *Step) { s.Answer = cmp.Or(s.Answer, answer) })
	}
	if r.own {
		r.parent.End()
	}
	return r.Trail()
}

// Trail returns what is known so far: a copy, at any time.
func (r *Recorder) Trail() *Trail {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	t := r.run
	steps := slices.Clone(r.steps)
	r.mu.Unlock()
	t.Steps = make([]Step, len(steps))
	for i, a := range steps {
		t.Steps[i] = a.snapshot()
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.Number - b.Number })
	return &t
}

// Active is a step that is being recorded. All methods may be called at any time from any goroutine, also after its
// end; those of a nil *Active do nothing.
type Active struct {
	recorder *Recorder
	mu       sync.Mutex
	step     Step
	nested   *Recorder
	ended    bool
}

func (a *Active) change(do func(*Step)) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	do(&a.step)
}

// snapshot returns a copy of the step that nothing changes any more.
func (a *Active) snapshot() Step {
	a.mu.Lock()
	s, nested := a.step, a.nested
	s.Sources, s.Answers, s.Context = slices.Clone(s.Sources), slices.Clone(s.Answers), slices.Clone(s.Context)
	a.mu.Unlock()
	if nested != nil {
		s.Nested = nested.Trail()
	}
	return s
}

// Number returns the step's number; 0 of a nil *Active.
func (a *Active) Number() int {
	n := 0
	a.change(func(s *Step) { n = s.Number })
	return n
}

// Retrieve adds what a search returned. If the step ends well and was never told what it used or cited, nor that it
// used nothing, all of this counts as used: it is what the step had.
func (a *Active) Retrieve(results ...Result) {
	if a == nil {
		return
	}
	found := SourcesFromResults(results)
	for i := range found {
		found[i].Used = false
	}
	a.change(func(s *Step) { s.AddSources(found...) })
}

// assumeUse decides what a step used that did not say it.
func (s *Step) assumeUse() {
	if s.NoSources || s.Error != "" || len(s.Answers) > 0 || s.uses(MaxNested) {
		return
	}
	for i := range s.Sources {
		s.Sources[i].Used = s.Sources[i].Retrieved
	}
}

// Use adds sources that the step works with. Those it has already are used from now on.
func (a *Active) Use(sources ...Source) {
	a.mark(sources, func(f *Source) { f.Used = true })
}

// Cite adds sources that the step's answer names.
func (a *Active) Cite(sources ...Source) {
	a.mark(sources, func(f *Source) { f.Cited = true })
}

func (a *Active) mark(sources []Source, how func(*Source)) {
	if a == nil {
		return
	}
	sources = slices.Clone(sources)
	for i := range sources {
		sources[i].Excerpt = cmp.Or(sources[i].Excerpt, Excerpt(sources[i].Content, 0))
		sources[i].identify(i)
		how(&sources[i])
	}
	a.change(func(s *Step) { s.AddSources(sources...) })
}

// Context adds the step's context as bare strings, as [SourcesFromContext] reads them.
func (a *Active) Context(context ...string) {
	a.change(func(s *Step) {
		s.Context = append(s.Context, context...)
		s.AddSources(SourcesFromContext(s.Context)...)
	})
}

// NoSources says that the step used none.
func (a *Active) NoSources() { a.change(func(s *Step) { s.NoSources = true }) }

// Answer sets the step's answer.
func (a *Active) Answer(text string) { a.change(func(s *Step) { s.Answer = text }) }

// Captured adds a call of a model with the sources of its answer: see [Step.AddAnswer].
func (a *Active) Captured(id string, answer *ibid.Answer) {
	a.change(func(s *Step) { s.AddAnswer(id, answer) })
}

// Confidence says how sure the step is of its answer, from 0 to 1.
func (a *Active) Confidence(confidence float64) {
	a.change(func(s *Step) { s.Confidence = &confidence })
}

// Reasoning adds to the step's reasoning trace.
func (a *Active) Reasoning(trace string) {
	a.change(func(s *Step) {
		if s.Reasoning != "" {
			s.Reasoning += "\n"
		}
		s.Reasoning += trace
	})
}

// Outputs keeps what came of the step, as JSON or its digest.
func (a *Active) Outputs(v any) {
	if a == nil {
		return
	}
	raw, sum := a.recorder.kept(v)
	a.change(func(s *Step) { s.Outputs, s.OutputsDigest = raw, sum })
}

// Fail records why the step failed. Nil changes nothing, and the first error counts.
func (a *Active) Fail(err error) {
	if err != nil {
		a.change(func(s *Step) { s.Error = cmp.Or(s.Error, err.Error()) })
	}
}

// Nested begins a run within the step, whose trail is part of the step: see Step.Nested. It has the agent and the sink
// of its parent, unless told otherwise. A step has one: every further run is that of a step of its own, which comes
// after this one, has its tool and the run's question, and ends when the run finishes.
func (a *Active) Nested(runID string, o *RecorderOptions) *Recorder {
	if a == nil {
		return nil
	}
	r := NewRecorder(runID, o)
	r.run.Parent, r.digests = a.recorder.run.ID, r.digests || a.recorder.digests
	if r.sink == nil {
		r.sink = a.recorder.sink
	}
	r.run.Agent = cmp.Or(r.run.Agent, a.recorder.run.Agent)
	if a.nest(r) {
		return r
	}
	a.mu.Lock()
	again := &StepOptions{After: []int{a.step.Number}, Tool: a.step.Tool, Question: r.run.Question}
	a.mu.Unlock()
	r.own = true
	a.recorder.Begin(again).nest(r)
	return r
}

// nest makes a run the nested one of the step, unless it has one.
func (a *Active) nest(r *Recorder) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nested != nil {
		return false
	}
	a.nested, r.parent = r, a
	return true
}

// End ends the step, now. A second call does nothing. Deferred, it records a panic as the step's error and lets it go
// on.
func (a *Active) End() {
	if a == nil {
		return
	}
	thrown := recover()
	if thrown != nil {
		a.Fail(fmt.Errorf("panic: %v", thrown))
	}
	a.mu.Lock()
	again := a.ended
	if !again {
		a.ended = true
		a.step.assumeUse()
		a.step.Duration = max(1, time.Since(a.step.Started)) // 0 would mean that it is not known
	}
	a.mu.Unlock()
	if !again && a.recorder.sink != nil {
		s := a.snapshot()
		a.recorder.sink.Step(a.recorder.run.ID, &s)
	}
	if thrown != nil {
		panic(thrown)
	}
}

// kept returns what is kept of v: it as JSON, or its digest.
func (r *Recorder) kept(v any) (raw json.RawMessage, sum string) {
	if v == nil {
		return nil, ""
	}
	raw, err := wire.Encode(v)
	if err != nil { // what keeps it from being JSON, which a string always is
		raw, _ = wire.Encode("not JSON: " + err.Error())
	}
	if r.digests {
		return nil, digest(raw)
	}
	return raw, ""
}

// contextKey is the key of the step that a context carries.
type contextKey struct{}

// NewContext returns a context that carries a step, so that what is called with it can add to it.
func NewContext(ctx context.Context, step *Active) context.Context {
	if step == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, step)
}

// FromContext returns the step that ctx carries; nil, which records nothing, if it carries none.
func FromContext(ctx context.Context) *Active {
	step, _ := ctx.Value(contextKey{}).(*Active)
	return step
}

// Recorder returns the recorder of the step's run: what is called with a context can begin steps of its own.
func (a *Active) Recorder() *Recorder {
	if a == nil {
		return nil
	}
	return a.recorder
}
