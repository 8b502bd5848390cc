package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Cohere cites spans of one content block in code points, repeats the span's words, and names sources by the ids of the
// documents or tool results that the model was given. Names: the types of cohere-go; the unit: melody, Cohere's own
// output parser.

// cohere2 reads cohere-v2.
type cohere2 struct {
	out
	cfg      *Config
	begun    bool
	firstOf  int // the content index of the first text block
	seenText bool
	kinds    map[int]string    // of the content blocks that have begun
	cites    int               // citations so far
	repeated map[string]string // keys of the sources said, by their JSON, which every citation repeats
	delta    template
}

// maxRepeated is how many sources are remembered by their JSON.
const maxRepeated = 1000

func newCohere2(c *Config) Parser {
	return &cohere2{out: out{emit: c.Emit}, cfg: c, kinds: map[int]string{}, repeated: map[string]string{}}
}

func looksCohere2(s *shape) bool {
	switch s.kind {
	case "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
		"citation-start", "message-end":
		return true
	}
	m := s.val("message")
	switch {
	case !m.IsObject() || s.kind != "" || s.hasAny("choices", "done", "model"): // Ollama has a message and a model, too
		return false
	case s.hasAny("finish_reason", "finishReason") && m.Get("content").IsArray():
		return true
	}
	return pick(m, "tool_plan", "toolPlan", "tool_calls", "toolCalls", "citations") != nil ||
		typed(m.Get("content"), func(kind string) bool { return kind == "text" || kind == "thinking" })
}

// Parse implements [Parser].
func (p *cohere2) Parse(_ []byte, doc scan.Value) bool {
	if text, ok := p.delta.match(doc); ok {
		p.raw(p.delta.part, text)
		return true
	}
	if !p.begun {
		p.begun = true
		sayDocuments(&p.out, p.cfg, "doc:")
	}
	e := readCohere(doc)
	i, ok := p.index("index", e.index)
	message := e.delta.Get("message")
	switch string(e.kind) {
	case "content-delta":
		p.contentDelta(i, doc, message.Get("content"))
	case "content-start":
		p.contentStart(i, message.Get("content"))
	case "content-end":
		p.say(Op{Kind: PartEnd, Part: Part{Content: i}})
	case "citation-start":
		if !ok {
			i = p.cites
		}
		p.cites++
		p.citations(i, message.Get("citations"))
	case "tool-call-start":
		p.toolCalls(message.Get("tool_calls"))
	case "message-start":
		p.head(HeadID, e.id)
	case "message-end":
		p.stop(pick(e.delta, "finish_reason", "finishReason"))
		if failure := e.delta.Get("error"); !failure.IsNull() {
			p.fail("error", failure.Text())
		}
		p.end()
	case "tool-plan-delta", "tool-call-delta", "tool-call-end", "citation-end", "debug":
	case "":
		return p.body(doc)
	default:
		return false
	}
	return true
}

// cohereEvent is an event, its members found but not read.
type cohereEvent struct {
	kind             []byte
	id, index, delta scan.Value
}

func readCohere(doc scan.Value) (e cohereEvent) {
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "type":
			e.kind = o.Val.Bytes()
		case "id":
			e.id = o.Val
		case "index":
			e.index = o.Val
		case "delta":
			e.delta = o.Val
		}
	}
	return e
}

// Close implements [Parser].
func (p *cohere2) Close() {}

func (p *cohere2) body(doc scan.Value) bool {
	m := doc.Get("message")
	if m.IsString() { // so Cohere says what was wrong with a request
		p.fail("error", m.Str())
		return true
	}
	if !m.IsObject() {
		return false
	}
	p.head(HeadID, doc.Get("id"))
	i := 0
	content := m.Get("content")
	if content.IsString() {
		p.text(Part{}, content)
	}
	for blocks := scan.Elements(content); blocks.Next(); i++ {
		p.contentStart(i, blocks.Val)
		p.say(Op{Kind: PartEnd, Part: Part{Content: i}})
	}
	p.toolCalls(pick(m, "tool_calls", "toolCalls"))
	list := m.Get("citations")
	if !list.IsNull() && !list.IsArray() {
		p.issue(IssueWrongType, "citations", list)
	}
	for c := scan.Elements(list); c.Next(); {
		p.citations(p.cites, c.Val)
		p.cites++
	}
	reason := pick(doc, "finish_reason", "finishReason")
	p.stop(reason)
	if reason.IsString() {
		p.end()
	}
	return true
}

// contentStart begins a content block; in a body, it is the whole of it.
func (p *cohere2) contentStart(i int, v scan.Value) {
	kind := v.Get("type").Str()
	p.kinds[i] = kind
	switch kind {
	case "text", "":
		p.isText(i)
		p.text(Part{Content: i}, v.Get("text"))
	case "thinking":
	default:
		p.unknown("content "+clip(kind), v)
	}
}

func (p *cohere2) isText(i int) {
	if !p.seenText {
		p.seenText, p.firstOf = true, i
	}
}

func (p *cohere2) contentDelta(i int, doc, content scan.Value) {
	text := content.Get("text")
	if kind := p.kinds[i]; kind == "thinking" || !text.IsString() {
		return
	}
	p.isText(i)
	part := Part{Content: i}
	p.delta.learn(doc, text, "", part, false)
	p.text(part, text)
}

// citations says the citation of an event. It is one object; an array is taken as well.
func (p *cohere2) citations(i int, v scan.Value) {
	if !v.IsArray() {
		p.citation(numbered("citation:", i), v)
		return
	}
	k := 0
	for c := scan.Elements(v); c.Next(); k++ {
		p.citation(numbered(numbered("citation:", i)+":", k), c.Val)
	}
}

// citation says a citation, if it is all there.
func (p *cohere2) citation(key string, v scan.Value) {
	if v.Cut() {
		return
	}
	c := Cite{Unit: CodePoints, Part: Part{Content: p.firstOf}}
	var from, to, index, list, ids scan.Value
	var kind string
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "text":
			c.Quote = o.Val.Str()
		case "start":
			from = o.Val
		case "end":
			to = o.Val
		case "content_index", "contentIndex":
			index = o.Val
		case "type":
			kind = o.Val.Str()
		case "sources":
			list = o.Val
		case "document_ids", "documentIds": // before there were sources
			ids = o.Val
		}
	}
	if n, ok := p.index("content_index", index); ok {
		c.Part.Content = n
	}
	place := c.Quote
	start, ok1 := p.index("start", from)
	end, ok2 := p.index("end", to)
	if ok1 && ok2 {
		c.Start, c.End, place = start, end, number(start)+"-"+number(end)
	} else {
		c.Unit = Nowhere
	}
	// an index may come twice
	c.Key = strings.Join([]string{key, number(c.Part.Content), place}, "/")
	// not about the answer's text
	if kind == "PLAN" || kind == "THINKING_CONTENT" || p.kinds[c.Part.Content] == "thinking" {
		c.Unit, c.Quote, c.Start, c.End = Nowhere, "", 0, 0
	}
	if c.Refs = p.sources(list); len(c.Refs) == 0 {
		c.Refs = documentRefs(ids)
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, clip(c.Quote), v)
		return
	}
	p.cite(&c)
}

// sources says the sources of a citation and returns what points to them.
func (p *cohere2) sources(list scan.Value) []Ref {
	var refs []Ref
	for sources := scan.Elements(list); sources.Next(); {
		if key := p.cited(sources.Val); key != "" {
			refs = append(refs, Ref{Source: key})
		}
	}
	return refs
}

// documentRefs reads the ids of documents.
func documentRefs(ids scan.Value) []Ref {
	var refs []Ref
	for list := scan.Elements(ids); list.Next(); {
		if id := list.Val.Text(); id != "" {
			refs = append(refs, Ref{Source: id})
		}
	}
	return refs
}

// cited says the source of a citation, which repeats the whole of it, and returns its key.
func (p *cohere2) cited(v scan.Value) string {
	if key, ok := p.repeated[string(v)]; ok {
		return key
	}
	s := Source{Kind: KindDocument, Raw: v}
	var data, output scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "id":
			s.ID = o.Val.Text()
		case "type":
			if string(o.Val.Bytes()) == "tool" {
				s.Kind = KindTool
			}
		case "document":
			data = o.Val
		case "tool_output":
			output = o.Val
		}
	}
	if s.Kind == KindTool {
		data = output
	}
	fillDocument(&s, data)
	if s.ID == "" {
		s.ID = data.Get("id").Text()
	}
	switch {
	case s.ID != "":
		s.Key = s.ID
	case s.Content != "":
		s.Key = "content:" + s.Content
	default:
		return ""
	}
	if len(p.repeated) < maxRepeated {
		p.repeated[string(v)] = s.Key
	}
	p.source(&s)
	return s.Key
}

func (p *cohere2) toolCalls(v scan.Value) {
	if v.IsObject() {
		p.tool(v.Get("id").Str(), v.Path("function", "name").Str())
	}
	for calls := scan.Elements(v); calls.Next(); {
		p.tool(calls.Val.Get("id").Str(), calls.Val.Path("function", "name").Str())
	}
}

func (p *cohere2) stop(reason scan.Value) { cohereFinish(&p.out, reason.Str()) }

func cohereFinish(o *out, reason string) {
	switch strings.ToUpper(reason) {
	case "":
	case "COMPLETE", "STOP_SEQUENCE":
		o.finish(0, FinishStop)
	case "MAX_TOKENS", "ERROR_LIMIT":
		o.finish(0, FinishLength)
	case "TOOL_CALL":
		o.finish(0, FinishTool)
	case "ERROR_TOXIC":
		o.finish(0, FinishFilter)
	default: // ERROR, TIMEOUT, USER_CANCEL
		o.finish(0, FinishError)
	}
}

// sayDocuments says the documents that the model was given, cited or not.
func sayDocuments(o *out, c *Config, prefix string) {
	requested, _ := ReadDocuments(c.Request.Get("documents"))
	for _, s := range c.documents(requested, func(i int) string { return numbered(prefix, i) }) {
		if s.ID == "" {
			s.ID = s.Key
		}
		o.source(&s)
	}
}
