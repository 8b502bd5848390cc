package wire

import (
	"bytes"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Gateways that turn other providers' answers into Chat Completions pass on the citations in members of their own:
// LiteLLM and Portkey Gemini's grounding and Claude's citations, in the providers' own forms. Those are read here by
// what reads the providers themselves.

// notedURL is an annotation of an address that was emitted as a citation.
type notedURL struct{ key, url string }

// remember remembers an annotation, which may turn out to be a lossy copy of Gemini's grounding: the supports without a
// start, and all chunks but the first, are missing, and the offsets are bytes.
func (p *chat) remember(key, url string) {
	if url != "" && len(p.noted) < maxItems && p.Keep(entrySize+2*len(url)) {
		p.noted = append(p.noted, notedURL{key, url})
	}
}

// groundRoot reads Gemini's grounding beside the choices: an object, or a list with one for each candidate.
func (p *chat) groundRoot(v scan.Value) {
	if !v.IsArray() {
		p.ground(0, v)
		return
	}
	for a, i := scan.Elements(v), 0; a.Next(); i++ {
		p.ground(i, a.Val)
	}
}

// ground reads the grounding of a candidate. It is emitted when the candidate ends: its offsets, which count bytes, are
// those of the whole text.
func (p *chat) ground(index int, v scan.Value) {
	if blank(v) || p.looking {
		return
	}
	if v.IsArray() {
		p.groundRoot(v)
		return
	}
	if !v.IsObject() {
		p.issue(IssueWrongType, "grounding metadata", v)
		return
	}
	g := p.gemini()
	g.keepGrounding(g.at(index), v)
	p.annotated = true
	for a := scan.Elements(v.Get("groundingChunks")); a.Next(); {
		s, _ := readChunk(a.Val)
		if s.URL == "" || p.grounded[s.URL] || !p.Keep(entrySize+len(s.URL)) {
			continue
		}
		if p.grounded == nil {
			p.grounded = map[string]bool{}
		}
		p.grounded[s.URL] = true
	}
	for _, n := range p.noted {
		if p.grounded[n.url] {
			p.emit(Op{Kind: Withdraw, Name: n.key})
		}
	}
}

// groundPages reads which pages the model asked for.
func (p *chat) groundPages(v scan.Value) {
	for a, i := scan.Elements(v), 0; a.Next() && !p.looking; i++ {
		if list := a.Val.Get("urlMetadata"); !blank(list) {
			g := p.gemini()
			g.at(i).setField(fieldURLs, list)
		}
	}
}

// gemini returns what reads Gemini's grounding.
func (p *chat) gemini() *generate {
	if p.google == nil {
		p.google, _ = newGenerate(p.Config).(*generate)
	}
	return p.google
}

// Close implements [Parser].
func (p *chat) Close() {
	p.claudeClose()
	if p.google != nil {
		p.google.Close()
	}
}

// claudeCitations reads Claude's citations, which name the documents of the request by their positions.
type claudeCitations struct {
	*anthropic
	count int
	open  []Cite // of the block that the text being streamed belongs to
	start int    // where in the text it begins
}

// claudeCites returns what reads Claude's citations.
func (p *chat) claudeCites() *claudeCitations {
	if p.claude == nil {
		inner, _ := newAnthropic(p.Config).(*anthropic)
		p.claude = &claudeCitations{anthropic: inner}
		inner.emitOnce(&inner.out, requestDocuments)
		inner.given = len(inner.documents)+len(inner.results) > 0
	}
	return p.claude
}

// citeAt reads a citation of the bytes from start to end of a candidate's text, and returns it without emitting it.
func (c *claudeCitations) citeAt(index, start, end int, v scan.Value) (Cite, bool) {
	ref, ok := c.reference(v)
	if !ok {
		return Cite{}, false
	}
	c.count++
	return Cite{
		Key: numbered("claude:", c.count), Part: Part{Candidate: index},
		Unit: Bytes, Start: start, End: end, Refs: []Ref{ref},
	}, true
}

// claudeBlock reads the citations of a text block of Claude's, whose text was just emitted.
func (p *chat) claudeBlock(index, start int, list scan.Value) {
	if blank(list) || p.looking {
		return
	}
	p.annotated = true
	p.wantList("citations", list)
	c := p.claudeCites()
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		if cite, ok := c.citeAt(index, start, p.choiceOf(index).length, a.Val); ok {
			p.cite(&cite)
		}
	}
}

// claudeBefore reads a citation that comes in a stream before its text: the block with the text that follows it rests
// on it, up to where the next block begins, which is not marked. So the citation covers the first sentence of that.
func (p *chat) claudeBefore(index int, specific scan.Value) {
	v := specific.Get("citation")
	if blank(v) || p.looking {
		return
	}
	p.annotated = true
	c := p.claudeCites()
	if at := p.choiceOf(index).length; at > c.start || len(c.open) == 0 {
		p.claudeClose()
		c.start = at
	}
	if cite, ok := c.citeAt(index, c.start, c.start, v); ok && len(c.open) < maxRefs {
		cite.Sentence = true
		c.open = append(c.open, cite)
	}
}

// claudeClose emits the citations of the block that ends.
func (p *chat) claudeClose() {
	if p.claude == nil {
		return
	}
	for i := range p.claude.open {
		c := &p.claude.open[i]
		c.End = p.choiceOf(c.Part.Candidate).length
		p.cite(c)
	}
	p.claude.open = p.claude.open[:0]
}

// claudeAfter reads the citations that a message has beside its text: lists by block, each with the words that it
// supports (LiteLLM), or the blocks themselves (Portkey).
func (p *chat) claudeAfter(index, start int, content, specific, blocks scan.Value) {
	if p.looking || blank(specific) && blank(blocks) {
		return
	}
	p.annotated = true
	text := content.Bytes()
	from := 0
	find := func(words []byte) (int, int, bool) {
		at := bytes.Index(text[from:], words)
		if len(words) == 0 || at < 0 {
			return 0, 0, false
		}
		at += from
		from = at + len(words)
		return start + at, start + from, true
	}
	lists := specific.Get("citations")
	p.wantList("provider_specific_fields.citations", lists)
	for a := scan.Elements(lists); a.Next() && !a.Cut(); {
		block := scan.Elements(a.Val)
		if a.Val.IsObject() { // a flat list
			block = scan.Elements(append(append(scan.Value("["), a.Val...), ']'))
		}
		begin, end, placed := 0, 0, false
		for first := true; block.Next(); first = false {
			words := block.Val.Get("supported_text").Bytes()
			if first || a.Val.IsObject() {
				begin, end, placed = find(words)
			}
			cite, ok := p.claudeCites().citeAt(index, begin, end, block.Val)
			if !ok {
				continue
			}
			if !placed {
				cite.Unit, cite.Quote = Nowhere, string(words)
			}
			p.cite(&cite)
		}
	}
	for a := scan.Elements(specific.Get("web_search_results")); a.Next(); {
		list := a.Val.Get("content")
		if !list.IsArray() {
			list = append(append(scan.Value("["), a.Val...), ']')
		}
		p.webSources(list)
	}
	p.claudeBlocks(index, blocks, find)
}

// claudeBlocks reads the blocks of a message, or of a stream. find returns where words are in the text.
func (p *chat) claudeBlocks(index int, blocks scan.Value, find func(words []byte) (begin, end int, ok bool)) {
	for a := scan.Elements(blocks); a.Next() && !a.Cut(); {
		if delta := a.Val.Get("delta"); delta.IsObject() { // of a stream
			if citation := delta.Get("citation"); !blank(citation) {
				p.claudeBefore(index, append(append(scan.Value(`{"citation":`), citation...), '}'))
			}
			continue
		}
		begin, end, placed := find(a.Val.Get("text").Bytes())
		for list := scan.Elements(a.Val.Get("citations")); list.Next(); {
			if cite, ok := p.claudeCites().citeAt(index, begin, end, list.Val); ok {
				if !placed {
					cite.Unit, cite.Quote = Nowhere, strings.TrimSpace(a.Val.Get("text").Str())
				}
				p.cite(&cite)
			}
		}
		if name := string(a.Val.Type()); name == "thinking" {
			p.think(Part{Candidate: index}, a.Val.Get("thinking"))
		}
	}
}
