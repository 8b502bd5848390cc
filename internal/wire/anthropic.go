package wire

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Anthropic's Messages API cites by block: a text block with citations rests on them as a whole, and in a stream the
// citations come before the block's text. Documents and search results are named by their place in the request.
// Sources: the types of anthropic-sdk-go, and recordings of all five kinds of location.

// anthropic reads anthropic-messages, also as Bedrock's InvokeModel wraps it.
type anthropic struct {
	out
	cfg       *Config
	begun     bool
	documents []Source // by document_index
	results   []Source // by search_result_index
	given     bool     // the request, or the documents, are known: an index past them is wrong
	described map[string]bool
	id        string // of the message that is read
	message   int    // its number: a recording may hold several turns
	blocks    map[int]*anthropicBlock
	delta     template
}

// anthropicBlock is a content block that has begun.
type anthropicBlock struct {
	kind   string
	part   Part
	cited  int    // citations so far
	server string // the server tool that is called
	input  []byte // its input so far
}

// maxToolInput is how much of a tool's streamed input is kept to find the query in it.
const maxToolInput = 64 << 10

func newAnthropic(c *Config) Parser {
	return &anthropic{out: out{emit: c.Emit}, cfg: c, blocks: map[int]*anthropicBlock{}, described: map[string]bool{}}
}

func looksAnthropic(s *shape) bool {
	if inner := unwrapInvoke(s.doc); inner != nil {
		s = look(nil, inner)
	}
	switch s.kind {
	case "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta",
		"content_block_stop":
		return true
	case "message":
		return s.val("content").IsArray() && s.has("role")
	case "error":
		return s.val("error").IsObject() && (s.has("request_id") || s.event == "error") &&
			s.val("error").Get("type").IsString()
	case "":
		return typed(s.val("content"), isAnthropicBlock)
	}
	return false
}

func isAnthropicBlock(kind string) bool {
	switch kind {
	case "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "compaction",
		"container_upload":
		return true
	}
	return strings.HasSuffix(kind, "_tool_result")
}

// unwrapInvoke returns the JSON inside a chunk of Bedrock's InvokeModelWithResponseStream, or nil.
func unwrapInvoke(doc scan.Value) scan.Value {
	v := doc.Get("bytes")
	if v == nil {
		v = doc.Path("chunk", "bytes")
	}
	if !v.IsString() {
		return nil
	}
	inner, err := base64.StdEncoding.DecodeString(v.Str())
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(inner)
}

// Parse implements [Parser].
func (p *anthropic) Parse(_ []byte, doc scan.Value) bool {
	if text, ok := p.delta.match(doc); ok {
		if part, known := p.deltaPart(doc); known {
			p.raw(part, text)
			return true
		}
	}
	if !p.begun {
		p.begin()
	}
	e := readAnthropic(doc)
	switch string(e.kind) {
	case "content_block_delta":
		return p.blockDelta(doc, &e)
	case "content_block_start":
		i, _ := p.index("index", e.index)
		p.blockStart(i, e.block)
	case "content_block_stop":
		i, _ := p.index("index", e.index)
		p.blockStop(i)
	case "message_start":
		p.messageStart(e.message)
	case "message_delta":
		p.stop(e.delta.Get("stop_reason"))
	case "message_stop":
		p.end()
	case "message":
		p.messageBody(doc)
	case "error":
		p.failure(doc)
	case "ping":
	case "":
		return p.untyped(doc)
	default:
		return false
	}
	return true
}

// untyped reads what does not say its type: a chunk that wraps another document, or a body whose type is missing.
func (p *anthropic) untyped(doc scan.Value) bool {
	if inner := unwrapInvoke(doc); inner != nil {
		return p.Parse(nil, inner)
	}
	if !doc.Get("content").IsArray() {
		return false
	}
	p.messageBody(doc)
	return true
}

// anthropicEvent is an event, its members found but not read.
type anthropicEvent struct {
	kind                         []byte
	index, block, delta, message scan.Value
}

func readAnthropic(doc scan.Value) (e anthropicEvent) {
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "type":
			e.kind = o.Val.Bytes()
		case "index":
			e.index = o.Val
		case "content_block":
			e.block = o.Val
		case "delta":
			e.delta = o.Val
		case "message":
			e.message = o.Val
		}
	}
	return e
}

// Close implements [Parser].
func (p *anthropic) Close() {}

// begin says the documents that the model was given.
func (p *anthropic) begin() {
	p.begun = true
	requested, results := requestDocuments(p.cfg.Request)
	p.documents = p.cfg.documents(requested, func(i int) string { return numbered("doc:", i) })
	p.results = results
	p.given = len(p.cfg.Request) > 0 || len(p.cfg.Documents) > 0
	for i := range p.documents {
		p.describe(&p.documents[i])
	}
	for i := range p.results {
		p.describe(&p.results[i])
	}
}

func (p *anthropic) describe(s *Source) {
	if s.ID == "" {
		s.ID = s.Key
	}
	p.described[s.Key] = true
	p.source(s)
}

func (p *anthropic) messageHead(m scan.Value) {
	p.head(HeadID, m.Get("id"))
	p.head(HeadModel, m.Get("model"))
}

// messageStart begins a message. A proxy may say the same beginning twice.
func (p *anthropic) messageStart(m scan.Value) {
	id := m.Get("id").Str()
	if p.id != "" && id != p.id {
		p.message++
		p.delta = template{}
		clear(p.blocks)
	}
	p.id = id
	p.messageHead(m)
}

// messageBody reads a whole body.
func (p *anthropic) messageBody(m scan.Value) {
	p.messageStart(m)
	var content, reason scan.Value
	for o := scan.Members(m); o.Next(); {
		switch string(o.Key) {
		case "content":
			content = o.Val
		case "stop_reason":
			reason = o.Val
		}
	}
	i := 0
	for blocks := scan.Elements(content); blocks.Next(); i++ {
		p.blockStart(i, blocks.Val)
		p.blockStop(i)
	}
	p.stop(reason)
	if reason.IsString() {
		p.end()
	}
}

// blockStart begins a content block; in a body, it is the whole of it.
func (p *anthropic) blockStart(i int, v scan.Value) {
	b := &anthropicBlock{kind: v.Get("type").Str(), part: Part{Message: p.message, Content: i}}
	if b.kind == "" && v.Get("text").IsString() { // the body breaks off before it says so
		b.kind = "text"
	}
	if p.blocks[i] != nil && p.blocks[i].kind == "text" && b.kind == "text" && len(v.Get("text").Content()) == 0 {
		return // a proxy began it twice
	}
	p.blocks[i] = b
	switch b.kind {
	case "text":
		p.textBlock(b, v)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		name := v.Get("name").Str()
		p.tool(v.Get("id").Str(), name)
		if b.kind == "server_tool_use" {
			b.server = name
			p.searched(name, v.Get("input"))
		}
	case "web_search_tool_result":
		p.searchResults(v.Get("content"))
	case "web_fetch_tool_result":
		p.fetched(v.Get("content"))
	case "thinking", "redacted_thinking", "compaction", "container_upload", "fallback":
	default:
		if !strings.HasSuffix(b.kind, "_tool_result") {
			p.unknown("content block "+clip(b.kind), v)
		}
	}
}

// textBlock says the text and the citations that a text block begins with.
func (p *anthropic) textBlock(b *anthropicBlock, v scan.Value) {
	p.say(Op{Kind: PartBegin, Part: b.part})
	var list, text scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "citations":
			list = o.Val
		case "text":
			text = o.Val
		}
	}
	if !list.IsNull() && !list.IsArray() {
		p.issue(IssueWrongType, "citations", list)
	}
	for citations := scan.Elements(list); citations.Next(); {
		p.citation(b, citations.Val)
	}
	p.text(b.part, text)
}

func (p *anthropic) blockStop(i int) {
	b := p.blocks[i]
	if b == nil {
		return
	}
	if b.kind == "text" {
		p.say(Op{Kind: PartEnd, Part: b.part})
	}
	if b.server != "" && len(b.input) > 0 {
		p.searched(b.server, b.input)
	}
	delete(p.blocks, i)
}

// deltaPart returns the part of a delta that the template matches: its index may be another than the learned one's.
func (p *anthropic) deltaPart(doc scan.Value) (Part, bool) {
	i := p.delta.number(doc)
	if i < 0 || i == p.delta.part.Content {
		return p.delta.part, true
	}
	b := p.blocks[i]
	if b == nil {
		return Part{}, false
	}
	return b.part, true
}

func (p *anthropic) blockDelta(doc scan.Value, e *anthropicEvent) bool {
	delta := e.delta
	i, ok := p.index("index", e.index)
	if !ok || !delta.IsObject() {
		return false
	}
	b := p.blocks[i]
	if b == nil { // its beginning was lost
		b = &anthropicBlock{kind: "text", part: Part{Message: p.message, Content: i}}
		p.blocks[i] = b
	}
	switch kind := string(delta.Type()); kind {
	case "text_delta":
		text := delta.Get("text")
		p.delta.learn(doc, text, "index", b.part, before(e.index, text))
		return p.text(b.part, text)
	case "citations_delta":
		p.citation(b, delta.Get("citation"))
	case "input_json_delta":
		if s := delta.Get("partial_json").Bytes(); b.server != "" && len(b.input)+len(s) <= maxToolInput {
			b.input = append(b.input, s...)
		}
	case "thinking_delta", "signature_delta", "compaction_delta":
	default:
		p.unknown("delta "+clip(kind), delta)
	}
	return true
}

// searched says the query of a server tool's input.
func (p *anthropic) searched(tool string, input scan.Value) {
	if tool == "web_search" {
		p.query(input.Get("query"))
	}
}

func (p *anthropic) searchResults(list scan.Value) {
	if list.IsObject() {
		p.issue(IssueSourceFailed, "web search: "+clip(list.Get("error_code").Text()), nil)
		return
	}
	for results := scan.Elements(list); results.Next(); {
		r := results.Val
		if string(r.Type()) != "web_search_result" {
			p.unknown("search result "+clip(string(r.Type())), r)
			continue
		}
		if url := r.Get("url").Str(); url != "" {
			p.source(
				&Source{
					Key:         url,
					Kind:        KindWeb,
					URL:         url,
					Title:       r.Get("title").Str(),
					PublishedAt: r.Get("page_age").Str(),
				},
			)
		}
	}
}

// fetched says a page that the model has read. It counts as one more document for the citations that follow.
func (p *anthropic) fetched(result scan.Value) {
	s := fetchedPage(result)
	if s.URL == "" {
		p.issue(IssueSourceFailed, "web fetch: "+clip(result.Get("error_code").Text()), nil)
		return
	}
	p.documents = append(p.documents, s)
	p.described[s.Key] = true
	p.source(&s)
}

func fetchedPage(result scan.Value) Source {
	url, document := result.Get("url").Str(), result.Get("content")
	s := Source{Key: url, Kind: KindWeb, URL: url, Title: document.Get("title").Str()}
	if src := document.Get("source"); string(src.Type()) == "text" {
		s.Content = src.Get("data").Str()
	}
	return s
}

func (p *anthropic) stop(reason scan.Value) {
	switch reason.Str() {
	case "":
	case "end_turn", "stop_sequence":
		p.finish(0, FinishStop)
	case "max_tokens", "model_context_window_exceeded":
		p.finish(0, FinishLength)
	case "tool_use", "pause_turn":
		p.finish(0, FinishTool)
	case "refusal":
		p.finish(0, FinishRefusal)
	default:
		p.finish(0, FinishStop)
		p.unknown("stop reason "+clip(reason.Str()), reason)
	}
}
