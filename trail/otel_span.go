package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
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
	// Own says that [Trail.Traces] wrote the span: what it says of sources counts.
	Own       bool   `json:"own,omitempty"`
	ParentRun string `json:"parent_run,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	RunID     string `json:"run,omitempty"` // of a nested run
	StepID    string `json:"id,omitempty"`
}

// kindOf returns what a span stands for; empty: it has nothing to do with a run. Where conventions disagree, as when a
// library that knows nothing better calls everything a chain, the most specific one counts.
func kindOf(s *rawSpan) spanKind {
	a := s.attrs
	said := [...]spanKind{
		kindByName(a.text("openinference.span.kind")),
		kindByName(a.text("langfuse.observation.type")),
		kindByOperation(
			a.text("gen_ai.operation.name"),
		),
		kindByName(a.text("traceloop.span.kind")),
		kindByName(a.text("llm.request.type")),
	}
	vague := spanKind("")
	for _, kind := range said {
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

func kindByName(name string) spanKind {
	switch strings.ToLower(name) {
	case "":
		return ""
	case "agent":
		return spanAgent
	case "llm", "generation", "chat", "completion":
		return spanLLM
	case "retriever":
		return spanRetriever
	case "reranker", "rerank":
		return spanReranker
	case "tool":
		return spanTool
	case "guardrail":
		return spanGuardrail
	case "evaluator":
		return spanEvaluator
	case "embedding", "prompt", "event":
		return notKept
	}
	return spanChain // chain, workflow, task, span, unknown
}

func kindByOperation(name string) spanKind {
	switch name {
	case "chat", "generate_content", "text_completion":
		return spanLLM
	case "invoke_agent":
		return spanAgent
	case "execute_tool":
		return spanTool
	case "retrieval", "search_memory":
		return spanRetriever
	case "invoke_workflow", "plan":
		return spanChain
	case "":
		return ""
	}
	return notKept
}

// spanReader gathers the spans of one request.
type spanReader struct {
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
	step  Step
}

func newSpanReader(o *TraceOptions) *spanReader {
	r := &spanReader{
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

// span takes one span of the request.
func (r *spanReader) span(resource attributes, read func() (*rawSpan, error)) {
	if r.seen++; r.seen > MaxSpans {
		r.reject(fmt.Errorf("the request has more than %d spans", MaxSpans))
		return
	}
	s, err := read()
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
	k.facts, k.step = readSpan(s, kind)
	if !k.facts.Own {
		k.facts.Agent = cmp.Or(k.facts.Agent, s.attrs.text("langfuse.trace.name"), resource.text("service.name"))
	}
	id := spanID{s.trace, s.id}
	if at, twice := r.latest[id]; !twice || k.facts.End >= r.kept[at].facts.End {
		r.latest[id] = len(r.kept)
	}
	r.kept = append(r.kept, k)
}

func (r *spanReader) reject(err error) {
	r.set.Rejected++
	if r.set.Reason == "" {
		r.set.Reason = err.Error()
	}
}

// finish makes runs of the spans.
func (r *spanReader) finish() *SpanSet {
	byRun, roots := map[string]*Trail{}, map[*Trail][]*keptSpan{}
	for i := range r.kept {
		k := &r.kept[i]
		if r.latest[spanID{k.facts.Trace, k.step.ID}] != i { // it stands there twice
			continue
		}
		run := cmp.Or(k.run, r.runs[k.facts.Trace], k.facts.Trace)
		t := byRun[run]
		if t == nil {
			t = &Trail{ID: run}
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
			t.begin(of[0])
		}
	}
	slices.SortFunc(r.set.Runs, func(a, b *Trail) int { return strings.Compare(a.ID, b.ID) })
	return &r.set
}

// begin takes up what the span that is the run says of it, so that a list of runs can show it.
func (t *Trail) begin(root *keptSpan) {
	f, s := &root.facts, &root.step
	t.Agent, t.Question, t.Answer, t.Parent, t.Strategy = f.Agent, s.Question, s.Answer, f.ParentRun, f.Strategy
	t.Started, t.Finished = s.Started, f.ended()
}

// readSpan makes a step of a span.
func readSpan(s *rawSpan, kind spanKind) (spanFacts, Step) {
	a := s.attrs
	f := spanFacts{Trace: s.trace, Parent: s.parent, Kind: kind, Name: cutName(s.name), Own: a["ibid.trail"] == true}
	step := Step{ID: s.id, Error: spanError(s), Tool: cutName(toolOf(s, kind))}
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
func (f *spanFacts) readTimes(s *rawSpan, step *Step) {
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
func toolOf(s *rawSpan, kind spanKind) string {
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
func spanError(s *rawSpan) string {
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
func cutText(s string, step *Step) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= MaxSpanText {
		return s
	}
	if step != nil {
		step.cut(fmt.Sprintf("a text of %d bytes was cut to %d", len(s), MaxSpanText))
	}
	return strings.ToValidUTF8(s[:MaxSpanText], "")
}

// cut reports what was left out of a span, once for each thing.
func (s *Step) cut(detail string) {
	issue := ibid.Issue{Code: issueSpanCut, Detail: detail}
	if !slices.Contains(s.Issues, issue) {
		s.Issues = append(s.Issues, issue)
	}
}

// fitStep makes a step small enough.
func fitStep(s *Step) {
	size := len(s.Question) + len(s.Answer) + len(s.Reasoning) + len(s.Error) + len(s.Inputs) + len(s.Outputs)
	for i := range s.Sources {
		size += len(
			s.Sources[i].Content,
		) + 2*len(
			s.Sources[i].URL,
		) + len(
			s.Sources[i].DocumentID,
		) + len(
			s.Sources[i].Title,
		) + 2000
	}
	if 6*size < MaxSpanStep { // JSON's longest escape has six bytes
		return
	}
	for _, shorten := range []func(){
		func() {
			if s.Outputs != nil {
				s.OutputsDigest, s.Outputs = digest(s.Outputs), nil
				s.cut("the output is too large and was replaced by its digest")
			}
		},
		func() {
			if s.Inputs != nil {
				s.InputsDigest, s.Inputs = digest(s.Inputs), nil
				s.cut("the input is too large and was replaced by its digest")
			}
		},
		func() {
			for i := range s.Sources {
				s.Sources[i].Content = ""
			}
			s.cut("the documents are too large; their excerpts were kept")
		},
		func() {
			const most = MaxSpanStep / 64
			for _, text := range []*string{&s.Question, &s.Answer, &s.Reasoning, &s.Error} {
				*text = strings.ToValidUTF8((*text)[:min(len(*text), most)], "")
			}
			s.Sources = s.Sources[:min(len(s.Sources), 64)]
			s.cut("the texts are too large and were cut")
		},
	} {
		if b, err := json.Marshal(s); err == nil && len(b) <= MaxSpanStep {
			return
		}
		shorten()
	}
}
