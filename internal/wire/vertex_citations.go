package wire

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibidhq/ibid/internal/scan"
)

// citations reads an answer's citations, or where it has none the claims that were checked against its references. The
// citations of the last document are all there are: what an earlier one said and this one does not is taken back.
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
	p.cites.say(&p.out)
	for _, key := range slices.Sorted(maps.Keys(former)) {
		switch {
		case p.latest[key]:
		case final:
			p.say(Op{Kind: Withdraw, Name: key})
		default:
			p.latest[key] = true
		}
	}
}

func (p *vertexSearch) citation(i int, v scan.Value) {
	var start, end, sources, confidence scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "startIndex", "start_index":
			start = o.Val
		case "endIndex", "end_index":
			end = o.Val
		case "sources":
			sources = o.Val
		case "groundingScore", "grounding_score":
			confidence = o.Val
		case "groundingCheckRequired", "grounding_check_required":
			if string(o.Val) == "false" {
				return // not a claim that would need a source
			}
		}
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
		ref.Confidence = score(confidence)
		p.latest[p.cites.add(&cite, &ref)] = true
	}
	if !found {
		p.issue(IssueSourceless, numbered("citation ", i), v)
	}
}

// refOf returns the reference that a citation's source names: an index, as a string or as a number, which is 0 where it
// is missing.
func (p *vertexSearch) refOf(i int, v scan.Value) (Ref, bool) {
	id := pick(v, "referenceId", "reference_id", "referenceIndex", "reference_index")
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

// summary reads a search summary, of the methods search and converse. With metadata it is a text and citations;
// without, the text holds numbers in brackets that stand for the search results.
func (p *vertexSearch) summary(v, results scan.Value) {
	var text, metadata, skipped scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "summaryText", "summary_text":
			text = o.Val
		case "summaryWithMetadata", "summary_with_metadata":
			metadata = o.Val
		case "summarySkippedReasons", "summary_skipped_reasons":
			skipped = o.Val
		}
	}
	found := p.results(results)
	if whole := metadata.Get("summary"); whole.IsString() {
		p.references(metadata.Get("references"))
		p.answerText(whole, true)
		p.citations(pick(metadata, "citationMetadata", "citation_metadata").Get("citations"), nil, true)
	} else {
		if len(found) > 0 {
			p.say(Op{Kind: MarkersOp, Markers: &Markers{Style: BracketNumber, Refs: found}})
		}
		p.answerText(text, true)
	}
	p.answerState("SUCCEEDED", skipped)
}

// results says the documents that were found and returns what stands for them.
func (p *vertexSearch) results(list scan.Value) (found []Ref) {
	for a := scan.Elements(list); a.Next(); {
		key := numbered("result:", len(found))
		found = append(found, Ref{Source: key})
		doc := a.Val.Get("document")
		s := &Source{Key: key, Kind: KindDocument, Raw: a.Val}
		derived := pick(doc, "derivedStructData", "derived_struct_data")
		documentReference(s, pick(doc, "structData", "struct_data"))
		documentReference(s, derived)
		if link := derived.Get("link").Str(); link != "" {
			s.URL = link
			placeDocument(s)
		}
		s.GlobalID = doc.Get("name").Str()
		s.Content = resultText(derived)
		p.source(s)
	}
	return found
}

// resultText returns what a search result shows of its document: the passage that answers, else the snippet.
func resultText(data scan.Value) string {
	for _, name := range []string{"extractive_answers", "extractive_segments", "snippets"} {
		a := scan.Elements(data.Get(name))
		if !a.Next() {
			continue
		}
		if s := pick(a.Val, "content", "snippet").Str(); s != "" {
			return s
		}
	}
	return ""
}
