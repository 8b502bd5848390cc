package manifest

import (
	"github.com/ibidhq/ibid"
)

// Cited says what became of one citation's source in a manifest.
type Cited struct {
	Citation string // ibid.Citation.ID
	Claim    *Claim
	Source   *ClaimSource // of Claim
	Document *Source      // that Source names; nil: the manifest has none of that name
}

// Cited returns what m says of each citation of the answer that it was built of, in their order: a row for each source,
// and for each of its excerpts. What m left out is left out here, too. They point into m.
func (m *Manifest) Cited(a *ibid.Answer) []Cited {
	claims, documents := make(map[claimPlace]*Claim, len(m.Claims)), make(map[string]*Source, len(m.Sources))
	for i := range m.Claims {
		if at := placeOf(m.Claims[i].Text, m.Claims[i].Span); claims[at] == nil {
			claims[at] = &m.Claims[i]
		}
	}
	for i := range m.Sources {
		documents[m.Sources[i].ID] = &m.Sources[i]
	}
	var stretches []*claim
	for i := range a.Citations {
		if s, ok := claimSpan(a, &a.Citations[i]); ok {
			stretches = append(stretches, &claim{raw: ibid.Span(s)})
		}
	}
	places := newPlacer(a.Text, stretches)
	var list []Cited
	for i := range a.Citations {
		c := &a.Citations[i]
		s, ok := claimSpan(a, c)
		if !ok {
			continue
		}
		claim := claims[placeOf(places.place(ibid.Span(s)))]
		if claim == nil {
			continue
		}
		for k := range claim.Sources {
			if cs := &claim.Sources[k]; names(a, c, cs.URL) {
				list = append(list, Cited{Citation: c.ID, Claim: claim, Source: cs, Document: documents[cs.Source]})
			}
		}
	}
	return list
}

// claimPlace tells claims apart: the same words may stand in several places.
type claimPlace struct {
	text string
	span Range // zero: the claim is not in the answer as it is
}

func placeOf(text string, span *Range) claimPlace {
	if span == nil {
		return claimPlace{text: text}
	}
	return claimPlace{text, *span}
}

// names reports whether a citation has a source of this address, or of this URN.
func names(a *ibid.Answer, c *ibid.Citation, url string) bool {
	for i := range c.Refs {
		s := a.Source(c.Refs[i].Source)
		if s != nil && (address(s) == url || address(s) == "" && urn(s) == url) {
			return true
		}
	}
	return false
}
