package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
)

// The causes of an error of [Read].
var (
	ErrEmpty = errors.New("nothing but white space")
	ErrNoRun = errors.New("not a run")
	ErrLimit = errors.New("over the limit")
	// ErrListing is the cause, beside ErrNoRun, where it is what GET /v1/runs/{run} lists: a page of a run's calls.
	ErrListing = errors.New("an element of GET /v1/runs/{run}, which lists the calls of a run page by page")
)

// malformedError says what is not as a run should be. It is [ErrNoRun] to errors.Is.
type malformedError struct{ err error }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Errorf(format, args...)}
}

func (e *malformedError) Error() string   { return e.err.Error() }
func (e *malformedError) Unwrap() []error { return []error{ErrNoRun, e.err} }

// The limits of [Read]. What is over one is an error.
const (
	MaxSteps   = 100_000   // of one run, and of each run nested in it
	MaxSources = 1_000_000 // of one run, with the runs nested in it
	MaxNested  = 16        // how deep runs may lie in steps of runs
)

// Read reads a run: one JSON object with its steps, a list of steps, or JSON lines, of which one may have the run and
// the others each have a step, in any order. docs/trail.md lists the members. Numbers are taken as given.
//
// What is odd and can be kept is kept and reported in Trail.Issues and Step.Issues, and so are members that trail does
// not know. [Trail.Check] reports what is wrong with the run as a whole. The error is for what leaves no run to speak
// of: it wraps [ErrEmpty], [ErrNoRun] or [ErrLimit], and says where.
func Read(b []byte) (*Trail, error) {
	r := newReader()
	t, err := r.document(b)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	r.number(t)
	return t, nil
}

// ReadSteps reads steps without their run: an object, a list of objects, or JSON lines. They keep their order, and one
// without a number has the number 0. What is odd about the whole input is an issue of the first one. It is otherwise
// like [Read].
func ReadSteps(b []byte) ([]Step, error) {
	r := newReader()
	t, err := r.document(b)
	if err == nil && r.headers > 0 {
		err = malformed("it has members of a run, want those of a step")
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	if len(t.Steps) > 0 && len(t.Issues) > 0 {
		t.Steps[0].Issues = slices.Concat(t.Issues, t.Steps[0].Issues)
	}
	return t.Steps, nil
}

// UnmarshalJSON reads a run as [Read] does.
func (t *Trail) UnmarshalJSON(b []byte) error {
	read, err := Read(b)
	if err == nil {
		*t = *read
	}
	return err
}

// UnmarshalJSON reads one step as [Read] does.
func (s *Step) UnmarshalJSON(b []byte) error {
	steps, err := ReadSteps(b)
	if err == nil && len(steps) != 1 {
		err = fmt.Errorf("read step: %w", malformed("%d steps", len(steps)))
	}
	if err == nil {
		*s = steps[0]
	}
	return err
}

// reader reads one document, or one run nested in it.
type reader struct {
	depth      int
	sources    *int // how many more the document may have
	headers    int  // objects with members of a run
	unnumbered []int
}

func newReader() *reader { return &reader{sources: new(MaxSources)} }

func (r *reader) document(b []byte) (*Trail, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, ErrEmpty
	}
	d, err := split(b)
	if err != nil {
		return nil, err
	}
	values, t := d.all, &Trail{Issues: d.issues}
	for i, v := range values {
		place := ""
		if d.lines || len(values) > 1 {
			place = fmt.Sprintf("line %d", v.line)
		}
		if v.raw[0] == '[' && len(values) == 1 {
			err = r.list(t, v.raw)
		} else {
			err = r.element(t, v.raw, place)
		}
		if err != nil {
			return nil, err
		}
		values[i].raw = nil // it was copied
	}
	return t, nil
}

// list reads a document that is a list of steps.
func (r *reader) list(t *Trail, raw json.RawMessage) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return err
	}
	for i, element := range elements {
		place := fmt.Sprintf("[%d]", i)
		members := readObject(element)
		if isNull(element) {
			continue
		}
		if members == nil || isRun(members) {
			return malformed("%s: %s, want a step", place, what(members, element))
		}
		if err := r.step(t, members, place); err != nil {
			return err
		}
	}
	return nil
}

func what(members map[string]json.RawMessage, raw json.RawMessage) string {
	if members != nil {
		return "a run"
	}
	return describe(raw)
}

// element reads one value of a document: the run, or a step of it.
func (r *reader) element(t *Trail, raw json.RawMessage, place string) error {
	members := readObject(raw)
	switch {
	case members == nil:
		return malformed("%s%s, want an object", before(place), describe(raw))
	case isRun(members):
		return r.run(t, members, place)
	case present(members, stepNames()) != "":
		return r.step(t, members, place)
	case present(members, runNames()) != "":
		return r.run(t, members, place)
	}
	for _, name := range slices.Concat(isRunNames(), runNames(), stepNames()) {
		if _, ok := members[name]; ok {
			return malformed("%sall members that it has of a run are null, such as %s", before(place), name)
		}
	}
	return malformed(
		"%san object without a member of a run or a step, such as reasoning_steps or step_number", before(place),
	)
}

func before(place string) string {
	if place == "" {
		return ""
	}
	return place + ": "
}

// isRun reports whether an object is a run, whatever else it has.
func isRun(members map[string]json.RawMessage) bool {
	return present(members, isRunNames()) != ""
}

func isRunNames() []string {
	return []string{"reasoning_steps", "steps", "original_question", "final_answer"}
}

// runNames and stepNames are members by which an object is known.
func runNames() []string {
	return []string{"run_id", "run", "agent", "answer", "started_at", "finished_at", "strategy", "question"}
}

func stepNames() []string {
	return []string{
		"step_number", "step", "intermediate_answer", "source_attributions", "context_used", "retrieved_documents",
		"search_results", "tool", "reasoning_trace", "after", "question", "confidence_score", "inputs", "outputs",
		"answers", "no_sources", "sources", "confidence", "execution_time", "error", "nested_run",
	}
}

// run reads the members of the run itself.
func (r *reader) run(t *Trail, members map[string]json.RawMessage, place string) error {
	h := &Trail{}
	o := &object{place: place, members: members, report: &report{}}
	o.issuesOf()
	o.id(&h.ID, "run_id", "run", "id")
	o.text(&h.Agent, "agent")
	o.text(&h.Question, "original_question", "question")
	o.text(&h.Answer, "final_answer")
	if string(members["answer"]) != "" && members["answer"][0] == '"' && h.Answer == "" {
		o.text(&h.Answer, "answer")
	}
	if a := new(ibid.Answer); o.into(a, "an answer document", "answer") {
		h.Final = a
		h.Answer = first(h.Answer, a.Text)
	}
	o.time(&h.Started, "started_at")
	o.time(&h.Finished, "finished_at")
	o.id(&h.Parent, "parent_run_id")
	o.text(&h.Strategy, "strategy")
	elements, name, err := o.list("reasoning_steps", "steps")
	if err != nil {
		return malformed("%w", err)
	}
	h.Extra = o.rest("source_summary", "display", "sentences", "uncited_share")
	if r.headers++; r.headers == 1 {
		h.Issues = append(t.Issues, o.report.issues...)
		h.Steps = t.Steps
		if h.ID, err = oneRun(t.ID, h.ID, place); err != nil {
			return err
		}
		*t = *h
	} else {
		h.Issues = o.report.issues
		if err := t.merge(h, place); err != nil {
			return err
		}
	}
	for i, element := range elements {
		members := readObject(element)
		place := o.at(fmt.Sprintf("%s[%d]", name, i))
		if isNull(element) {
			continue
		}
		if members == nil {
			return malformed("%s: %s, want a step", place, describe(element))
		}
		if err := r.step(t, members, place); err != nil {
			return err
		}
	}
	return nil
}

// issuesOf reads the issues that an earlier reading reported.
func (o *object) issuesOf() {
	var issues []ibid.Issue
	if o.into(&issues, "a list of issues", "issues") {
		o.report.issues = append(o.report.issues, issues...)
		o.report.prior = slices.Clone(issues[:min(len(issues), maxPrior)])
	}
}

// oneRun returns the id of the run that a and b name. A document has one.
func oneRun(a, b, place string) (string, error) {
	if a != "" && b != "" && a != b {
		return "", malformed("%sit is of the run %q, and what is before it of %q: want one run", before(place), b, a)
	}
	return first(a, b), nil
}

// merge adds to t what another object says about the same run. Of two values the first stays.
func (t *Trail) merge(h *Trail, place string) (err error) {
	if t.ID, err = oneRun(t.ID, h.ID, place); err != nil {
		return err
	}
	differ := func(name, a, b string) string {
		if a != "" && b != "" && a != b {
			t.Issues = append(
				t.Issues,
				ibid.Issue{Code: issueRunRepeated, Detail: before(place) + "another " + name + ": " + Excerpt(b, 0)},
			)
		}
		return first(a, b)
	}
	t.Question, t.Answer = differ(
		"original_question", t.Question, h.Question,
	), differ(
		"final_answer", t.Answer, h.Answer,
	)
	t.Agent, t.Strategy = differ("agent", t.Agent, h.Agent), differ("strategy", t.Strategy, h.Strategy)
	t.Parent = differ("parent_run_id", t.Parent, h.Parent)
	t.Final = first(t.Final, h.Final)
	if t.Started.IsZero() {
		t.Started = h.Started
	}
	if t.Finished.IsZero() {
		t.Finished = h.Finished
	}
	t.Issues = append(t.Issues, h.Issues...)
	for name, raw := range h.Extra {
		if t.Extra == nil {
			t.Extra = make(map[string]json.RawMessage)
		}
		if _, ok := t.Extra[name]; !ok {
			t.Extra[name] = raw
		}
	}
	return nil
}

// number gives the steps that have no number one, and sorts the steps by their numbers.
func (r *reader) number(t *Trail) {
	taken := make(map[int]bool, len(t.Steps))
	without := make(map[int]bool, len(r.unnumbered))
	for _, i := range r.unnumbered {
		without[i] = true
	}
	for i := range t.Steps {
		if !without[i] {
			taken[t.Steps[i].Number] = true
		}
	}
	some := len(r.unnumbered) < len(t.Steps)
	last := 0
	for i := range t.Steps {
		s := &t.Steps[i]
		if !without[i] {
			last = s.Number
			continue
		}
		for last++; taken[last]; last++ {
		}
		s.Number, taken[last] = last, true
		if some {
			s.Issues = append(
				s.Issues,
				ibid.Issue{Code: issueUnnumbered, Detail: fmt.Sprintf("step %d: it has no number of its own", last)},
			)
		}
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.Number - b.Number })
}
