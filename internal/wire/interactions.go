package wire

import (
	"bytes"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksInteractions recognises a resource or an event of Gemini's Interactions API. The type of an event stands at its
// end, in event_type.
func looksInteractions(s *shape) bool {
	if s.val("object").Str() == "interaction" || s.kind == "" && typed(s.val("steps"), isStep) {
		return true
	}
	switch kind := s.val("event_type").Str(); kind {
	case "error":
		return s.has("error")
	case "content.start", "content.delta", "content.stop":
		return s.has("index")
	default:
		return strings.HasPrefix(kind, "interaction.") || strings.HasPrefix(kind, "step.")
	}
}

func isStep(kind string) bool {
	switch kind {
	case "model_output", "thought", "user_input":
		return true
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_result")
}

// interactions reads Gemini's Interactions API: a body with its steps, or a stream of events. A step that is the
// model's output is a message. The first version of the API, where a response was a flat list of outputs, is read as
// one message.
type interactions struct {
	out
	steps   map[int]string // the type of each step that began
	content map[Part]int   // by message: which content block its text stands in
	texts   map[Part]bool  // the parts whose text was streamed
	sources map[seenSource]bool
	once    onceSet
	cites   citeSet
	ended   bool

	hot template
	// what follows the text: up to an id of the event, and from its end; after is nil where there is no id
	before, after []byte
}

func newInteractions(c *Config) Parser {
	return &interactions{
		out: out{emit: c.Emit}, steps: map[int]string{}, content: map[Part]int{}, texts: map[Part]bool{},
		sources: map[seenSource]bool{}, once: onceSet{},
	}
}

// interaction is one document, an event or the resource itself, its members found but not read.
type interaction struct {
	kind, index, delta, step, inner, err scan.Value // of an event

	id, model, created, agent, usage, status scan.Value // of a resource
	steps, outputs                           scan.Value
	resource                                 bool
}

func readInteraction(v scan.Value) (e interaction) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "event_type":
			e.kind = o.Val
		case "index":
			e.index = o.Val
		case "delta":
			e.delta = o.Val
		case "step", "content":
			e.step = o.Val
		case "interaction":
			e.inner = o.Val
		case "error":
			e.err = o.Val
		case "object":
			e.resource = true
		default:
			e.member(&o)
		}
	}
	return e
}

// member files a member of a resource.
func (e *interaction) member(o *scan.Object) {
	switch string(o.Key) {
	case "id":
		e.id = o.Val
	case "model":
		e.model = o.Val
	case "created":
		e.created = o.Val
	case "agent":
		e.agent = o.Val
	case "usage":
		e.usage = o.Val
	case "status":
		e.status = o.Val
	case "steps":
		e.steps, e.resource = o.Val, true
	case "outputs":
		e.outputs, e.resource = o.Val, true
	}
}

func (p *interactions) Parse(event []byte, doc scan.Value) bool {
	if content, ok := p.match(doc); ok {
		p.raw(p.hot.part, content)
		return true
	}
	e := readInteraction(doc)
	kind := e.kind.Bytes()
	if len(kind) == 0 && !e.resource {
		kind = event
	}
	return p.event(kind, &e, doc)
}

func (p *interactions) Close() {}

func (p *interactions) event(kind []byte, e *interaction, doc scan.Value) bool {
	switch string(kind) {
	case "step.delta":
		b := readBlock(e.delta)
		p.delta(Part{Message: p.stepIndex(e.index)}, &b, doc)
	case "content.delta":
		b := readBlock(e.delta)
		p.delta(Part{Content: p.stepIndex(e.index)}, &b, doc)
	case "step.start":
		i := p.stepIndex(e.index)
		b := readBlock(e.step)
		p.steps[i] = string(b.kind)
		p.step(i, &b)
	case "step.stop":
		part := Part{Message: p.stepIndex(e.index)}
		part.Content = p.content[part]
		p.stop(part)
	case "content.start":
		i := p.stepIndex(e.index)
		b := readBlock(e.step)
		p.output(Part{Content: i}, &b)
	case "content.stop":
		p.stop(Part{Content: p.stepIndex(e.index)})
	case "interaction.created", "interaction.start", "interaction.completed", "interaction.complete":
		inner := readInteraction(e.inner)
		p.resource(&inner, e.inner)
	case "interaction.status_update":
	case "error":
		p.failed(doc)
	case "":
		return p.body(e, doc)
	default:
		if e.kind.IsNull() {
			return false
		}
		p.unknown("event "+clip(string(kind)), doc)
	}
	return true
}

func (p *interactions) failed(doc scan.Value) {
	p.failure(doc)
	p.finish(0, FinishError)
}

func (p *interactions) body(e *interaction, doc scan.Value) bool {
	switch {
	case e.resource:
		p.resource(e, doc)
	case !e.err.IsNull():
		p.failed(doc)
	default:
		return false
	}
	return true
}

// stop closes a part. What is not text has none.
func (p *interactions) stop(part Part) {
	if p.texts[part] {
		p.say(Op{Kind: PartEnd, Part: part})
	}
}

func (p *interactions) stepIndex(v scan.Value) int {
	i, _ := p.index("index", v)
	return i
}

// resource reads an interaction: a body, or what the first and the last event of a stream hold of it.
func (p *interactions) resource(e *interaction, doc scan.Value) {
	p.head(HeadID, e.id)
	p.head(HeadModel, e.model)
	p.head(HeadCreated, e.created)
	p.meta("agent", e.agent)
	p.meta("usage", e.usage)
	i := 0
	for a := scan.Elements(e.steps); a.Next(); i++ {
		b := readBlock(a.Val)
		p.step(i, &b)
	}
	i = 0
	for a := scan.Elements(e.outputs); a.Next(); i++ {
		b := readBlock(a.Val)
		p.output(Part{Content: i}, &b)
	}
	if !blank(e.err) {
		p.failed(doc)
	}
	p.status(e.status.Str())
}

// status says how an interaction ended.
func (p *interactions) status(word string) {
	var reason string
	switch word {
	case "completed":
		reason = FinishStop
	case "requires_action":
		reason = FinishTool
	case "incomplete":
		reason = FinishLength
	case "failed", "cancelled", "budget_exceeded":
		reason = FinishError
	default:
		return // still going on
	}
	p.finish(0, reason)
	if !p.ended {
		p.ended = true
		p.end()
	}
}

// block is a step, a content block or a piece of one: their members have the same names.
type block struct {
	raw                                                     scan.Value
	kind                                                    []byte
	content, text, annotations, arguments, result, id, name scan.Value
}

func readBlock(v scan.Value) block {
	b := block{raw: v}
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			b.kind = o.Val.Bytes()
		case "content":
			b.content = o.Val
		case "text":
			b.text = o.Val
		case "annotations":
			b.annotations = o.Val
		case "arguments":
			b.arguments = o.Val
		case "result":
			b.result = o.Val
		case "id":
			b.id = o.Val
		case "name":
			b.name = o.Val
		}
	}
	return b
}

// step reads one step. Only the model's output is text; the question is a step, too.
func (p *interactions) step(i int, b *block) {
	if cut := len(b.kind) == 0 && b.content.IsArray(); string(b.kind) != "model_output" && !cut {
		p.action(b)
		return
	}
	j := 0
	for a := scan.Elements(b.content); a.Next(); j++ {
		inner := readBlock(a.Val)
		p.output(Part{Message: i, Content: j}, &inner)
	}
	if j > 0 {
		p.content[Part{Message: i}] = j - 1
	}
}

// output reads one content block of the model's output. The last event of a stream may repeat what was streamed.
func (p *interactions) output(part Part, b *block) {
	switch string(b.kind) {
	case "text":
	case "":
		if !b.text.IsString() {
			return
		}
	case "image", "audio", "video", "document", "file":
		return
	default:
		p.action(b)
		return
	}
	switch {
	case p.texts[part]:
		p.final(part, b.text)
	case p.text(part, b.text) && len(b.text) > 2:
		p.texts[part] = true
	case !b.text.IsNull() && !b.text.IsString():
		p.issue(IssueWrongType, "text", b.text)
	}
	p.annotations(part, b.annotations)
}

// delta reads one piece of a step.
func (p *interactions) delta(part Part, b *block, doc scan.Value) {
	place := p.content[part]
	if part.Content == 0 {
		part.Content = place
	}
	switch string(b.kind) {
	case "text":
		if k := p.steps[part.Message]; k != "" && k != "model_output" {
			return
		}
		if p.text(part, b.text) {
			p.texts[part] = true
		}
		if p.annotations(part, b.annotations); b.annotations == nil && b.text != nil {
			p.learn(doc, b.text, part)
		}
	case "text_annotation_delta", "text_annotation":
		p.annotations(part, b.annotations)
	case "image", "audio", "video", "document":
		if p.texts[part] { // the events do not say which block they are of: text after a picture is another one
			p.content[Part{Message: part.Message}] = place + 1
			p.hot.head = p.hot.head[:0]
		}
	case "thought_summary", "thought_signature", "arguments_delta":
	default:
		p.action(b)
	}
}

// action reads a step that is a call of a tool or its result. What a call searched for, and what the results demand to
// be shown, is all that these say about the answer; its sources stand in the annotations.
func (p *interactions) action(b *block) {
	switch kind := string(b.kind); kind {
	case "", "thought", "user_input", "function_result", "processing_call", "processing_result":
	case "function_call", "mcp_server_tool_call":
		id, name := b.id.Str(), b.name.Str()
		if name != "" && p.once.first("tool:"+id+" "+name) {
			p.tool(id, name)
		}
	case "google_search_result":
		for a := scan.Elements(b.result); a.Next(); {
			p.suggestions(p.once, pick(a.Val, "search_suggestions", "rendered_content"))
		}
	case "url_context_result":
		for a := scan.Elements(b.result); a.Next(); {
			p.fetched(p.once, a.Val.Get("url").Str(), a.Val.Get("status").Str(), a.Val)
		}
	default:
		switch {
		case strings.HasSuffix(kind, "_call"):
			p.queries(b.arguments)
		case strings.HasSuffix(kind, "_result"):
		default:
			p.unknown("step "+clip(kind), b.raw)
		}
	}
}

func (p *interactions) queries(arguments scan.Value) {
	for a := scan.Elements(arguments.Get("queries")); a.Next(); {
		if p.once.first("query:" + string(a.Val)) {
			p.query(a.Val)
		}
	}
	if q := arguments.Get("query"); q.IsString() && p.once.first("query:"+string(q)) {
		p.query(q)
	}
}

// learn remembers what stands around the text of an event. An id for resuming the stream, different in every event, may
// follow it.
func (p *interactions) learn(doc, text scan.Value, part Part) {
	p.hot.learn(doc, text, "", part, true)
	p.before, p.after = p.hot.tail, nil
	mark := []byte(`"event_id":"`)
	if i := bytes.Index(p.before, mark); i >= 0 {
		i += len(mark)
		p.before, p.after = p.before[:i], p.before[scan.StringEnd(p.before, i)-1:]
	}
}

// match returns the text of an event that is like the learned one.
func (p *interactions) match(doc []byte) ([]byte, bool) {
	content, ok := p.hot.match(doc)
	if !ok {
		return nil, false
	}
	rest := doc[len(p.hot.head)+len(content):]
	if p.after == nil || !bytes.HasPrefix(rest, p.before) {
		return content, bytes.Equal(rest, p.before)
	}
	return content, bytes.Equal(rest[scan.StringEnd(rest, len(p.before))-1:], p.after)
}
