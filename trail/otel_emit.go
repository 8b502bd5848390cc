package trail

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// EmitOptions say what [Trail.Traces] writes. Nil stands for the zero value.
type EmitOptions struct {
	// NoContent leaves out what people and models said: questions, answers, reasoning, inputs, outputs, contexts and
	// the text of passages. Inputs and outputs become their digests.
	NoContent bool
}

// Traces writes the run as an OTLP/HTTP trace request: one span for the run, and below it one for each step, with the
// attributes of both OpenInference and OpenTelemetry's GenAI conventions. contentType is [TracesJSON] or
// [TracesProtobuf]; other ones give [ErrTraceType].
//
// The same trail always gives the same ids: the trace's is the run's if that is 32 hex digits, else made from it, and a
// step's span has the step's ID if that is 16 hex digits, else one made from the run and the number.
//
// [ReadTraces] reads from it the same steps with the same sources, scores and ranks. Lost are members that trail does
// not know (Extra), issues, and of captured answers all but the text and the id.
func (t *Trail) Traces(contentType string, o *EmitOptions) ([]byte, error) {
	e := &emitter{trace: t.ID, run: t.ID}
	if o != nil {
		e.options = *o
	}
	if !isID(e.trace, 32) {
		sum := sha256.Sum256([]byte("ibid trace\x00" + t.ID))
		e.trace = hex.EncodeToString(sum[:16])
	}
	e.runSpan(t, "", 0)
	switch contentType {
	case TracesJSON:
		return e.json(t.Agent)
	case TracesProtobuf:
		return e.proto(t.Agent), nil
	}
	return nil, fmt.Errorf("write a trace: %w", ErrTraceType)
}

// emitter writes the spans of a trail.
type emitter struct {
	options    EmitOptions
	trace, run string
	spans      []outSpan
}

// outSpan is a span to be written.
type outSpan struct {
	id, parent, name string
	kind             int // OTLP's: 1 internal, 3 client
	start, end       uint64
	attrs            []outAttribute
	links            []string // ids of spans of the same trace
	failed           string   // why; empty: it did not
}

// outAttribute has a string, bool, int64, float64 or a list of these.
type outAttribute struct {
	key   string
	value any
}

func (s *outSpan) set(key string, value any) {
	switch value {
	case "", nil, false:
		return
	}
	s.attrs = append(s.attrs, outAttribute{key, value})
}

// runSpan adds the span of a run, and those of its steps below it.
func (e *emitter) runSpan(t *Trail, parent string, depth int) {
	of := &outSpan{
		id:     e.spanID("", parent, "run"),
		parent: parent,
		name:   "invoke_agent " + cmp.Or(t.Agent, "run"),
		kind:   1,
	}
	of.set("openinference.span.kind", "AGENT")
	of.set("gen_ai.operation.name", "invoke_agent")
	of.set("gen_ai.agent.name", t.Agent)
	of.set("ibid.trail", true)
	of.set("ibid.run", e.run)
	if depth > 0 {
		of.set("ibid.nested_run", t.ID)
	}
	of.set("ibid.parent_run", t.Parent)
	of.set("ibid.strategy", t.Strategy)
	answer := t.Answer
	if answer == "" && t.Final != nil {
		answer = t.Final.Text
	}
	e.texts(of, t.Question, answer)
	e.runTimes(of, t)
	e.spans = append(e.spans, *of)
	ids := make([]string, len(t.Steps))
	for i := range t.Steps {
		ids[i] = e.spanID(t.Steps[i].ID, of.id, "step", strconv.Itoa(i))
	}
	for i, before := range t.graph() {
		s := &t.Steps[i]
		span := &outSpan{id: ids[i], parent: of.id}
		for _, b := range before {
			span.links = append(span.links, ids[b])
		}
		e.step(span, s, t)
		e.spans = append(e.spans, *span)
		if s.Nested != nil && depth < MaxNested {
			e.runSpan(s.Nested, span.id, depth+1)
		}
	}
}

func (e *emitter) runTimes(of *outSpan, t *Trail) {
	of.start, of.end = unixNano(t.Started), unixNano(t.Finished)
	if t.Started.IsZero() {
		of.set("ibid.untimed", true)
	}
	if t.Finished.IsZero() {
		of.set("ibid.unfinished", true)
		for i := range t.Steps {
			of.end = max(of.end, unixNano(t.Steps[i].Started.Add(max(0, t.Steps[i].Duration))))
		}
	}
	of.end = max(of.end, of.start)
}

func unixNano(t time.Time) uint64 {
	if t.Year() < 1970 || t.Year() > 2261 {
		return 0
	}
	return uint64(t.UnixNano())
}

// spanID returns own where it can be a span's id, else one made from the run and the names.
func (e *emitter) spanID(own string, names ...string) string {
	if isID(own, 16) {
		return own
	}
	sum := sha256.Sum256([]byte("ibid span\x00" + e.run + "\x00" + strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// step fills in the span of a step.
func (e *emitter) step(span *outSpan, s *Step, t *Trail) {
	kind, operation := stepKind(s)
	span.kind = 1
	if kind == "LLM" || kind == "RETRIEVER" {
		span.kind = 3
	}
	span.name = strings.TrimSpace(cmp.Or(operation, "step") + " " + s.Tool)
	span.set("openinference.span.kind", kind)
	span.set("gen_ai.operation.name", operation)
	span.set("ibid.trail", true)
	span.set("ibid.run", e.run)
	span.set("ibid.step", int64(s.Number))
	span.set("ibid.id", s.ID)
	if s.After != nil {
		after := make([]any, len(s.After))
		for i, n := range s.After {
			after[i] = int64(n)
		}
		span.set("ibid.after", after)
	}
	span.attrs = append(span.attrs, outAttribute{"ibid.tool", s.Tool})
	switch kind {
	case "TOOL":
		span.set("tool.name", s.Tool)
		span.set("gen_ai.tool.name", s.Tool)
	case "RETRIEVER":
		span.set("gen_ai.data_source.id", s.Tool)
	}
	if s.Confidence != nil && isFinite(*s.Confidence) {
		span.set("ibid.confidence", *s.Confidence)
	}
	if e.texts(span, s.Question, s.Answer); !e.options.NoContent {
		e.messages(span, s, kind)
	}
	e.private(span, s, kind)
	e.sources(span, s, kind)
	span.failed = s.Error
	if span.start = unixNano(s.Started); span.start == 0 {
		span.start = unixNano(t.Started)
		span.set("ibid.untimed", true)
	}
	span.end = span.start
	if s.Duration > 0 {
		span.end += uint64(s.Duration)
	}
}

// stepKind returns what the conventions call a step.
func stepKind(s *Step) (openInference, genAI string) {
	retrieved := false
	for i := range s.Sources {
		retrieved = retrieved || s.Sources[i].Retrieved
	}
	switch {
	case s.Nested != nil && s.Tool == "":
		return "CHAIN", ""
	case (retrieved || s.NoSources) && s.Answer == "":
		return "RETRIEVER", "retrieval"
	case s.Tool != "":
		return "TOOL", "execute_tool"
	}
	return "LLM", "chat"
}

// texts sets what a span was asked and what it answered.
func (e *emitter) texts(span *outSpan, question, answer string) {
	if e.options.NoContent {
		return
	}
	for _, text := range []struct{ name, value string }{{"input", question}, {"output", answer}} {
		if text.value != "" {
			span.set(text.name+".value", text.value)
			span.set(text.name+".mime_type", textPlain)
		}
	}
	span.set("ibid.question", question)
	span.set("ibid.answer", answer)
}

// messages sets a step's texts once more, as the GenAI conventions have them.
func (e *emitter) messages(span *outSpan, s *Step, kind string) {
	switch kind {
	case "RETRIEVER":
		span.set("gen_ai.retrieval.query.text", s.Question)
	case "LLM":
		if s.Question != "" {
			span.set("gen_ai.input.messages", genAIMessage(roleUser, s.Question))
			span.set("llm.input_messages.0.message.role", roleUser)
			span.set("llm.input_messages.0.message.content", s.Question)
		}
		if s.Answer != "" {
			span.set("gen_ai.output.messages", genAIMessage(roleAssistant, s.Answer))
			span.set("llm.output_messages.0.message.role", roleAssistant)
			span.set("llm.output_messages.0.message.content", s.Answer)
		}
	case "TOOL":
		span.set("gen_ai.tool.call.arguments", string(s.Inputs))
		span.set("gen_ai.tool.call.result", cmp.Or(string(s.Outputs), s.Answer))
	}
}

func genAIMessage(role, text string) string {
	m := map[string]any{"role": role, "parts": []any{map[string]any{"type": "text", "content": text}}}
	if role == roleAssistant {
		m["finish_reason"] = "stop"
	}
	return string(encodeValue([]any{m}))
}

// private sets what is for ibid's own eyes.
func (e *emitter) private(span *outSpan, s *Step, kind string) {
	inputs, outputs := s.Inputs, s.Outputs
	inputsDigest, outputsDigest := s.InputsDigest, s.OutputsDigest
	if e.options.NoContent {
		if inputs != nil {
			inputsDigest, inputs = digest(inputs), nil
		}
		if outputs != nil {
			outputsDigest, outputs = digest(outputs), nil
		}
	} else {
		span.set("ibid.reasoning", s.Reasoning)
		if len(s.Context) > 0 {
			context := make([]any, len(s.Context))
			for i, text := range s.Context {
				context[i] = text
			}
			span.set("ibid.context", context)
		}
	}
	if s.Question == "" && inputs != nil {
		span.set("input.value", string(inputs))
		span.set("input.mime_type", "application/json")
	}
	if s.Answer == "" && outputs != nil && kind != "RETRIEVER" {
		span.set("output.value", string(outputs))
		span.set("output.mime_type", "application/json")
	}
	span.set("ibid.inputs", string(inputs))
	span.set("ibid.outputs", string(outputs))
	span.set("ibid.inputs_digest", inputsDigest)
	span.set("ibid.outputs_digest", outputsDigest)
	var answers []any
	for i := range s.Answers {
		if s.Answers[i].ID != "" {
			answers = append(answers, s.Answers[i].ID)
		}
	}
	if answers != nil {
		span.set("ibid.answers", answers)
	}
}

// sources sets a step's sources as documents.
func (e *emitter) sources(span *outSpan, s *Step, kind string) {
	short := make([]any, 0, len(s.Sources))
	for i := range s.Sources {
		from := &s.Sources[i]
		prefix := "retrieval.documents." + strconv.Itoa(i) + ".document."
		span.set(prefix+"id", from.DocumentID)
		document := map[string]any{"id": from.DocumentID}
		if !e.options.NoContent {
			span.set(prefix+"content", from.text())
		}
		if from.Relevance != nil && isFinite(*from.Relevance) {
			span.set(prefix+"score", *from.Relevance)
			document["score"] = *from.Relevance
		}
		span.set(prefix+"metadata", string(encodeValue(e.metadata(from))))
		short = append(short, document)
	}
	if kind == "RETRIEVER" {
		span.set("gen_ai.retrieval.documents", string(encodeValue(short)))
	}
}

// metadata returns what the conventions have no attribute for.
func (e *emitter) metadata(s *Source) map[string]any {
	m := map[string]any{"ibid.role": roles(s)}
	set := func(name string, value any, given bool) {
		if given {
			m[name] = value
		}
	}
	set("title", s.Title, s.Title != "")
	set("url", s.URL, s.URL != "")
	set("ibid.version", s.Version, s.Version != "")
	set("ibid.key", s.Key, s.Key != "")
	set("ibid.score_origin", s.Origin, s.Origin != "" && s.Relevance != nil)
	if s.ChunkIndex != nil {
		m["chunk_index"] = *s.ChunkIndex
	}
	if s.Overlap != nil && isFinite(*s.Overlap) {
		m["ibid.overlap"] = *s.Overlap
	}
	if s.Usage != nil && isFinite(*s.Usage) {
		m["ibid.usage"] = *s.Usage
	}
	m["ibid.rank"] = s.Rank
	if s.Locator != nil {
		m["ibid.locator"] = locatorValue(s.Locator)
		set("page_number", s.Locator.Page, s.Locator.Page != 0)
	}
	if !e.options.NoContent {
		set("ibid.excerpt", s.Excerpt, s.Excerpt != Excerpt(s.Content, 0))
		set("ibid.passage", false, s.Content == "" && s.Excerpt != "")
	}
	return m
}

func locatorValue(l *ibid.Locator) any {
	b, err := json.Marshal(l)
	if err != nil {
		return nil
	}
	return json.RawMessage(b)
}

func roles(s *Source) string {
	var all []string
	for _, role := range []struct {
		name string
		is   bool
	}{{roleRetrieved, s.Retrieved}, {roleUsed, s.Used}, {roleCited, s.Cited}} {
		if role.is {
			all = append(all, role.name)
		}
	}
	return strings.Join(all, " ")
}
