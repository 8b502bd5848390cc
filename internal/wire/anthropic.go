package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"iter"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Anthropic's Messages API cites by block: a text block with citations rests on them as a whole, and in a stream the
// citations come before the block's text. Documents and search results are identified by their position in the request.
// Sources: the types of anthropic-sdk-go, and recordings of all five kinds of location.

// anthropic reads anthropic-messages, also as Bedrock's InvokeModel wraps it.
type anthropic struct {
	out
	givenSources
	given       bool   // the request, or the documents, are known, so an index past them is wrong
	id          string // of the current message
	message     int    // counts texts: a recording may have several turns, and a turn several texts around tool calls
	hasText     bool   // there was a text block
	interrupted bool   // something else followed it, so the next text is another message
	blocks      map[int]*anthropicBlock
	delta       template
}

// anthropicBlock is a content block that has begun.
type anthropicBlock struct {
	kind   string
	part   Part
	cited  int    // citations so far
	tool   string // the id of its call
	server string // the server tool that it calls
	input  []byte // its input so far
}

// maxToolInput is how much of a tool's streamed input is kept to find the query in it.
const maxToolInput = 64 << 10

func newAnthropic(c *Config) Parser {
	return &anthropic{
		out: out{Config: c}, givenSources: givenSources{cfg: c}, blocks: map[int]*anthropicBlock{},
		given: len(c.Request) > 0 || len(c.Documents) > 0,
	}
}

func looksAnthropic(s *shape) bool {
	if inner := unwrapInvoke(s.doc); inner != nil {
		s = shapeOf(nil, inner)
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
	if text, counter, ok := p.delta.match(doc); ok {
		if part, known := p.deltaPart(counter); known {
			p.raw(part, text)
			return true
		}
	}
	p.unread(doc, anthropicReads)
	p.emitOnce(&p.out, requestDocuments)
	var kind string
	var index, block, delta, message scan.Value
	doc.Read(scan.Fields{
		{"type", &kind}, {"index", &index}, {"content_block", &block}, {"delta", &delta}, {"message", &message},
	})
	switch kind {
	case "content_block_delta":
		return p.blockDelta(doc, index, delta)
	case "content_block_start":
		i, _ := p.index("index", index)
		p.blockStart(i, block)
	case "content_block_stop":
		i, _ := p.index("index", index)
		p.blockStop(i)
	case "message_start":
		p.messageStart(message)
	case "message_delta":
		p.finishAs(anthropicFinish, delta.Get("stop_reason"))
	case "message_stop":
		p.emit(Op{Kind: End})
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

// untyped reads a document without a type: a chunk that wraps another document, or a body that lacks it.
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

// givenSources are the documents and search results that a model was given, which citations name by position.
type givenSources struct {
	cfg       *Config
	begun     bool     // they were emitted
	documents []Source // by document_index
	results   []Source // by search_result_index
	described describedSources
}

// emitOnce emits what the model was given, as read collects it from the request.
func (g *givenSources) emitOnce(o *out, read func(request scan.Value) (documents, results []Source)) {
	if g.begun {
		return
	}
	requested, results := read(g.cfg.Request)
	g.begun, g.results, g.described = true, results, describedSources{}
	g.documents = g.cfg.documents(requested, func(i int) string { return numbered("doc:", i) })
	for _, list := range [][]Source{g.documents, g.results} {
		for i := range list {
			g.described.emitSource(o, &list[i])
		}
	}
}

// describedSources are the keys of the sources that were emitted.
type describedSources map[string]bool

func (d describedSources) emitSource(o *out, s *Source) {
	s.ID = cmp.Or(s.ID, s.Key)
	if o.Keep(entrySize + len(s.Key)) {
		d[s.Key] = true
	}
	o.source(s)
}

// messageStart begins a message. A proxy may send the same start twice.
func (p *anthropic) messageStart(m scan.Value) {
	id := m.Get("id").Str()
	if p.id != "" && id != p.id {
		p.message++
		p.interrupted = false
		p.delta = template{}
		clear(p.blocks)
	}
	p.id = id
	p.head(HeadID, m.Get("id"))
	p.head(HeadModel, m.Get("model"))
}

// messageBody reads a whole body.
func (p *anthropic) messageBody(m scan.Value) {
	p.messageStart(m)
	var content, reason scan.Value
	m.Read(scan.Fields{{"content", &content}, {"stop_reason", &reason}})
	i := 0
	for blocks := scan.Elements(content); blocks.Next(); i++ {
		p.blockStart(i, blocks.Val)
		if !blocks.Val.Cut() || len(blocks.Val.Get("text").Content()) > 0 { // otherwise its text is missing
			p.blockStop(i)
		}
	}
	p.finishAs(anthropicFinish, reason)
	if reason.IsString() {
		p.emit(Op{Kind: End})
	}
}

// blockStart begins a content block; in a body, v is the whole block.
func (p *anthropic) blockStart(i int, v scan.Value) {
	b := &anthropicBlock{kind: v.Get("type").Str(), part: Part{Message: p.message, Content: i}}
	if b.kind == "" && v.Get("text").IsString() { // the body breaks off before the type
		b.kind = "text"
	}
	if p.blocks[i] != nil && p.blocks[i].kind == "text" && b.kind == "text" && len(v.Get("text").Content()) == 0 {
		return // a proxy began it twice
	}
	p.blocks[i] = b
	if b.kind == "text" && p.interrupted {
		p.message++
		p.interrupted = false
		b.part.Message = p.message
	}
	p.interrupted = p.interrupted || b.kind != "text" && p.hasText
	switch b.kind {
	case "text":
		p.emit(Op{Kind: PartBegin, Part: b.part})
		var list, text scan.Value
		v.Read(scan.Fields{{"citations", &list}, {"text", &text}})
		p.wantList("citations", list)
		for citations := scan.Elements(list); citations.Next(); {
			p.citation(b, citations.Val)
		}
		p.hasText = p.text(b.part, text) && len(text.Content()) > 0 || p.hasText
	case "tool_use", "server_tool_use", "mcp_tool_use":
		name, input := v.Get("name").Str(), v.Get("input")
		b.tool = v.Get("id").Str()
		if b.kind == "tool_use" {
			p.tool(b.tool, name)
		} else {
			p.serverTool(b.tool, name, false)
		}
		if !blank(input) {
			p.toolInput(b.tool, input)
		}
		if b.kind == "server_tool_use" {
			b.server = name
			p.searched(name, input)
		}
	case "web_search_tool_result":
		p.searchResults(v.Get("content"))
	case "web_fetch_tool_result":
		p.fetched(v.Get("content"))
	case "thinking":
		p.think(b.part, v.Get("thinking"))
	case "redacted_thinking", "compaction", "container_upload", "fallback":
	default:
		if !strings.HasSuffix(b.kind, "_tool_result") {
			p.unknown("content block "+b.kind, v)
		}
	}
	if strings.HasSuffix(b.kind, "_tool_result") {
		content, failed := v.Get("content"), ""
		if strings.HasSuffix(string(content.Type()), "_error") {
			failed = errorWords(content)
		} else if v.Get("is_error").IsTrue() {
			failed = cmp.Or(contentText(content), "error")
		}
		p.toolOutput(v.Get("tool_use_id").Str(), content, failed)
	}
}

func (p *anthropic) blockStop(i int) {
	b := p.blocks[i]
	if b == nil {
		return
	}
	if b.kind == "text" {
		p.emit(Op{Kind: PartEnd, Part: b.part})
	}
	if b.server != "" && len(b.input) > 0 {
		p.searched(b.server, b.input)
	}
	if strings.HasSuffix(b.kind, "tool_use") {
		p.emit(Op{Kind: ToolReady, Name: b.tool})
	}
	delete(p.blocks, i)
}

// deltaPart returns the part of a delta that the template matches, whose index may differ from the learned one.
func (p *anthropic) deltaPart(index scan.Value) (Part, bool) {
	i, ok := index.Int()
	if !ok || i == p.delta.part.Content {
		return p.delta.part, true
	}
	b := p.blocks[i]
	if b == nil {
		return Part{}, false
	}
	return b.part, true
}

func (p *anthropic) blockDelta(doc, index, delta scan.Value) bool {
	i, ok := p.index("index", index)
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
		p.hasText = true
		p.delta.learn(doc, text, b.part, variation{counter: "index", anyTail: before(index, text)})
		return p.text(b.part, text)
	case "citations_delta":
		p.citation(b, delta.Get("citation"))
	case "input_json_delta":
		piece := delta.Get("partial_json")
		p.moreInput(b.tool, piece)
		if s := piece.Bytes(); b.server != "" && len(b.input)+len(s) <= maxToolInput {
			b.input = append(b.input, s...)
		}
	case "thinking_delta":
		p.think(b.part, delta.Get("thinking"))
	case "signature_delta", "compaction_delta":
	default:
		p.unknown("delta "+kind, delta)
	}
	return true
}

// searched emits the query in a server tool's input.
func (p *anthropic) searched(tool string, input scan.Value) {
	if tool == "web_search" {
		p.query(input.Get("query"))
	}
}

func (p *anthropic) searchResults(list scan.Value) {
	if list.IsObject() {
		p.issue(IssueSourceFailed, "web search: "+shorten(list.Get("error_code").Text()), nil)
		return
	}
	for results := scan.Elements(list); results.Next(); {
		r := results.Val
		if string(r.Type()) != "web_search_result" {
			p.unknown("search result "+string(r.Type()), r)
			continue
		}
		s := &Source{Kind: kindWeb}
		r.Read(scan.Fields{{"url", &s.URL}, {"title", &s.Title}, {"page_age", &s.PublishedAt}})
		if s.Key = s.URL; s.Key != "" {
			p.source(s)
		}
	}
}

// fetched emits a page that the model has read. It counts as one more document for the citations that follow.
func (p *anthropic) fetched(result scan.Value) {
	s := fetchedPage(result)
	if s.URL == "" {
		p.issue(IssueSourceFailed, "web fetch: "+shorten(result.Get("error_code").Text()), nil)
		return
	}
	if p.Keep(2*sourceSize + entrySize + len(s.Content) + 2*len(s.URL)) {
		p.documents = append(p.documents, s)
		p.described[s.Key] = true
	}
	p.source(&s)
}

func fetchedPage(result scan.Value) Source {
	url, document := result.Get("url").Str(), result.Get("content")
	s := Source{Key: url, Kind: kindWeb, URL: url, Title: document.Get("title").Str()}
	if src := document.Get("source"); string(src.Type()) == "text" {
		s.Content = src.Get("data").Str()
	}
	return s
}

var anthropicFinish = map[string]string{
	"end_turn": finishStop, "stop_sequence": finishStop, "max_tokens": finishLength,
	"model_context_window_exceeded": finishLength, "tool_use": finishTool, "pause_turn": finishTool,
	"refusal": finishRefusal,
}

// finishAs emits why the answer ended, according to a table. A reason that is not in it is reported as a stop.
func (o *out) finishAs(reasons map[string]string, v scan.Value) {
	reason := v.Str()
	if reason == "" {
		return
	}
	finish, known := reasons[reason]
	if o.finish(0, cmp.Or(finish, finishStop)); !known {
		o.unknown("stop reason "+reason, v)
	}
}

// citation emits one citation of a block, if it is complete.
func (p *anthropic) citation(b *anthropicBlock, v scan.Value) {
	ref, ok := p.reference(v)
	if !ok {
		return
	}
	b.cited++
	p.cite(&Cite{
		Key:  numbered(numbered(numbered("", p.message)+"/", b.part.Content)+"/", b.cited),
		Part: b.part, Unit: Block, Covers: BlockSpan, Refs: []Ref{ref},
	})
}

// reference reads what a citation points to, and emits its source unless that is known. It returns false if the
// citation is incomplete or points to nothing.
func (p *anthropic) reference(v scan.Value) (Ref, bool) {
	if v.Cut() {
		return Ref{}, false
	}
	ref := Ref{Quote: v.Get("cited_text").Str()}
	switch kind := string(v.Type()); kind {
	case "web_search_result_location":
		url := v.Get("url").Str()
		if url != "" {
			p.source(&Source{Key: url, Kind: kindWeb, URL: url, Title: v.Get("title").Str()})
		}
		ref.Source = url
	case "search_result_location":
		i, ok := p.index("search_result_index", v.Get("search_result_index"))
		s := Source{Key: v.Get("source").Str(), Kind: kindDocument, Title: v.Get("title").Str()}
		if ok {
			s.Key = numbered("sr:", i)
		}
		if s.Key != "" && !p.described[s.Key] {
			if ok && p.given {
				p.issue(IssueDocumentIndex, s.Key, nil)
			}
			setAddress(&s, v.Get("source").Str())
			p.described.emitSource(&p.out, &s)
		}
		ref.Source = s.Key
		p.blockRange(&ref, v)
	case "char_location", "page_location", "content_block_location":
		ref.Source = p.documentSource(v)
		switch kind {
		case "page_location":
			p.pages(&ref.Locator, v, "start_page_number", "end_page_number")
		case "content_block_location":
			p.blockRange(&ref, v)
		default:
			ref.Locator.CharStart, ref.Locator.CharEnd = p.bounds(v, "start_char_index", "end_char_index")
		}
	default:
		p.unknown("citation "+kind, v)
		return Ref{}, false
	}
	if ref.Source == "" {
		p.issue(IssueSourceless, shorten(ref.Quote), v)
		return Ref{}, false
	}
	return ref, true
}

func (p *anthropic) blockRange(ref *Ref, v scan.Value) {
	p.blocksOf(&ref.Locator, v, "start_block_index", "end_block_index")
}

// bounds reads a range in a source; nil is what is missing or not a number. Its end is exclusive.
func (o *out) bounds(v scan.Value, from, to string) (start, end *int) {
	if n, ok := o.index(from, v.Get(from)); ok {
		start = &n
	}
	if n, ok := o.index(to, v.Get(to)); ok {
		end = &n
	}
	return start, end
}

func (o *out) pages(l *Locator, v scan.Value, from, to string) {
	start, end := o.bounds(v, from, to)
	if start == nil {
		return
	}
	if l.Page = *start; end != nil && *end-1 > *start {
		l.LastPage = *end - 1
	}
}

func (o *out) blocksOf(l *Locator, v scan.Value, from, to string) {
	start, end := o.bounds(v, from, to)
	if l.Block = start; start != nil && end != nil && *end > *start {
		*end--
		l.LastBlock = end
	}
}

func (p *anthropic) documentSource(v scan.Value) string {
	i, ok := p.index("document_index", v.Get("document_index"))
	if !ok {
		return ""
	}
	s := Source{
		Key:      numbered("doc:", i),
		Kind:     kindDocument,
		Title:    v.Get("document_title").Str(),
		GlobalID: v.Get("file_id").Str(),
	}
	if d := p.document(i, s.Title); d != nil {
		s.Key, s.Kind = d.Key, d.Kind
	} else if p.given && !p.described[s.Key] {
		p.issue(IssueDocumentIndex, s.Key, nil)
	}
	if !p.described[s.Key] {
		p.described.emitSource(&p.out, &s)
	} else if s.Title != "" || s.GlobalID != "" {
		p.source(&s)
	}
	return s.Key
}

// document returns the known document that a citation names by its index and title. Without the request only fetched
// pages are known; if documents were given, too, the indices of the pages are off, and their titles identify them.
func (p *anthropic) document(i int, title string) *Source {
	if i < len(p.documents) && (p.given || p.documents[i].Title == title) {
		return &p.documents[i]
	}
	k := slices.IndexFunc(p.documents, func(d Source) bool { return d.Title == title })
	if p.given || title == "" || k < 0 {
		return nil
	}
	return &p.documents[k]
}

// requestBlocks yields the content blocks of all messages of a request, each followed by those of its tool result, in
// the order in which citations count them.
func requestBlocks(request scan.Value, toolResult func(scan.Value) scan.Value) iter.Seq[scan.Value] {
	return func(yield func(scan.Value) bool) {
		for messages := scan.Elements(request.Get("messages")); messages.Next(); {
			for blocks := scan.Elements(messages.Val.Get("content")); blocks.Next(); {
				if !yield(blocks.Val) {
					return
				}
				for inner := scan.Elements(toolResult(blocks.Val)); inner.Next(); {
					if !yield(inner.Val) {
						return
					}
				}
			}
		}
	}
}

// requestDocuments collects the document blocks and the search results of a request.
func requestDocuments(request scan.Value) (documents, results []Source) {
	toolResult := func(b scan.Value) scan.Value {
		if string(b.Type()) == "tool_result" {
			return b.Get("content")
		}
		return nil
	}
	for b := range requestBlocks(request, toolResult) {
		switch string(b.Type()) {
		case "document":
			s := Source{Key: numbered("doc:", len(documents)), Kind: kindDocument, Title: b.Get("title").Str()}
			src := b.Get("source")
			switch string(src.Type()) {
			case "text":
				s.Content = src.Get("data").Str()
			case "content":
				s.Content = contentText(src.Get("content"))
			case "url":
				s.URL = src.Get("url").Str()
			case "file":
				s.Kind, s.GlobalID = kindFile, src.Get("file_id").Str()
			}
			documents = append(documents, s)
		case "web_fetch_tool_result":
			if page := fetchedPage(b.Get("content")); page.URL != "" {
				documents = append(documents, page)
			}
		case "search_result":
			results = append(results, requestResult(b, len(results)))
		}
	}
	return documents, results
}

func requestResult(b scan.Value, i int) Source {
	s := Source{
		Key:     numbered("sr:", i),
		Kind:    kindDocument,
		Title:   b.Get("title").Str(),
		Content: contentText(b.Get("content")),
	}
	setAddress(&s, b.Get("source").Str())
	return s
}

// setAddress sets what a caller named as a search result's source: an address, or any other name.
func setAddress(s *Source, address string) {
	switch {
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		s.Kind, s.URL = kindWeb, address
	case s.Title == "":
		s.Title = address
	default:
		s.GlobalID = address
	}
}

// contentText joins the texts of content blocks, or returns a content that is a string.
func contentText(v scan.Value) string {
	if v.IsString() {
		return v.Str()
	}
	var b strings.Builder
	for blocks := scan.Elements(v); blocks.Next(); {
		b.Write(blocks.Val.Get("text").Bytes())
	}
	return b.String()
}
