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

// Sink receives the steps of a run as they end, for example to post them to a gateway. Step is called in the goroutine
// that ends the step, concurrently if several steps end at once, and gets a copy of the step.
type Sink interface {
	Step(run string, s *Step)
}

// RecorderOptions describes a run as it begins. Nil and the zero value mean that nothing is known.
type RecorderOptions struct {
	Question string
	Agent    string
	Strategy string
	Sink     Sink // may be nil
	// DigestOnly keeps only the SHA-256 of the JSON of inputs and outputs, in Step.InputsDigest and Step.OutputsDigest.
	// It applies to nested runs, too.
	DigestOnly bool
}

// Recorder records the run of a Go program as it happens. Get one from [NewRecorder] or [Active.Nested].
//
// All methods may be called at any time from any goroutine. A nil *Recorder records nothing and returns a nil *Active,
// whose methods do nothing. So programs need not check whether they are recorded, and pay only a comparison with nil if
// they are not.
type Recorder struct {
	sink    Sink
	digests bool    // keep inputs and outputs as digests
	parent  *Active // nil if the run is not nested
	ownStep bool    // the parent was begun for the run, and ends with it
	mu      sync.Mutex
	run     Trail // without its steps
	steps   []*Active
	highest int
}

// NewRecorder begins a run.
func NewRecorder(runID string, o *RecorderOptions) *Recorder {
	r := &Recorder{run: Trail{ID: runID, Started: time.Now()}}
	if o != nil {
		r.run.Question, r.run.Agent, r.run.Strategy = o.Question, o.Agent, o.Strategy
		r.sink, r.digests = o.Sink, o.DigestOnly
	}
	return r
}

// StepOptions describes a step as it begins. Nil and the zero value mean that nothing is known.
type StepOptions struct {
	Number   int    // 0 means the next free one
	After    []int  // the steps that it builds on; nil means the step before, empty means none
	ID       string // the program's own id
	Tool     string
	Question string
	Inputs   any // kept as JSON or as its digest
}

// Begin begins a step. The caller must call [Active.End] in the same goroutine, preferably deferred: a panic is then
// recorded as the step's error, and continues.
//
//	step := recorder.Begin(&trail.StepOptions{Tool: "search", Question: question})
//	defer step.End()
//
// A step that begins after the run has finished is recorded as well, and [Trail.Check] reports it.
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

// Do calls do and records it as a step, with its error or panic. The context passed to do carries the step: see
// [FromContext]. A nil *Recorder just calls do.
func (r *Recorder) Do(ctx context.Context, o *StepOptions, do func(ctx context.Context, step *Active) error) error {
	step := r.Begin(o)
	defer step.End()
	err := do(NewContext(ctx, step), step)
	step.Fail(err)
	return err
}

// Finish ends the run with its answer and returns its trail. If it is called again, the last answer and the first end
// time count. Steps that have not ended are included as far as they are known. Finishing a nested run also sets the
// answer of its step, unless that has one.
func (r *Recorder) Finish(answer string) *Trail {
	return r.finish(answer, nil)
}

// FinishAnswer is like Finish, but takes a captured answer, whose citations link it to its sources.
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
	if r.ownStep {
		r.parent.End()
	}
	return r.Trail()
}

// Trail returns a copy of the trail so far.
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

// Active is a step that is being recorded. All methods may be called at any time from any goroutine, even after the
// step has ended; those of a nil *Active do nothing.
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

// snapshot returns a copy of the step that no longer changes.
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

// Number returns the step's number, 0 for a nil *Active.
func (a *Active) Number() int {
	n := 0
	a.change(func(s *Step) { n = s.Number })
	return n
}

// Retrieve adds search results. If the step ends without an error, and neither the program nor a captured answer tells
// what it used, everything it retrieved counts as used.
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

// assumeUse marks everything retrieved as used, unless it is known what the step used.
func (s *Step) assumeUse() {
	if s.NoSources || s.Error != "" || len(s.Answers) > 0 || s.uses(MaxNested) {
		return
	}
	for i := range s.Sources {
		s.Sources[i].Used = s.Sources[i].Retrieved
	}
}

// Use adds sources that the step works with. Sources that it already has are marked as used.
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

// Context adds the step's context as bare strings, which [SourcesFromContext] describes.
func (a *Active) Context(context ...string) {
	a.change(func(s *Step) {
		s.Context = append(s.Context, context...)
		s.AddSources(SourcesFromContext(s.Context)...)
	})
}

// NoSources records that the step used no sources.
func (a *Active) NoSources() { a.change(func(s *Step) { s.NoSources = true }) }

// Answer sets the step's answer.
func (a *Active) Answer(text string) { a.change(func(s *Step) { s.Answer = text }) }

// Captured adds a model call with the sources of its answer: see [Step.AddAnswer].
func (a *Active) Captured(id string, answer *ibid.Answer) {
	a.change(func(s *Step) { s.AddAnswer(id, answer) })
}

// Confidence sets how sure the step is of its answer, from 0 to 1.
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

// Outputs records what the step returned, as JSON or its digest.
func (a *Active) Outputs(v any) {
	if a == nil {
		return
	}
	raw, sum := a.recorder.kept(v)
	a.change(func(s *Step) { s.Outputs, s.OutputsDigest = raw, sum })
}

// Fail records why the step failed. A nil error is ignored, and only the first error is kept.
func (a *Active) Fail(err error) {
	if err != nil {
		a.change(func(s *Step) { s.Error = cmp.Or(s.Error, err.Error()) })
	}
}

// Nested begins a run within the step, which becomes Step.Nested. Its agent and sink default to those of its parent. A
// step has only one nested run: any further run gets a step of its own, which comes after this one, has its tool and
// the run's question, and ends when the run finishes.
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
	r.ownStep = true
	a.recorder.Begin(again).nest(r)
	return r
}

// nest sets the nested run of the step, unless it has one.
func (a *Active) nest(r *Recorder) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nested != nil {
		return false
	}
	a.nested, r.parent = r, a
	return true
}

// End ends the step. A second call does nothing. If deferred, it records a panic as the step's error and lets it
// continue.
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
		a.step.Duration = max(1, time.Since(a.step.Started)) // 0 would mean unknown
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

// kept returns v as JSON, or the digest of that.
func (r *Recorder) kept(v any) (raw json.RawMessage, sum string) {
	if v == nil {
		return nil, ""
	}
	raw, err := wire.Encode(v)
	if err != nil {
		raw, _ = wire.Encode("not JSON: " + err.Error()) // a string can always be encoded
	}
	if r.digests {
		return nil, digest(raw)
	}
	return raw, ""
}

// contextKey is the key of the step that a context carries.
type contextKey struct{}

// NewContext returns a context that carries a step, so that functions called with it can add to the step.
func NewContext(ctx context.Context, step *Active) context.Context {
	if step == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, step)
}

// FromContext returns the step that ctx carries, or nil, which records nothing.
func FromContext(ctx context.Context) *Active {
	step, _ := ctx.Value(contextKey{}).(*Active)
	return step
}

// Recorder returns the recorder of the step's run, so that functions called with a context can begin steps of their
// own.
func (a *Active) Recorder() *Recorder {
	if a == nil {
		return nil
	}
	return a.recorder
}
