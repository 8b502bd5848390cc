package wire

import (
	"github.com/ibidhq/ibid/internal/scan"
)

// Mistral cites by order: a reference comes between two pieces of text and supports the one before it. Names: the types
// of Mistral's client-python.

// conversations reads mistral-conversations: the Agents and Conversations API, as a body and as a stream.
type conversations struct {
	out
	delta  template
	called bool // a function was called, whose result is pending
}

func newConversations(c *Config) Parser { return &conversations{out: out{Config: c}} }

func looksConversations(s *shape) bool {
	switch s.kind {
	case "conversation.response.started", "message.output.delta", "tool.execution.started",
		"conversation.response.done", "conversation.response":
		return true
	}
	return s.has("conversation_id", "outputs")
}

// Parse implements [Parser].
func (p *conversations) Parse(_ []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok {
		p.raw(p.delta.part, text)
		return true
	}
	p.unread(doc, conversationsReads)
	switch kind := string(doc.Type()); kind {
	case "message.output.delta":
		p.outputDelta(doc)
	case "conversation.response.started":
		p.head(HeadID, doc.Get("conversation_id"))
	case "tool.execution.started":
		id := doc.Get("id").Str()
		p.serverTool(id, doc.Get("name").Str(), false)
		p.moreInput(id, doc.Get("arguments"))
	case "tool.execution.delta":
		p.moreInput(doc.Get("id").Str(), doc.Get("arguments"))
	case "tool.execution.done":
		id := doc.Get("id").Str()
		p.emit(Op{Kind: ToolReady, Name: id})
		p.toolOutput(id, doc.Get("info"), "")
	case "function.call.delta":
		p.moreInput(p.call(doc), doc.Get("arguments"))
	case "conversation.response.done":
		p.done()
	case "conversation.response.error":
		p.failure(doc)
	case "agent.handoff.started", "agent.handoff.done":
	default:
		if !doc.Get("outputs").IsArray() {
			return false
		}
		p.body(doc)
	}
	return true
}

func (p *conversations) body(doc scan.Value) {
	p.head(HeadID, doc.Get("conversation_id"))
	i := 0
	for outputs := scan.Elements(doc.Get("outputs")); outputs.Next(); i++ {
		v := outputs.Val
		switch kind := string(v.Type()); kind {
		case "message.output", "":
			p.head(HeadModel, v.Get("model"))
			p.content(Part{Message: i}, v.Get("content"))
		case "tool.execution":
			id := v.Get("id").Str()
			p.serverTool(id, v.Get("name").Str(), false)
			p.toolInput(id, v.Get("arguments"))
			p.toolOutput(id, v.Get("info"), "")
		case "function.call":
			p.toolInput(p.call(v), v.Get("arguments"))
		case "agent.handoff":
		default:
			p.unknown("output "+kind, v)
		}
	}
	if !doc.Cut() {
		p.done()
	}
}

// call emits a call of a function, and returns its id.
func (p *conversations) call(v scan.Value) string {
	p.called = true
	id := firstText(v, "tool_call_id", "id")
	p.tool(id, v.Get("name").Str())
	return id
}

func (p *conversations) done() {
	if p.called {
		p.finish(0, finishTool)
	} else {
		p.finish(0, finishStop)
	}
	p.emit(Op{Kind: End})
}

func (p *conversations) outputDelta(doc scan.Value) {
	i, _ := p.index("output_index", doc.Get("output_index"))
	p.head(HeadModel, doc.Get("model"))
	part, content := Part{Message: i}, doc.Get("content")
	if content.IsString() {
		p.delta.learn(doc, content, part, variation{})
	}
	p.content(part, content)
}

// content reads a message's content: a string, one chunk, or several.
func (p *conversations) content(part Part, v scan.Value) {
	switch {
	case v.IsString():
		p.text(part, v)
	case v.IsObject():
		p.chunk(part, v)
	default:
		for chunks := scan.Elements(v); chunks.Next(); {
			p.chunk(part, chunks.Val)
		}
	}
}

func (p *conversations) chunk(part Part, v scan.Value) {
	switch kind := string(v.Type()); kind {
	case "text":
		p.text(part, v.Get("text"))
	case "tool_reference":
		p.citeBefore(part, v, "tool reference", true)
	case "tool_file":
		if id := v.Get("file_id").Str(); id != "" {
			p.source(&Source{Key: id, ID: id, GlobalID: id, Kind: kindFile, Filename: v.Get("file_name").Str(), Raw: v})
		}
	case "thinking":
		p.thinkAll(part, v.Get("thinking"))
	case "document_url", "image_url":
	default:
		p.unknown("chunk "+kind, v)
	}
}

// citeBefore emits a citation of the text before a reference that describes its source, if it is complete.
func (o *out) citeBefore(part Part, v scan.Value, name string, quoted bool) {
	if v.Cut() {
		return
	}
	s := &Source{Kind: kindWeb, Raw: v}
	var tool string
	v.Read(scan.Fields{{"title", &s.Title}, {"url", &s.URL}, {"description", &s.Content}, {"tool", &tool}})
	if s.Key = s.URL; s.Key == "" {
		s.Kind = kindTool
		if s.Title != "" {
			s.Key = tool + ":" + s.Title
		}
	}
	if s.Key == "" {
		o.issue(IssueSourceless, name, v)
		return
	}
	ref := Ref{Source: s.Key}
	if quoted {
		ref.Quote = s.Content
	}
	o.source(s)
	o.cite(&Cite{Part: part, Unit: Here, Covers: Point, Refs: []Ref{ref}})
}

// reference reads Mistral's mark for what the text before it rests on: ids of results of the request's tools.
func (p *chat) reference(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	ids := v.Get("reference_ids")
	c := &Cite{Part: part, Unit: Here, Covers: Point}
	for a := scan.Elements(ids); a.Next(); {
		id := a.Val.Text()
		if id == "" {
			p.issue(IssueWrongType, "reference_ids", a.Val)
			continue
		}
		s := p.toolResult(id)
		p.source(s)
		c.Refs = p.addRef(c.Refs, Ref{Source: s.Key})
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, "reference", v)
		return
	}
	p.cite(c)
}

// toolResult returns the tool result with the id, as far as the request has it.
func (p *chat) toolResult(id string) *Source {
	if p.tools == nil {
		p.tools = p.toolResults()
	}
	if s := p.tools[id]; s != nil {
		return s
	}
	return &Source{Key: id, ID: id, Kind: kindTool}
}

// toolResults collects the results of the request's tools: a message's content is JSON in a string, an object with ids
// as names, or an array whose indices are the ids.
func (p *chat) toolResults() map[string]*Source {
	all := map[string]*Source{}
	docs := p.Documents
	for i := range docs {
		s := docs[i]
		if s.Key == "" {
			s.Key = number(i)
		}
		all[s.Key] = &s
	}
	if len(docs) > 0 {
		return all
	}
	for a := scan.Elements(p.Request.Get("messages")); a.Next(); {
		if a.Val.Get("role").Str() != "tool" {
			continue
		}
		content := a.Val.Get("content")
		p.toolMessage(all, content)
		for c := scan.Elements(content); c.Next(); {
			p.toolMessage(all, c.Val.Get("text"))
		}
	}
	return all
}

func (p *chat) toolMessage(all map[string]*Source, content scan.Value) {
	if !content.IsString() {
		return
	}
	results := scan.Value(content.Bytes())
	for o := scan.Members(results); o.Next(); {
		if o.Val.IsObject() || o.Val.IsString() {
			all[string(o.Key)] = toolSource(string(o.Key), o.Val)
		}
	}
	i := 0
	for a := scan.Elements(results); a.Next(); i++ {
		all[number(i)] = toolSource(number(i), a.Val)
	}
}

// toolSource reads one result of a tool: a text, or an object with an address and a text under any of their usual
// names.
func toolSource(id string, v scan.Value) *Source {
	s := &Source{Key: id, ID: id, Kind: kindTool, Raw: v}
	if v.IsString() {
		s.Content = v.Str()
		return s
	}
	s.URL, s.Title = firstText(v, "url", "link"), firstText(v, "title", "name")
	s.PublishedAt, s.Site = firstText(v, "date", "published_at"), v.Get("source").Str()
	if s.URL != "" {
		s.Kind = kindWeb
	}
	if s.Content = firstText(v, "content", "text", "snippet", "description"); s.Content == "" {
		a := scan.Elements(v.Get("snippets"))
		for a.Next() {
			if s.Content != "" {
				s.Content += "\n"
			}
			s.Content += a.Val.Text()
		}
	}
	return s
}
