package otel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/trail"
)

// spanMember is the member of a step that was made from a span and not arranged yet. It holds a [spanFacts].
const spanMember = "otel_span"

// spanKind says what a span stands for in a run.
type spanKind string

const (
	spanAgent     spanKind = "agent" // an agent at work: the run, or one nested in it
	spanChain     spanKind = "chain" // what holds other spans together
	spanLLM       spanKind = "llm"
	spanRetriever spanKind = "retriever"
	spanReranker  spanKind = "reranker"
	spanTool      spanKind = "tool"
	spanGuardrail spanKind = "guardrail"
	spanEvaluator spanKind = "evaluator" // judges the run from outside: neither it nor what is below it is a step
)

// spanFacts is what is known of a span that a step has no place for.
type spanFacts struct {
	Trace  string   `json:"trace"`
	Parent string   `json:"parent,omitempty"` // the nearest span above that is kept, as far as its request showed
	Kind   spanKind `json:"kind"`
	Name   string   `json:"name,omitempty"`
	Agent  string   `json:"agent,omitempty"` // whose run it is, where it says so
	Number int      `json:"step,omitempty"`  // that the program gave the step
	After  *[]int   `json:"after,omitempty"`
	// nanoseconds since 1970; 0: unknown. A step's times lose some of them as JSON
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Own says that [Write] wrote the span: what it says of sources counts.
	Own       bool   `json:"own,omitempty"`
	ParentRun string `json:"parent_run,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	RunID     string `json:"run,omitempty"` // of a nested run
	StepID    string `json:"id,omitempty"`
}

// kindOf returns what a span stands for; empty: it has nothing to do with a run. Where conventions disagree, as when a
// library that knows nothing better calls everything a chain, the most specific one counts.
func kindOf(s *span) spanKind {
	a := s.attrs
	vague := spanKind("")
	for _, attribute := range []string{
		"openinference.span.kind", "langfuse.observation.type", "gen_ai.operation.name", "traceloop.span.kind",
		"llm.request.type",
	} {
		name := a.text(attribute)
		kind := kindByName[strings.ToLower(name)]
		switch {
		case attribute == "gen_ai.operation.name":
			if kind = kindByOperation[name]; kind == "" && name != "" {
				kind = notKept
			}
		case kind == "" && name != "":
			kind = spanChain // chain, workflow, task, span, unknown
		}
		switch kind {
		case "":
		case spanChain, notKept:
			vague = cmp.Or(vague, kind)
		default:
			return kind
		}
	}
	switch {
	case vague == notKept:
		return ""
	case vague != "":
		return vague
	case a.text("ibid.step") != "" || a.text("ibid.run") != "":
		return spanChain
	}
	return ""
}

// notKept is the kind of spans of which a convention says what they are, and that no trail shows: embeddings, prompts.
const notKept spanKind = "-"

var kindByName = map[string]spanKind{
	"agent": spanAgent,
	"llm":   spanLLM, "generation": spanLLM, "chat": spanLLM, "completion": spanLLM,
	"retriever": spanRetriever,
	"reranker":  spanReranker, "rerank": spanReranker,
	"tool":      spanTool,
	"guardrail": spanGuardrail,
	"evaluator": spanEvaluator,
	"embedding": notKept, "prompt": notKept, "event": notKept,
}

var kindByOperation = map[string]spanKind{
	"chat": spanLLM, "generate_content": spanLLM, "text_completion": spanLLM,
	"invoke_agent": spanAgent,
	"execute_tool": spanTool,
	"retrieval":    spanRetriever, "search_memory": spanRetriever,
	"invoke_workflow": spanChain, "plan": spanChain,
}

// reader gathers the spans of one request.
type reader struct {
	runAttributes []string
	set           SpanSet
	seen          int
	kept          []keptSpan
	latest        map[spanID]int    // where in kept a span stands; if twice, the one that knows of a later end
	skipped       map[spanID]string // the parents of those that were not kept
	runs          map[string]string // of the traces that name one
}

type spanID struct{ trace, id string }

type keptSpan struct {
	run   string // that it names; may be empty
	facts spanFacts
	step  trail.Step
}

func newReader(o *Options) *reader {
	r := &reader{
		runAttributes: []string{"ibid.run"},
		latest:        map[spanID]int{},
		skipped:       map[spanID]string{},
		runs:          map[string]string{},
	}
	if o != nil && o.RunAttributes != nil {
		r.runAttributes = o.RunAttributes
	}
	return r
}

// addSpan reads one span of the request.
func (r *reader) addSpan(resource attributes, b []byte, parse parser) {
	if r.seen++; r.seen > MaxSpans {
		r.reject(fmt.Errorf("the request has more than %d spans", MaxSpans))
		return
	}
	s, err := readSpan(b, parse)
	if err != nil {
		r.reject(fmt.Errorf("span %d: %w", r.seen, err))
		return
	}
	kind := kindOf(s)
	if kind == "" {
		r.set.Ignored++
		r.skipped[spanID{s.trace, s.id}] = s.parent
		return
	}
	k := keptSpan{run: cmp.Or(s.attrs.text(r.runAttributes...), resource.text(r.runAttributes...))}
	if k.run != "" && r.runs[s.trace] == "" {
		r.runs[s.trace] = k.run
	}
	k.facts, k.step = stepOf(s, kind)
	if !k.facts.Own {
		k.facts.Agent = cmp.Or(k.facts.Agent, s.attrs.text("langfuse.trace.name"), resource.text("service.name"))
	}
	id := spanID{s.trace, s.id}
	if at, twice := r.latest[id]; !twice || k.facts.End >= r.kept[at].facts.End {
		r.latest[id] = len(r.kept)
	}
	r.kept = append(r.kept, k)
}

func (r *reader) reject(err error) {
	r.set.Rejected++
	if r.set.Reason == "" {
		r.set.Reason = err.Error()
	}
}

// finish makes runs of the spans.
func (r *reader) finish() *SpanSet {
	byRun, roots := map[string]*trail.Trail{}, map[*trail.Trail][]*keptSpan{}
	for i := range r.kept {
		k := &r.kept[i]
		if r.latest[spanID{k.facts.Trace, k.step.ID}] != i { // it stands there twice
			continue
		}
		run := cmp.Or(k.run, r.runs[k.facts.Trace], k.facts.Trace)
		t := byRun[run]
		if t == nil {
			t = &trail.Trail{ID: run}
			byRun[run] = t
			r.set.Runs = append(r.set.Runs, t)
		}
		for range r.seen { // a cycle of parents has an end
			parent, skipped := r.skipped[spanID{k.facts.Trace, k.facts.Parent}]
			if !skipped {
				break
			}
			k.facts.Parent = parent
		}
		if k.facts.Parent == "" && (k.facts.Kind == spanAgent || k.facts.Kind == spanChain) {
			roots[t] = append(roots[t], k)
		}
		if k.step.Extra == nil {
			k.step.Extra = map[string]json.RawMessage{}
		}
		k.step.Extra[spanMember] = encodeValue(k.facts)
		t.Steps = append(t.Steps, k.step)
	}
	for t, of := range roots {
		if len(of) == 1 {
			// What the root says of the run, so that a list of runs can show it.
			f, s := &of[0].facts, &of[0].step
			t.Agent, t.Question, t.Answer, t.Parent, t.Strategy = f.Agent, s.Question, s.Answer, f.ParentRun, f.Strategy
			t.Started, t.Finished = s.Started, f.ended()
		}
	}
	slices.SortFunc(r.set.Runs, func(a, b *trail.Trail) int { return strings.Compare(a.ID, b.ID) })
	return &r.set
}

// stepOf makes a step of a span.
func stepOf(s *span, kind spanKind) (spanFacts, trail.Step) {
	a := s.attrs
	f := spanFacts{Trace: s.trace, Parent: s.parent, Kind: kind, Name: cutName(s.name), Own: a["ibid.trail"] == true}
	step := trail.Step{ID: s.id, Error: spanError(s), Tool: cutName(toolOf(s, kind))}
	f.readTimes(s, &step)
	f.Agent = a.text("gen_ai.agent.name", "agent.name", "gen_ai.workflow.name", "traceloop.workflow.name")
	if kind == spanAgent && !f.Own {
		f.Agent = cmp.Or(f.Agent, a.text("traceloop.entity.name"), s.name)
	}
	f.Agent = cutName(f.Agent)
	if n, ok := whole(a["ibid.step"]); ok && n <= maxSpanNumber {
		f.Number = n
	}
	if after, ok := structuredValue(a["ibid.after"]).([]any); ok {
		f.After = &[]int{}
		for _, v := range after {
			if n, ok := whole(v); ok && len(*f.After) < maxSpanAfter {
				*f.After = append(*f.After, n)
			}
		}
	}
	if model := a.text(
		"gen_ai.response.model", "llm.model_name", "gen_ai.request.model", "langfuse.observation.model.name",
	); model != "" {
		step.Extra = map[string]json.RawMessage{"model": encodeValue(cutName(model))}
	}
	if f.Own {
		f.ParentRun, f.Strategy = cutName(a.text("ibid.parent_run")), cutName(a.text("ibid.strategy"))
		f.RunID, f.StepID = cutName(a.text("ibid.nested_run")), cutName(a.text("ibid.id"))
		readOwn(s, &step)
	} else {
		readTexts(s, kind, &step)
	}
	readDocuments(s, kind, &step)
	if len(step.Sources) > 0 && (kind == spanRetriever || kind == spanReranker) && !f.Own {
		step.Outputs = nil // they are what it returned
	}
	fitStep(&step)
	return f, step
}

const (
	maxSpanNumber = 1_000_000 // the highest number that a span can give its step
	maxSpanAfter  = 500       // how many steps it can name that its step comes after
)

// ended returns when a span ended; zero: nobody knows.
func (f *spanFacts) ended() time.Time {
	if f.End == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.End).UTC()
}

// readTimes takes up when a span began and ended. Times that cannot be, of which there are clocks, are unknown.
func (f *spanFacts) readTimes(s *span, step *trail.Step) {
	if s.start == 0 || s.start > math.MaxInt64 || s.attrs["ibid.untimed"] == true {
		return
	}
	f.Start = int64(s.start)
	step.Started = time.Unix(0, f.Start).UTC()
	if s.end >= s.start && s.end <= math.MaxInt64 && s.attrs["ibid.unfinished"] != true {
		f.End = int64(s.end)
		step.Duration = time.Duration(f.End - f.Start)
	}
}

// toolOf returns what a step called.
func toolOf(s *span, kind spanKind) string {
	a := s.attrs
	if own, ok := a["ibid.tool"]; ok {
		return scalar(own)
	}
	switch kind {
	case spanTool:
		return cmp.Or(a.text("tool.name", "gen_ai.tool.name", "traceloop.entity.name"), s.name)
	case spanRetriever:
		return cmp.Or(a.text("gen_ai.data_source.id", "gen_ai.memory.store.id"), s.name)
	case spanReranker:
		return cmp.Or(a.text("reranker.model_name", "gen_ai.request.model"), s.name)
	case spanLLM:
		return "" // the model itself
	case spanAgent, spanChain, spanGuardrail, spanEvaluator, notKept:
	}
	return s.name
}

// spanError returns why a span failed; empty: it did not.
func spanError(s *span) string {
	errorType := s.attrs.text("error.type")
	if s.attrs.text("langfuse.observation.level") == "ERROR" {
		s.failed, s.message = true, cmp.Or(s.message, s.attrs.text("langfuse.observation.status_message"))
	}
	if !s.failed && errorType == "" {
		return ""
	}
	message := s.message
	for _, event := range s.events {
		if event.name == "exception" && message == "" {
			message = cmp.Or(event.attrs.text("exception.message"), event.attrs.text("exception.type"))
		}
	}
	return cutText(cmp.Or(message, errorType, "the span failed"), nil)
}

// cutText returns what of a text is kept, and says so if that is not all.
func cutText(s string, step *trail.Step) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > MaxSpanText && step != nil {
		addIssue(step, issueSpanCut, fmt.Sprintf("a text of %d bytes was cut to %d", len(s), MaxSpanText))
	}
	return text.Head(s, MaxSpanText)
}

// addIssue adds an issue of a step, once.
func addIssue(s *trail.Step, code, detail string) {
	issue := ibid.Issue{Code: code, Detail: detail}
	if !slices.Contains(s.Issues, issue) {
		s.Issues = append(s.Issues, issue)
	}
}

// fitStep makes a step small enough.
func fitStep(s *trail.Step) {
	size := len(s.Question) + len(s.Answer) + len(s.Reasoning) + len(s.Error) + len(s.Inputs) + len(s.Outputs)
	for i := range s.Sources {
		f := &s.Sources[i]
		size += len(f.Content) + 2*len(f.URL) + len(f.DocumentID) + len(f.Title) + 2000
	}
	if 6*size < MaxSpanStep { // JSON's longest escape has six bytes
		return
	}
	for _, shorten := range []func(){
		func() {
			if s.Outputs != nil {
				s.OutputsDigest, s.Outputs = digest(s.Outputs), nil
				addIssue(s, issueSpanCut, "the output is too large and was replaced by its digest")
			}
		},
		func() {
			if s.Inputs != nil {
				s.InputsDigest, s.Inputs = digest(s.Inputs), nil
				addIssue(s, issueSpanCut, "the input is too large and was replaced by its digest")
			}
		},
		func() {
			for i := range s.Sources {
				s.Sources[i].Content = ""
			}
			addIssue(s, issueSpanCut, "the documents are too large; their excerpts were kept")
		},
		func() {
			for _, long := range []*string{&s.Question, &s.Answer, &s.Reasoning, &s.Error} {
				*long = text.Head(*long, MaxSpanStep/64)
			}
			s.Sources = s.Sources[:min(len(s.Sources), 64)]
			addIssue(s, issueSpanCut, "the texts are too large and were cut")
		},
	} {
		if b, err := json.Marshal(s); err == nil && len(b) <= MaxSpanStep {
			return
		}
		shorten()
	}
}
