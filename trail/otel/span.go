package otel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/trail"
)

// spanMember is the member of a step that was made from a span and is not arranged yet. It contains a [spanFacts].
const spanMember = "otel_span"

// spanKind is what a span is in a run.
type spanKind string

const (
	spanAgent     spanKind = "agent" // an agent: the run, or one nested in it
	spanChain     spanKind = "chain" // a group of other spans
	spanLLM       spanKind = "llm"
	spanRetriever spanKind = "retriever"
	spanReranker  spanKind = "reranker"
	spanTool      spanKind = "tool"
	spanGuardrail spanKind = "guardrail"
	spanEvaluator spanKind = "evaluator" // judges the run from outside: neither it nor the spans below it are steps
)

// spanFacts has what a step has no fields for.
type spanFacts struct {
	Trace  string   `json:"trace"`
	Parent string   `json:"parent,omitempty"` // the nearest kept span above, as far as its request shows
	Kind   spanKind `json:"kind"`
	Name   string   `json:"name,omitempty"`
	Agent  string   `json:"agent,omitempty"` // whose run it is, if known
	Number int      `json:"step,omitempty"`  // that the program gave to the step
	After  *[]int   `json:"after,omitempty"`
	// nanoseconds since 1970; 0 if unknown. In a step's JSON they are less precise
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Own means that [Write] wrote the span, so that its attributes about sources count.
	Own       bool   `json:"own,omitempty"`
	ParentRun string `json:"parent_run,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	RunID     string `json:"run,omitempty"` // of a nested run
	StepID    string `json:"id,omitempty"`
	Response  string `json:"response,omitempty"` // the provider's id of a model's response
	Call      string `json:"call,omitempty"`     // the id of a tool's call
	// Results are what tools returned to a model since its last answer.
	Results []toolResult `json:"results,omitempty"`
}

// kindOf returns the kind of a span, or "" if it is not part of a run. If conventions disagree, as when a library calls
// everything a chain for want of something better, the most specific one counts.
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
	// Early versions of instrumentations name no operation.
	case a.text("gen_ai.tool.name") != "":
		return spanTool
	case a.text("gen_ai.request.model") != "" && !strings.Contains(s.name, "embed"):
		return spanLLM
	case a.text("gen_ai.agent.name") != "" && (a["gen_ai.input.messages"] != nil || a["gen_ai.output.messages"] != nil):
		return spanAgent
	}
	return ""
}

// isKnown reports whether a span has the kind of a known convention, although it is not kept.
func isKnown(s *span) bool {
	return s.attrs.text(
		attrKind, "langfuse.observation.type", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type",
	) != ""
}

// notKept is the kind of spans that are known but not shown in a trail: embeddings, prompts.
const notKept spanKind = "-"

var kindByName = map[string]spanKind{
	"agent": spanAgent,
	"llm":   spanLLM, "generation": spanLLM, "chat": spanLLM, "completion": spanLLM, "model": spanLLM,
	"retriever": spanRetriever,
	"reranker":  spanReranker, "rerank": spanReranker,
	"tool":      spanTool,
	"guardrail": spanGuardrail,
	"evaluator": spanEvaluator,
	"embedding": notKept, "embedder": notKept, "prompt": notKept, "event": notKept, "-": notKept,
}

var kindByOperation = map[string]spanKind{
	"chat": spanLLM, "generate_content": spanLLM, "text_completion": spanLLM,
	"invoke_agent": spanAgent,
	"execute_tool": spanTool,
	"retrieval":    spanRetriever, "search_memory": spanRetriever, "vector_db_retrieve": spanRetriever,
	"invoke_workflow": spanChain, "plan": spanChain, "execute_task": spanChain,
}

// reader collects the spans of one request.
type reader struct {
	runAttributes []string
	set           SpanSet
	seen          int
	kept          []keptSpan
	latest        map[spanID]int    // index in kept of each span; of repeated ones, the one that ends last
	skipped       map[spanID]string // the parents of the spans that were not kept
	runs          map[string]string // by trace, if its spans name one
}

type spanID struct{ trace, id string }

type keptSpan struct {
	run   string // that the span names; may be empty
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
func (r *reader) addSpan(resource attributes, b []byte, parse spanParser) {
	if r.seen++; r.seen > maxSpans {
		r.reject(fmt.Errorf("the request has more than %d spans", maxSpans))
		return
	}
	s, err := readSpan(b, parse)
	if err != nil {
		r.reject(fmt.Errorf("span %d: %w", r.seen, err))
		return
	}
	s.translate()
	kind := kindOf(s)
	if kind == spanAgent && s.isNode() || kind == spanLLM && s.isRequest() {
		kind = spanChain
	}
	if kind == "" {
		r.set.Ignored++
		if attribute := s.unreadAttribute(); attribute != "" && !isKnown(s) {
			if r.set.Unread++; r.set.Example == "" {
				r.set.Example = fmt.Sprintf("%.60q with the attribute %.60q", s.name, attribute)
			}
		}
		r.skipped[spanID{s.trace, s.id}] = s.parent
		return
	}
	k := keptSpan{run: cmp.Or(s.attrs.text(r.runAttributes...), resource.text(r.runAttributes...))}
	if k.run != "" && r.runs[s.trace] == "" {
		r.runs[s.trace] = k.run
	}
	k.facts, k.step = stepOf(s, kind)
	if !k.facts.Own {
		k.facts.Agent = cmp.Or(k.facts.Agent, s.attrs.text("langfuse.trace.name"), service(resource))
	}
	id := spanID{s.trace, s.id}
	if at, twice := r.latest[id]; !twice || k.facts.End >= r.kept[at].facts.End {
		r.latest[id] = len(r.kept)
	}
	r.kept = append(r.kept, k)
}

// service returns the service's name, or "" for the one that OpenTelemetry's SDKs make up.
func service(resource attributes) string {
	name := resource.text("service.name")
	if name == "unknown_service" || strings.HasPrefix(name, "unknown_service:") {
		return ""
	}
	return name
}

func (r *reader) reject(err error) {
	r.set.Rejected++
	if r.set.Reason == "" {
		r.set.Reason = err.Error()
	}
}

// finish makes runs from the spans.
func (r *reader) finish() *SpanSet {
	byRun, roots := map[string]*trail.Trail{}, map[*trail.Trail][]*keptSpan{}
	for i := range r.kept {
		k := &r.kept[i]
		if r.latest[spanID{k.facts.Trace, k.step.ID}] != i { // it is repeated
			continue
		}
		run := cmp.Or(k.run, r.runs[k.facts.Trace], k.facts.Trace)
		t := byRun[run]
		if t == nil {
			t = &trail.Trail{ID: run}
			byRun[run] = t
			r.set.Runs = append(r.set.Runs, t)
		}
		for range r.seen { // bounded, since parents may form a cycle
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
		r.noteUnread(k)
		k.step.Extra[spanMember] = encodeValue(k.facts)
		t.Steps = append(t.Steps, k.step)
	}
	for t, of := range roots {
		if len(of) == 1 {
			// The root describes the run, so that a list of runs can show it.
			f, s := &of[0].facts, &of[0].step
			t.Agent, t.Question, t.Answer, t.Parent, t.Strategy = f.Agent, s.Question, s.Answer, f.ParentRun, f.Strategy
			t.Started, t.Finished = s.Started, f.ended()
		}
	}
	slices.SortFunc(r.set.Runs, func(a, b *trail.Trail) int { return strings.Compare(a.ID, b.ID) })
	return &r.set
}

// noteUnread counts a span whose parts cannot be read. Its result is read again when the run is arranged: which spans
// are tools depends on the others.
func (r *reader) noteUnread(k *keptSpan) {
	s := trail.Step{Tool: k.step.Tool, Issues: slices.Clone(k.step.Issues)}
	if k.facts.Kind == spanTool && !k.facts.Own && k.step.Error == "" && k.step.Outputs != nil && !isHandoff(s.Tool) {
		s.AddResult(k.step.Outputs)
	}
	if len(s.Issues) == 0 {
		return
	}
	if r.set.Partial++; r.set.PartialExample == "" {
		r.set.PartialExample = s.Issues[0].Detail
	}
}

// stepOf makes a step from a span.
func stepOf(s *span, kind spanKind) (spanFacts, trail.Step) {
	a := s.attrs
	f := spanFacts{Trace: s.trace, Parent: s.parent, Kind: kind, Name: cutName(s.name), Own: a["ibid.trail"] == true}
	step := trail.Step{ID: s.id, Error: spanError(s), Tool: cutName(toolOf(s, kind))}
	f.readTimes(s, &step)
	f.Agent = a.text("gen_ai.agent.name", "agent.name", "gen_ai.workflow.name", "traceloop.workflow.name")
	if kind == spanAgent && !f.Own {
		// A span without an agent's name is called as its operation.
		name := strings.TrimSpace(strings.TrimPrefix(s.name, a.text("gen_ai.operation.name")))
		f.Agent = cmp.Or(f.Agent, a.text("traceloop.entity.name"), name)
	}
	f.Agent = cutName(f.Agent)
	f.Response = cutName(a.text("gen_ai.response.id", "llm.response.id"))
	f.Call = cutName(a.text("gen_ai.tool.call.id", "tool.call.id", "tool_call.id", "ai.toolCall.id"))
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
		if kind == spanLLM {
			f.Results = readSpanResults(s, s.input(), &step)
		}
	}
	readDocuments(s, &step)
	if isSearch := kind == spanRetriever || kind == spanReranker; isSearch && !f.Own {
		if len(step.Sources) == 0 && !step.NoSources {
			readResult(s, &step)
		}
		if len(step.Sources) > 0 {
			step.Outputs = nil // the documents are its output
		}
	}
	fitStep(&step)
	return f, step
}

const (
	maxSpanNumber = 1_000_000 // the highest step number that a span may have
	maxSpanAfter  = 500       // how many steps a span may name that its step comes after
)

// ended returns when a span ended, or the zero time if that is unknown.
func (f *spanFacts) ended() time.Time {
	if f.End == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.End).UTC()
}

// readTimes reads when a span began and ended. Impossible times, which some clocks produce, are unknown.
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

// toolOf returns the tool that a step called.
func toolOf(s *span, kind spanKind) string {
	a := s.attrs
	if own, ok := a["ibid.tool"]; ok {
		return scalar(own)
	}
	switch kind {
	case spanTool:
		return cmp.Or(a.text("tool.name", "gen_ai.tool.name", "traceloop.entity.name"), s.name)
	case spanRetriever:
		return cmp.Or(
			a.text(attrTool, "gen_ai.data_source.id", "gen_ai.memory.store.id", "traceloop.entity.name"), s.name,
		)
	case spanReranker:
		return cmp.Or(a.text("reranker.model_name", "gen_ai.request.model"), s.name)
	case spanLLM:
		return "" // the model itself
	case spanAgent, spanChain, spanGuardrail, spanEvaluator, notKept:
	}
	return s.name
}

// spanError returns why a span failed, or "" if it did not.
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

// cutText cuts a text that is too long, and reports that as an issue of the step, unless that is nil.
func cutText(s string, step *trail.Step) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > maxSpanText && step != nil {
		addIssue(step, issueSpanCut, fmt.Sprintf("a text of %d bytes was cut to %d", len(s), maxSpanText))
	}
	return text.Head(s, maxSpanText)
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
	if 6*size < maxSpanStep { // JSON's longest escape has six bytes
		return
	}
	for _, shorten := range []func(){
		func() { digestOf(s, "output", &s.Outputs, &s.OutputsDigest) },
		func() { digestOf(s, "input", &s.Inputs, &s.InputsDigest) },
		func() {
			for i := range s.Sources {
				s.Sources[i].Content = ""
			}
			addIssue(s, issueSpanCut, "the documents are too large; their excerpts were kept")
		},
		func() {
			for _, long := range []*string{&s.Question, &s.Answer, &s.Reasoning, &s.Error} {
				*long = text.Head(*long, maxSpanStep/64)
			}
			s.Sources = s.Sources[:min(len(s.Sources), 64)]
			addIssue(s, issueSpanCut, "the texts are too large and were cut")
		},
	} {
		if b, err := json.Marshal(s); err == nil && len(b) <= maxSpanStep {
			return
		}
		shorten()
	}
}

// digestOf replaces a payload of a step by its digest.
func digestOf(s *trail.Step, name string, payload *json.RawMessage, sum *string) {
	if *payload != nil {
		*sum, *payload = digest(*payload), nil
		addIssue(s, issueSpanCut, "the "+name+" is too large and was replaced by its digest")
	}
}

// maxSpanName is the maximum length in bytes of the id, title and URL of a document. Longer ids and titles are cut,
// longer URLs ignored.
const maxSpanName = 2048

// readDocuments fills in the sources of a step: what it retrieved, in order.
func readDocuments(s *span, step *trail.Step) {
	documents, explicit := s.documents()
	if len(documents) == 0 {
		step.NoSources = explicit
		return
	}
	if len(documents) > maxSpanDocuments {
		addIssue(step, issueSpanCut, fmt.Sprintf("%d of %d documents were kept", maxSpanDocuments, len(documents)))
		documents = documents[:maxSpanDocuments]
	}
	results := make([]trail.Result, len(documents))
	for i, d := range documents {
		results[i] = d.result(step)
	}
	step.Sources = trail.SourcesFromResults(results)
	for i := range step.Sources {
		step.Sources[i].Used = false // until the run shows that it was
		documents[i].setOwn(&step.Sources[i])
	}
}

// readResult fills in the sources of a step from what a retriever returned.
func readResult(s *span, step *trail.Step) {
	output := s.output()
	if output == nil {
		return
	}
	if list, ok := output.([]any); ok && len(list) == 0 {
		step.NoSources = true
		return
	}
	step.AddResult(encodeValue(output))
	limitSources(step)
}

// limitSources cuts what is too long of the sources of a step, and resets their use until the run shows it.
func limitSources(step *trail.Step) {
	if n := len(step.Sources); n > maxSpanDocuments {
		addIssue(step, issueSpanCut, fmt.Sprintf("%d of %d documents were kept", maxSpanDocuments, n))
		step.Sources = step.Sources[:maxSpanDocuments]
	}
	for i := range step.Sources {
		f := &step.Sources[i]
		f.Content = cutText(f.Content, step)
		f.DocumentID, f.Title, f.Used = cutName(f.DocumentID), cutName(f.Title), false
		if len(f.URL) > maxSpanName {
			f.URL = ""
		}
	}
}

// document is a document of a span, its parts named as in the conventions.
type document struct {
	id, content, score any
	metadata           attributes
	members            attributes // the whole document, if it is an object
}

// documents returns what a span retrieved. Explicit means that the span states that this is all.
func (s *span) documents() (list []document, explicit bool) {
	for _, prefix := range []string{"retrieval.documents", "reranker.output_documents", "reranker.input_documents"} {
		for _, d := range s.attrs.list(prefix) {
			list = append(list, document{
				id:       d["document.id"],
				content:  d["document.content"],
				score:    d["document.score"],
				metadata: members(structuredValue(d["document.metadata"])),
			})
		}
		if list != nil {
			return list, true
		}
	}
	for _, key := range []string{"gen_ai.retrieval.documents", "gen_ai.memory.records"} {
		if found, ok := s.detail(key).([]any); ok {
			return documentsOf(found), true
		}
	}
	return nil, false
}

// documentsOf reads the documents of OpenTelemetry's own attributes.
func documentsOf(found []any) []document {
	list := make([]document, 0, len(found))
	for _, item := range found {
		object := members(item)
		d := document{members: object, metadata: members(structuredValue(object["metadata"]))}
		d.id = object.text("id", "document_id", "doc_id", "id_", "uri")
		d.content = object.text("content", "page_content", "text", "snippet", "page_text")
		d.score = object["score"]
		if d.score == nil {
			d.score = object["relevance_score"]
		}
		if object != nil && (d.content != "" || d.id != "" || object.text("url") != "") {
			list = append(list, d)
		}
	}
	return list
}

// find returns the first of the named members that the metadata or, failing that, the document itself has.
func (d *document) find(names ...string) any {
	for _, from := range []attributes{d.metadata, d.members} {
		for _, name := range names {
			if v, ok := from[name]; ok && v != nil && v != "" {
				return v
			}
		}
	}
	return nil
}

// result reads a document. The names are those that loaders and stores commonly use; a page is only taken from names
// whose pages count from 1.
func (d *document) result(step *trail.Step) trail.Result {
	r := trail.Result{
		DocumentID: scalar(d.id),
		Content:    cutText(textOrJSON(d.content), step),
		Title:      scalar(d.find("title", "document_title")),
		URL:        scalar(d.find("url", "source_url", "link")),
		Version:    scalar(d.find("version", "ibid.version")),
	}
	if source := scalar(d.find("source")); source != "" {
		if r.URL == "" && (strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")) {
			r.URL = source
		}
		if r.DocumentID == "" {
			r.DocumentID = source
		}
	}
	r.DocumentID = cmp.Or(r.DocumentID, scalar(d.find("document_id", "doc_id")))
	r.Title = cmp.Or(r.Title, scalar(d.find("file_name", "filename")))
	if score, ok := number(d.score); ok {
		r.Score = &score
	}
	if index, ok := whole(d.find("chunk_index")); ok {
		r.ChunkIndex = &index
	}
	var at ibid.Locator
	if page, err := strconv.Atoi(scalar(d.find("page_number", "page_label"))); err == nil && page > 0 {
		at.Page = page
	}
	at.Chunk = scalar(d.find("chunk_id"))
	if at.Page != 0 || at.Chunk != "" {
		r.Locator = &at
	}
	r.DocumentID, r.Title, r.Version = cutName(r.DocumentID), cutName(r.Title), cutName(r.Version)
	if len(r.URL) > maxSpanName {
		r.URL = ""
	}
	return r
}

func cutName(s string) string { return text.Head(strings.ToValidUTF8(s, "\ufffd"), maxSpanName) }

// ownMetadata is the metadata, in a document that [Write] wrote, that the conventions have no attribute for. Its
// members are sorted by name.
type ownMetadata struct {
	ChunkIndex *int             `json:"chunk_index,omitempty"`
	Excerpt    *string          `json:"ibid.excerpt,omitempty"` // nil if the content begins with it
	Key        string           `json:"ibid.key,omitempty"`
	Locator    *ibid.Locator    `json:"ibid.locator,omitempty"`
	Overlap    *float64         `json:"ibid.overlap,omitempty"`
	Passage    *bool            `json:"ibid.passage,omitempty"` // false if only an excerpt is known
	Rank       *int             `json:"ibid.rank"`
	Role       string           `json:"ibid.role"` // of the source in its step: one or more roles
	Origin     ibid.ScoreOrigin `json:"ibid.score_origin,omitempty"`
	Usage      *float64         `json:"ibid.usage,omitempty"`
	Version    string           `json:"ibid.version,omitempty"`
	Page       int              `json:"page_number,omitempty"`
	Title      string           `json:"title,omitempty"`
	URL        string           `json:"url,omitempty"`
}

// The roles of a source in its step.
const (
	roleRetrieved = "retrieved"
	roleUsed      = "used"
	roleCited     = "cited"
)

// setOwn fills in what [Write] stored about a source in its metadata.
func (d *document) setOwn(s *trail.Source) {
	role, ok := d.metadata["ibid.role"].(string)
	if !ok {
		return
	}
	var own ownMetadata
	_ = json.Unmarshal(encodeValue(map[string]any(d.metadata)), &own) // members of another type are not ours
	if own.Origin != "" && s.Relevance != nil {
		s.Origin = own.Origin
	}
	if own.Rank != nil {
		s.Rank = max(0, *own.Rank)
	}
	s.Overlap, s.Usage, s.Key = own.Overlap, own.Usage, cmp.Or(cutName(own.Key), s.Key)
	if d.metadata["ibid.locator"] != nil {
		s.Locator = own.Locator
	}
	if own.Passage != nil && !*own.Passage {
		s.Content = ""
	}
	if own.Excerpt != nil {
		s.Excerpt = cutText(*own.Excerpt, nil)
	}
	s.Retrieved = strings.Contains(role, roleRetrieved)
	s.Used = strings.Contains(role, roleUsed)
	s.Cited = strings.Contains(role, roleCited)
}
