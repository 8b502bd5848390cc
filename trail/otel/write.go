package otel

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/trail"
)

// scopeName is the instrumentation scope of the spans that ibid writes.
const scopeName = "github.com/ibidhq/ibid/trail"

// WriteOptions configures [Write]. Nil means the zero value.
type WriteOptions struct {
	// NoContent leaves out texts: questions, answers, reasoning, inputs, outputs, contexts and the text of passages.
	// Inputs and outputs are replaced by their digests.
	NoContent bool
}

// Write returns a run as an OTLP/HTTP trace request: one span for the run and, below it, one for each step, with the
// attributes of both OpenInference and OpenTelemetry's GenAI conventions. The contentType must be [JSON] or [Protobuf],
// otherwise the error is [ErrMediaType].
//
// The same trail always gets the same ids: the trace id is the run's id if that is 32 hex digits, else made from it; a
// span id is the step's ID if that is 16 hex digits, else made from the run and the step's position.
//
// [Read] gets the same steps back, with the same sources, scores and ranks. Unknown members (Extra), issues, and
// everything but text and id of captured answers are lost.
func Write(t *trail.Trail, contentType string, o *WriteOptions) ([]byte, error) {
	if contentType != JSON && contentType != Protobuf {
		return nil, fmt.Errorf("write a trace: %w", ErrMediaType)
	}
	w := &writer{trace: t.ID, run: t.ID, asJSON: contentType == JSON}
	if o != nil {
		w.WriteOptions = *o
	}
	if !isID(w.trace, 32) {
		sum := sha256.Sum256([]byte("ibid trace\x00" + t.ID))
		w.trace = hex.EncodeToString(sum[:16])
	}
	w.addRun(t, "", 0)
	data := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			{Key: "service.name", Value: anyValue(cmp.Or(t.Agent, "ibid"))},
		}},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: scopeName},
			Spans: w.spans,
		}},
	}}}
	var b []byte
	var err error
	if w.asJSON {
		b, err = protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(data)
	} else {
		b, err = proto.MarshalOptions{Deterministic: true}.Marshal(data)
	}
	if err == nil && w.asJSON { // protojson adds spaces at random
		var compact bytes.Buffer
		err = json.Compact(&compact, b)
		b = compact.Bytes()
	}
	if err != nil {
		return nil, fmt.Errorf("write a trace: %w", err)
	}
	return b, nil
}

// writer writes the spans of a trail.
type writer struct {
	WriteOptions

	asJSON     bool
	trace, run string // in hex; the run's id
	spans      []*tracepb.Span
}

// outSpan is a span to be written.
type outSpan struct {
	*tracepb.Span

	id string // in hex
}

func (w *writer) newSpan(id, parent string) *outSpan {
	return &outSpan{id: id, Span: &tracepb.Span{
		TraceId: w.idBytes(w.trace), SpanId: w.idBytes(id), ParentSpanId: w.idBytes(parent),
		Kind: tracepb.Span_SPAN_KIND_INTERNAL,
	}}
}

// idBytes returns the bytes of an id. Ids are hex in OTLP's JSON, but base64 in protobuf's: for JSON it returns the
// bytes whose base64 is the hex digits.
func (w *writer) idBytes(digits string) []byte {
	decode := hex.DecodeString
	if w.asJSON {
		decode = base64.StdEncoding.DecodeString
	}
	b, err := decode(digits)
	if err != nil {
		return nil // cannot happen: it is hex, and its length a multiple of four
	}
	return b
}

// set adds an attribute, which is a string, bool, int64, float64 or a list of these, unless it is empty.
func (s *outSpan) set(key string, value any) {
	switch value {
	case "", nil, false:
		return
	}
	s.Attributes = append(s.Attributes, &commonpb.KeyValue{Key: validText(key), Value: anyValue(value)})
}

func anyValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: validText(v)}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case []any:
		list := &commonpb.ArrayValue{}
		for _, item := range v {
			list.Values = append(list.Values, anyValue(item))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &commonpb.AnyValue{}
}

func validText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// addRun adds the span of a run, and below it those of its steps.
func (w *writer) addRun(t *trail.Trail, parent string, depth int) {
	of := w.newSpan(w.spanID("", parent, "run"), parent)
	of.Name = validText("invoke_agent " + cmp.Or(t.Agent, "run"))
	of.set("openinference.span.kind", "AGENT")
	of.set("gen_ai.operation.name", "invoke_agent")
	of.set("gen_ai.agent.name", t.Agent)
	of.set("ibid.trail", true)
	of.set("ibid.run", w.run)
	if depth > 0 {
		of.set("ibid.nested_run", t.ID)
	}
	of.set("ibid.parent_run", t.Parent)
	of.set("ibid.strategy", t.Strategy)
	answer := t.Answer
	if answer == "" && t.Final != nil {
		answer = t.Final.Text
	}
	w.setTexts(of, t.Question, answer)
	of.StartTimeUnixNano, of.EndTimeUnixNano = unixNano(t.Started), unixNano(t.Finished)
	if t.Started.IsZero() {
		of.set("ibid.untimed", true)
	}
	if t.Finished.IsZero() {
		of.set("ibid.unfinished", true)
		for i := range t.Steps {
			ended := unixNano(t.Steps[i].Started.Add(max(0, t.Steps[i].Duration)))
			of.EndTimeUnixNano = max(of.EndTimeUnixNano, ended)
		}
	}
	of.EndTimeUnixNano = max(of.EndTimeUnixNano, of.StartTimeUnixNano)
	w.spans = append(w.spans, of.Span)
	ids := make([]string, len(t.Steps))
	for i := range t.Steps {
		ids[i] = w.spanID(t.Steps[i].ID, of.id, "step", strconv.Itoa(i))
	}
	for i, before := range t.Graph() {
		s := &t.Steps[i]
		span := w.newSpan(ids[i], of.id)
		for _, b := range before {
			link := &tracepb.Span_Link{TraceId: span.TraceId, SpanId: w.idBytes(ids[b])}
			span.Links = append(span.Links, link)
		}
		w.setStep(span, s, t)
		w.spans = append(w.spans, span.Span)
		if s.Nested != nil && depth < trail.MaxNested {
			w.addRun(s.Nested, span.id, depth+1)
		}
	}
}

func unixNano(t time.Time) uint64 {
	if t.Year() < 1970 || t.Year() > 2261 {
		return 0
	}
	return uint64(t.UnixNano())
}

// spanID returns own if it is a valid span id, else one made from the run and the names.
func (w *writer) spanID(own string, names ...string) string {
	if isID(own, 16) {
		return own
	}
	sum := sha256.Sum256([]byte("ibid span\x00" + w.run + "\x00" + strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// setStep fills in the span of a step.
func (w *writer) setStep(span *outSpan, s *trail.Step, t *trail.Trail) {
	kind, operation := conventionKind(s)
	if kind == "LLM" || kind == "RETRIEVER" {
		span.Kind = tracepb.Span_SPAN_KIND_CLIENT
	}
	span.Name = validText(strings.TrimSpace(cmp.Or(operation, "step") + " " + s.Tool))
	span.set("openinference.span.kind", kind)
	span.set("gen_ai.operation.name", operation)
	span.set("ibid.trail", true)
	span.set("ibid.run", w.run)
	span.set("ibid.step", int64(s.Number))
	span.set("ibid.id", s.ID)
	if s.After != nil {
		after := make([]any, len(s.After))
		for i, n := range s.After {
			after[i] = int64(n)
		}
		span.set("ibid.after", after)
	}
	span.Attributes = append(span.Attributes, &commonpb.KeyValue{Key: "ibid.tool", Value: anyValue(s.Tool)})
	switch kind {
	case "TOOL":
		span.set("tool.name", s.Tool)
		span.set("gen_ai.tool.name", s.Tool)
	case "RETRIEVER":
		span.set("gen_ai.data_source.id", s.Tool)
	}
	if c := finiteOnly(s.Confidence); c != nil {
		span.set("ibid.confidence", *c)
	}
	w.setTexts(span, s.Question, s.Answer)
	w.setConventions(span, s, kind)
	w.setPrivate(span, s, kind)
	w.setSources(span, s, kind)
	if s.Error != "" {
		span.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: validText(s.Error)}
	}
	if span.StartTimeUnixNano = unixNano(s.Started); span.StartTimeUnixNano == 0 {
		span.StartTimeUnixNano = unixNano(t.Started)
		span.set("ibid.untimed", true)
	}
	span.EndTimeUnixNano = span.StartTimeUnixNano + uint64(max(0, s.Duration))
}

// conventionKind returns the kind of a step in the conventions.
func conventionKind(s *trail.Step) (openInference, genAI string) {
	retrieved := slices.ContainsFunc(s.Sources, func(f trail.Source) bool { return f.Retrieved })
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

// setTexts sets the question and the answer of a span.
func (w *writer) setTexts(span *outSpan, question, answer string) {
	if w.NoContent {
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

// setConventions sets a step's texts again, in the form of the GenAI conventions.
func (w *writer) setConventions(span *outSpan, s *trail.Step, kind string) {
	if w.NoContent {
		return
	}
	message := func(role, text string) string {
		m := map[string]any{"role": role, "parts": []any{map[string]any{"type": "text", "content": text}}}
		if role == roleAssistant {
			m["finish_reason"] = "stop"
		}
		return string(encodeValue([]any{m}))
	}
	switch kind {
	case "RETRIEVER":
		span.set("gen_ai.retrieval.query.text", s.Question)
	case "LLM":
		if s.Question != "" {
			span.set("gen_ai.input.messages", message(roleUser, s.Question))
			span.set("llm.input_messages.0.message.role", roleUser)
			span.set("llm.input_messages.0.message.content", s.Question)
		}
		if s.Answer != "" {
			span.set("gen_ai.output.messages", message(roleAssistant, s.Answer))
			span.set("llm.output_messages.0.message.role", roleAssistant)
			span.set("llm.output_messages.0.message.content", s.Answer)
		}
	case "TOOL":
		span.set("gen_ai.tool.call.arguments", string(s.Inputs))
		span.set("gen_ai.tool.call.result", cmp.Or(string(s.Outputs), s.Answer))
	}
}

// setPrivate sets the attributes that only ibid reads.
func (w *writer) setPrivate(span *outSpan, s *trail.Step, kind string) {
	inputs, outputs := s.Inputs, s.Outputs
	inputsDigest, outputsDigest := s.InputsDigest, s.OutputsDigest
	if w.NoContent {
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

// setSources sets a step's sources as documents.
func (w *writer) setSources(span *outSpan, s *trail.Step, kind string) {
	short := make([]any, 0, len(s.Sources))
	for i := range s.Sources {
		from := &s.Sources[i]
		prefix := "retrieval.documents." + strconv.Itoa(i) + ".document."
		span.set(prefix+"id", from.DocumentID)
		document := map[string]any{"id": from.DocumentID}
		if !w.NoContent {
			span.set(prefix+"content", cmp.Or(from.Content, from.Excerpt))
		}
		if score := finiteOnly(from.Relevance); score != nil {
			span.set(prefix+"score", *score)
			document["score"] = *score
		}
		span.set(prefix+"metadata", string(w.metadata(from)))
		short = append(short, document)
	}
	if kind == "RETRIEVER" {
		span.set("gen_ai.retrieval.documents", string(encodeValue(short)))
	}
}

// metadata returns what the conventions have no attribute for. [document.setOwn] reads it.
func (w *writer) metadata(s *trail.Source) json.RawMessage {
	var roles []string
	for _, role := range []struct {
		name string
		is   bool
	}{{roleRetrieved, s.Retrieved}, {roleUsed, s.Used}, {roleCited, s.Cited}} {
		if role.is {
			roles = append(roles, role.name)
		}
	}
	m := ownMetadata{
		Title: s.Title, URL: s.URL, Version: s.Version, Key: s.Key, ChunkIndex: s.ChunkIndex, Locator: s.Locator,
		Overlap: finiteOnly(s.Overlap), Usage: finiteOnly(s.Usage), Rank: &s.Rank, Role: strings.Join(roles, " "),
	}
	if s.Relevance != nil {
		m.Origin = s.Origin
	}
	if s.Locator != nil {
		m.Page = s.Locator.Page
	}
	if !w.NoContent && s.Excerpt != trail.Excerpt(s.Content, 0) {
		m.Excerpt = &s.Excerpt
		if s.Content == "" && s.Excerpt != "" {
			m.Passage = new(false)
		}
	}
	raw, _ := wire.Encode(m) // it has only finite numbers
	return raw
}

// finiteOnly returns f, or nil if it is not finite.
func finiteOnly(f *float64) *float64 {
	if f == nil || !isFinite(*f) {
		return nil
	}
	return f
}
