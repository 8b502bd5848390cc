package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// dify reads dify-chat: the answers of Dify's chat apps, chatflows and agents. The sources of an answer come without
// places; [n] in the text, if an app's prompt asks for it, is the position of a segment. Names:
// https://docs.dify.ai/api-reference.
type dify struct {
	out
	headed bool
	deltas template
}

func newDify(c *Config) Parser { return &dify{out: out{Config: c}} }

func looksDify(s *shape) bool {
	event := s.val("event")
	return event.IsString() && (s.has("answer", "conversation_id") || s.has("task_id", "workflow_run_id") ||
		s.has("conversation_id", "message_id"))
}

// Parse implements [Parser].
func (p *dify) Parse(_ []byte, doc scan.Value) bool {
	if text, _, ok := p.deltas.match(doc); ok {
		p.raw(Part{}, text)
		return true
	}
	p.unread(doc, difyReads)
	var event, mode string
	var answer, metadata, id, created scan.Value
	doc.Read(scan.Fields{
		{"event", &event},
		{"mode", &mode},
		{"answer", &answer},
		{"metadata", &metadata},
		{"message_id", &id},
		{"created_at", &created},
	})
	if !p.headed && id.IsString() {
		p.headed = true
		p.head(HeadID, id)
		p.head(HeadCreated, created)
	}
	switch event {
	case "message", "agent_message":
		p.resources(metadata)
		if p.text(Part{}, answer); mode != "" || !blank(metadata) { // a whole body
			p.end()
			break
		}
		p.deltas.learn(doc, answer, Part{}, variation{})
	case "message_replace":
		p.final(Part{}, answer)
	case "message_end":
		p.resources(metadata)
		p.end()
	case "agent_thought":
		p.thought(doc)
	case "error":
		code, message := readError(doc)
		p.fail(code, message)
	case "":
		return false
	default: // workflow_started, node_finished, tts_message, message_file, ping …
		return strings.Contains(event, "_") || event == "ping"
	}
	return true
}

func (p *dify) end() {
	p.finish(0, finishStop)
	p.emit(Op{Kind: End})
}

// thought reads a step of an agent: what it thought, and the tool that it called. Each is repeated as it grows.
func (p *dify) thought(doc scan.Value) {
	id, tool := doc.Get("id").Str(), doc.Get("tool").Str()
	if tool == "" || doc.Cut() {
		return
	}
	p.serverTool(id, tool, false)
	if input := doc.Get("tool_input"); len(input.Content()) > 0 {
		p.toolInput(id, input)
	}
	if output := doc.Get("observation"); len(output.Content()) > 0 {
		p.toolOutput(id, output, "")
	}
}

// resources reads the segments that were retrieved. A document is a source, and its segments are pieces of it.
func (p *dify) resources(metadata scan.Value) {
	list := metadata.Get("retriever_resources")
	p.wantList("retriever_resources", list)
	var refs []Ref
	for a, i := scan.Elements(list), 1; a.Next() && !a.Cut() && i <= maxNumber && p.Keep(2*refSize); i++ {
		s := &Source{Kind: kindFile, Raw: a.Val}
		var position int
		var page scan.Value
		a.Val.Read(scan.Fields{
			{"position", &position},
			{"document_id", &s.GlobalID},
			{"document_name", &s.Title},
			{"segment_id", &s.ChunkID},
			{"score", &s.Score},
			{"content", &s.Content},
			{"page", &page},
		})
		s.Locator = Locator{Page: pageOf(page), Chunk: s.ChunkID}
		if s.Filename = fileTitle(s.Title); s.Filename == "" {
			s.Kind = kindDocument
		}
		if meta := a.Val.Get("doc_metadata"); meta.IsObject() {
			if url := firstText(meta, "url", "source_url", "source"); strings.Contains(url, "://") {
				s.URL = url
			}
		}
		if s.Key = s.GlobalID; s.Key == "" {
			s.Key = numbered("segment:", i)
		}
		p.source(s)
		if position < 1 || position > maxNumber {
			position = i
		}
		for len(refs) < position && p.Keep(2*refSize) {
			refs = append(refs, Ref{})
		}
		if position <= len(refs) {
			refs[position-1] = Ref{Source: s.Key, Quote: s.Content, Locator: Locator{Chunk: s.ChunkID}}
		}
	}
	if len(refs) > 0 {
		p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: refs, Names: true}})
	}
}
