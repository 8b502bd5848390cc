package trail

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

// step reads one step.
func (r *reader) step(t *Trail, members map[string]json.RawMessage, place string) error {
	if len(t.Steps) == maxSteps {
		return fmt.Errorf("%w: more than %d steps", ErrLimit, maxSteps)
	}
	if _, ok := members["recorded"]; ok && present(members, []string{"step_number", "step"}) == "" {
		return &malformedError{fmt.Errorf("%s%w", prefixed(place), ErrListing)}
	}
	var s Step
	o := &object{place: place, members: members, report: &report{}}
	o.issuesOf()
	if n := o.whole(0, "step_number", "step"); n != nil {
		s.Number = *n
		o.place = fmt.Sprintf("step %d:", s.Number)
	} else {
		r.unnumbered = append(r.unnumbered, len(t.Steps))
	}
	var run string
	o.id(&run, "run_id", "run")
	var err error
	if t.ID, err = oneRun(t.ID, run, place); err != nil {
		return err
	}
	s.scalars(o)
	if err := s.lists(o); err != nil {
		return malformed("%w", err)
	}
	if err := r.stepSources(&s, o); err != nil {
		return err
	}
	if raw, name := o.takeMember("nested_run"); name != "" {
		nested, err := r.nested(raw, o.at(name))
		if err != nil {
			return err
		}
		s.Nested = nested
	}
	s.Extra, s.Issues = o.leftover(), o.report.issues
	s.readResults()
	t.Steps = append(t.Steps, s)
	return nil
}

func (s *Step) scalars(o *object) {
	o.id(&s.ID, "id", "step_id")
	o.text(&s.Tool, "tool")
	o.text(&s.Question, "question")
	o.text(&s.Answer, "intermediate_answer", "answer")
	o.text(&s.Reasoning, "reasoning_trace")
	o.text(&s.Error, "error")
	s.Confidence = o.number("confidence_score", "confidence")
	o.time(&s.Started, "started_at")
	o.seconds(&s.Duration, "execution_time")
	o.json(&s.Inputs, "inputs")
	o.json(&s.Outputs, "outputs")
	o.text(&s.InputsDigest, "inputs_digest")
	o.text(&s.OutputsDigest, "outputs_digest")
	o.bool(&s.NoSources, "no_sources")
}

// lists reads the lists of a step, except its sources.
func (s *Step) lists(o *object) error {
	if err := s.after(o); err != nil {
		return err
	}
	elements, name, err := o.list("context_used")
	if err != nil {
		return err
	}
	for i, raw := range elements {
		var text string
		if isNull(raw) {
			s.Context = append(s.Context, "") // it keeps its place
			continue
		}
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
			return fmt.Errorf("%s: %s, want a string", o.at(fmt.Sprintf("%s[%d]", name, i)), describe(raw))
		}
		s.Context = append(s.Context, text)
	}
	var fed []fedSpan
	if o.into(&fed, "a list of spans", "fed") {
		for _, f := range fed {
			s.Fed = append(s.Fed, ibid.Span{Start: f.Start, End: f.End})
		}
	}
	if elements, name, err = o.list("answers"); err != nil {
		return err
	}
	for i, raw := range elements {
		var a StepAnswer
		if isNull(raw) {
			continue
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("%s: %w", o.at(fmt.Sprintf("%s[%d]", name, i)), err)
		}
		s.Answers = append(s.Answers, a)
	}
	return nil
}

// after reads the numbers of the steps that this one builds on: a list, or one number. Null means the step before, as
// if the member were missing.
func (s *Step) after(o *object) error {
	raw, name := o.takeMember("after")
	if name == "" {
		return nil
	}
	elements := []json.RawMessage{raw}
	if raw[0] == '[' {
		elements = elementsOf(raw)
	}
	s.After = []int{}
	for i, element := range elements {
		if isNull(element) {
			continue
		}
		digits := strings.Trim(string(element), `" `)
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > maxWhole {
			o.addIssue(issueWrongType, fmt.Sprintf("after[%d]", i), "%s, want the number of a step", describe(element))
			continue
		}
		s.After = append(s.After, n)
	}
	return nil
}

// stepSources reads the sources that a step used and those that it retrieved.
func (r *reader) stepSources(s *Step, o *object) error {
	used, name, err := o.list("source_attributions", "sources")
	if err != nil {
		return malformed("%w", err)
	}
	attributed, err := r.sourceRows(o, name, used)
	if err != nil {
		return err
	}
	for i := range attributed {
		if f := &attributed[i]; !f.flags {
			f.Used, f.Retrieved = true, f.Rank > 0
		}
		s.Sources = append(s.Sources, attributed[i].Source) // as given: equal rows are not merged
	}
	if err := r.retrieved(s, o, len(used) == 0 && !s.NoSources); err != nil {
		return err
	}
	if len(s.Sources) > 0 || s.NoSources {
		return nil
	}
	for i := range s.Answers {
		s.AddSources(SourcesFromAnswer(s.Answers[i].Answer)...)
	}
	if len(s.Sources) == 0 {
		s.Enhance(nil)
	}
	return nil
}

// retrieved reads what a step retrieved. Used tells whether the step also used it.
func (r *reader) retrieved(s *Step, o *object, used bool) error {
	for _, name := range []string{"retrieved_documents", "search_results"} {
		elements, name, err := o.list(name)
		if err != nil {
			return malformed("%w", err)
		}
		found, err := r.sourceRows(o, name, elements)
		if err != nil {
			return err
		}
		for i := range found {
			f := &found[i]
			f.Retrieved, f.Rank = true, cmp.Or(f.Rank, f.place+1)
			f.Used = f.Used || used && !f.flags
			s.AddSources(f.Source)
		}
	}
	return nil
}

// row is a source that was read.
type row struct {
	Source
	place int  // index in its list
	flags bool // it has members for whether it was retrieved, used or cited
}

func (r *reader) sourceRows(o *object, name string, elements []json.RawMessage) ([]row, error) {
	if *r.sources -= len(elements); *r.sources < 0 {
		return nil, fmt.Errorf("%w: %s: more than %d sources", ErrLimit, o.at(name), maxSources)
	}
	var rows []row
	bare := make([]string, len(elements)) // a list of strings is a context
	for i, raw := range elements {
		place := o.at(fmt.Sprintf("%s[%d]", name, i))
		if raw[0] == '"' {
			readString(&bare[i], raw)
			continue
		}
		if isNull(raw) {
			continue
		}
		members := readObject(raw)
		if members == nil {
			return nil, malformed("%s: %s, want a source", place, describe(raw))
		}
		if foreign := foreignRows(raw, members); len(foreign) > 0 {
			for k := range foreign {
				f := &foreign[k]
				if f.identify(i) && f.URL == "" {
					of := fmt.Sprintf("%s[%d].document_id", name, i)
					o.addIssue(issueNoID, of, "missing; set to %s", Excerpt(f.DocumentID, 80))
				}
				rows = append(rows, row{Source: *f, place: i})
			}
			continue
		}
		rows = append(rows, readSource(&object{place: place, members: members, report: o.report}, i))
	}
	for _, s := range SourcesFromContext(bare) {
		rows = append(rows, row{Source: s, place: s.Rank - 1, flags: true})
	}
	return rows, nil
}

func readSource(o *object, i int) row {
	s := row{place: i}
	o.id(&s.DocumentID, "document_id", "id")
	o.text(&s.Title, "document_title", "title")
	o.text(&s.URL, "url")
	o.text(&s.Key, "key")
	s.Relevance = o.number("relevance_score", "score")
	var origin string
	o.text(&origin, "score_origin")
	switch s.Origin = ibid.ScoreOrigin(origin); {
	case s.Relevance == nil:
		s.Origin = ""
	case origin == "":
		s.Origin = ibid.ScoreRetriever // the program that recorded the run gave the score
	}
	s.Adjusted, s.Overlap, s.Usage = o.number("adjusted_relevance"), o.number("overlap"), o.number("usage")
	o.text(&s.Content, "content", "text")
	if o.text(&s.Excerpt, "excerpt"); s.Excerpt == "" {
		s.Excerpt = Excerpt(s.Content, 0)
	}
	s.ChunkIndex = o.whole(0, "chunk_index")
	if rank := o.whole(1, "retrieval_rank"); rank != nil {
		s.Rank = *rank
	}
	if l := new(ibid.Locator); o.into(l, "a locator", "locator") {
		s.Locator = l
	}
	o.text(&s.Version, "version")
	if v := new(ibid.Verification); o.into(v, "a verification", "verification") {
		s.Verification = v
	}
	for _, flag := range []struct {
		dst  *bool
		name string
	}{{&s.Retrieved, "retrieved"}, {&s.Used, "used"}, {&s.Cited, "cited"}} {
		s.flags = o.bool(flag.dst, flag.name) || s.flags
	}
	if s.identify(i) {
		o.addIssue(issueNoID, "document_id", "missing; set to %s", Excerpt(s.DocumentID, 80))
	}
	s.Extra = o.leftover()
	return s
}

// nested reads a run that a step started.
func (r *reader) nested(raw json.RawMessage, place string) (*Trail, error) {
	if r.depth == MaxNested {
		return nil, fmt.Errorf("%w: runs nested deeper than %d", ErrLimit, MaxNested)
	}
	members := readObject(raw)
	if members == nil {
		return nil, malformed("%s: %s, want a run", place, describe(raw))
	}
	inner := &reader{depth: r.depth + 1, sources: r.sources}
	t := &Trail{}
	if err := inner.run(t, members, ""); errors.Is(err, ErrLimit) && r.depth > 0 {
		return nil, err // the place at each level would say the same
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	inner.number(t)
	return t, nil
}
