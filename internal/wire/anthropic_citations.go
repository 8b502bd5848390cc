package wire

import (
	"slices"

	"github.com/ibidhq/ibid/internal/scan"
)

// citation says one citation of a block, if it is all there.
func (p *anthropic) citation(b *anthropicBlock, v scan.Value) {
	if v.Cut() {
		return
	}
	ref := Ref{Quote: v.Get("cited_text").Str()}
	switch kind := string(v.Type()); kind {
	case "web_search_result_location":
		ref.Source = p.webSource(v)
	case "search_result_location":
		ref.Source = p.resultSource(v)
		p.blockRange(&ref, v)
	case "char_location", "page_location", "content_block_location":
		ref.Source = p.documentSource(v)
		p.place(&ref, kind, v)
	default:
		p.unknown("citation "+clip(kind), v)
		return
	}
	if ref.Source == "" {
		p.issue(IssueSourceless, clip(ref.Quote), v)
		return
	}
	b.cited++
	p.cite(&Cite{
		Key:  numbered(numbered(numbered("", p.message)+"/", b.part.Content)+"/", b.cited),
		Part: b.part, Unit: Block, Covers: BlockSpan, Refs: []Ref{ref},
	})
}

// place reads where in a document a citation points. Page and block ends are exclusive on the wire.
func (p *anthropic) place(ref *Ref, kind string, v scan.Value) {
	switch kind {
	case "page_location":
		first, ok1 := p.index("start_page_number", v.Get("start_page_number"))
		end, ok2 := p.index("end_page_number", v.Get("end_page_number"))
		if ok1 {
			ref.Locator.Page = first
		}
		if ok1 && ok2 && end-1 > first {
			ref.Locator.LastPage = end - 1
		}
	case "content_block_location":
		p.blockRange(ref, v)
	default:
		if n, ok := p.index("start_char_index", v.Get("start_char_index")); ok {
			ref.Locator.CharStart = new(n)
		}
		if n, ok := p.index("end_char_index", v.Get("end_char_index")); ok {
			ref.Locator.CharEnd = new(n)
		}
	}
}

func (p *anthropic) blockRange(ref *Ref, v scan.Value) {
	first, ok1 := p.index("start_block_index", v.Get("start_block_index"))
	end, ok2 := p.index("end_block_index", v.Get("end_block_index"))
	if ok1 {
		ref.Locator.Block = new(first)
	}
	if ok1 && ok2 && end > first {
		ref.Locator.LastBlock = new(end - 1)
	}
}

func (p *anthropic) webSource(v scan.Value) string {
	url := v.Get("url").Str()
	if url != "" {
		p.source(&Source{Key: url, Kind: KindWeb, URL: url, Title: v.Get("title").Str()})
	}
	return url
}

func (p *anthropic) resultSource(v scan.Value) string {
	i, ok := p.index("search_result_index", v.Get("search_result_index"))
	if !ok {
		return p.webSourceNamed(v)
	}
	s := Source{Key: numbered("sr:", i), Kind: KindDocument, Title: v.Get("title").Str()}
	if !p.described[s.Key] && p.given {
		p.issue(IssueDocumentIndex, s.Key, nil)
	}
	if !p.described[s.Key] {
		setAddress(&s, v.Get("source").Str())
		p.describe(&s)
	}
	return s.Key
}

// webSourceNamed is the source of a search result without an index.
func (p *anthropic) webSourceNamed(v scan.Value) string {
	s := Source{Key: v.Get("source").Str(), Kind: KindDocument, Title: v.Get("title").Str()}
	if s.Key != "" && !p.described[s.Key] {
		setAddress(&s, s.Key)
		p.describe(&s)
	}
	return s.Key
}

func (p *anthropic) documentSource(v scan.Value) string {
	i, ok := p.index("document_index", v.Get("document_index"))
	if !ok {
		return ""
	}
	s := Source{
		Key:      numbered("doc:", i),
		Kind:     KindDocument,
		Title:    v.Get("document_title").Str(),
		GlobalID: v.Get("file_id").Str(),
	}
	if d := p.document(i, s.Title); d != nil {
		s.Key, s.Kind = d.Key, d.Kind
	} else if p.given && !p.described[s.Key] {
		p.issue(IssueDocumentIndex, s.Key, nil)
	}
	if !p.described[s.Key] {
		p.describe(&s)
	} else if s.Title != "" || s.GlobalID != "" {
		p.source(&s)
	}
	return s.Key
}

// document returns the known document that a citation names by its index and its title. Without the request only
// fetched pages are known. Where documents were given, too, the pages have other indices than known: then their titles
// tell.
func (p *anthropic) document(i int, title string) *Source {
	if i < len(p.documents) && (p.given || p.documents[i].Title == title) {
		return &p.documents[i]
	}
	k := slices.IndexFunc(p.documents, func(d Source) bool { return d.Title == title })
	if p.given || title == "" || k < 0 {
		return nil
	}
	return &p.documents[k]
}
