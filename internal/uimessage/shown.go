package uimessage

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// shown returns the answer as it is in the text that was sent, and its document. Its sources have the numbers that they
// have in the answer itself, as it is stored, in whatever order their citations stand in that text.
func (w *Writer) shown(a *ibid.Answer) (*ibid.Answer, *ibid.Document) {
	b := InText(a, w.text.String())
	if b != a {
		documentOf(a, w.numbering())
		b.Parts = nil
		for i := range w.parts {
			b.Parts = append(b.Parts, w.parts[i].Part)
		}
	}
	return b, documentOf(b, w.numbering())
}

// InText returns the answer with another text in place of its own, which its provider corrected when a client had it
// already, and with the citations where their words stand there; one whose words it does not have, or has twice, is
// without a place. The answer itself stays as it is, and is what InText returns if it has that text.
func InText(a *ibid.Answer, text string) *ibid.Answer {
	if text == a.Text {
		return a
	}
	move := newMove(a.Text, text)
	b := *a
	b.Text, b.Parts, b.Citations = text, nil, slices.Clone(a.Citations)
	for i := range b.Citations {
		c := &b.Citations[i]
		if !c.Placed() {
			continue
		}
		claim, ok := move.span(c.Claim)
		if !ok || c.Claim == (ibid.Span{}) {
			claim = ibid.Span{}
		}
		c.Claim = claim
		if c.Span, ok = move.span(c.Span); !ok {
			c.Span, c.Claim, c.Anchor = ibid.Span{}, ibid.Span{}, ibid.AnchorNone
		}
	}
	SortCitations(b.Citations)
	return &b
}

// move finds places of one text in another that differs from it somewhere between a common beginning and a common end.
type move struct {
	from, to     string
	before, tail int // bytes at the beginning, and at the end, that both have
}

func newMove(from, to string) *move {
	m := &move{from: from, to: to}
	most := min(len(from), len(to))
	for m.before < most && from[m.before] == to[m.before] {
		m.before++
	}
	for m.tail < most-m.before && from[len(from)-1-m.tail] == to[len(to)-1-m.tail] {
		m.tail++
	}
	return m
}

// span returns where the words of s stand in the other text: in what both have, or else at the one place that has them.
func (m *move) span(s ibid.Span) (ibid.Span, bool) {
	shift := len(m.to) - len(m.from)
	switch {
	case s.Start < 0 || s.End < s.Start || s.End > len(m.from):
		return ibid.Span{}, false
	case s.End <= m.before:
		return s, true
	case s.Start >= len(m.from)-m.tail:
		return ibid.Span{Start: s.Start + shift, End: s.End + shift}, true
	case s.Len() == 0:
		return ibid.Span{}, false
	}
	words := m.from[s.Start:s.End]
	at := strings.Index(m.to, words)
	if at < 0 || strings.Contains(m.to[at+1:], words) {
		return ibid.Span{}, false
	}
	return ibid.Span{Start: at, End: at + len(words)}, true
}
