package otel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/trail"
)

// maxSpanName is how many bytes the id, the title and the URL of a document may have. A longer id or title is cut, a
// longer URL is none.
const maxSpanName = 2048

// readDocuments fills in the sources of a step: what it retrieved, in the order in which it stands there.
func readDocuments(s *span, kind spanKind, step *trail.Step) {
	documents, explicit := s.documents(kind)
	if len(documents) == 0 {
		step.NoSources = explicit
		return
	}
	if len(documents) > MaxSpanDocuments {
		addIssue(step, issueSpanCut, fmt.Sprintf("of %d documents %d were kept", len(documents), MaxSpanDocuments))
		documents = documents[:MaxSpanDocuments]
	}
	results := make([]trail.Result, len(documents))
	for i, d := range documents {
		results[i] = d.result(step)
	}
	step.Sources = trail.SourcesFromResults(results)
	for i := range step.Sources {
		step.Sources[i].Used = false // until the run shows it
		documents[i].setOwn(&step.Sources[i])
	}
}

// document is a document of a span by what the conventions call its parts.
type document struct {
	id, content, score any
	metadata           attributes
	members            attributes // all of it, where it was an object
}

// documents returns what a span retrieved. Explicit says that the span itself tells that this is all.
func (s *span) documents(kind spanKind) (list []document, explicit bool) {
	for _, prefix := range []string{"retrieval.documents", "reranker.output_documents", "reranker.input_documents"} {
		for _, d := range s.attrs.list(prefix) {
			list = append(list, document{
				id:       d["document.id"],
				content:  d["document.content"],
				score:    d["document.score"],
				metadata: members(structuredValue(d["document.metadata"])),
			})
		}
		if list != nil {
			return list, true
		}
	}
	for _, key := range []string{"gen_ai.retrieval.documents", "gen_ai.memory.records"} {
		if found, ok := s.detail(key).([]any); ok {
			return documentsOf(found, false), true
		}
	}
	if kind != spanRetriever && kind != spanReranker && kind != spanTool {
		return nil, false
	}
	return resultsOf(s.output(), kind != spanTool, 0)
}

// documentsOf reads a list of objects as documents. Strict asks that each of them has a text, and an id or a URL.
func documentsOf(found []any, strict bool) []document {
	list := make([]document, 0, len(found))
	for _, item := range found {
		object := members(item)
		if inner := members(object["kwargs"]); inner != nil {
			object = inner
		}
		if inner := members(object["node"]); inner != nil { // LlamaIndex: {node: …, score: …}
			inner["score"] = object["score"]
			object = inner
		}
		d := document{members: object, metadata: members(structuredValue(object["metadata"]))}
		d.id = cmp.Or(object.text("id", "document_id", "doc_id", "id_"), object.text("uri"))
		d.content = object.text("content", "page_content", "text", "snippet", "page_text")
		d.score = object["score"]
		if d.score == nil {
			d.score = object["relevance_score"]
		}
		if object == nil || d.content == "" && d.id == "" && object.text("url") == "" {
			if strict {
				return nil
			}
			continue
		}
		if strict && (d.content == "" || d.id == "" && object.text("url", "link") == "") {
			return nil
		}
		list = append(list, d)
	}
	return list
}

// resultsOf reads search results out of an output: a list, or a member that is one. What a retriever returns are
// documents; of what a tool returns only what looks like nothing else.
func resultsOf(v any, retriever bool, depth int) ([]document, bool) {
	if depth > maxUnwrap {
		return nil, false
	}
	switch v := v.(type) {
	case []any:
		return documentsOf(v, !retriever), retriever && len(v) == 0
	case map[string]any:
		for _, name := range strings.Fields("documents results search_results retrieved_documents outputs output response items") {
			if inner, ok := v[name]; ok {
				if list, explicit := resultsOf(structuredValue(inner), retriever, depth+1); list != nil || explicit {
					return list, explicit
				}
			}
		}
	}
	return nil, false
}

// find returns the first of the named members that is there, of the metadata or of the document itself.
func (d *document) find(names ...string) any {
	for _, from := range []attributes{d.metadata, d.members} {
		for _, name := range names {
			if v, ok := from[name]; ok && v != nil && v != "" {
				return v
			}
		}
	}
	return nil
}

// result reads what is known of a document. Names are those that loaders and stores commonly use; a page is taken only
// from names whose pages count from 1.
func (d *document) result(step *trail.Step) trail.Result {
	r := trail.Result{
		DocumentID: scalar(d.id),
		Content:    cutText(textOrJSON(d.content), step),
		Title:      scalar(d.find("title", "document_title")),
		URL:        scalar(d.find("url", "source_url", "link")),
		Version:    scalar(d.find("version", "ibid.version")),
	}
	if source := scalar(d.find("source")); source != "" {
		if r.URL == "" && (strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")) {
			r.URL = source
		}
		if r.DocumentID == "" {
			r.DocumentID = source
		}
	}
	r.DocumentID = cmp.Or(r.DocumentID, scalar(d.find("document_id", "doc_id")))
	r.Title = cmp.Or(r.Title, scalar(d.find("file_name", "filename")))
	if score, ok := number(d.score); ok {
		r.Score = &score
	}
	if index, ok := whole(d.find("chunk_index")); ok {
		r.ChunkIndex = &index
	}
	var at ibid.Locator
	if page, err := strconv.Atoi(scalar(d.find("page_number", "page_label"))); err == nil && page > 0 {
		at.Page = page
	}
	at.Chunk = scalar(d.find("chunk_id"))
	if at.Page != 0 || at.Chunk != "" {
		r.Locator = &at
	}
	r.DocumentID, r.Title, r.Version = cutName(r.DocumentID), cutName(r.Title), cutName(r.Version)
	if len(r.URL) > maxSpanName {
		r.URL = ""
	}
	return r
}

func cutName(s string) string { return text.Head(strings.ToValidUTF8(s, "\ufffd"), maxSpanName) }

// setOwn fills in what ibid itself wrote of a source into its metadata: see [writer.metadata].
func (d *document) setOwn(s *trail.Source) {
	m := d.metadata
	if origin, ok := m["ibid.score_origin"].(string); ok && s.Relevance != nil {
		s.Origin = ibid.ScoreOrigin(origin)
	}
	if overlap, ok := number(m["ibid.overlap"]); ok {
		s.Overlap = &overlap
	}
	if usage, ok := number(m["ibid.usage"]); ok {
		s.Usage = &usage
	}
	if rank, ok := whole(m["ibid.rank"]); ok {
		s.Rank = rank
	}
	if key, ok := m["ibid.key"].(string); ok {
		s.Key = cutName(key)
	}
	if at := members(m["ibid.locator"]); at != nil {
		s.Locator = nil
		if err := json.Unmarshal(encodeValue(at), &s.Locator); err != nil {
			s.Locator = nil
		}
	}
	if m["ibid.passage"] == false { // only an excerpt was known
		s.Content = ""
	}
	if excerpt, ok := m["ibid.excerpt"].(string); ok {
		s.Excerpt = cutText(excerpt, nil)
	}
	role, ok := m["ibid.role"].(string)
	if !ok {
		return
	}
	s.Retrieved = strings.Contains(role, roleRetrieved)
	s.Used = strings.Contains(role, roleUsed)
	s.Cited = strings.Contains(role, roleCited)
}
