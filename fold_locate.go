package ibid

import (
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/wire"
)

// The bounds of the search for words that are not where the provider said.
const (
	searchNear  = 64       // bytes to either side of the said place that are looked through first
	searchFloor = 16 << 20 // bytes that searches through the whole text may cost in sum, at least; see searchPer
	searchPer   = 8        // and for every byte of text
)

// maxOffset is the largest offset that is taken for one, so that a base and a shift can be added to it.
const maxOffset = math.MaxInt / 4

// locate finds the place of a citation in the text so far. It is false while more text is needed to tell; last says
// that none will come.
func (c *candidate) locate(cite *foldCite, last bool) (place, bool) {
	covers := outCovers(cite.Covers)
	nowhere := place{anchor: AnchorNone, covers: covers}
	switch cite.Unit {
	case wire.Nowhere:
		if cite.Quote == "" {
			return nowhere, true
		}
		if !last {
			return place{}, false
		}
		if s, ok := c.searchAll(cite); ok {
			return place{s, AnchorMoved, covers}, true
		}
		return nowhere, true
	case wire.Here:
		if cite.at > c.text.Len() && !last {
			return place{}, false
		}
		at := min(cite.at, c.text.Len())
		return place{Span{at, at}, AnchorExact, CoversPoint}, true
	case wire.Block:
		return c.locateBlock(cite, last)
	case wire.Bytes, wire.CodePoints, wire.UTF16:
	}
	if p, ok := c.locateSaid(cite); ok {
		return p, true
	}
	if !last {
		return place{}, false
	}
	if cite.Quote != "" || cite.URL != "" {
		if s, ok := c.searchAll(cite); ok {
			return place{s, AnchorMoved, covers}, true
		}
	}
	return c.unverified(cite, nowhere), true
}

// locateBlock places a citation of a whole part once the part is closed.
func (c *candidate) locateBlock(cite *foldCite, last bool) (place, bool) {
	i := c.find(cite.Part)
	switch {
	case i >= 0 && c.parts[i].ended && c.parts[i].end > c.parts[i].from:
		return place{Span{c.parts[i].from, c.parts[i].end}, AnchorExact, CoversBlock}, true
	case !last && (i < 0 || !c.parts[i].ended):
		return place{}, false
	case i >= 0:
		return place{Span{c.parts[i].from, c.parts[i].from}, AnchorExact, CoversPoint}, true
	default:
		return place{anchor: AnchorNone, covers: CoversBlock}, true
	}
}

// locateSaid looks for a citation's words where the provider said: in its unit, in others, a little beside, and near.
// It is false where they are in none of these places, or where there are no words to look for and the place is past the
// text so far.
func (c *candidate) locateSaid(cite *foldCite) (place, bool) {
	covers := outCovers(cite.Covers)
	if cite.Quote == "" && cite.URL == "" {
		s, ok := c.span(cite, cite.Unit, cite.shift())
		if !ok {
			return place{}, false
		}
		return place{s, AnchorUnverified, covers}, true
	}
	for _, unit := range unitsToTry(cite.Unit) {
		s, ok := shifted(cite, func(shift int) (Span, bool) {
			s, ok := c.span(cite, unit, shift)
			return s, ok && c.saysIt(cite, s)
		})
		switch {
		case ok && unit == cite.Unit:
			return place{s, AnchorExact, covers}, true
		case ok:
			return place{s, AnchorUnitFixed, covers}, true
		}
		if c.unitless(cite) {
			break
		}
	}
	s, ok := shifted(cite, func(shift int) (Span, bool) { return c.searchNear(cite, shift) })
	return place{s, AnchorMoved, covers}, ok
}

// unitless reports whether a citation's numbers say the same in all units: the text is ASCII as far as they reach.
func (c *candidate) unitless(cite *foldCite) bool {
	if len(c.cuts) > 0 || len(cite.Shifts) > 0 || cite.End < 0 || cite.End > maxOffset {
		return false
	}
	return c.conversions().isASCII(c.base(cite) + cite.End)
}

// shifted returns the first span that try finds for a citation under its shifts.
func shifted(cite *foldCite, try func(shift int) (Span, bool)) (Span, bool) {
	if len(cite.Shifts) == 0 {
		return try(0)
	}
	for _, shift := range cite.Shifts {
		if s, ok := try(shift); ok {
			return s, true
		}
	}
	return Span{}, false
}

// shift returns what the provider means to be added to a citation's offsets.
func (cite *foldCite) shift() int {
	if len(cite.Shifts) == 0 {
		return 0
	}
	return cite.Shifts[0]
}

// unitsToTry returns the units to read a citation's numbers in, the declared one first.
func unitsToTry(declared wire.Unit) []wire.Unit {
	switch declared {
	case wire.Bytes:
		return []wire.Unit{wire.Bytes, wire.CodePoints, wire.UTF16}
	case wire.UTF16:
		return []wire.Unit{wire.UTF16, wire.CodePoints, wire.Bytes}
	default:
		return []wire.Unit{wire.CodePoints, wire.UTF16, wire.Bytes}
	}
}

// span converts a citation's offsets, read in a unit and shifted, to a span of the text.
func (c *candidate) span(cite *foldCite, unit wire.Unit, shift int) (Span, bool) {
	if cite.Start < 0 || cite.End < cite.Start || cite.End > maxOffset {
		return Span{}, false
	}
	start, ok1 := c.offset(cite, unit, cite.Start+shift)
	end, ok2 := c.offset(cite, unit, cite.End+shift)
	return Span{start, end}, ok1 && ok2
}

// offset converts one offset of a citation to an offset of the text. It is false past the text, and inside a character.
// Providers count the private markers that were taken out of the text; an offset inside one is where it stood.
func (c *candidate) offset(cite *foldCite, unit wire.Unit, n int) (int, bool) {
	base, text := c.base(cite), c.text.String()
	if unit == wire.Bytes && len(c.cuts) == 0 {
		at := base + n
		return at, at >= 0 && at <= len(text) && isBoundary(text, at)
	}
	offsets, u := c.conversions(), outUnit(unit)
	if base > 0 {
		before, _ := offsets.In(u, Span{base, base})
		n += before
	}
	first := sort.Search(len(c.cuts), func(i int) bool { return c.cuts[i].at >= base && c.cuts[i].from >= base })
	cuts := c.cuts[first:]
	removed := func(k *cut) int { return k.before[unit] - cuts[0].before[unit] }
	begins := func(k *cut) int {
		at, _ := offsets.In(u, Span{k.at, k.at})
		return at + removed(k)
	}
	if past := sort.Search(len(cuts), func(i int) bool { return begins(&cuts[i]) > n }); past > 0 {
		k := &cuts[past-1]
		if n < begins(k)+k.size[unit] {
			return k.at, true
		}
		n -= removed(k) + k.size[unit]
	}
	return offsets.byte(u, n)
}

// conversions returns the conversions for the text so far.
func (c *candidate) conversions() *Offsets {
	c.offsets.grow(c.text.String())
	return &c.offsets
}

func outUnit(unit wire.Unit) Unit {
	switch unit {
	case wire.CodePoints:
		return CodePoint
	case wire.UTF16:
		return UTF16
	default:
		return UTF8
	}
}

// units returns how many of a citation's units the text has so far, from where the citation counts.
func (c *candidate) units(cite *foldCite) int {
	start, end := c.conversions().In(outUnit(cite.Unit), Span{c.base(cite), c.text.Len()})
	return end - start
}

// base returns the offset of the text from which a citation's offsets count.
func (c *candidate) base(cite *foldCite) int {
	switch cite.Base {
	case wire.PartBase:
		if i := c.find(cite.Part); i >= 0 {
			return c.parts[i].from
		}
		return c.text.Len() // the part has no text yet
	case wire.MessageBase:
		for i := range c.parts {
			if c.parts[i].key.Message == cite.Part.Message {
				return c.parts[i].from
			}
		}
		return c.text.Len()
	case wire.AnswerBase:
	}
	return 0
}

// saysIt reports whether the words at s are the ones that the citation is about.
func (c *candidate) saysIt(cite *foldCite, s Span) bool {
	words := c.text.String()[s.Start:s.End]
	if cite.Quote != "" {
		return words == cite.Quote
	}
	return words == cite.URL || isLinkTo(words, cite.URL)
}

// isLinkTo reports whether words are one visible link to url, perhaps in brackets: ([title](url)).
func isLinkTo(words, url string) bool {
	if !strings.HasSuffix(words, ")") || !strings.HasPrefix(words, "[") && !strings.HasPrefix(words, "(") {
		return false
	}
	for at := 0; ; at++ {
		n := strings.Index(words[at:], url)
		if n < 0 {
			return false
		}
		at += n
		if before := words[:at]; strings.HasSuffix(before, "(") || strings.HasSuffix(before, "[") ||
			strings.HasSuffix(before, "(<") {
			return true
		}
	}
}

// searchNear looks for a citation's words around the place that the provider said: the nearest to its start, the left
// of two as near.
func (c *candidate) searchNear(cite *foldCite, shift int) (Span, bool) {
	said, ok := c.offset(cite, cite.Unit, max(0, cite.Start+shift))
	if !ok {
		said = c.base(cite) + max(0, cite.Start+shift)
	}
	text := c.text.String()
	needle := cite.needle()
	from := max(0, said-searchNear)
	to := min(len(text), max(said, said+cite.End-cite.Start)+searchNear+len(needle))
	best, found := Span{}, false
	for at := from; at < to; {
		n := strings.Index(text[at:to], needle)
		if n < 0 {
			break
		}
		at += n
		if s, ok := c.around(cite, at); ok && (!found || distance(s.Start, said) < distance(best.Start, said)) {
			best, found = s, true
		}
		at++
	}
	return best, found && distance(best.Start, said) <= searchNear
}

func distance(a, b int) int { return max(a-b, b-a) }

// needle returns the words to look for: the quote, or the address that the link must hold.
func (cite *foldCite) needle() string {
	if cite.Quote != "" {
		return cite.Quote
	}
	return cite.URL
}

// around returns the span of a citation whose needle stands at an offset: the words themselves, or the link that holds
// the address.
func (c *candidate) around(cite *foldCite, at int) (Span, bool) {
	text := c.text.String()
	if cite.Quote != "" {
		return Span{at, at + len(cite.Quote)}, true
	}
	const most = 512 // bytes of a link's title
	end := at + len(cite.URL)
	open := strings.LastIndex(text[max(0, at-most):at], "[")
	shut := strings.IndexAny(text[end:min(len(text), end+most)], ")\n")
	if open < 0 || shut < 0 || text[end+shut] != ')' || !strings.Contains(text[max(0, at-2):at], "(") {
		return Span{}, false
	}
	s := Span{max(0, at-most) + open, end + shut + 1}
	for s.Start > 0 && text[s.Start-1] == '[' { // [[1]](url)
		s.Start--
	}
	if s.Start > 0 && text[s.Start-1] == '(' && s.End < len(text) && text[s.End] == ')' {
		s = Span{s.Start - 1, s.End + 1}
	}
	return s, true
}

// searchAll looks for a citation's words in the whole text. They count only where they stand once.
func (c *candidate) searchAll(cite *foldCite) (Span, bool) {
	text, needle := c.text.String(), cite.needle()
	if c.searched > searchFloor+searchPer*len(text) {
		c.fold.limit("search for lost quotes")
		return Span{}, false
	}
	c.searched += len(text)
	if cite.Quote == "" && strings.IndexByte(text, '(') < 0 { // no link
		return Span{}, false
	}
	at := strings.Index(text, needle)
	if at < 0 || strings.Contains(text[at+1:], needle) {
		return Span{}, false
	}
	return c.around(cite, at)
}

// unverified is the last resort: the place as the provider said it, though the words there are others or there are none
// to compare; nowhere if it is no place of the text.
func (c *candidate) unverified(cite *foldCite, nowhere place) place {
	if cite.Quote != "" {
		return nowhere // the words are known and are not in the text
	}
	s, ok := c.span(cite, cite.Unit, cite.shift())
	if ok {
		covers := nowhere.covers
		if covers == CoversLink && cite.URL != "" && s.Len() > 0 {
			covers = CoversClaim // what is no link is taken for the words themselves
		}
		return place{s, AnchorUnverified, covers}
	}
	if start, end, ok := c.widen(cite); ok {
		return place{Span{start, end}, AnchorMoved, nowhere.covers}
	}
	return nowhere
}

// widen moves byte offsets that stand inside characters out to their borders.
func (c *candidate) widen(cite *foldCite) (start, end int, ok bool) {
	text := c.text.String()
	if cite.Unit != wire.Bytes || cite.Start < 0 || cite.End < cite.Start || cite.End > maxOffset {
		return 0, 0, false
	}
	base := c.base(cite) + cite.shift()
	if start, end = base+cite.Start, base+cite.End; start < 0 || end > len(text) {
		return 0, 0, false
	}
	for start > 0 && start < len(text) && !utf8.RuneStart(text[start]) {
		start--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return start, end, true
}
