package ibid

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/wire"
)

// Annotations that should cover a link may cover something else, if a gateway made them of another provider's
// citations: the claim, which Google counts in bytes, or a mark such as [1].

// unitOfClaims returns the unit of the offsets of claims that come without their words: the declared one or, if spans
// of words fit better to another unit, that. A span fits if it begins and ends where words do; in the wrong unit most
// do not as soon as the text is not ASCII. It is computed once, when the whole text is known.
func (c *candidate) unitOfClaims(declared wire.Unit) wire.Unit {
	if c.claimUnit != nil {
		return *c.claimUnit
	}
	text := c.text.String()
	best, most := declared, -1
	for _, unit := range unitsToTry[declared] {
		fit, misfits := 0, 0
		for i := range c.cites {
			cite := &c.cites[i]
			if cite.settled || cite.URL == "" || cite.Quote != "" || cite.Unit != declared || cite.Start == cite.End {
				continue
			}
			if s, ok := c.span(cite, unit, cite.shift); ok && !c.matches(cite, s) {
				n := endsOfWords(text, s)
				if fit += n; n < 2 {
					misfits++
				}
			}
		}
		// Offsets that are wrong in every unit say nothing about theirs.
		if fit > most && (unit == declared || misfits == 0) {
			best, most = unit, fit
		}
	}
	c.claimUnit = &best
	return best
}

// endsOfWords returns how well a span of a text fits: a point for each end that is not inside a word, and one more for
// each that is the end of a sentence. A mark such as [1] fits as well as a sentence does.
func endsOfWords(text string, s Span) (fit int) {
	if isOneMark(text[s.Start:s.End]) {
		return 4
	}
	before, _ := utf8.DecodeLastRuneInString(text[:s.Start])
	first, _ := utf8.DecodeRuneInString(text[s.Start:])
	last, _ := utf8.DecodeLastRuneInString(text[:s.End])
	after, _ := utf8.DecodeRuneInString(text[s.End:])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	if s.Start == 0 || (!word(before) || !word(first)) && !unicode.IsSpace(first) {
		fit++
		if head := strings.TrimRight(text[:s.Start], " \t\r\n"); head == "" || endsSentence(head) {
			fit++
		}
	}
	if s.End == len(text) || (!word(last) || !word(after)) && !unicode.IsSpace(last) {
		fit++
		if endsSentence(text[:s.End]) {
			fit++
		}
	}
	return fit
}

// isOneMark reports whether s is a mark such as [1] or 【4:0†source】, without an address.
func isOneMark(s string) bool {
	return len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' && strings.IndexByte(s[1:], '[') < 0 && isMark(s) ||
		fileMarkAt(s) == len(s) && s != ""
}

// repeatsMark reports whether a citation that covers a mark is the same as the one that was read from the mark.
func (c *candidate) repeatsMark(cite *foldCite) bool {
	text := c.text.String()[cite.span.Start:cite.span.End]
	if !isOneMark(text) {
		return false
	}
	i, ok := c.citeKeys[markKey(cite.span.Start)]
	if !ok || c.cites[i].withdrawn || c.cites[i].span != cite.span {
		return false
	}
	for _, r := range cite.Refs {
		for _, known := range c.cites[i].Refs {
			if a, b := c.fold.sources.resolve(r.Source), c.fold.sources.resolve(known.Source); a == b && a != nil {
				return true
			}
		}
	}
	return false
}

// locateSentence places a citation of the first sentence of its span, whose end is only a bound.
func (c *candidate) locateSentence(cite *foldCite, last bool) (place, bool) {
	covers := outCovers[cite.Covers]
	s, ok := c.span(cite, cite.Unit, cite.shift)
	switch {
	case !ok && !last:
		return place{}, false
	case !ok:
		return place{anchor: AnchorNone, covers: covers}, true
	}
	text := c.text.String()[s.Start:s.End]
	s.Start += len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	if text = strings.TrimSpace(text); text != "" {
		_, end := prose.SentenceAt(text, 0)
		text = strings.TrimSpace(text[:end])
	}
	return place{Span{s.Start, s.Start + len(text)}, AnchorUnverified, covers}, true
}
