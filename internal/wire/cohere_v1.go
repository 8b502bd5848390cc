package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// cohere1 reads cohere-v1: citations name documents by id alone, and a stream says the documents before the text and
// everything again at its end.
type cohere1 struct {
	out
	cfg   *Config
	begun bool
	delta template
}

func newCohere1(c *Config) Parser { return &cohere1{out: out{emit: c.Emit}, cfg: c} }

func looksCohere1(s *shape) bool {
	if s.has("event_type", "is_finished") {
		return true
	}
	cites := scan.Elements(s.val("citations"))
	return s.val("text").IsString() && s.kind == "" && (s.hasAny("generation_id", "generationId", "response_id") ||
		cites.Next() && pick(cites.Val, "document_ids", "documentIds") != nil)
}

// Parse implements [Parser].
func (p *cohere1) Parse(_ []byte, doc scan.Value) bool {
	if text, ok := p.delta.match(doc); ok {
		p.raw(Part{}, text)
		return true
	}
	if !p.begun {
		p.begun = true
		sayDocuments(&p.out, p.cfg, "doc_")
	}
	switch doc.Get("event_type").Str() {
	case "text-generation":
		text := doc.Get("text")
		p.delta.learn(doc, text, "", Part{}, false)
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
		p.end()
	case "tool-calls-chunk", "debug":
	case "":
		if !doc.Get("text").IsString() {
			return false
		}
		p.response(doc)
		cohereFinish(&p.out, pick(doc, "finish_reason", "finishReason").Str())
		p.end()
	default:
		return false
	}
	return true
}

// Close implements [Parser].
func (p *cohere1) Close() {}

// response reads a whole response: a body, or what a stream repeats at its end.
func (p *cohere1) response(v scan.Value) {
	var id, queries, documents, text, citations, calls, found scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "generation_id", "generationId":
			id = o.Val
		case "search_queries", "searchQueries":
			queries = o.Val
		case "documents":
			documents = o.Val
		case "text":
			text = o.Val
		case "citations":
			citations = o.Val
		case "tool_calls", "toolCalls":
			calls = o.Val
		case "search_results", "searchResults":
			found = o.Val
		}
	}
	p.head(HeadID, id)
	p.queries(queries)
	p.documents(documents)
	p.final(Part{}, text)
	p.citations(citations)
	p.toolCalls(calls)
	for results := scan.Elements(found); results.Next(); {
		if message := pick(results.Val, "error_message", "errorMessage").Str(); message != "" {
			p.issue(IssueSourceFailed, clip(message), nil)
		}
	}
}

func (p *cohere1) documents(v scan.Value) {
	for docs := scan.Elements(v); docs.Next(); {
		s := Source{Kind: KindDocument, ID: docs.Val.Get("id").Text(), Raw: docs.Val}
		fillDocument(&s, docs.Val)
		switch {
		case docs.Val.Get("tool_name").IsString():
			s.Kind = KindTool
		case s.URL != "":
			s.Kind = KindWeb
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

// citation says a citation, if it is all there.
func (p *cohere1) citation(v scan.Value) {
	if v.Cut() {
		return
	}
	c := Cite{Unit: CodePoints}
	var from, to, ids scan.Value
	var text, kind string
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "text":
			text = o.Val.Str()
		case "start":
			from = o.Val
		case "end":
			to = o.Val
		case "type":
			kind = o.Val.Str()
		case "document_ids", "documentIds":
			ids = o.Val
		}
	}
	c.Quote = text
	start, ok1 := p.index("start", from)
	end, ok2 := p.index("end", to)
	switch {
	case kind == "PLAN":
		c.Unit, c.Quote = Nowhere, ""
	case !ok1 || !ok2:
		c.Unit = Nowhere
	default:
		c.Start, c.End = start, end
	}
	key := []string{numbered("", start), numbered("", end), text} // the end of a stream says the same citations again
	for _, ref := range documentRefs(ids) {
		c.Refs = append(c.Refs, ref)
		key = append(key, ref.Source)
	}
	if len(c.Refs) == 0 {
		p.issue(IssueSourceless, clip(c.Quote), nil) // without its JSON: a stream says it twice
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

func (p *cohere1) toolCalls(v scan.Value) {
	for list := scan.Elements(v); list.Next(); {
		p.tool("", list.Val.Get("name").Str())
	}
}
