package wire

import (
	"cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

// cortex reads snowflake-agents: the events of Snowflake's Cortex Agents, whose names only the transport has, and their
// bodies. An annotation has the document and its words, but no place: that is the mark [^n] in the text, whose n is the
// annotation's index. Names: https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-agents-run.
type cortex struct {
	out
	delta template
	notes map[int][]Ref // by content block: what its marks stand for
}

func newCortex(c *Config) Parser { return &cortex{out: out{Config: c}, notes: map[int][]Ref{}} }

func looksCortex(s *shape) bool {
	switch s.event {
	case "response.text.delta", "response.text.annotation", "response.text", "response.thinking.delta",
		"response.thinking":
		return s.kind == ""
	case "response.status":
		return s.kind == "" && s.has("status", "message")
	}
	if s.kind != "" || s.val("role").Str() != "assistant" || !s.val("content").IsArray() {
		return false
	}
	if s.val("metadata").Get("run_id") != nil {
		return true
	}
	for a := scan.Elements(s.val("content")); a.Next(); {
		if a.Val.Get("is_elicitation") != nil || a.Val.Path("thinking", "text") != nil { // Anthropic's is a string
			return true
		}
		first := scan.Elements(a.Val.Get("annotations"))
		if first.Next() && string(first.Val.Type()) == cortexCitation {
			return true
		}
	}
	return false
}

const cortexCitation = "cortex_search_citation"

// Parse implements [Parser].
func (p *cortex) Parse(event []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok && string(event) == "response.text.delta" {
		p.raw(p.delta.part, text)
		return true
	}
	p.unread(doc, cortexReads)
	index, _ := doc.Get("content_index").Int()
	part := Part{Content: index}
	switch string(event) {
	case "response.text.delta":
		text := doc.Get("text")
		p.delta.learn(doc, text, part, variation{})
		p.text(part, text)
	case "response.text.annotation":
		p.note(part, doc.Get("annotation"))
	case "response.text":
		p.block(part, doc)
	case "response.thinking.delta":
		p.think(part, doc.Get("text"))
	case "response.tool_use":
		p.serverTool(doc.Get("tool_use_id").Str(), doc.Get("name").Str(), false)
		p.toolInput(doc.Get("tool_use_id").Str(), doc.Get("input"))
	case "response.tool_result":
		p.toolOutput(doc.Get("tool_use_id").Str(), doc.Get("content"), "")
	case "error":
		code, message := readError(doc)
		p.fail(cmp.Or(code, UnnamedError), message)
	case "response.status", "response.thinking", "response.table", "response.chart", "response.warning", "metadata",
		"response.tool_result.status", "execution_trace", "done":
	default:
		if !doc.Get("content").IsArray() {
			return false
		}
		p.body(doc)
	}
	return true
}

// body reads a whole response, which is also the last event of a stream.
func (p *cortex) body(doc scan.Value) {
	p.head(HeadID, doc.Get("metadata").Get("run_id"))
	for a, i := scan.Elements(doc.Get("content")), 0; a.Next(); i++ {
		switch string(a.Val.Type()) {
		case "text":
			p.block(Part{Content: i}, a.Val)
		case "thinking":
			if p.Stream == nil || !p.Stream() {
				p.think(Part{Content: i}, a.Val.Path("thinking", "text"))
			}
		case "tool_use", "tool_result", "tool_results", "table", "chart", "json":
		default:
			p.unknown("content block "+string(a.Val.Type()), a.Val)
		}
	}
	p.finish(0, finishStop)
	p.emit(Op{Kind: End})
}

// block reads a whole text block, after its deltas or without them.
func (p *cortex) block(part Part, v scan.Value) {
	p.final(part, v.Get("text"))
	list := v.Get("annotations")
	p.wantList("annotations", list)
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		p.note(part, a.Val)
	}
}

// note reads an annotation. Its index is the number of its mark or, if that is 0, its position from 0.
func (p *cortex) note(part Part, v scan.Value) {
	if v.Cut() || blank(v) {
		return
	}
	if kind := string(v.Type()); kind != cortexCitation {
		p.unknown("annotation "+kind, v)
		return
	}
	s := &Source{Kind: kindDocument, Raw: v}
	var result, quote string
	index := -1
	v.Read(scan.Fields{
		{"index", &index},
		{"search_result_id", &result},
		{"doc_id", &s.GlobalID},
		{"doc_title", &s.Title},
		{"text", &quote},
	})
	s.Content = quote
	if s.Filename = fileTitle(s.Title); s.Filename != "" {
		s.Kind = kindFile
	}
	if s.Key = cmp.Or(s.GlobalID, result, s.Title); s.Key == "" {
		p.issue(IssueSourceless, cortexCitation, v)
		return
	}
	p.source(s)
	refs := p.notes[part.Content]
	if index == 0 {
		index = len(refs) + 1
	}
	if index < 1 || index > maxNumber || !p.Keep(2*refSize*max(1, index-len(refs))) {
		return
	}
	for len(refs) < index {
		refs = append(refs, Ref{})
	}
	ref := Ref{Source: s.Key, Quote: quote}
	if refs[index-1].Source == "" {
		refs[index-1] = ref
	}
	p.notes[part.Content] = refs
	p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: refs, Names: true}})
}
