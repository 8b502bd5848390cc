package wire

import (
	"slices"

	"github.com/ibidhq/ibid/internal/scan"
)

// evidence reads the lists that Perplexity and xAI send beside the choices: with Perplexity what [n] in the text stands
// for, with xAI what the answer as a whole rests on.
func (p *chat) evidence(d *chatDoc) {
	if d.citations.IsNull() && d.results.IsNull() {
		return
	}
	if string(d.object.Bytes()) == "chat.completion.done" {
		p.setFlavour(perplexityChat)
	}
	if p.looking {
		return
	}
	p.wantList("citations", d.citations)
	fresh := p.isNew("citations", d.citations)
	fresh = p.isNew("search_results", d.results) || fresh
	if !fresh {
		return
	}
	found, size := p.searchResults(d.results)
	defer p.Keep(-size)
	if p.flavour == xaiChat {
		p.unplaced(d.citations, found)
		return
	}
	p.numbers, p.style = nil, bracketNumber
	n := 0
	for a := scan.Elements(d.citations); a.Next() && !a.Cut() && p.numbered(n); n++ {
		s := citedURL(a.Val)
		if s.URL == "" {
			p.issue(IssueWrongType, "citations", a.Val)
		}
		s.Key = number(n + 1)
		describe(s, found, n)
		p.source(s)
		p.numbers = append(p.numbers, Ref{Source: s.Key})
	}
	if n == 0 {
		p.resultsOnly(found)
	}
	for i := range found {
		if n > 0 && found[i].source != nil { // it was found, but no mark can name it
			p.source(found[i].source)
		}
	}
	p.setNumbers("citations", p.numbers)
	if p.flavour != perplexityChat {
		p.linked(0)
	}
}

// numbered reports whether a list may have an element n, from 0, that marks in the text can name.
func (p *chat) numbered(n int) bool {
	if n == maxNumber {
		p.issue(IssueLimit, "numbered sources", nil)
		return false
	}
	return p.Keep(2*refSize + len("10000"))
}

func number(n int) string { return numbered("", n) }

// citedURL reads an element of citations: an address, or an object with one.
func citedURL(v scan.Value) *Source {
	if v.IsObject() {
		s, _ := searchResult(v)
		return s
	}
	return &Source{Kind: kindWeb, URL: v.Str(), Raw: v}
}

// found is a search result that no citation has claimed yet.
type found struct {
	source *Source
	id     int
}

// searchResults reads a list, and returns how much of the budget it takes while it is used.
func (p *chat) searchResults(list scan.Value) (all []found, kept int) {
	size := sourceSize + 3*size[found]()
	for a := scan.Elements(list); a.Next() && len(all) < maxNumber && p.Keep(size); {
		kept += size
		s, id := searchResult(a.Val)
		s.Key = s.URL
		all = append(all, found{s, id})
	}
	return all, kept
}

// describe fills in the n-th citation from the search results: from the one with its address or, if there are several,
// the one at its index.
func describe(s *Source, all []found, n int) {
	same := func(i int) bool { return i < len(all) && all[i].source != nil && all[i].source.URL == s.URL }
	i := n
	if !same(i) {
		i = slices.IndexFunc(all, func(f found) bool { return f.source != nil && f.source.URL == s.URL })
	}
	if i < 0 {
		return
	}
	key := s.Key
	*s = *all[i].source
	s.Key = key
	all[i].source = nil
}

// resultsOnly numbers search results that come without a list of citations, by their ids if they have any.
func (p *chat) resultsOnly(all []found) {
	for i, f := range all {
		n := i + 1
		if f.id > 0 && f.id <= maxNumber {
			n = f.id
		}
		f.source.Key = number(n)
		if !p.Keep(2 * refSize * max(0, n-len(p.numbers))) {
			return
		}
		for len(p.numbers) < n {
			p.numbers = append(p.numbers, Ref{})
		}
		p.numbers[n-1].Source = f.source.Key
		p.source(f.source)
	}
}

// unplaced emits sources that the whole answer of a candidate rests on.
func (p *chat) unplaced(citations scan.Value, all []found) {
	n := 0
	for a := scan.Elements(citations); a.Next() && !a.Cut() && p.numbered(n); n++ {
		s := citedURL(a.Val)
		if s.URL == "" {
			p.issue(IssueSourceless, "citations", a.Val)
			continue
		}
		describe(s, all, n)
		s.Key = s.URL
		p.source(s)
		p.cite(&Cite{Key: "all/" + s.Key, Unit: Nowhere, Refs: []Ref{{Source: s.Key}}})
	}
}
