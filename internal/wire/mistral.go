package wire

import "github.com/ibidhq/ibid/internal/scan"

// Mistral cites by order: a reference stands between two pieces of text and supports the one before it. Names: the
// types of Mistral's client-python.

// conversations reads mistral-conversations: the Agents and Conversations API, as a body and as a stream.
type conversations struct {
	out
	delta  template
	called bool // a function was called: its result is waited for
}

func newConversations(c *Config) Parser { return &conversations{out: out{emit: c.Emit}} }

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
	if text, ok := p.delta.match(doc); ok {
		p.raw(p.delta.part, text)
		return true
	}
	switch kind := string(doc.Type()); kind {
	case "message.output.delta":
		p.outputDelta(doc)
	case "conversation.response.started":
		p.head(HeadID, doc.Get("conversation_id"))
	case "tool.execution.started":
		p.tool(doc.Get("id").Str(), doc.Get("name").Str())
	case "function.call.delta":
		p.call(doc)
	case "conversation.response.done":
		p.done()
	case "conversation.response.error":
		p.fail(doc.Get("code").Text(), doc.Get("message").Str())
	case "tool.execution.delta", "tool.execution.done", "agent.handoff.started", "agent.handoff.done":
	default:
		if !doc.Get("outputs").IsArray() {
			return false
		}
		p.body(doc)
	}
	return true
}

// Close implements [Parser].
func (p *conversations) Close() {}

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
			p.tool(v.Get("id").Str(), v.Get("name").Str())
		case "function.call":
			p.call(v)
		case "agent.handoff":
		default:
			p.unknown("output "+clip(kind), v)
		}
	}
	if !doc.Cut() {
		p.done()
	}
}

func (p *conversations) call(v scan.Value) {
	p.called = true
	p.tool(firstText(v, "tool_call_id", "id"), v.Get("name").Str())
}

func (p *conversations) done() {
	if p.called {
		p.finish(0, FinishTool)
	} else {
		p.finish(0, FinishStop)
	}
	p.end()
}

func (p *conversations) outputDelta(doc scan.Value) {
	i, _ := p.index("output_index", doc.Get("output_index"))
	p.head(HeadModel, doc.Get("model"))
	part, content := Part{Message: i}, doc.Get("content")
	if content.IsString() {
		p.delta.learn(doc, content, "", part, false)
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
		p.reference(part, v)
	case "tool_file":
		if id := v.Get("file_id").Str(); id != "" {
			p.source(&Source{Key: id, ID: id, GlobalID: id, Kind: KindFile, Filename: v.Get("file_name").Str(), Raw: v})
		}
	case "thinking", "document_url", "image_url":
	default:
		p.unknown("chunk "+clip(kind), v)
	}
}

// reference says a citation of the text before it, if it is all there.
func (p *conversations) reference(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	s := Source{
		Kind:    KindTool,
		URL:     v.Get("url").Str(),
		Title:   v.Get("title").Str(),
		Content: v.Get("description").Str(),
		Raw:     v,
	}
	if s.Key = s.URL; s.Key != "" {
		s.Kind = KindWeb
	} else {
		s.Key = v.Get("tool").Str() + ":" + s.Title
	}
	if s.Title == "" && s.URL == "" {
		p.issue(IssueSourceless, "tool reference", v)
		return
	}
	p.source(&s)
	p.cite(&Cite{Part: part, Unit: Here, Covers: Point, Refs: []Ref{{Source: s.Key, Quote: s.Content}}})
}
