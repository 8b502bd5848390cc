package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Bedrock's Converse API cites by block, as Anthropic does: a citations block holds its text and the sources of it.
// Nova's web grounding sends such blocks without text: they stand for what was said before. Names: the Converse API
// reference; recordings of Claude and Nova.

// converse reads bedrock-converse, as a body and as a stream.
type converse struct {
	out
	cfg       *Config
	begun     bool
	documents []Source
	results   []Source
	described map[string]bool
	inputs    map[int][]byte // the streamed inputs of tools so far, by content block
	cites     int            // citations so far
	delta     template
}

func newConverse(c *Config) Parser {
	return &converse{out: out{emit: c.Emit}, cfg: c, described: map[string]bool{}, inputs: map[int][]byte{}}
}

func looksConverse(s *shape) bool {
	switch s.event {
	case "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStart", "messageStop":
		return true
	}
	if s.hasAny("contentBlockDelta", "contentBlockStart", "contentBlockStop", "messageStop", "messageStart") &&
		len(s.members) <= 2 {
		return true
	}
	return s.val("output").Path("message", "content").IsArray()
}

// Parse implements [Parser].
func (p *converse) Parse(event []byte, doc scan.Value) bool {
	if text, ok := p.delta.match(doc); ok {
		part := p.delta.part
		if i := p.delta.number(doc); i >= 0 {
			part.Content = i
		}
		p.raw(part, text)
		return true
	}
	if !p.begun {
		p.begin()
	}
	if message := doc.Path("output", "message"); message.IsObject() {
		p.body(doc, message)
		return true
	}
	if len(event) > 0 {
		return p.event(string(event), doc, doc)
	}
	for o := scan.Members(doc); o.Next(); { // an event written as {"name": {…}}
		if o.Val.IsObject() && p.event(string(o.Key), o.Val, doc) {
			return true
		}
	}
	return false
}

// Close implements [Parser].
func (p *converse) Close() {}

func (p *converse) begin() {
	p.begun = true
	requested, results := converseDocuments(p.cfg.Request)
	p.documents = p.cfg.documents(requested, func(i int) string { return numbered("doc:", i) })
	p.results = results
	for _, list := range [][]Source{p.documents, p.results} {
		for i := range list {
			p.describe(&list[i])
		}
	}
}

func (p *converse) describe(s *Source) {
	if s.ID == "" {
		s.ID = s.Key
	}
	p.described[s.Key] = true
	p.source(s)
}

// converseDocuments collects the documents and search results of a request in the order that citations count them.
func converseDocuments(request scan.Value) (documents, results []Source) {
	var walk func(content scan.Value, depth int)
	walk = func(content scan.Value, depth int) {
		for blocks := scan.Elements(content); blocks.Next(); {
			if d := blocks.Val.Get("document"); d.IsObject() {
				documents = append(documents, converseDocument(d, len(documents)))
			}
			if r := blocks.Val.Get("searchResult"); r.IsObject() {
				s := Source{
					Key:     numbered("sr:", len(results)),
					Kind:    KindDocument,
					Title:   r.Get("title").Str(),
					Content: contentText(r.Get("content")),
				}
				setAddress(&s, r.Get("source").Str())
				results = append(results, s)
			}
			if depth == 0 {
				walk(blocks.Val.Path("toolResult", "content"), 1)
			}
		}
	}
	for messages := scan.Elements(request.Get("messages")); messages.Next(); {
		walk(messages.Val.Get("content"), 0)
	}
	return documents, results
}

func converseDocument(d scan.Value, i int) Source {
	s := Source{Key: numbered("doc:", i), Kind: KindDocument, Title: d.Get("name").Str()}
	src := d.Get("source")
	s.Content = src.Get("text").Str()
	if s.Content == "" {
		s.Content = contentText(src.Get("content"))
	}
	s.URL = src.Path("s3Location", "uri").Str()
	return s
}

// body reads a whole answer.
func (p *converse) body(doc, message scan.Value) {
	i := 0
	for blocks := scan.Elements(message.Get("content")); blocks.Next(); i++ {
		for o := scan.Members(blocks.Val); o.Next(); {
			p.block(i, string(o.Key), o.Val, blocks.Val)
		}
	}
	p.stop(doc.Get("stopReason"))
	if doc.Get("stopReason").IsString() {
		p.end()
	}
}

// block reads one content block of a body.
func (p *converse) block(i int, name string, v, raw scan.Value) {
	part := Part{Content: i}
	switch name {
	case "text":
		p.say(Op{Kind: PartBegin, Part: part})
		p.text(part, v)
		p.say(Op{Kind: PartEnd, Part: part})
	case "citationsContent":
		p.say(Op{Kind: PartBegin, Part: part})
		for citations := scan.Elements(v.Get("citations")); citations.Next(); {
			p.citation(i, citations.Val)
		}
		for content := scan.Elements(v.Get("content")); content.Next(); {
			p.text(part, content.Val.Get("text"))
		}
		p.say(Op{Kind: PartEnd, Part: part})
	case "toolUse":
		p.tool(v.Get("toolUseId").Str(), v.Get("name").Str())
		p.query(v.Path("input", "query"))
	case "toolResult", "reasoningContent", "guardContent", "image", "document", "video", "cachePoint", "p":
	default:
		p.unknown("content block "+clip(name), raw)
	}
}

// event reads one event of a stream.
func (p *converse) event(name string, v, doc scan.Value) bool {
	index := v.Get("contentBlockIndex")
	i, _ := p.index("contentBlockIndex", index)
	switch name {
	case "contentBlockDelta":
		delta := v.Get("delta")
		if text := delta.Get("text"); before(index, text) {
			p.delta.learn(doc, text, "contentBlockIndex", Part{Content: i}, true)
		}
		p.blockDelta(i, delta)
	case "contentBlockStart":
		if use := v.Path("start", "toolUse"); use.IsObject() {
			p.tool(use.Get("toolUseId").Str(), use.Get("name").Str())
		}
	case "contentBlockStop":
		p.query(scan.Value(p.inputs[i]).Get("query"))
		delete(p.inputs, i)
		p.say(Op{Kind: PartEnd, Part: Part{Content: i}})
	case "messageStop":
		p.stop(v.Get("stopReason"))
		p.end()
	case "messageStart", "metadata":
	default:
		if !strings.HasSuffix(name, "Exception") {
			return false
		}
		p.fail(name, firstText(v, "message", "originalMessage"))
	}
	return true
}

func (p *converse) blockDelta(i int, delta scan.Value) {
	part := Part{Content: i}
	for o := scan.Members(delta); o.Next(); {
		switch string(o.Key) {
		case "text":
			p.text(part, o.Val)
		case "citation":
			p.say(Op{Kind: PartBegin, Part: part})
			p.citation(i, o.Val)
		case "toolUse":
			if s := o.Val.Get("input").Bytes(); len(p.inputs[i])+len(s) <= maxToolInput {
				p.inputs[i] = append(p.inputs[i], s...)
			}
		case "reasoningContent", "toolResult", "image":
		default:
			p.unknown("delta "+clip(string(o.Key)), delta)
		}
	}
}

// citation says one citation of a block, if it is all there.
func (p *converse) citation(i int, v scan.Value) {
	if v.Cut() {
		return
	}
	ref := Ref{Quote: contentText(v.Get("sourceContent"))}
	title := v.Get("title").Str()
	for o := scan.Members(v.Get("location")); o.Next(); {
		p.locate(&ref, string(o.Key), o.Val, v)
	}
	if ref.Source == "" && v.Get("source").Str() != "" {
		ref.Source = p.named(v.Get("source").Str(), title)
	}
	if ref.Source == "" && title != "" {
		ref.Source = "title:" + title
		p.source(&Source{Key: ref.Source, Kind: KindDocument, Title: title})
	}
	if ref.Source == "" {
		p.issue(IssueSourceless, clip(ref.Quote), v)
		return
	}
	p.cite(&Cite{
		Key: numbered("citation:", p.cites), Part: Part{Content: i}, Unit: Block, Covers: BlockSpan, Refs: []Ref{ref},
	})
	p.cites++
}

// locate reads one arm of the location of a citation. All ends are exclusive.
func (p *converse) locate(ref *Ref, arm string, v, citation scan.Value) {
	start, ok1 := p.index("start", v.Get("start"))
	end, ok2 := p.index("end", v.Get("end"))
	switch arm {
	case "web":
		url := v.Get("url").Str()
		ref.Source = url
		if url != "" {
			p.source(
				&Source{
					Key:   url,
					Kind:  KindWeb,
					URL:   url,
					Site:  v.Get("domain").Str(),
					Title: citation.Get("title").Str(),
				},
			)
		}
		return
	case "searchResultLocation":
		ref.Source = p.listed("sr:", v.Get("searchResultIndex"), p.results, citation)
	case "documentChar", "documentPage", "documentChunk":
		ref.Source = p.listed("doc:", v.Get("documentIndex"), p.documents, citation)
	default:
		p.unknown("location "+clip(arm), v)
		return
	}
	switch {
	case !ok1:
	case arm == "documentChar":
		ref.Locator.CharStart = new(start)
		if ok2 {
			ref.Locator.CharEnd = new(end)
		}
	case arm == "documentPage":
		ref.Locator.Page = start
		if ok2 && end-1 > start {
			ref.Locator.LastPage = end - 1
		}
	default:
		ref.Locator.Block = new(start)
		if ok2 && end > start {
			ref.Locator.LastBlock = new(end - 1)
		}
	}
}

// listed names the source at an index of the request's lists.
func (p *converse) listed(prefix string, index scan.Value, list []Source, citation scan.Value) string {
	i, ok := p.index(prefix+" index", index)
	if !ok && (!index.IsNull() || len(list) > 1) { // a missing index is 0 where there is but one document
		return ""
	}
	s := Source{Key: numbered(prefix, i), Kind: KindDocument, Title: citation.Get("title").Str()}
	if i < len(list) {
		return list[i].Key
	}
	if len(p.cfg.Request) > 0 && !p.described[s.Key] {
		p.issue(IssueDocumentIndex, s.Key, nil)
	}
	if !p.described[s.Key] {
		setAddress(&s, citation.Get("source").Str())
		p.describe(&s)
	}
	return s.Key
}

// named is a source that a citation names by its address or another name.
func (p *converse) named(source, title string) string {
	s := Source{Key: source, Kind: KindDocument, Title: title}
	setAddress(&s, source)
	p.source(&s)
	return source
}

func (p *converse) stop(reason scan.Value) {
	switch reason.Str() {
	case "":
	case "end_turn", "stop_sequence":
		p.finish(0, FinishStop)
	case "max_tokens", "model_context_window_exceeded":
		p.finish(0, FinishLength)
	case "tool_use":
		p.finish(0, FinishTool)
	case "guardrail_intervened", "content_filtered":
		p.finish(0, FinishFilter)
	case "malformed_model_output", "malformed_tool_use":
		p.finish(0, FinishError)
	default:
		p.finish(0, FinishStop)
		p.unknown("stop reason "+clip(reason.Str()), reason)
	}
}
