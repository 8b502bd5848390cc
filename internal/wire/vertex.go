package wire

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksVertexSearch recognises an answer of Vertex AI Search (Discovery Engine): the methods answer, streamAnswer,
// converse and search.
func looksVertexSearch(s *shape) bool {
	answer := s.val("answer")
	if answer.Get("answerText", "answerSkippedReasons", "queryUnderstandingInfo") != nil {
		return true
	}
	switch answer.Get("state").Str() {
	case "STREAMING", "IN_PROGRESS", "SUCCEEDED", "FAILED":
		return true
	}
	return isSummary(s.val("summary")) || isSummary(s.val("reply").Get("summary")) || s.has("answerText", "state")
}

// isSummary reports whether v is a search summary.
func isSummary(v scan.Value) bool {
	return v.Get("summaryText", "summaryWithMetadata", "summarySkippedReasons") != nil
}

// vertexSearch reads the answers of Vertex AI Search. Each document of a stream is an answer by itself, whose text is
// either the next piece or everything so far; the last one may repeat everything.
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
	delta  template // of documents of a stream with nothing but text
}

// vertexRef is one element of references, which citations name by its index in the list.
type vertexRef struct {
	key, quote string
	locator    Locator
}

func newVertexSearch(c *Config) Parser {
	return &vertexSearch{out: out{Config: c}, once: onceSet{}}
}

func (p *vertexSearch) Parse(_ []byte, doc scan.Value) bool {
	if content, _, ok := p.delta.match(doc); ok {
		p.addMore(content, false)
		return true
	}
	p.unread(doc, vertexReads)
	return eachDocument(doc, p.document)
}

func (p *vertexSearch) document(doc scan.Value) bool {
	var answer, reply, summary, results, text, failure scan.Value
	doc.Read(scan.Fields{
		{"answer", &answer},
		{"reply", &reply},
		{"summary", &summary},
		{"results", &results},
		{"searchResults", &results},
		{"answerText", &text},
		{"error", &failure},
	})
	if answer != nil {
		p.answer(answer, doc)
	}
	if !blank(failure) {
		p.failure(doc)
		p.finish(0, finishError)
	}
	if summary == nil {
		summary = reply.Get("summary")
	}
	switch {
	case text != nil: // an answer by itself, as a session's answers are fetched
		p.answer(doc, doc)
	case summary.IsObject():
		p.summary(summary, results)
	default:
		return answer != nil || failure != nil
	}
	return true
}

// answer reads the answer that a document holds.
func (p *vertexSearch) answer(v, doc scan.Value) {
	var id, created, text, citations, supports, references, skipped, steps scan.Value
	var state string
	v.Read(scan.Fields{
		{"name", &id},
		{"state", &state},
		{"createTime", &created},
		{"answerText", &text},
		{"citations", &citations},
		{"groundingSupports", &supports},
		{"references", &references},
		{"answerSkippedReasons", &skipped},
		{"steps", &steps},
	})
	p.head(HeadID, id)
	p.head(HeadCreated, created)
	members := 0
	for o := scan.Members(v); o.Next(); members++ {
		switch string(o.Key) {
		case "relatedQuestions", "related_questions", "groundingScore", "grounding_score", "queryUnderstandingInfo":
			p.meta(string(o.Key), o.Val)
		}
	}
	for s := scan.Elements(steps); s.Next(); {
		for a := scan.Elements(s.Val.Get("actions")); a.Next(); {
			q := a.Val.Path("searchAction", "query")
			if p.once.first("query:" + string(q)) {
				p.query(q)
			}
		}
	}
	final := state != "STREAMING" && state != "IN_PROGRESS"
	p.references(references)
	p.answerText(text, final)
	if !final && members == 2 && text.IsString() {
		p.delta.learn(doc, text, Part{}, variation{})
	}
	p.citations(citations, supports, final)
	if !v.Cut() { // otherwise what was skipped may be missing
		p.answerState(state, skipped)
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
		p.finish(0, finishError)
	default:
		return
	}
	if !p.ended {
		p.ended = true
		p.emit(Op{Kind: End})
	}
}

// skipReason returns the finish reason for the reasons why no answer was written, some of which are a filter's.
func skipReason(reasons scan.Value) string {
	for a := scan.Elements(reasons); a.Next(); {
		r := a.Val.Str()
		for _, word := range []string{"POLICY", "ADVERSARIAL", "JAIL_BREAKING"} {
			if strings.Contains(r, word) {
				return finishFilter
			}
		}
	}
	return finishStop
}

// answerText emits what a document adds to the text. A text that begins with all of the former ones repeats them; one
// that begins like them but continues differently is a corrected whole; any other is the next piece.
func (p *vertexSearch) answerText(v scan.Value, final bool) {
	if v.IsNull() {
		return
	}
	if !v.IsString() {
		p.issue(IssueWrongType, "answerText", v)
		return
	}
	if whole := !v.Cut(); whole || !bytes.HasPrefix(p.text, p.unescape(v.Content())) {
		p.addMore(v.Content(), final && whole)
	}
}

// addMore is answerText for the contents of a string between its quotes.
func (p *vertexSearch) addMore(content []byte, final bool) {
	text := p.unescape(content)
	same, n := 0, min(len(text), len(p.text)) // same is the length of the common prefix
	for same+16 <= n && string(text[same:same+16]) == string(p.text[same:same+16]) {
		same += 16
	}
	for same < n && text[same] == p.text[same] {
		same++
	}
	switch {
	case same == len(p.text) && len(p.text) > 0:
		text = text[same:]
	case final && same > 0 && (same >= 16 || 2*same >= len(p.text)):
		p.text = append(p.text[:0], text...)
		p.emit(Op{Kind: Final, Text: p.text})
		return
	}
	if len(text) == 0 {
		return
	}
	p.text = append(p.text, text...)
	p.emit(Op{Kind: Text, Text: text})
}

// references emits the sources. A list that does not extend the former one gets other keys, since citations refer to
// indices in the list.
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
	for a := scan.Elements(list); a.Next() && !a.Cut() && p.Keep(2*size[vertexRef]()); {
		p.refs = append(p.refs, p.reference(numbered(prefix, len(p.refs)), a.Val))
	}
}

// reference emits one source, once for each of its chunks.
func (p *vertexSearch) reference(key string, v scan.Value) vertexRef {
	s := &Source{Key: key, Kind: kindDocument, Raw: v}
	ref := vertexRef{key: key}
	fresh := p.once.first(key)
	document := v.Get("unstructuredDocumentInfo")
	if document == nil && v.Get("document", "uri", "title") != nil {
		document = v // a summary's reference is the document itself
	}
	chunk := v.Get("chunkInfo")
	record := v.Get("structuredDocumentInfo")
	switch {
	case chunk.IsObject():
		var metadata scan.Value
		chunk.Read(scan.Fields{
			{"chunk", &s.ChunkID},
			{"content", &s.Content},
			{"relevanceScore", &s.Score},
			{"documentMetadata", &metadata},
		})
		documentReference(s, metadata)
		s.Locator.Page = pageOf(metadata.Get("pageIdentifier"))
		s.Locator.Chunk = s.ChunkID
		ref.quote, ref.locator = s.Content, s.Locator
	case record.IsObject():
		data := record.Get("structData")
		documentReference(s, data)
		if documentReference(s, record); !blank(data) {
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

// documentChunks emits a document once for each of its chunks. A citation quotes the chunk only if there is a single
// one.
func (p *vertexSearch) documentChunks(s *Source, chunks scan.Value, fresh bool) (quote string, at Locator) {
	n := 0
	for a := scan.Elements(chunks); a.Next(); n++ {
		s.Content, s.Locator, s.Score = "", Locator{}, nil
		var page scan.Value
		a.Val.Read(scan.Fields{{"content", &s.Content}, {"pageIdentifier", &page}, {"relevanceScore", &s.Score}})
		s.Locator.Page = pageOf(page)
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

// documentReference reads the document of a reference, and returns its chunks. A document's resource name is the same
// in every answer.
func documentReference(s *Source, v scan.Value) (chunks scan.Value) {
	v.Read(scan.Fields{
		{"document", &s.GlobalID}, {"uri", &s.URL}, {"title", &s.Title}, {"chunkContents", &chunks},
	})
	placeDocument(s)
	return chunks
}

// placeDocument sets the kind of a document by its address.
func placeDocument(s *Source) {
	switch {
	case strings.HasPrefix(s.URL, "https://"), strings.HasPrefix(s.URL, "http://"):
		s.Kind = kindWeb
	case strings.HasPrefix(s.URL, "gs://"):
		s.Kind = kindFile
		s.Filename = fileTitle(s.URL[strings.LastIndexByte(s.URL, '/')+1:])
	}
}

// citations reads an answer's citations or, if it has none, the claims that were checked against its references. The
// citations of the last document are complete: those of earlier ones that it lacks are withdrawn.
func (p *vertexSearch) citations(list, supports scan.Value, final bool) {
	if blank(list) {
		list = supports
	}
	if blank(list) {
		return
	}
	former := p.latest
	p.latest = map[string]bool{}
	i := 0
	for a := scan.Elements(list); a.Next() && !a.Cut(); i++ {
		p.citation(i, a.Val)
	}
	p.cites.emitTouched(&p.out)
	for _, key := range slices.Sorted(maps.Keys(former)) {
		switch {
		case p.latest[key]:
		case final:
			p.emit(Op{Kind: Withdraw, Name: key})
		default:
			p.latest[key] = true
		}
	}
}

func (p *vertexSearch) citation(i int, v scan.Value) {
	var start, end, sources, confidence, required scan.Value
	v.Read(scan.Fields{
		{"startIndex", &start},
		{"endIndex", &end},
		{"sources", &sources},
		{"groundingScore", &confidence},
		{"groundingCheckRequired", &required},
	})
	if string(required) == "false" {
		return // not a claim that needs a source
	}
	cite := Cite{Base: AnswerBase}
	p.byteSpan(&cite, start, end)
	found := false
	for a := scan.Elements(sources); a.Next(); {
		ref, ok := p.refOf(i, a.Val)
		if !ok {
			continue
		}
		found = true
		ref.Confidence = confidence.Number()
		if key := p.cites.add(&p.out, &cite, &ref); key != "" && p.Keep(entrySize) {
			p.latest[key] = true
		}
	}
	if !found {
		p.issue(IssueSourceless, numbered("citation ", i), v)
	}
}

// refOf returns the reference that a citation's source names: an index, as a string or a number, which is 0 if it is
// missing.
func (p *vertexSearch) refOf(i int, v scan.Value) (Ref, bool) {
	id := v.Get("referenceId", "referenceIndex")
	n, ok := p.index("referenceId", id)
	if !ok && !id.IsNull() {
		return Ref{}, false
	}
	if n >= len(p.refs) {
		p.issue(IssueChunkIndex, fmt.Sprintf("citation %d names reference %d of %d", i, n, len(p.refs)), nil)
		return Ref{}, false
	}
	r := p.refs[n]
	return Ref{Source: r.key, Quote: r.quote, Locator: r.locator}, true
}

// summary reads a search summary, of the methods search and converse. With metadata it is a text with citations;
// without, numbers in brackets in the text stand for the search results.
func (p *vertexSearch) summary(v, results scan.Value) {
	var text, metadata, skipped scan.Value
	v.Read(scan.Fields{
		{"summaryText", &text}, {"summaryWithMetadata", &metadata}, {"summarySkippedReasons", &skipped},
	})
	var found []Ref
	for a := scan.Elements(results); a.Next() && p.Keep(3*refSize); {
		key := numbered("result:", len(found))
		found = append(found, Ref{Source: key})
		doc := a.Val.Get("document")
		s := &Source{Key: key, Kind: kindDocument, Raw: a.Val}
		derived := doc.Get("derivedStructData")
		documentReference(s, doc.Get("structData"))
		documentReference(s, derived)
		if link := derived.Get("link").Str(); link != "" {
			s.URL = link
			placeDocument(s)
		}
		s.GlobalID = doc.Get("name").Str()
		s.Content = resultText(derived)
		p.source(s)
	}
	if whole := metadata.Get("summary"); whole.IsString() {
		p.references(metadata.Get("references"))
		p.answerText(whole, true)
		p.citations(metadata.Get("citationMetadata").Get("citations"), nil, true)
	} else {
		if len(found) > 0 {
			p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: found}})
		}
		p.answerText(text, true)
	}
	p.answerState("SUCCEEDED", skipped)
}

// resultText returns what a search result shows of its document: the passage that answers the question, else the
// snippet.
func resultText(data scan.Value) string {
	for _, name := range []string{"extractive_answers", "extractive_segments", "snippets"} {
		a := scan.Elements(data.Get(name))
		if !a.Next() {
			continue
		}
		if s := a.Val.Get("content", "snippet").Str(); s != "" {
			return s
		}
	}
	return ""
}
