package ibid

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Cite adds a citation by hand: that the words of s rest on the sources of refs. An empty s is a point, the place after
// the words. Each ref names one of a.Sources, which must be there already; in the citation they stand in the order of
// a.Sources.
//
// The citation takes its place in the order of a.Citations. Its anchor is [AnchorExact] and its origin
// [OriginInferred], because no provider said it; a caller who reads a provider's own format may change the origin. Its
// claim is s, a point has none.
//
// The error says which of s and refs is bad; then a is unchanged. Cite changes a, so it must not run beside a reader.
func (a *Answer) Cite(s Span, refs ...Ref) error {
	if err := a.checkCite(s, refs); err != nil {
		return fmt.Errorf("citing bytes %d to %d: %w", s.Start, s.End, err)
	}
	c := Citation{
		Span: s, Covers: CoversClaim, Claim: s,
		Refs: slices.Clone(refs), Anchor: AnchorExact, Origin: OriginInferred,
	}
	if s.Len() == 0 {
		c.Covers, c.Claim = CoversPoint, Span{}
	}
	slices.SortStableFunc(
		c.Refs,
		func(x, y Ref) int { return cmp.Compare(a.sourceIndex(x.Source), a.sourceIndex(y.Source)) },
	)
	c.ID = citationID(a.Text, &c, func(id string) string { return a.Source(id).Key() })
	taken := func(other Citation) bool { return other.ID == c.ID }
	for id, n := c.ID, 2; slices.ContainsFunc(a.Citations, taken); n++ {
		c.ID = id + "-" + strconv.Itoa(n)
	}
	at := len(a.Citations)
	for at > 0 && compareCitations(&a.Citations[at-1], &c) > 0 {
		at--
	}
	a.Citations = slices.Insert(a.Citations, at, c)
	return nil
}

func (a *Answer) checkCite(s Span, refs []Ref) error {
	if why := badSpan(a.Text, s); why != "" {
		return errors.New(why)
	}
	if len(refs) == 0 {
		return errors.New("no source is given")
	}
	for _, ref := range refs {
		if a.Source(ref.Source) == nil {
			return fmt.Errorf("the answer has no source %q", ref.Source)
		}
		if ref.Confidence != nil && !isFinite(*ref.Confidence) {
			return fmt.Errorf("the confidence in source %q is no number", ref.Source)
		}
	}
	return nil
}

// sourceIndex returns the place of the source with the given id in a.Sources, or -1.
func (a *Answer) sourceIndex(id string) int {
	return slices.IndexFunc(a.Sources, func(s Source) bool { return s.ID == id })
}

// badSpan says what keeps s from being a span of text; empty: nothing.
func badSpan(text string, s Span) string {
	switch {
	case s.Start < 0 || s.End > len(text):
		return "the text has " + strconv.Itoa(len(text)) + " bytes"
	case s.End < s.Start:
		return "the end is before the start"
	case !isBoundary(text, s.Start), !isBoundary(text, s.End):
		return "a character is cut"
	default:
		return ""
	}
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// compareCitations orders citations by end and start, those without a place last.
func compareCitations(x, y *Citation) int {
	if x.Placed() && y.Placed() {
		return cmp.Or(cmp.Compare(x.Span.End, y.Span.End), cmp.Compare(x.Span.Start, y.Span.Start))
	}
	switch {
	case x.Placed():
		return -1
	case y.Placed():
		return 1
	default:
		return 0
	}
}

// sourceIndexes returns where the sources stand in a.Sources, by id; of two with one id, where the first does.
func (a *Answer) sourceIndexes() map[string]int {
	index := make(map[string]int, len(a.Sources))
	for i := range a.Sources {
		if _, taken := index[a.Sources[i].ID]; !taken {
			index[a.Sources[i].ID] = i
		}
	}
	return index
}

// firstUse returns the indices in a.Sources of those that are cited, in the order in which the citations use them
// first. Numbers follow it, wherever they are shown.
func (a *Answer) firstUse() []int {
	if len(a.Citations) == 0 {
		return nil
	}
	index := a.sourceIndexes()
	cites, byPlace := a.Citations, func(x, y Citation) int { return compareCitations(&x, &y) }
	if !slices.IsSortedFunc(cites, byPlace) {
		cites = slices.Clone(cites)
		slices.SortStableFunc(cites, byPlace)
	}
	used := make([]int, 0, len(a.Sources))
	for i := range cites {
		for _, ref := range cites[i].Refs {
			if i, known := index[ref.Source]; known {
				used = append(used, i)
				delete(index, ref.Source)
			}
		}
	}
	return used
}

// order puts the citations of a in order, its sources by first use, and the refs of each citation by source. What is
// equal keeps its order, so that sources nobody cites follow in the order in which they came. It is its own fixed
// point.
func order(a *Answer) {
	slices.SortStableFunc(a.Citations, func(x, y Citation) int { return compareCitations(&x, &y) })
	used := a.firstUse()
	sorted := true
	for k, i := range used {
		sorted = sorted && k == i
	}
	if !sorted {
		sources, cited := make([]Source, 0, len(a.Sources)), make([]bool, len(a.Sources))
		for _, i := range used {
			cited[i] = true
			sources = append(sources, a.Sources[i])
		}
		for i := range a.Sources {
			if !cited[i] {
				sources = append(sources, a.Sources[i])
			}
		}
		a.Sources = sources
	}
	sortRefs(a)
}

// sortRefs orders the refs of each citation by source. Refs that are in order already are left alone, others are copied
// first: somebody else may hold them.
func sortRefs(a *Answer) {
	var index map[string]int // made once a citation has several refs
	at := func(ref Ref) int {
		if index == nil {
			index = a.sourceIndexes()
		}
		if i, known := index[ref.Source]; known {
			return i
		}
		return len(a.Sources)
	}
	bySource := func(x, y Ref) int { return cmp.Compare(at(x), at(y)) }
	for i := range a.Citations {
		if c := &a.Citations[i]; !slices.IsSortedFunc(c.Refs, bySource) {
			c.Refs = slices.Clone(c.Refs)
			slices.SortStableFunc(c.Refs, bySource)
		}
	}
}

// assignIDs gives an id to every citation of a that has none. KeyOf is [Source.Key], or as good.
func assignIDs(a *Answer, keyOf func(*Source) string) {
	taken := make(map[string]bool, len(a.Citations))
	for i := range a.Citations {
		taken[a.Citations[i].ID] = true
	}
	sources := make(map[string]*Source, len(a.Sources))
	for i := range a.Sources {
		sources[a.Sources[i].ID] = &a.Sources[i]
	}
	keys := make(map[string]string, len(a.Sources))
	keyOfID := func(id string) string {
		if keys[id] == "" {
			keys[id] = keyOf(sources[id])
		}
		return keys[id]
	}
	again := map[string]int{} // how many times an id was asked for again
	for i := range a.Citations {
		c := &a.Citations[i]
		if c.ID != "" {
			continue
		}
		c.ID = citationID(a.Text, c, keyOfID)
		for id := c.ID; taken[c.ID]; {
			again[id]++
			c.ID = id + "-" + strconv.Itoa(again[id]+1)
		}
		taken[c.ID] = true
	}
}

// maxIDWords bounds how many bytes of a span go into an id: the span's numbers tell longer ones apart.
const maxIDWords = 256

// citationID returns an id made of what c says: where it stands, the words there, the claim if the provider named it,
// and of each ref the source's key, the quote and the place in the source. What ibid found out about it (anchor,
// inferred claim, support) stays out, so that the id survives a better ibid. keyOf gives the key of the source with an
// id.
func citationID(text string, c *Citation, keyOf func(id string) string) string {
	b := make([]byte, 0, 2*maxIDWords)
	field := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	span := func(s Span) {
		b = binary.AppendVarint(b, int64(s.Start))
		b = binary.AppendVarint(b, int64(s.End))
		words := ""
		if badSpan(text, s) == "" {
			words = text[s.Start:min(s.End, s.Start+maxIDWords)]
		}
		field(words)
	}
	field(string(c.Covers))
	if c.Placed() {
		span(c.Span)
	}
	if !c.ClaimInferred && c.Claim != c.Span {
		span(c.Claim)
	}
	for i := range c.Refs {
		ref := &c.Refs[i]
		field(keyOf(ref.Source))
		field(ref.Quote)
		if l := ref.Locator; l != nil {
			field(l.Chunk)
			first, last := 0, 0
			if len(l.Pages) > 0 {
				first, last = l.Pages[0], l.Pages[len(l.Pages)-1]
			}
			for _, n := range []int{
				l.Page, first, last, orNone(l.Block), orNone(l.BlockEnd), orNone(l.CharStart), orNone(l.CharEnd),
			} {
				b = binary.AppendVarint(b, int64(n))
			}
		}
	}
	sum := sha256.Sum256(b)
	return string(hex.AppendEncode([]byte("c-"), sum[:6]))
}

// orNone returns *p, or -1 for nil.
func orNone(p *int) int {
	if p == nil {
		return -1
	}
	return *p
}
