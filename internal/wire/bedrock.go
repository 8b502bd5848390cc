package wire

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
)

// Bedrock's Converse API cites by block, as Anthropic does: a citations block has text and its sources. Nova's web
// grounding sends such blocks without text, which refer to the text before. Names: the Converse API reference;
// recordings of Claude and Nova.

// converse reads bedrock-converse, as a body and as a stream.
type converse struct {
	out
	givenSources
	inputs      map[int][]byte // the streamed inputs of tools so far, by content block
	calls       map[int]string // by content block: the id of the call that it is, or is the result of
	cites       int            // citations so far
	message     int            // counts texts: those around tool calls and reasoning are messages of their own
	hasText     bool           // the message has text
	interrupted bool           // the message has text, and something else after it
	delta       template
}

func newConverse(c *Config) Parser {
	return &converse{
		out: out{Config: c}, givenSources: givenSources{cfg: c}, inputs: map[int][]byte{}, calls: map[int]string{},
	}
}

// part returns the part of a block of text, in a new message if something else came before it.
func (p *converse) part(i int) Part {
	if p.interrupted {
		p.message++
		p.interrupted, p.hasText = false, false
	}
	return Part{Message: p.message, Content: i}
}

// interrupt notes a block that is not text.
func (p *converse) interrupt() {
	if p.hasText {
		p.interrupted = true
		p.delta.forget()
	}
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
	if text, counter, ok := p.delta.match(doc); ok {
		part := p.delta.part
		if i, counted := counter.Int(); counted {
			part.Content = i
		}
		p.raw(part, text)
		return true
	}
	p.unread(doc, converseReads)
	p.emitOnce(&p.out, converseDocuments)
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

// converseDocuments collects the documents and search results of a request.
func converseDocuments(request scan.Value) (documents, results []Source) {
	toolResult := func(b scan.Value) scan.Value { return b.Path("toolResult", "content") }
	for b := range requestBlocks(request, toolResult) {
		if d := b.Get("document"); d.IsObject() {
			s := Source{Key: numbered("doc:", len(documents)), Kind: kindDocument, Title: d.Get("name").Str()}
			src := d.Get("source")
			s.Content = src.Get("text").Str()
			if s.Content == "" {
				s.Content = contentText(src.Get("content"))
			}
			s.URL = src.Path("s3Location", "uri").Str()
			documents = append(documents, s)
		}
		if r := b.Get("searchResult"); r.IsObject() {
			results = append(results, requestResult(r, len(results)))
		}
	}
	return documents, results
}

// body reads a whole answer.
func (p *converse) body(doc, message scan.Value) {
	i := 0
	for blocks := scan.Elements(message.Get("content")); blocks.Next(); i++ {
		for o := scan.Members(blocks.Val); o.Next(); {
			p.block(i, string(o.Key), o.Val, blocks.Val)
		}
	}
	p.finishAs(converseFinish, doc.Get("stopReason"))
	if doc.Get("stopReason").IsString() {
		p.emit(Op{Kind: End})
	}
}

// block reads one content block of a body.
func (p *converse) block(i int, name string, v, raw scan.Value) {
	switch name {
	case "text":
		part := p.part(i)
		p.emit(Op{Kind: PartBegin, Part: part})
		p.addText(part, v)
		p.emit(Op{Kind: PartEnd, Part: part})
	case "citationsContent":
		part := p.part(i)
		p.emit(Op{Kind: PartBegin, Part: part})
		for citations := scan.Elements(v.Get("citations")); citations.Next(); {
			p.citation(part, citations.Val)
		}
		for content := scan.Elements(v.Get("content")); content.Next(); {
			p.addText(part, content.Val.Get("text"))
		}
		p.emit(Op{Kind: PartEnd, Part: part})
	case "toolUse":
		p.interrupt()
		p.toolUse(v)
		p.toolInput(v.Get("toolUseId").Str(), v.Get("input"))
		p.query(v.Path("input", "query"))
	case "toolResult":
		p.interrupt()
		failed := ""
		if v.Get("status").Str() == "error" {
			failed = cmp.Or(contentText(v.Get("content")), "error")
		}
		p.toolOutput(v.Get("toolUseId").Str(), v.Get("content"), failed)
	case "reasoningContent":
		p.interrupt()
		p.think(Part{Message: p.message, Content: i}, v.Path("reasoningText", "text"))
	case "guardContent", "image", "document", "video", "cachePoint", "p":
	default:
		p.unknown("content block "+name, raw)
	}
}

// toolUse emits a call of a tool.
func (p *converse) toolUse(v scan.Value) {
	id, name := v.Get("toolUseId").Str(), v.Get("name").Str()
	if v.Get("type").Str() == "server_tool_use" {
		p.serverTool(id, name, false)
		return
	}
	p.tool(id, name)
}

// event reads one event of a stream.
func (p *converse) event(name string, v, doc scan.Value) bool {
	index := v.Get("contentBlockIndex")
	i, _ := p.index("contentBlockIndex", index)
	switch name {
	case "contentBlockDelta":
		delta := v.Get("delta")
		if text := delta.Get("text"); before(index, text) {
			p.delta.learn(doc, text, p.part(i), variation{counter: "contentBlockIndex", anyTail: true})
		}
		p.blockDelta(i, delta)
	case "contentBlockStart":
		start := v.Get("start")
		if kinds := scan.Members(start); kinds.Next() { // text blocks have none
			p.interrupt()
		}
		if use := start.Get("toolUse"); use.IsObject() {
			p.toolUse(use)
		}
		if id := start.Get("toolUse", "toolResult").Get("toolUseId").Str(); id != "" && p.Keep(entrySize+len(id)) {
			p.calls[i] = id
		}
	case "contentBlockStop":
		p.query(scan.Value(p.inputs[i]).Get("query"))
		delete(p.inputs, i)
		if id, called := p.calls[i]; called {
			p.emit(Op{Kind: ToolReady, Name: id})
			delete(p.calls, i)
		}
		p.emit(Op{Kind: PartEnd, Part: Part{Message: p.message, Content: i}})
	case "messageStop":
		p.finishAs(converseFinish, v.Get("stopReason"))
		p.emit(Op{Kind: End})
	case "messageStart", "metadata":
	default:
		if !strings.HasSuffix(name, "Exception") {
			return false
		}
		p.fail(name, ReadException(v))
	}
	return true
}

// addText emits text.
func (p *converse) addText(part Part, v scan.Value) {
	p.hasText = p.text(part, v) && len(v.Content()) > 0 || p.hasText
}

func (p *converse) blockDelta(i int, delta scan.Value) {
	for o := scan.Members(delta); o.Next(); {
		switch string(o.Key) {
		case "text":
			p.addText(p.part(i), o.Val)
		case "citation":
			part := p.part(i)
			p.emit(Op{Kind: PartBegin, Part: part})
			p.citation(part, o.Val)
		case "toolUse":
			p.interrupt()
			p.moreInput(p.calls[i], o.Val.Get("input"))
			if s := o.Val.Get("input").Bytes(); len(p.inputs[i])+len(s) <= maxToolInput {
				p.inputs[i] = append(p.inputs[i], s...)
			}
		case "reasoningContent":
			p.interrupt()
			p.think(Part{Message: p.message, Content: i}, o.Val.Get("text"))
		case "toolResult":
			p.interrupt()
			p.toolOutput(p.calls[i], o.Val, "")
		case "image":
		default:
			p.unknown("delta "+string(o.Key), delta)
		}
	}
}

// citation emits one citation of a block, if it is complete.
func (p *converse) citation(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	ref := Ref{Quote: contentText(v.Get("sourceContent"))}
	title := v.Get("title").Str()
	for o := scan.Members(v.Get("location")); o.Next(); {
		p.locate(&ref, string(o.Key), o.Val, v)
	}
	if ref.Source == "" && v.Get("source").Str() != "" {
		source := v.Get("source").Str()
		s := Source{Key: source, Kind: kindDocument, Title: title}
		setAddress(&s, source)
		p.source(&s)
		ref.Source = source
	}
	if ref.Source == "" && title != "" {
		ref.Source = "title:" + title
		p.source(&Source{Key: ref.Source, Kind: kindDocument, Title: title})
	}
	if ref.Source == "" {
		p.issue(IssueSourceless, shorten(ref.Quote), v)
		return
	}
	p.cite(&Cite{
		Key: numbered("citation:", p.cites), Part: part, Unit: Block, Covers: BlockSpan, Refs: []Ref{ref},
	})
	p.cites++
}

// locate reads one kind of location of a citation. All ends are exclusive.
func (p *converse) locate(ref *Ref, arm string, v, citation scan.Value) {
	switch arm {
	case "web":
		url := v.Get("url").Str()
		ref.Source = url
		if url != "" {
			title, site := citation.Get("title").Str(), v.Get("domain").Str()
			p.source(&Source{Key: url, Kind: kindWeb, URL: url, Site: site, Title: title})
		}
		return
	case "searchResultLocation":
		ref.Source = p.listed("sr:", v.Get("searchResultIndex"), p.results, citation)
	case "documentChar", "documentPage", "documentChunk":
		ref.Source = p.listed("doc:", v.Get("documentIndex"), p.documents, citation)
	default:
		p.unknown("location "+arm, v)
		return
	}
	switch arm {
	case "documentChar":
		if !v.Get("start").IsNull() {
			ref.Locator.CharStart, ref.Locator.CharEnd = p.bounds(v, "start", "end")
		}
	case "documentPage":
		p.pages(&ref.Locator, v, "start", "end")
	default:
		p.blocksOf(&ref.Locator, v, "start", "end")
	}
}

// listed returns the key of the source at an index of the request's lists.
func (p *converse) listed(prefix string, index scan.Value, list []Source, citation scan.Value) string {
	i, ok := p.index(prefix+" index", index)
	if !ok && (!index.IsNull() || len(list) > 1) { // a missing index means 0 if there is only one document
		return ""
	}
	s := Source{Key: numbered(prefix, i), Kind: kindDocument, Title: citation.Get("title").Str()}
	if i < len(list) {
		return list[i].Key
	}
	if len(p.cfg.Request) > 0 && !p.described[s.Key] {
		p.issue(IssueDocumentIndex, s.Key, nil)
	}
	if !p.described[s.Key] {
		setAddress(&s, citation.Get("source").Str())
		p.described.emitSource(&p.out, &s)
	}
	return s.Key
}

var converseFinish = map[string]string{
	"end_turn": finishStop, "stop_sequence": finishStop, "max_tokens": finishLength,
	"model_context_window_exceeded": finishLength, "tool_use": finishTool, "guardrail_intervened": finishFilter,
	"content_filtered": finishFilter, "malformed_model_output": finishError, "malformed_tool_use": finishError,
}

// Bedrock's RetrieveAndGenerate and InvokeAgent cite spans of the answer, and repeat their words. They are the only
// ones whose ends are inclusive. Names: the Agents for Bedrock Runtime API reference.

// bedrockRAG reads bedrock-rag: a body, RetrieveAndGenerateStream and InvokeAgent's chunks.
type bedrockRAG struct {
	out
	cites    int
	unplaced int    // references without an address so far
	rest     []byte // of an agent's chunk: the beginning of a character that continues in the next one
	delta    template
}

func newBedrockRAG(c *Config) Parser { return &bedrockRAG{out: out{Config: c}} }

func looksBedrockRAG(s *shape) bool {
	if s.val("output").Get("text").IsString() && s.hasAny("citations", "sessionId", "guardrailAction") {
		return true
	}
	if s.has("generatedResponsePart") || s.has("attribution", "bytes") || s.val("chunk").Get("attribution").IsObject() {
		return true
	}
	if s.event == "chunk" && s.has("bytes") { // an agent's text, or some model's own JSON
		inner := unwrapInvoke(s.doc)
		return len(inner) > 0 && !inner.IsObject()
	}
	return s.val("citation").Get("generatedResponsePart").IsObject() ||
		s.event == "output" && s.has("text") || s.event == "citation" && s.hasAny("citation", "retrievedReferences")
}

// Parse implements [Parser].
func (p *bedrockRAG) Parse(event []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok && string(event) == "output" {
		p.raw(Part{}, text)
		return true
	}
	p.unread(doc, bedrockRAGReads)
	var e struct{ guardrail, output, text, part, citation, chunk, bytes, trace, session, control scan.Value }
	doc.Read(scan.Fields{
		{"guardrail", &e.guardrail},
		{"output", &e.output},
		{"text", &e.text},
		{"generatedResponsePart", &e.part},
		{"citation", &e.citation},
		{"chunk", &e.chunk},
		{"bytes", &e.bytes},
		{"trace", &e.trace},
		{"sessionId", &e.session},
		{"returnControl", &e.control},
	})
	switch {
	case string(event) == "guardrail" || e.guardrail.IsObject():
		p.guardrail(doc)
	case e.output.Get("text").IsString():
		p.text(Part{}, doc.Path("output", "text"))
		for citations := scan.Elements(doc.Get("citations")); citations.Next(); {
			p.citation(citations.Val)
		}
		p.guardrail(doc)
	case string(event) == "output":
		p.delta.learn(doc, e.text, Part{}, variation{})
		p.text(Part{}, e.text)
	case e.part.IsObject():
		p.citation(doc)
	case e.citation.IsObject():
		p.citation(e.citation)
	case string(event) == "citation":
		p.citation(doc)
	case e.chunk.IsObject():
		return p.chunk(e.chunk)
	case e.bytes.IsString():
		return p.chunk(doc)
	case strings.HasSuffix(string(event), "Exception"):
		p.fail(string(event), ReadException(doc))
	case e.control.IsObject():
		p.returnControl(e.control)
	case string(event) == "returnControl":
		p.returnControl(doc)
	case e.trace.IsObject(), string(event) == "trace", string(event) == "sessionId", e.session.IsString():
	default:
		return false
	}
	return true
}

// Close implements [Parser]. There is no end mark but the transport's, and no reason why an answer ended.
func (p *bedrockRAG) Close() {
	if len(p.rest) > 0 {
		p.issue("truncated", "a character of the text", nil)
	}
	p.emit(Op{Kind: End})
}

func (p *bedrockRAG) guardrail(doc scan.Value) {
	action := firstText(doc, "guardrailAction", "action")
	if action == "" {
		action = doc.Path("guardrail", "action").Str()
	}
	if action == "INTERVENED" {
		p.finish(0, finishFilter)
	}
}

// chunk reads a piece of an agent's answer.
func (p *bedrockRAG) chunk(v scan.Value) bool {
	text, err := base64.StdEncoding.DecodeString(v.Get("bytes").Str())
	if err != nil {
		return false
	}
	text = append(p.rest, text...)
	whole := len(text) - incomplete(text)
	p.rest = slices.Clone(text[whole:])
	p.emit(Op{Kind: Text, Text: text[:whole]})
	for citations := scan.Elements(v.Path("attribution", "citations")); citations.Next(); {
		p.citation(citations.Val)
	}
	return true
}

// incomplete returns how many bytes at the end of a text are the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// returnControl reads the calls that an agent leaves to the client.
func (p *bedrockRAG) returnControl(v scan.Value) {
	id, n := v.Get("invocationId").Str(), 0
	for inputs := scan.Elements(v.Get("invocationInputs")); inputs.Next(); n++ {
		input := inputs.Val.Get("functionInvocationInput", "apiInvocationInput")
		call := numbered(id+":", n)
		p.tool(call, firstText(input, "function", "operationId", "apiPath", "actionGroup"))
		p.toolInput(call, input.Get("parameters", "requestBody"))
	}
	p.finish(0, finishTool)
}

// citation emits a citation, if it is complete.
func (p *bedrockRAG) citation(v scan.Value) {
	if v.Cut() {
		return
	}
	if old := v.Get("citation"); old.IsObject() && !v.Get("generatedResponsePart").IsObject() {
		v = old // the deprecated form
	}
	var part, list scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "generatedResponsePart":
			part = o.Val.Get("textResponsePart")
		case "retrievedReferences":
			list = o.Val
		}
	}
	cite := Cite{Key: numbered("citation:", p.cites), Base: AnswerBase, Unit: Nowhere, Quote: part.Get("text").Str()}
	p.cites++
	if span := part.Get("span"); span.IsObject() {
		start, ok1 := p.index("span start", span.Get("start"))
		if !ok1 && span.Get("start").IsNull() {
			ok1 = true // some SDKs omit zeros
		}
		if end, ok2 := p.index("span end", span.Get("end")); ok1 && ok2 {
			cite.Unit, cite.Start, cite.End = CodePoints, start, end+1
		}
	}
	for references := scan.Elements(list); references.Next(); {
		cite.Refs = p.addRef(cite.Refs, p.reference(references.Val))
	}
	if len(cite.Refs) > 0 { // an uncited span has none
		p.cite(&cite)
	}
}

// reference emits the source of a citation and returns the reference to it.
func (p *bedrockRAG) reference(v scan.Value) Ref {
	s := Source{Kind: kindDocument, Raw: v}
	var metadata scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "content":
			s.Content = o.Val.Get("text").Str()
		case "location":
			for m := scan.Members(o.Val); m.Next(); {
				switch {
				case m.Val.IsObject():
					s.URL = firstText(m.Val, "uri", "url")
					s.GlobalID = m.Val.Get("id").Str()
				case string(m.Key) == "type":
					switch string(m.Val.Bytes()) {
					case "WEB", "CONFLUENCE", "SALESFORCE", "SHAREPOINT":
						s.Kind = kindWeb
					case "S3":
						s.Kind = kindFile
					}
				}
			}
		case "metadata":
			metadata = o.Val
		}
	}
	const prefix = "x-amz-bedrock-kb-"
	for o := scan.Members(metadata); o.Next(); {
		switch name, _ := strings.CutPrefix(string(o.Key), prefix); name {
		case "source-uri":
			if s.URL == "" {
				s.URL = o.Val.Str()
			}
		case "document-page-number":
			if n, ok := o.Val.Int(); ok && n > 0 {
				s.Locator.Page = n
			}
		case "chunk-id":
			s.ChunkID = o.Val.Text()
			s.Locator.Chunk = s.ChunkID
		case "title":
			s.Title = o.Val.Str()
		}
	}
	if s.Kind == kindFile && s.Filename == "" {
		s.Filename = s.URL[strings.LastIndexByte(s.URL, '/')+1:]
	}
	if s.Key = s.URL; s.Key == "" {
		s.Key = s.GlobalID
	}
	if s.Key == "" {
		s.Key = numbered("reference:", p.unplaced)
		p.unplaced++
	}
	p.source(&s)
	return Ref{Source: s.Key, Quote: s.Content, Locator: s.Locator}
}
