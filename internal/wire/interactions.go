package wire

import (
	"cmp"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksInteractions recognises a resource or an event of Gemini's Interactions API. The type of an event is at its end,
// in event_type.
func looksInteractions(s *shape) bool {
	if s.val("object").Str() == "interaction" || s.kind == "" && typed(s.val("steps"), func(kind string) bool {
		return kind == "model_output" || kind == "thought" || kind == "user_input" ||
			strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_result")
	}) {
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

// interactions reads Gemini's Interactions API: a body with its steps, or a stream of events. Each step with the
// model's output is a message. The first version of the API, with a flat list of outputs, is read as one message.
type interactions struct {
	out
	steps   map[int]string // the type of each step that began
	calls   map[int]string // the id of each that is a call
	content map[Part]int   // by message: the index of its text's content block
	texts   map[Part]bool  // the parts whose text was streamed
	sources map[seenSource]bool
	once    onceSet
	cites   citeSet
	ended   bool

	deltas template
}

func newInteractions(c *Config) Parser {
	return &interactions{
		out: out{Config: c}, steps: map[int]string{}, calls: map[int]string{}, content: map[Part]int{},
		texts:   map[Part]bool{},
		sources: map[seenSource]bool{}, once: onceSet{},
	}
}

// interaction is one document, an event or the resource itself, with its members found but not read.
type interaction struct {
	kind, index, delta, step, inner, err                      scan.Value // of an event
	object, id, model, created, agent, usage, status, outputs scan.Value // of a resource
	steps                                                     scan.Value
}

func readInteraction(v scan.Value) (e interaction) {
	v.Read(scan.Fields{
		{"event_type", &e.kind},
		{"index", &e.index},
		{"delta", &e.delta},
		{"step", &e.step},
		{"content", &e.step},
		{"interaction", &e.inner},
		{"error", &e.err},
		{"object", &e.object},
		{"id", &e.id},
		{"model", &e.model},
		{"created", &e.created},
		{"agent", &e.agent},
		{"usage", &e.usage},
		{"status", &e.status},
		{"steps", &e.steps},
		{"outputs", &e.outputs},
	})
	return e
}

func (e *interaction) isResource() bool { return e.object != nil || e.steps != nil || e.outputs != nil }

func (p *interactions) Parse(event []byte, doc scan.Value) bool {
	if content, _, ok := p.deltas.match(doc); ok {
		p.raw(p.deltas.part, content)
		return true
	}
	p.unread(doc, interactionsReads)
	e := readInteraction(doc)
	kind := e.kind.Bytes()
	if len(kind) == 0 && !e.isResource() {
		kind = event
	}
	i, _ := p.index("index", e.index)
	switch string(kind) {
	case "step.delta":
		b := readBlock(e.delta)
		p.delta(Part{Message: i}, &b, doc)
	case "content.delta":
		b := readBlock(e.delta)
		p.delta(Part{Content: i}, &b, doc)
	case "step.start":
		b := readBlock(e.step)
		if p.Keep(entrySize + len(b.kind)) {
			p.steps[i] = string(b.kind)
		}
		if id := b.id.Str(); id != "" && p.Keep(entrySize+len(id)) {
			p.calls[i] = id
		}
		p.step(i, &b)
	case "content.start":
		b := readBlock(e.step)
		p.output(Part{Content: i}, &b)
	case "step.stop", "content.stop":
		part := Part{Content: i}
		if string(kind) == "step.stop" {
			part = Part{Message: i, Content: p.content[Part{Message: i}]}
			if id := p.calls[i]; id != "" {
				p.emit(Op{Kind: ToolReady, Name: id})
			}
		}
		if p.texts[part] { // others have no part
			p.emit(Op{Kind: PartEnd, Part: part})
		}
	case "interaction.created", "interaction.start", "interaction.completed", "interaction.complete":
		inner := readInteraction(e.inner)
		p.resource(&inner, e.inner)
	case "interaction.status_update":
	case "error":
		p.failed(doc)
	case "":
		if e.isResource() {
			p.resource(&e, doc)
		} else if e.err.IsNull() {
			return false
		} else {
			p.failed(doc)
		}
	default:
		if e.kind.IsNull() {
			return false
		}
		p.unknown("event "+string(kind), doc)
	}
	return true
}

func (p *interactions) failed(doc scan.Value) {
	p.failure(doc)
	p.finish(0, finishError)
}

// resource reads an interaction: a body, or what the first and the last event of a stream contain.
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
	reason := map[string]string{
		"completed": finishStop, "requires_action": finishTool, "incomplete": finishLength, "failed": finishError,
		"cancelled": finishError, "budget_exceeded": finishError,
	}[e.status.Str()]
	if reason == "" {
		return // still running
	}
	p.finish(0, reason)
	if !p.ended {
		p.ended = true
		p.emit(Op{Kind: End})
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
	var kind scan.Value
	v.Read(scan.Fields{
		{"type", &kind},
		{"content", &b.content},
		{"text", &b.text},
		{"annotations", &b.annotations},
		{"arguments", &b.arguments},
		{"result", &b.result},
		{"id", &b.id},
		{"name", &b.name},
	})
	b.kind = kind.Bytes()
	return b
}

// step reads one step. Only the model's output is text; the question is a step, too.
func (p *interactions) step(i int, b *block) {
	if cut := len(b.kind) == 0 && b.content.IsArray(); string(b.kind) != "model_output" && !cut {
		if string(b.kind) == "thought" && p.once.first(numbered("thought:", i)) {
			p.thinkAll(Part{Message: i}, b.raw.Get("summary"))
		}
		p.action(b)
		return
	}
	j := 0
	for a := scan.Elements(b.content); a.Next(); j++ {
		inner := readBlock(a.Val)
		p.output(Part{Message: i, Content: j}, &inner)
	}
	if j > 0 && p.Keep(entrySize+size[Part]()) {
		p.content[Part{Message: i}] = j - 1
	}
}

// streamed remembers that the text of a part was emitted.
func (p *interactions) streamed(part Part) {
	if !p.texts[part] && p.Keep(entrySize+size[Part]()) {
		p.texts[part] = true
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
		p.streamed(part)
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
			p.streamed(part)
		}
		if p.annotations(part, b.annotations); b.annotations == nil && b.text != nil {
			p.deltas.learn(doc, b.text, part, variation{padding: "event_id"}) // an id to resume the stream
		}
	case "text_annotation_delta", "text_annotation":
		p.annotations(part, b.annotations)
	case "image", "audio", "video", "document":
		if p.texts[part] { // events do not name their block: text after a picture is another one
			p.content[Part{Message: part.Message}] = place + 1
			p.deltas.forget()
		}
	case "thought_summary":
		p.think(Part{Message: part.Message}, b.content.Get("text"))
	case "arguments_delta":
		p.moreInput(p.calls[part.Message], b.arguments)
	case "thought_signature":
	default:
		p.action(b)
	}
}

// action reads a step that is a call of a tool or its result. Of these only the queries, and what the results require
// to be shown, concern the answer; its sources are in the annotations.
func (p *interactions) action(b *block) {
	if call := b.raw.Get("call_id"); call.IsString() && !b.result.IsNull() {
		failed := ""
		if b.raw.Get("is_error").IsTrue() {
			failed = cmp.Or(b.result.Text(), "error")
		}
		p.toolOutput(call.Str(), b.result, failed)
	}
	switch kind := string(b.kind); kind {
	case "", "thought", "user_input", "function_result", "processing_call", "processing_result":
	case "function_call", "mcp_server_tool_call":
		id, name := b.id.Str(), b.name.Str()
		if name != "" && p.once.first("tool:"+id+" "+name) {
			if kind == "function_call" {
				p.tool(id, name)
			} else {
				p.serverTool(id, name, false)
			}
			if !blank(b.arguments) {
				p.toolInput(id, b.arguments)
			}
		}
	case "google_search_result":
		for a := scan.Elements(b.result); a.Next(); {
			p.suggestions(p.once, a.Val.Get("search_suggestions", "rendered_content"))
		}
	case "google_maps_result":
		p.places(b.result)
	case "url_context_result":
		for a := scan.Elements(b.result); a.Next(); {
			p.fetched(p.once, a.Val.Get("url").Str(), a.Val.Get("status").Str(), a.Val)
		}
	default:
		switch {
		case strings.HasSuffix(kind, "_call"):
			if id := b.id.Str(); id != "" && p.once.first("tool:"+id) {
				p.serverTool(id, strings.TrimSuffix(kind, "_call"), true)
				if !blank(b.arguments) {
					p.toolInput(id, b.arguments)
				}
			}
			p.queries(p.once, b.arguments.Get("queries"))
			if q := b.arguments.Get("query"); q.IsString() && p.once.first("query:"+string(q)) {
				p.query(q)
			}
		case strings.HasSuffix(kind, "_result"):
		default:
			p.unknown("step "+kind, b.raw)
		}
	}
}

// seenSource is what an annotation may add to a source that was emitted before.
type seenSource struct {
	key, title string
	page       int
}

// annotations reads the citations of a text block, up to one that is incomplete. They may be repeated by the event that
// closes the stream.
func (p *interactions) annotations(part Part, list scan.Value) {
	p.wantList("annotations", list)
	for a := scan.Elements(list); a.Next() && !a.Val.Cut(); {
		var kind, url, title, name, place, file, document, media, origin string
		var start, end, page, custom scan.Value
		a.Val.Read(scan.Fields{
			{"type", &kind},
			{"start_index", &start},
			{"end_index", &end},
			{"url", &url},
			{"title", &title},
			{"name", &name},
			{"place_id", &place},
			{"file_name", &file},
			{"document_uri", &document},
			{"page_number", &page},
			{"media_id", &media},
			{"custom_metadata", &custom},
			{"source", &origin},
		})
		s := &Source{Raw: a.Val}
		switch kind {
		case "url_citation":
			s.URL, s.Title, s.Site = url, title, siteOf(title)
			if setKey(s, kindWeb, title); url != "" {
				s.Key = "url:" + url // the same as for a page that the URL tool fetched
			}
		case "file_citation":
			s.Filename, s.Title, s.GlobalID, s.Locator.Page = file, file, media, pageOf(page)
			if strings.Contains(document, "://") {
				s.URL = document
			} else if s.URL = sourceURL(custom); media == "" {
				s.GlobalID = document // a resource name such as fileSearchStores/…
			}
			if setKey(s, kindFile, document, s.GlobalID, file); s.Key == "" {
				looseSource(s, origin)
				s.Kind = kindFile
			}
		case "place_citation":
			s.Title, s.URL, s.GlobalID = name, url, place
			setKey(s, kindMap, place, url, name)
		case "speech_metadata", "word_info": // who speaks, and when
			continue
		case "": // the first version of the API had one kind, without a name
			looseSource(s, origin)
		default:
			p.unknown("annotation "+kind, a.Val)
			continue
		}
		if s.Key == "" {
			p.issue(IssueSourceless, "annotation "+kind, a.Val)
			continue
		}
		if seen := (seenSource{s.Key, s.Title, s.Locator.Page}); !p.sources[seen] {
			if p.Keep(entrySize + size[seenSource]() + len(s.Key)) {
				p.sources[seen] = true
			}
			p.source(s)
		}
		cite := Cite{Part: part, Base: PartBase}
		p.byteSpan(&cite, start, end)
		p.cites.add(&p.out, &cite, &Ref{Source: s.Key, Locator: s.Locator})
	}
	p.cites.emitTouched(&p.out)
}

// places emits the places that the map has, cited or not.
func (p *interactions) places(results scan.Value) {
	for a := scan.Elements(results); a.Next(); {
		for places := scan.Elements(a.Val.Get("places")); places.Next(); {
			s := &Source{Raw: places.Val}
			places.Val.Read(scan.Fields{{"name", &s.Title}, {"url", &s.URL}, {"place_id", &s.GlobalID}})
			if setKey(s, kindMap, s.GlobalID, s.URL, s.Title); s.Key != "" {
				p.source(s)
			}
		}
	}
}

// setKey sets a source's kind, and makes its key from the first non-empty name.
func setKey(s *Source, kind string, names ...string) {
	s.Kind = kind
	if name := cmp.Or(names...); name != "" {
		s.Key = kind + ":" + name
	}
}

// looseSource reads a source that is a single string: an address, a title or another name.
func looseSource(s *Source, name string) {
	if strings.Contains(name, "://") {
		s.URL = name
		setKey(s, kindWeb, name)
		return
	}
	s.Title = name
	setKey(s, kindDocument, name)
}
