package wire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksVertexSearch recognises an answer of Vertex AI Search (Discovery Engine): the methods answer, streamAnswer,
// converse and search.
func looksVertexSearch(s *shape) bool {
	answer := s.val("answer")
	for o := scan.Members(answer); o.Next(); {
		switch string(o.Key) {
		case "answerText", "answer_text", "answerSkippedReasons", "answer_skipped_reasons", "queryUnderstandingInfo":
			return true
		case "state":
			switch o.Val.Str() {
			case "STREAMING", "IN_PROGRESS", "SUCCEEDED", "FAILED":
				return true
			}
		}
	}
	return isSummary(s.val("summary")) || isSummary(pick(s.val("reply"), "summary")) || s.has("answerText", "state")
}

// isSummary reports whether v is a search summary.
func isSummary(v scan.Value) bool {
	return pick(
		v, "summaryText", "summary_text", "summaryWithMetadata", "summary_with_metadata", "summarySkippedReasons",
	) != nil
}

// vertexSearch reads the answers of Vertex AI Search. Each document of a stream is an answer by itself, whose text is
// either the next piece or everything so far; the last one may repeat the whole.
type vertexSearch struct {
	out
	text   []byte // so far, unescaped
	refs   []vertexRef
	raw    scan.Value // the list that refs was read from, copied
	round  int
	once   onceSet
	cites  citeSet
	latest map[string]bool // the citations of the document being read
	ended  bool
	delta  template // the documents of a stream that hold nothing but text
}

// vertexRef is one element of references: citations name it by its place in the list.
type vertexRef struct {
	key, quote string
	locator    Locator
}

func newVertexSearch(c *Config) Parser {
	return &vertexSearch{out: out{emit: c.Emit}, once: onceSet{}}
}

func (p *vertexSearch) Parse(_ []byte, doc scan.Value) bool {
	if content, ok := p.delta.match(doc); ok {
		p.more(content, false)
		return true
	}
	if !doc.IsArray() {
		return p.document(doc)
	}
	known := false
	for a := scan.Elements(doc); a.Next(); {
		known = p.document(a.Val) || known
	}
	return known
}

func (p *vertexSearch) Close() {}

func (p *vertexSearch) document(doc scan.Value) bool {
	var summary, results, text scan.Value
	known := false
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "answer":
			p.answer(o.Val, doc)
			known = true
		case "reply":
			summary = o.Val.Get("summary")
		case "summary":
			summary = o.Val
		case "results", "searchResults", "search_results":
			results = o.Val
		case "answerText", "answer_text":
			text = o.Val
		case "error":
			if !blank(o.Val) {
				p.failure(doc)
				p.finish(0, FinishError)
			}
			known = true
		}
	}
	switch {
	case text != nil: // an answer by itself, as a session's answers are fetched
		p.answer(doc, doc)
		known = true
	case summary.IsObject():
		p.summary(summary, results)
		known = true
	}
	return known
}

// vertexAnswer is an answer, its members found but not read.
type vertexAnswer struct {
	state                                             string
	text, citations, supports, references, skip, step scan.Value
}

// answer reads the answer that a document holds.
func (p *vertexSearch) answer(v, doc scan.Value) {
	var a vertexAnswer
	members := 0
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "name":
			p.head(HeadID, o.Val)
		case "state":
			a.state = o.Val.Str()
		case "createTime", "create_time":
			p.head(HeadCreated, o.Val)
		case "answerText", "answer_text":
			a.text = o.Val
		case "citations":
			a.citations = o.Val
		case "groundingSupports", "grounding_supports":
			a.supports = o.Val
		case "references":
			a.references = o.Val
		case "answerSkippedReasons", "answer_skipped_reasons":
			a.skip = o.Val
		case "steps":
			a.step = o.Val
		case "relatedQuestions", "related_questions", "groundingScore", "grounding_score", "queryUnderstandingInfo":
			p.meta(string(o.Key), o.Val)
		}
		members++
	}
	p.queries(a.step)
	final := a.state != "STREAMING" && a.state != "IN_PROGRESS"
	p.references(a.references)
	p.answerText(a.text, final)
	if !final && members == 2 && a.text.IsString() {
		p.delta.learn(doc, a.text, "", Part{}, false)
	}
	p.citations(a.citations, a.supports, final)
	if !v.Cut() { // else what was skipped may be missing
		p.answerState(a.state, a.skip)
	}
}

func (p *vertexSearch) answerState(state string, skipped scan.Value) {
	if !blank(skipped) {
		p.meta("answerSkippedReasons", skipped)
	}
	switch state {
	case "SUCCEEDED":
		p.finish(0, skipReason(skipped))
	case "FAILED":
		p.finish(0, FinishError)
	default:
		return
	}
	p.endOnce()
}

func (p *vertexSearch) endOnce() {
	if !p.ended {
		p.ended = true
		p.end()
	}
}

// skipReason maps the reasons why no answer was written: some are a filter's.
func skipReason(reasons scan.Value) string {
	for a := scan.Elements(reasons); a.Next(); {
		r := a.Val.Str()
		for _, word := range []string{"POLICY", "ADVERSARIAL", "JAIL_BREAKING"} {
			if strings.Contains(r, word) {
				return FinishFilter
			}
		}
	}
	return FinishStop
}

func (p *vertexSearch) queries(steps scan.Value) {
	for s := scan.Elements(steps); s.Next(); {
		for a := scan.Elements(s.Val.Get("actions")); a.Next(); {
			q := pick(a.Val, "searchAction", "search_action").Get("query")
			if p.once.first("query:" + string(q)) {
				p.query(q)
			}
		}
	}
}

// answerText says what a document adds to the text. A text that begins with all of the former ones repeats them; one
// that begins like them but goes on differently is a corrected whole; any other is the next piece.
func (p *vertexSearch) answerText(v scan.Value, final bool) {
	if v.IsNull() {
		return
	}
	if !v.IsString() {
		p.issue(IssueWrongType, "answerText", v)
		return
	}
	if whole := !v.Cut(); whole || !bytes.HasPrefix(p.text, p.unescape(v.Content())) {
		p.more(v.Content(), final && whole)
	}
}

// more is answerText for a string's content as it stands between its quotes.
func (p *vertexSearch) more(content []byte, final bool) {
	text := p.unescape(content)
	same := commonPrefix(text, p.text)
	switch {
	case same == len(p.text) && len(p.text) > 0:
		text = text[same:]
	case final && same > 0 && (same >= 16 || 2*same >= len(p.text)):
		p.text = append(p.text[:0], text...)
		p.say(Op{Kind: Final, Text: p.text})
		return
	}
	if len(text) == 0 {
		return
	}
	p.text = append(p.text, text...)
	p.say(Op{Kind: Text, Text: text})
}

// references says the sources. A list that is not the former one grown gets other keys, since citations count places in
// the list.
func (p *vertexSearch) references(list scan.Value) {
	if blank(list) || bytes.Equal(list, p.raw) {
		return
	}
	if !bytes.HasPrefix(list, bytes.TrimRight(p.raw, "] \n\r\t")) {
		p.round++
	}
	prefix := "ref:"
	if p.round > 0 {
		prefix = fmt.Sprintf("ref:%d:", p.round)
	}
	p.raw, p.refs = bytes.Clone(list), p.refs[:0]
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		p.refs = append(p.refs, p.reference(numbered(prefix, len(p.refs)), a.Val))
	}
}

// reference says one source, once for each of its chunks.
func (p *vertexSearch) reference(key string, v scan.Value) vertexRef {
	s := &Source{Key: key, Kind: KindDocument, Raw: v}
	ref := vertexRef{key: key}
	fresh := p.once.first(key)
	document := pick(v, "unstructuredDocumentInfo", "unstructured_document_info")
	if document == nil && pick(v, "document", "uri", "title") != nil {
		document = v // a summary's reference is the document itself
	}
	chunk := pick(v, "chunkInfo", "chunk_info")
	record := pick(v, "structuredDocumentInfo", "structured_document_info")
	switch {
	case chunk.IsObject():
		chunkReference(s, chunk)
		ref.quote, ref.locator = s.Content, s.Locator
	case record.IsObject():
		documentReference(s, record)
		if data := pick(record, "structData", "struct_data"); !blank(data) {
			s.Content = jsonText(data)
		}
	case document.IsObject():
		chunks := documentReference(s, document)
		ref.quote, ref.locator = p.documentChunks(s, chunks, fresh)
		return ref
	case fresh:
		p.unknown("reference "+key, v)
	}
	if fresh {
		p.source(s)
	}
	return ref
}

// documentChunks says a document once for each of its chunks. Only where there is a single one is it what a citation
// quotes.
func (p *vertexSearch) documentChunks(s *Source, chunks scan.Value, fresh bool) (quote string, at Locator) {
	n := 0
	for a := scan.Elements(chunks); a.Next(); n++ {
		s.Content, s.Locator, s.Score = "", Locator{}, nil
		readDocumentChunk(s, a.Val)
		if quote, at = "", (Locator{}); n == 0 {
			quote, at = s.Content, s.Locator
		}
		if fresh {
			p.source(s)
		}
	}
	if n == 0 && fresh {
		p.source(s)
	}
	return quote, at
}

func readDocumentChunk(s *Source, v scan.Value) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "content":
			s.Content = o.Val.Str()
		case "pageIdentifier", "page_identifier":
			s.Locator.Page = pageOf(o.Val)
		case "relevanceScore", "relevance_score":
			s.Score = score(o.Val)
		}
	}
}

// chunkReference reads a reference that is one chunk of a document.
func chunkReference(s *Source, v scan.Value) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "chunk":
			s.ChunkID = o.Val.Str()
		case "content":
			s.Content = o.Val.Str()
		case "relevanceScore", "relevance_score":
			s.Score = score(o.Val)
		case "documentMetadata", "document_metadata":
			documentReference(s, o.Val)
			s.Locator.Page = pageOf(pick(o.Val, "pageIdentifier", "page_identifier"))
		}
	}
	s.Locator.Chunk = s.ChunkID
}

// documentReference reads which document a reference is of, and returns its chunks. A document's resource name is the
// same in every answer.
func documentReference(s *Source, v scan.Value) (chunks scan.Value) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "document":
			s.GlobalID = o.Val.Str()
		case "uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "chunkContents", "chunk_contents":
			chunks = o.Val
		}
	}
	placeDocument(s)
	return chunks
}

// placeDocument says what kind of source a document is by where it is kept.
func placeDocument(s *Source) {
	switch {
	case strings.HasPrefix(s.URL, "https://"), strings.HasPrefix(s.URL, "http://"):
		s.Kind = KindWeb
	case strings.HasPrefix(s.URL, "gs://"):
		s.Kind = KindFile
		s.Filename = fileTitle(s.URL[strings.LastIndexByte(s.URL, '/')+1:])
	}
}
