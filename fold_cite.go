package ibid

import (
	"container/heap"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// foldCite is one citation while its response is read.
type foldCite struct {
	wire.Cite
	at        int // length of the text when it was said
	withdrawn bool
	settled   bool // its place will not change any more
	told      bool // an event told its place
	place

	refs      []Ref // Refs as the answer has them, once asked for
	statement Span  // the statement before it, once asked for
	stated    Span  // the text that statement was looked for in
	claimed   Span  // the claim that the last event told
}

// place is where a citation stands.
type place struct {
	span   Span
	anchor Anchor
	covers Covers
}

// fit makes what a place covers fit its span: a point is empty, and nothing else but a block is.
func (p *place) fit() {
	switch {
	case p.anchor == AnchorNone:
	case p.span.Len() == 0 && p.covers != CoversBlock:
		p.covers = CoversPoint
	case p.covers == CoversPoint:
		p.span.Start = p.span.End
	}
}

// addCite takes a citation, or the replacement of one that was said before.
func (c *candidate) addCite(w *wire.Cite) {
	if len(w.Refs) == 0 {
		c.fold.issue(wire.IssueSourceless, "")
		return
	}
	for _, r := range w.Refs {
		c.fold.sources.resolve(r.Source)
	}
	cite := foldCite{Cite: *w, at: c.text.Len()}
	cite.Refs, cite.Shifts = slices.Clone(w.Refs), slices.Clone(w.Shifts)
	if i, ok := c.citeKeys.get(w.Key); ok && w.Key != "" {
		old := &c.cites[i]
		cite.at = old.at
		if sameCite(&old.Cite, &cite.Cite) && !old.withdrawn {
			return
		}
		cite.told = old.told
		*old = cite
		c.placeOrWait(i)
		return
	}
	if len(c.cites) >= c.fold.limits.Citations {
		c.fold.limit("citations")
		return
	}
	i := len(c.cites)
	if w.Key != "" {
		c.citeKeys.set(w.Key, i)
	}
	if c.cites == nil {
		c.cites = make([]foldCite, 0, 4) // cheaper than 1, 2, 4
	}
	c.cites = append(c.cites, cite)
	c.placeOrWait(i)
}

func sameCite(a, b *wire.Cite) bool {
	return a.Part == b.Part && a.Base == b.Base && a.Unit == b.Unit && a.Start == b.Start && a.End == b.End &&
		slices.Equal(
			a.Shifts, b.Shifts,
		) && a.Covers == b.Covers && a.Quote == b.Quote && a.URL == b.URL && a.Origin == b.Origin &&
		slices.EqualFunc(a.Refs, b.Refs, sameRef)
}

func sameRef(a, b wire.Ref) bool {
	return a.Source == b.Source && a.Quote == b.Quote && equal(a.Confidence, b.Confidence) &&
		equalLocators(locator(a.Locator), locator(b.Locator))
}

// withdraw takes a citation back.
func (c *candidate) withdraw(key string) {
	i, ok := c.citeKeys.get(key)
	if !ok || c.cites[i].withdrawn {
		return
	}
	c.cites[i].withdrawn, c.cites[i].settled = true, true
	if c.cites[i].told && c.fold.onEvent != nil && len(c.citation(&c.cites[i]).Refs) > 0 {
		c.fold.emit(Event{Kind: EventCitation, Candidate: c.index, Key: c.key(i), Withdrawn: true})
	}
}

// placeOrWait tries to place a citation now, and else files it under what it waits for.
func (c *candidate) placeOrWait(i int) {
	if c.try(i, false) {
		return
	}
	cite := &c.cites[i]
	switch {
	case cite.told, cite.Unit == wire.Nowhere,
		cite.Unit == wire.Here: // for the end of the input, when everything is looked at again
	case cite.Unit == wire.Block:
		if c.blocks == nil {
			c.blocks = map[wire.Part][]int{}
		}
		c.blocks[cite.Part] = append(c.blocks[cite.Part], i)
	default:
		if need, ok := c.need(cite); ok {
			heap.Push(&c.waiting, wait{need, i})
		}
	}
}

// need returns the text length at which it makes sense to try again. It is false where only the end of the input will
// tell.
func (c *candidate) need(cite *foldCite) (int, bool) {
	have := c.text.Len()
	// the place is in the text, but other words: they may yet come near it
	if _, ok := c.span(cite, cite.Unit, cite.shift()); ok {
		need := c.base(cite) + 4*(cite.End+cite.shift()) + searchNear + len(cite.needle())
		return need, need > have && cite.needle() != ""
	}
	if cite.Start < 0 || cite.End < cite.Start {
		return 0, false
	}
	return have + max(1, cite.End+cite.shift()-c.units(cite)), true // a missing unit is at least one byte
}

// grown tries again to place the citations that waited for a text as long as this.
func (c *candidate) grown() {
	for len(c.waiting) > 0 && c.waiting[0].need <= c.text.Len() {
		c.placeOrWait(heap.Pop(&c.waiting).(wait).cite)
	}
}

// ended tries to place the citations that waited for the end of a part.
func (c *candidate) ended(p wire.Part) {
	for _, i := range c.blocks[p] {
		c.try(i, false)
	}
	delete(c.blocks, p)
}

// placeRest places every citation for good.
func (c *candidate) placeRest() {
	for i := range c.cites {
		if !c.cites[i].settled {
			c.try(i, true)
		}
	}
	c.waiting, c.blocks = nil, nil
	c.linked, c.linkEnds = 0, nil
	if c.fold.onEvent == nil {
		return
	}
	for i := range c.cites { // now that all links are known, some stand for other statements than they seemed to
		if cite := &c.cites[i]; !cite.withdrawn {
			if out := c.citation(cite); out.Claim != cite.claimed {
				c.emitCite(i, out)
			}
		}
	}
}

// wait is a citation that waits for a text length.
type wait struct{ need, cite int }

// waitHeap is a heap of waits, the least need first.
type waitHeap []wait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].need < h[j].need }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waitHeap) Push(x any)        { *h = append(*h, x.(wait)) } // container/heap hands back what it was given
func (h *waitHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// try places a citation, tells of it, and reports whether that is final.
func (c *candidate) try(i int, last bool) bool {
	cite := &c.cites[i]
	p, ok := c.locate(cite, last)
	if !ok {
		return false
	}
	p.fit()
	changed := !cite.told || p != cite.place
	cite.place, cite.told = p, true
	cite.settled = last || p.anchor == AnchorExact || p.anchor == AnchorNone ||
		p.anchor == AnchorUnverified && cite.needle() == ""
	if cite.settled {
		c.report(cite)
	}
	if changed && c.fold.onEvent != nil {
		c.emitCite(i, c.citation(cite))
	}
	return cite.settled
}

// emitCite tells of a citation.
func (c *candidate) emitCite(i int, out Citation) {
	c.cites[i].claimed = out.Claim
	if len(out.Refs) > 0 {
		c.fold.emit(Event{Kind: EventCitation, Candidate: c.index, Key: c.key(i), Citation: &out})
	}
}

// report makes an issue of a place that is not where the provider said.
func (c *candidate) report(cite *foldCite) {
	if cite.anchor == AnchorExact || cite.anchor == AnchorUnverified {
		return
	}
	where := strconv.Itoa(cite.Start) + "–" + strconv.Itoa(cite.End)
	if cite.Unit == wire.Nowhere {
		where = snippet(cite.Quote)
	}
	switch {
	case cite.anchor == AnchorUnitFixed:
		c.fold.issue("span-unit-fixed", where)
	case cite.anchor == AnchorMoved:
		c.fold.issue("span-moved", where)
	case cite.anchor == AnchorNone && cite.Unit == wire.Nowhere:
		if cite.Quote != "" {
			c.fold.issue("quote-not-found", snippet(cite.Quote))
		}
	case cite.anchor == AnchorNone && cite.Quote != "":
		c.fold.issue("quote-not-found", where+" "+snippet(cite.Quote))
	case cite.anchor == AnchorNone:
		c.fold.issue("span-out-of-range", where)
	}
}

// snippet shortens a text for a message.
func snippet(s string) string { return text.Shorten(validText(s), 120) }

// key returns the name under which events tell of a citation.
func (c *candidate) key(i int) string {
	if k := c.cites[i].Key; k != "" {
		return k
	}
	return "#" + strconv.Itoa(i)
}

// citation returns a citation as the answer has it, without its id.
func (c *candidate) citation(cite *foldCite) Citation {
	out := Citation{Span: cite.span, Covers: cite.covers, Anchor: cite.anchor, Origin: OriginProvider}
	if cite.Origin == wire.OriginMarker {
		out.Origin = OriginMarker
	}
	if cite.refs == nil {
		cite.refs = c.outRefs(nil, cite.Refs)
	}
	out.Refs = cite.refs
	if out.Anchor != AnchorNone {
		out.Claim, out.ClaimInferred = c.claim(cite)
	}
	return out
}

// outRefs returns references as the answer has them: each once, by the id of its source. It may use the room of out.
func (c *candidate) outRefs(out []Ref, refs []wire.Ref) []Ref {
	out = slices.Grow(out, len(refs))
	for i := range refs {
		r := &refs[i]
		s := c.fold.sources.resolve(r.Source)
		if s == nil {
			continue // over the limit of sources, which was reported
		}
		ref := Ref{Source: s.ID, Quote: validText(r.Quote), Locator: locator(r.Locator), Confidence: r.Confidence}
		if !slices.ContainsFunc(out, func(known Ref) bool {
			return known.Source == ref.Source && known.Quote == ref.Quote && equalLocators(known.Locator, ref.Locator)
		}) {
			if !c.fold.room(len(out), "refs of one citation") {
				break
			}
			out = append(out, ref)
		}
	}
	return out
}

// claim returns the statement that a citation stands for.
func (c *candidate) claim(cite *foldCite) (claim Span, inferred bool) {
	if cite.covers == CoversClaim || cite.covers == CoversBlock {
		return cite.span, false
	}
	text := c.text.String()
	at := c.linkRunStart(text, cite.span.Start)
	base := c.partBefore(at) // a statement does not begin in another message's text
	if before := (Span{base, at}); cite.stated != before || at == 0 {
		start, end := prose.SentenceBefore(text[base:at], at-base)
		cite.stated, cite.statement = before, Span{start + base, end + base}
	}
	start, end := cite.statement.Start, cite.statement.End
	if start >= end && c.closed {
		start, end = prose.SentenceAt(text, cite.span.End)
	}
	return Span{start, max(start, end)}, true
}

// linkRunStart returns where the run of links and marks begins that ends at at: they all stand for the statement before
// the first of them.
func (c *candidate) linkRunStart(text string, at int) int {
	const most = 64 // links in one run that are followed back
	for range most {
		end := len(strings.TrimRight(text[:at], " ,;"))
		start, ok := c.links()[end]
		if !ok {
			return at
		}
		at = start
	}
	return at
}

// partBefore returns where the part of the same message begins that holds the text right before an offset.
func (c *candidate) partBefore(at int) int {
	i, begins := slices.BinarySearchFunc(c.parts, at, func(p foldPart, at int) int { return p.start - at })
	switch {
	case i == 0:
		return 0
	case begins && c.parts[i].key.Message != c.parts[i-1].key.Message:
		return at
	default:
		return c.parts[i-1].start
	}
}

// links returns the starts of all visible links and marks by their ends.
func (c *candidate) links() map[int]int {
	for ; c.linked < len(c.cites); c.linked++ {
		cite := &c.cites[c.linked]
		if cite.withdrawn {
			continue
		}
		if cite.anchor == "" { // not placed yet
			break
		}
		if cite.covers == CoversLink && cite.anchor != AnchorNone {
			if c.linkEnds == nil {
				c.linkEnds = map[int]int{}
			}
			c.linkEnds[cite.span.End] = cite.span.Start
		}
	}
	return c.linkEnds
}

// citations returns all citations as the answer has them, in the order they were said.
func (c *candidate) citations() []Citation {
	c.linked, c.linkEnds = 0, nil
	out := make([]Citation, 0, len(c.cites))
	refs := 0
	for i := range c.cites {
		if c.cites[i].refs == nil {
			refs += len(c.cites[i].Refs)
		}
	}
	room := make([]Ref, refs)
	for i := range c.cites {
		cite := &c.cites[i]
		if cite.withdrawn {
			continue
		}
		if cite.anchor == "" { // a snapshot before its place is known
			cite = &foldCite{Cite: cite.Cite, place: place{anchor: AnchorNone, covers: outCovers(cite.Covers)}}
		}
		if cite.refs == nil {
			n := len(cite.Refs)
			cite.refs = c.outRefs(room[:0:n], cite.Refs)
			room = room[n:]
		}
		if a := c.citation(cite); len(a.Refs) > 0 {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// cited adds the places of the sources that the candidate's citations name to used.
func (c *candidate) cited(used map[int]bool) {
	for i := range c.cites {
		if c.cites[i].withdrawn {
			continue
		}
		for _, r := range c.cites[i].Refs {
			if i, ok := c.fold.sources.keys.get(r.Source); ok {
				used[i] = true
			}
		}
	}
}

func outCovers(w wire.Covers) Covers {
	switch w {
	case wire.Link:
		return CoversLink
	case wire.Point:
		return CoversPoint
	case wire.BlockSpan:
		return CoversBlock
	default:
		return CoversClaim
	}
}
