package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Cohere cites spans of one content block in code points, repeats their words, and identifies sources by the ids of the
// documents or tool results that the model was given. Names: the types of cohere-go; the unit: melody, Cohere's own
// output parser.

// cohere2 reads cohere-v2.
type cohere2 struct {
	out
	begun    bool
	firstOf  int // the content index of the first text block
	seenText bool
	kinds    map[int]string    // of the content blocks that have begun
	calls    map[int]string    // the ids of the calls of tools
	cites    int               // citations so far
	repeated map[string]string // keys of the sources emitted, by their JSON, which every citation repeats
	delta    template
}

// maxRepeated is how many sources are remembered by their JSON.
const maxRepeated = 1000

func newCohere2(c *Config) Parser {
	return &cohere2{
		out: out{Config: c}, kinds: map[int]string{}, calls: map[int]string{}, repeated: map[string]string{},
	}
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
	return m.Get("tool_plan", "tool_calls", "citations") != nil ||
		typed(m.Get("content"), func(kind string) bool { return kind == "text" || kind == "thinking" })
}

// Parse implements [Parser].
func (p *cohere2) Parse(_ []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok {
		p.raw(p.delta.part, text)
		return true
	}
	p.unread(doc, cohere2Reads)
	if !p.begun {
		p.begun = true
		p.head(HeadModel, p.Request.Get("model")) // its answers do not have it
		emitDocuments(&p.out, p.Config, "doc:")
	}
	var kind string
	var id, at, delta scan.Value
	doc.Read(scan.Fields{{"type", &kind}, {"id", &id}, {"index", &at}, {"delta", &delta}})
	i, ok := p.index("index", at)
	message := delta.Get("message")
	switch kind {
	case "content-delta":
		p.contentDelta(i, doc, message.Get("content"))
	case "content-start":
		p.contentStart(i, message.Get("content"))
	case "tool-plan-delta":
		p.think(Part{Content: -1}, message.Get("tool_plan"))
	case "tool-call-delta":
		p.moreInput(p.calls[i], message.Path("tool_calls", "function", "arguments"))
	case "tool-call-end":
		p.emit(Op{Kind: ToolReady, Name: p.calls[i]})
	case "content-end":
		p.emit(Op{Kind: PartEnd, Part: Part{Content: i}})
	case "citation-start":
		if !ok {
			i = p.cites
		}
		p.cites++
		p.citations(i, message.Get("citations"))
	case "tool-call-start":
		p.toolCalls(i, message.Get("tool_calls"), false)
	case "message-start":
		p.head(HeadID, id)
	case "message-end":
		cohereFinish(&p.out, delta.Get("finish_reason").Str())
		if !blank(delta.Get("error")) {
			p.failure(delta)
		}
		p.emit(Op{Kind: End})
	case "citation-end", "debug":
	case "":
		return p.body(doc)
	default:
		return false
	}
	return true
}

func (p *cohere2) body(doc scan.Value) bool {
	m := doc.Get("message")
	if m.IsString() { // an error message about the request
		p.failure(doc)
		return true
	}
	if !m.IsObject() {
		return false
	}
	p.head(HeadID, doc.Get("id"))
	p.think(Part{Content: -1}, m.Get("tool_plan"))
	p.toolCalls(0, m.Get("tool_calls"), true) // a stream has them before the content
	i := 0
	content := m.Get("content")
	if content.IsString() {
		p.text(Part{}, content)
	}
	for blocks := scan.Elements(content); blocks.Next(); i++ {
		p.contentStart(i, blocks.Val)
		p.emit(Op{Kind: PartEnd, Part: Part{Content: i}})
	}
	list := m.Get("citations")
	p.wantList("citations", list)
	for c := scan.Elements(list); c.Next(); {
		p.citations(p.cites, c.Val)
		p.cites++
	}
	reason := doc.Get("finish_reason")
	cohereFinish(&p.out, reason.Str())
	if reason.IsString() {
		p.emit(Op{Kind: End})
	}
	return true
}

// contentStart begins a content block; in a body, v is the whole block.
func (p *cohere2) contentStart(i int, v scan.Value) {
	kind := v.Get("type").Str()
	if p.Keep(entrySize + len(kind)) {
		p.kinds[i] = kind
	}
	switch kind {
	case "text", "":
		p.isText(i)
		p.text(Part{Content: i}, v.Get("text"))
	case "thinking":
		p.think(Part{Content: i}, v.Get("thinking"))
	default:
		p.unknown("content "+kind, v)
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
		p.think(Part{Content: i}, content.Get("thinking"))
		return
	}
	p.isText(i)
	part := Part{Content: i}
	p.delta.learn(doc, text, part, variation{})
	p.text(part, text)
}

// citations emits the citation of an event. It is one object; an array is accepted as well.
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

// citation emits a citation, if it is complete.
func (p *cohere2) citation(key string, v scan.Value) {
	if v.Cut() {
		return
	}
	c := Cite{Part: Part{Content: p.firstOf}}
	var from, to, index, list, ids scan.Value
	var kind string
	v.Read(scan.Fields{
		{"text", &c.Quote},
		{"start", &from},
		{"end", &to},
		{"content_index", &index},
		{"type", &kind},
		{"sources", &list},
		{"document_ids", &ids}, // before there were sources
	})
	if n, ok := p.index("content_index", index); ok {
		c.Part.Content = n
	}
	place := c.Quote
	if p.codePoints(&c, from, to) {
		place = number(c.Start) + "-" + number(c.End)
	}
	// an index may come twice
	c.Key = strings.Join([]string{key, number(c.Part.Content), place}, "/")
	// not about the answer's text
	if kind == "PLAN" || kind == "THINKING_CONTENT" || p.kinds[c.Part.Content] == "thinking" {
		c.Unit, c.Quote, c.Start, c.End = Nowhere, "", 0, 0
	}
	if c.Refs = p.sources(list); len(c.Refs) == 0 {
		c.Refs = p.documentRefs(ids)
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, shorten(c.Quote), v)
		return
	}
	p.cite(&c)
}

// codePoints fills in a citation's offsets in code points. If they are missing, it returns false, and the citation has
// no place.
func (o *out) codePoints(c *Cite, from, to scan.Value) bool {
	start, ok1 := o.index("start", from)
	end, ok2 := o.index("end", to)
	if !ok1 || !ok2 {
		c.Unit = Nowhere
		return false
	}
	c.Unit, c.Start, c.End = CodePoints, start, end
	return true
}

// sources emits the sources of a citation and returns references to them.
func (p *cohere2) sources(list scan.Value) []Ref {
	var refs []Ref
	for sources := scan.Elements(list); sources.Next(); {
		if key := p.cited(sources.Val); key != "" {
			refs = p.addRef(refs, Ref{Source: key})
		}
	}
	return refs
}

// documentRefs returns references to documents by their ids.
func (o *out) documentRefs(ids scan.Value) []Ref {
	var refs []Ref
	for list := scan.Elements(ids); list.Next(); {
		if id := list.Val.Text(); id != "" {
			refs = o.addRef(refs, Ref{Source: id})
		}
	}
	return refs
}

// cited emits the source of a citation, which contains the whole source, and returns its key.
func (p *cohere2) cited(v scan.Value) string {
	if key, ok := p.repeated[string(v)]; ok {
		return key
	}
	s := Source{Kind: kindDocument, Raw: v}
	var id, data, output scan.Value
	var kind string
	v.Read(scan.Fields{{"id", &id}, {"type", &kind}, {"document", &data}, {"tool_output", &output}})
	if s.ID = id.Text(); kind == "tool" {
		s.Kind, data = kindTool, output
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
	if len(p.repeated) < maxRepeated && p.Keep(entrySize+len(v)+len(s.Key)) {
		p.repeated[string(v)] = s.Key
	}
	p.source(&s)
	return s.Key
}

// toolCalls emits a call, the i-th, or several. Whole ones have all of their input.
func (p *cohere2) toolCalls(i int, v scan.Value, whole bool) {
	if v.IsObject() {
		id, function := v.Get("id").Str(), v.Get("function")
		p.tool(id, function.Get("name").Str())
		if whole {
			p.toolInput(id, function.Get("arguments"))
			return
		}
		p.moreInput(id, function.Get("arguments"))
		if p.Keep(entrySize + len(id)) {
			p.calls[i] = id
		}
	}
	for calls := scan.Elements(v); calls.Next(); i++ {
		p.toolCalls(i, calls.Val, whole)
	}
}

func cohereFinish(o *out, reason string) {
	if reason == "" {
		return
	}
	finish, known := cohereFinishes[strings.ToUpper(reason)]
	if !known { // ERROR, TIMEOUT, USER_CANCEL
		finish = finishError
	}
	o.finish(0, finish)
}

var cohereFinishes = map[string]string{
	"COMPLETE": finishStop, "STOP_SEQUENCE": finishStop, "MAX_TOKENS": finishLength, "ERROR_LIMIT": finishLength,
	"TOOL_CALL": finishTool, "ERROR_TOXIC": finishFilter,
}

// emitDocuments emits the documents that the model was given, cited or not.
func emitDocuments(o *out, c *Config, prefix string) {
	requested, _ := ReadDocuments(c.Request.Get("documents"))
	for _, s := range c.documents(requested, func(i int) string { return numbered(prefix, i) }) {
		if s.ID == "" {
			s.ID = s.Key
		}
		o.source(&s)
	}
}

// cohere1 reads cohere-v1: citations identify documents only by id, and a stream has the documents before the text and
// everything again at its end.
type cohere1 struct {
	out
	begun  bool
	called bool // the calls of tools were emitted
	delta  template
}

func newCohere1(c *Config) Parser { return &cohere1{out: out{Config: c}} }

func looksCohere1(s *shape) bool {
	if s.has("event_type", "is_finished") {
		return true
	}
	cites := scan.Elements(s.val("citations"))
	return s.val("text").IsString() && s.kind == "" && (s.hasAny("generation_id", "generationId", "response_id") ||
		cites.Next() && cites.Val.Get("document_ids") != nil)
}

// Parse implements [Parser].
func (p *cohere1) Parse(_ []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok {
		p.raw(Part{}, text)
		return true
	}
	p.unread(doc, cohere1Reads)
	if !p.begun {
		p.begun = true
		p.head(HeadModel, p.Request.Get("model"))
		emitDocuments(&p.out, p.Config, "doc_")
	}
	switch doc.Get("event_type").Str() {
	case "text-generation":
		text := doc.Get("text")
		p.delta.learn(doc, text, Part{}, variation{})
		return p.text(Part{}, text)
	case "citation-generation":
		p.citations(doc.Get("citations"))
	case "search-results":
		p.documents(doc.Get("documents"))
	case "search-queries-generation":
		p.queries(doc.Get("search_queries"))
	case "tool-calls-generation":
		p.toolCalls(doc.Get("tool_calls"))
	case "stream-start":
		p.head(HeadID, doc.Get("generation_id"))
	case "stream-end":
		p.response(doc.Get("response"))
		cohereFinish(&p.out, doc.Get("finish_reason").Str())
		p.emit(Op{Kind: End})
	case "tool-calls-chunk", "debug":
	case "":
		if !doc.Get("text").IsString() {
			return false
		}
		p.response(doc)
		cohereFinish(&p.out, doc.Get("finish_reason").Str())
		p.emit(Op{Kind: End})
	default:
		return false
	}
	return true
}

// response reads a whole response: a body, or what a stream repeats at its end.
func (p *cohere1) response(v scan.Value) {
	var id, queries, documents, text, citations, calls, found scan.Value
	v.Read(scan.Fields{
		{"generation_id", &id},
		{"search_queries", &queries},
		{"documents", &documents},
		{"text", &text},
		{"citations", &citations},
		{"tool_calls", &calls},
		{"search_results", &found},
	})
	p.head(HeadID, id)
	p.queries(queries)
	p.documents(documents)
	p.final(Part{}, text)
	p.citations(citations)
	p.toolCalls(calls)
	for results := scan.Elements(found); results.Next(); {
		if message := results.Val.Get("error_message").Str(); message != "" {
			p.issue(IssueSourceFailed, shorten(message), nil)
		}
	}
}

func (p *cohere1) documents(v scan.Value) {
	for docs := scan.Elements(v); docs.Next(); {
		s := Source{Kind: kindDocument, ID: docs.Val.Get("id").Text(), Raw: docs.Val}
		fillDocument(&s, docs.Val)
		switch {
		case docs.Val.Get("tool_name").IsString():
			s.Kind = kindTool
		case s.URL != "":
			s.Kind = kindWeb
		}
		if s.Key = s.ID; s.Key == "" {
			s.Key = "content:" + s.Content
		}
		if docs.Val.IsObject() {
			p.source(&s)
		}
	}
}

func (p *cohere1) citations(v scan.Value) {
	for list := scan.Elements(v); list.Next(); {
		p.citation(list.Val)
	}
}

// citation emits a citation, if it is complete.
func (p *cohere1) citation(v scan.Value) {
	if v.Cut() {
		return
	}
	var c Cite
	var from, to, ids scan.Value
	var kind string
	v.Read(scan.Fields{
		{"text", &c.Quote}, {"start", &from}, {"end", &to}, {"type", &kind}, {"document_ids", &ids},
	})
	text := c.Quote
	p.codePoints(&c, from, to)
	start, end := c.Start, c.End
	if kind == "PLAN" { // not about the answer's text
		c.Unit, c.Quote, c.Start, c.End = Nowhere, "", 0, 0
	}
	key := []string{number(start), number(end), text} // the end of a stream repeats the citations
	for _, ref := range p.documentRefs(ids) {
		c.Refs = append(c.Refs, ref)
		key = append(key, ref.Source)
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, shorten(c.Quote), nil) // without its JSON, since a stream has it twice
		return
	}
	c.Key = strings.Join(key, "/")
	p.cite(&c)
}

func (p *cohere1) queries(v scan.Value) {
	for list := scan.Elements(v); list.Next(); {
		p.query(list.Val.Get("text"))
	}
}

// toolCalls emits the calls, once, since the end of a stream repeats them.
func (p *cohere1) toolCalls(v scan.Value) {
	if p.called {
		return
	}
	for list := scan.Elements(v); list.Next(); {
		p.called = true
		p.tool("", list.Val.Get("name").Str())
		p.toolInput("", list.Val.Get("parameters"))
	}
}
