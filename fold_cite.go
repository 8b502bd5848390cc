package ibid

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// foldCite is a citation while its response is read.
type foldCite struct {
	wire.Cite
	shift     int // what to add to the provider's offsets: the first of Shifts
	at        int // length of the text when the citation arrived
	withdrawn bool
	settled   bool  // its place will not change any more
	emitted   bool  // an event with its place was emitted
	place           // without an anchor if not known yet, or not any more
	found     place // place before it was moved to a file-search mark

	refs        []Ref // Refs as in the answer, once computed
	statement   Span  // the statement before it, once computed
	statementIn Span  // the text in which statement was searched
	lastClaim   Span  // the claim in the last event
}

// needle returns the text to search for: the quote, or the URL that the link must contain.
func (c *foldCite) needle() string { return cmp.Or(c.Quote, c.URL) }

// place is the place of a citation.
type place struct {
	span   Span
	anchor Anchor
	covers Covers
}

// addCite handles a citation or the replacement of an earlier one.
func (c *candidate) addCite(w *wire.Cite) {
	if len(w.Refs) == 0 {
		c.fold.issue(wire.IssueSourceless, "")
		return
	}
	c.fold.cited = c.fold.cited || w.Origin != wire.OriginMarker
	for _, r := range w.Refs {
		c.fold.sources.resolve(r.Source)
	}
	cite := foldCite{Cite: *w, at: c.text.Len()}
	cite.Refs, cite.Shifts = slices.Clone(w.Refs), slices.Clone(w.Shifts)
	cite.Quote, cite.URL = validText(w.Quote), validText(w.URL) // a fragment of a character would match inside one
	if len(w.Shifts) > 0 {
		cite.shift = w.Shifts[0]
	}
	if i, ok := c.citeKeys[w.Key]; ok && w.Key != "" {
		old := &c.cites[i]
		cite.at = old.at
		if sameCite(&old.Cite, &cite.Cite) && !old.withdrawn {
			return
		}
		cite.emitted = old.emitted
		if more := sizeOfCite(w) - sizeOfCite(&old.Cite); more > 0 && !c.fold.keep(more) {
			return
		}
		*old = cite
		delete(c.before, i)
		c.placeOrWait(i)
		return
	}
	if len(c.cites) >= c.fold.limits.Citations {
		c.fold.limit("citations")
		return
	}
	if !c.fold.keep(sizeOfCite(w)) {
		return
	}
	i := len(c.cites)
	if w.Key != "" {
		if c.citeKeys == nil {
			c.citeKeys = map[string]int{}
		}
		c.citeKeys[w.Key] = i
	}
	if c.cites == nil {
		c.cites = make([]foldCite, 0, 4) // cheaper than 1, 2, 4
	}
	c.cites = append(c.cites, cite)
	c.placeOrWait(i)
}

// sizeOfCite returns the memory in bytes that a citation takes, including in the answer.
func sizeOfCite(w *wire.Cite) int {
	// Its URL and keys are shared with its source; a marker's words are shared with the text, and its refs with the
	// list.
	n := citeSize + len(w.Key) + 8*len(w.Shifts) + len(w.Refs)*refSize
	if w.Origin != wire.OriginMarker {
		n += len(w.Quote)
	}
	for i := range w.Refs {
		r := &w.Refs[i]
		if w.Origin != wire.OriginMarker {
			n += len(r.Quote)
		}
		if r.Locator != (wire.Locator{}) {
			n += size[Locator]()
		}
	}
	return n
}

func sameCite(a, b *wire.Cite) bool {
	return a.Part == b.Part && a.Base == b.Base && a.Unit == b.Unit && a.Start == b.Start && a.End == b.End &&
		a.Covers == b.Covers && a.Quote == b.Quote && a.URL == b.URL && a.Origin == b.Origin &&
		slices.Equal(a.Shifts, b.Shifts) && slices.EqualFunc(a.Refs, b.Refs, sameRef)
}

func sameRef(a, b wire.Ref) bool {
	return a.Source == b.Source && a.Quote == b.Quote && equal(a.Confidence, b.Confidence) &&
		equalLocators(locator(a.Locator), locator(b.Locator))
}

// withdraw removes a citation.
func (c *candidate) withdraw(key string) {
	i, ok := c.citeKeys[key]
	if !ok || c.cites[i].withdrawn {
		return
	}
	c.cites[i].withdrawn, c.cites[i].settled = true, true
	delete(c.before, i)
	if c.cites[i].emitted && c.fold.onEvent != nil && len(c.outRefs(nil, c.cites[i].Refs)) > 0 {
		c.fold.emit(Event{Kind: EventCitation, Candidate: c.index, Key: c.key(i), Withdrawn: true})
	}
}

// placeOrWait places a citation, or files it under what it has to wait for.
func (c *candidate) placeOrWait(i int) {
	if c.try(i, false) {
		return
	}
	cite := &c.cites[i]
	switch {
	case cite.emitted, cite.Unit == wire.Nowhere,
		cite.Unit == wire.Here: // waits for the end of the input, when all citations are tried again
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

// need returns the text length at which to try again. It returns false if the citation has to wait for the end of the
// input.
func (c *candidate) need(cite *foldCite) (int, bool) {
	have := c.text.Len()
	// the place is in the text but has other words: the right ones may still follow nearby
	if _, ok := c.span(cite, cite.Unit, cite.shift); ok {
		need := c.base(cite) + 4*(cite.End+cite.shift) + searchNear + len(cite.needle())
		return need, need > have && cite.needle() != ""
	}
	if cite.Start < 0 || cite.End < cite.Start {
		return 0, false
	}
	from, to := c.offsets.Grow(c.text.String()).In(outUnit[cite.Unit], Span{c.base(cite), have})
	return have + max(1, cite.End+cite.shift-(to-from)), true // a missing unit is at least one byte
}

// retryWaiting retries the citations that waited for the text to reach its current length.
func (c *candidate) retryWaiting() {
	for len(c.waiting) > 0 && c.waiting[0].need <= c.text.Len() {
		c.placeOrWait(heap.Pop(&c.waiting).(wait).cite)
	}
}

// placeRest places every citation for good.
func (c *candidate) placeRest() {
	for i := range c.cites {
		c.fold.halt.Check()
		if !c.cites[i].settled {
			c.try(i, true)
		}
	}
	c.waiting, c.blocks = nil, nil
	if c.fileMarks {
		c.takeMarks()
	}
	c.linked, c.linkEnds = 0, nil
	c.placed = c.closed
	if c.fold.onEvent == nil {
		return
	}
	for i := range c.cites { // now that all links are known, some claims change
		if cite := &c.cites[i]; !cite.withdrawn {
			if out := c.citation(cite); out.Claim != cite.lastClaim {
				c.emitCite(i, out)
			}
		}
	}
}

// wait is a citation that waits for a text length.
type wait struct{ need, cite int }

// waitHeap is a heap of waits with the least need first.
type waitHeap []wait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].need < h[j].need }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waitHeap) Push(x any)        { *h = append(*h, x.(wait)) } // x is always a wait
func (h *waitHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// try places a citation, emits its event, and reports whether the place is final.
func (c *candidate) try(i int, last bool) bool {
	cite := &c.cites[i]
	p, ok := c.locate(cite, last)
	if !ok {
		return false
	}
	switch { // only points and blocks may be empty
	case p.anchor == AnchorNone:
	case p.span.Len() == 0 && p.covers != CoversBlock:
		p.covers = CoversPoint
	case p.covers == CoversPoint:
		p.span.Start = p.span.End
	}
	cite.found = p
	was, emitted := cite.place, cite.emitted
	if before, ok := c.before[i]; ok {
		was = before
		delete(c.before, i)
	}
	cite.place, cite.emitted = p, true
	if c.fileMarks {
		cite.place = c.takeMark(i)
		if cite.covers == CoversPoint && len(c.cites) <= maxFarMarks {
			c.takeFarMarks()
		}
		delete(c.moved, i)
		c.emitMoved()
	}
	changed := !emitted || cite.place != was
	if last && (p.anchor == AnchorUnverified || p.anchor == AnchorUnitFixed) && p.covers == CoversLink &&
		c.repeatsMark(cite) {
		cite.withdrawn, cite.settled = true, true
		return true
	}
	cite.settled = last || p.anchor == AnchorExact || p.anchor == AnchorNone ||
		p.anchor == AnchorUnverified && cite.Quote == "" && cite.URL == ""
	if cite.settled && cite.anchor != AnchorExact && cite.anchor != AnchorUnverified {
		c.report(cite)
	}
	if changed && c.fold.onEvent != nil {
		c.emitCite(i, c.citation(cite))
	}
	return cite.settled
}

// emitCite emits the event of a citation.
func (c *candidate) emitCite(i int, out Citation) {
	c.cites[i].lastClaim = out.Claim
	if len(out.Refs) > 0 {
		c.fold.emit(Event{Kind: EventCitation, Candidate: c.index, Key: c.key(i), Citation: &out})
	}
}

// report adds an issue for a place that is not where the provider said.
func (c *candidate) report(cite *foldCite) {
	where := strconv.Itoa(cite.Start) + "–" + strconv.Itoa(cite.End)
	if cite.Unit == wire.Nowhere {
		where = snippet(cite.Quote)
	}
	switch {
	case cite.Unit == wire.Block:
		c.fold.issuef("cited-text-missing", "message %d, part %d", cite.Part.Message, cite.Part.Content)
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

// key returns the key of a citation in events.
func (c *candidate) key(i int) string {
	if k := c.cites[i].Key; k != "" {
		return k
	}
	return "#" + strconv.Itoa(i)
}

// citation converts a citation to that of the answer, without its id.
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

// claim returns the statement that a citation supports.
func (c *candidate) claim(cite *foldCite) (claim Span, inferred bool) {
	if cite.covers == CoversClaim || cite.covers == CoversBlock {
		return cite.span, false
	}
	text := c.text.String()
	at := c.linkRunStart(text, cite.span.Start)
	base := c.partBefore(at) // a statement does not begin in another message
	if before := (Span{base, at}); cite.statementIn != before || at == 0 {
		start, end := prose.SentenceBefore(text[base:at], at-base)
		cite.statementIn, cite.statement = before, Span{start + base, end + base}
	}
	start, end := cite.statement.Start, cite.statement.End
	if start == end || isLabel(text[start:at]) {
		if s, ok := c.statementAbove(base, at); ok {
			return s, true
		}
	}
	if start == end && c.closed {
		start, end = prose.SentenceAt(text[base:c.messageEnd(cite.span.End)], cite.span.End-base)
		start, end = start+base, end+base
		behind := cite.span.End + len(text[cite.span.End:]) - len(strings.TrimLeft(text[cite.span.End:], " ,;"))
		if behind < end && start <= at && standsApart(text[cite.span.Start:cite.span.End]) {
			start = behind // marks before a sentence are not part of it
		}
	}
	return Span{start, max(start, end)}, true
}

// outRefs converts refs to those of the answer, without duplicates. It may use the capacity of out.
func (c *candidate) outRefs(out []Ref, refs []wire.Ref) []Ref {
	out = slices.Grow(out, len(refs))
	for i := range refs {
		r := &refs[i]
		s := c.fold.sources.resolve(r.Source)
		if s == nil {
			continue // over the limit of sources, which has been reported
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

// citations converts all citations to those of the answer, in order of arrival.
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
			nowhere := place{anchor: AnchorNone, covers: outCovers[cite.Covers]}
			cite = &foldCite{Cite: cite.Cite, refs: cite.refs, place: nowhere}
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

// cited adds the indexes of the sources that the candidate cites to used.
func (c *candidate) cited(used map[int]bool) {
	for i := range c.cites {
		if c.cites[i].withdrawn {
			continue
		}
		for _, r := range c.cites[i].Refs {
			if i, ok := c.fold.sources.keys[r.Source]; ok {
				used[i] = true
			}
		}
	}
}

// The values of package wire in terms of the answer.
var (
	outCovers = [...]Covers{
		wire.Claim: CoversClaim, wire.Link: CoversLink, wire.Point: CoversPoint, wire.BlockSpan: CoversBlock,
	}
	outUnit = [...]Unit{wire.Bytes: UTF8, wire.CodePoints: CodePoint, wire.UTF16: UTF16}
)

// unitsToTry are the units to try for a citation's offsets, by the declared unit, which comes first.
var unitsToTry = [...][3]wire.Unit{
	wire.Bytes:      {wire.Bytes, wire.CodePoints, wire.UTF16},
	wire.CodePoints: {wire.CodePoints, wire.UTF16, wire.Bytes},
	wire.UTF16:      {wire.UTF16, wire.CodePoints, wire.Bytes},
}

// The bounds of the search for words that are not where the provider said.
const (
	searchNear  = 64       // bytes to either side of the declared place that are searched first
	searchFloor = 16 << 20 // bytes that all searches of the whole text may read together, plus
	searchPer   = 8        // this many per byte of text
)

// maxOffset is the largest valid offset: a base and a shift can be added to it without overflow.
const maxOffset = math.MaxInt / 4

// locate finds the place of a citation in the text so far. It returns false if more text is needed; last means that
// none will come.
func (c *candidate) locate(cite *foldCite, last bool) (place, bool) {
	covers := outCovers[cite.Covers]
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
	if cite.Sentence {
		return c.locateSentence(cite, last)
	}
	if p, ok := c.locateDeclared(cite); ok {
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
	case i >= 0 && !c.parts[i].missing:
		return place{Span{c.parts[i].from, c.parts[i].from}, AnchorExact, CoversPoint}, true
	default:
		return place{anchor: AnchorNone, covers: CoversBlock}, true
	}
}

// locateDeclared searches for a citation's words where the provider said, in its unit and in others, then nearby. It
// returns false if they are in none of these places, or if there are no words to search for and the place is beyond the
// text so far.
func (c *candidate) locateDeclared(cite *foldCite) (place, bool) {
	covers := outCovers[cite.Covers]
	if cite.Quote == "" && cite.URL == "" {
		s, ok := c.span(cite, cite.Unit, cite.shift)
		if !ok {
			return place{}, false
		}
		return place{s, AnchorUnverified, covers}, true
	}
	for _, unit := range unitsToTry[cite.Unit] {
		s, ok := shifted(cite, func(shift int) (Span, bool) {
			s, ok := c.span(cite, unit, shift)
			return s, ok && c.matches(cite, s)
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

// unitless reports whether a citation's offsets mean the same in all units, as the text up to them is ASCII.
func (c *candidate) unitless(cite *foldCite) bool {
	if len(c.cuts) > 0 || len(cite.Shifts) > 0 || cite.End < 0 || cite.End > maxOffset {
		return false
	}
	return c.offsets.Grow(c.text.String()).isASCII(c.base(cite) + cite.End)
}

// shifted returns the first span that try finds for one of the citation's shifts.
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

// span converts a citation's offsets, in a unit and with a shift, to a span of the text.
func (c *candidate) span(cite *foldCite, unit wire.Unit, shift int) (Span, bool) {
	if cite.Start < 0 || cite.End < cite.Start || cite.End > maxOffset {
		return Span{}, false
	}
	start, ok1 := c.offset(cite, unit, cite.Start+shift)
	end, ok2 := c.offset(cite, unit, cite.End+shift)
	return Span{start, end}, ok1 && ok2
}

// offset converts an offset of a citation to an offset in the text. It returns false beyond the text and inside a
// character. Providers count the private markers that were removed from the text; an offset inside one becomes the
// place where it was.
func (c *candidate) offset(cite *foldCite, unit wire.Unit, n int) (int, bool) {
	base, text := c.base(cite), c.text.String()
	if unit == wire.Bytes && (len(c.cuts) == 0 || cite.readHere()) {
		at := base + n
		return at, at >= 0 && at <= len(text) && isBoundary(text, at)
	}
	offsets, u := c.offsets.Grow(text), outUnit[unit]
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

// readHere reports whether a citation was read from the text as it is, without what was cut from it.
func (c *foldCite) readHere() bool { return c.Origin == wire.OriginMarker && c.Base == wire.AnswerBase }

// base returns the offset in the text from which a citation's offsets count.
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

// matches reports whether the text at s is the citation's quote or a link to its URL.
func (c *candidate) matches(cite *foldCite, s Span) bool {
	words := c.text.String()[s.Start:s.End]
	if cite.Quote != "" {
		return words == cite.Quote
	}
	if words == cite.URL || isLinkTo(words, cite.URL) {
		return true
	}
	clean := cleanURL(cite.URL) // links in the text may lack the parameter
	return clean != cite.URL && (words == clean || isLinkTo(words, clean))
}

// isLinkTo reports whether words are a visible link to url, perhaps in parentheses: ([title](url)).
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

// searchNear searches for a citation's words around the place that the provider said. It returns the match nearest to
// its start, the left one of two equally near.
func (c *candidate) searchNear(cite *foldCite, shift int) (Span, bool) {
	declared, ok := c.offset(cite, cite.Unit, max(0, cite.Start+shift))
	if !ok {
		declared = c.base(cite) + max(0, cite.Start+shift)
	}
	text := c.text.String()
	needle := cite.needle()
	from := max(0, declared-searchNear)
	to := min(len(text), max(declared, declared+cite.End-cite.Start)+searchNear+len(needle))
	best, found := Span{}, false
	distance := func(s Span) int { return max(s.Start-declared, declared-s.Start) }
	for at := from; at < to; {
		n := strings.Index(text[at:to], needle)
		if n < 0 {
			break
		}
		at += n
		if s, ok := c.around(cite, at); ok && (!found || distance(s) < distance(best)) {
			best, found = s, true
		}
		at++
	}
	return best, found && distance(best) <= searchNear
}

// around returns the span of a citation whose needle is at an offset: the words themselves, or the link that contains
// the URL.
func (c *candidate) around(cite *foldCite, at int) (Span, bool) {
	text := c.text.String()
	if cite.Quote != "" {
		return Span{at, at + len(cite.Quote)}, true
	}
	const limit = 512 // bytes of a link's title
	end := at + len(cite.URL)
	open := strings.LastIndex(text[max(0, at-limit):at], "[")
	shut := strings.IndexAny(text[end:min(len(text), end+limit)], ")\n")
	if open < 0 || shut < 0 || text[end+shut] != ')' || !strings.Contains(text[max(0, at-2):at], "(") {
		return Span{}, false
	}
	s := Span{max(0, at-limit) + open, end + shut + 1}
	for s.Start > 0 && text[s.Start-1] == '[' { // [[1]](url)
		s.Start--
	}
	if s.Start > 0 && text[s.Start-1] == '(' && s.End < len(text) && text[s.End] == ')' {
		s = Span{s.Start - 1, s.End + 1}
	}
	return s, true
}

// searchAll searches the whole text for a citation's words. They must occur exactly once.
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

// unverified is the last resort: it returns the place that the provider said, even if other words are there or there
// are none to compare, or nowhere if the place is not in the text.
func (c *candidate) unverified(cite *foldCite, nowhere place) place {
	if cite.Quote != "" {
		return nowhere // the words are known, but not in the text
	}
	unit, anchor := cite.Unit, AnchorUnverified
	if cite.URL != "" {
		if unit = c.unitOfClaims(cite.Unit); unit != cite.Unit {
			anchor = AnchorUnitFixed
		}
	}
	s, ok := c.span(cite, unit, cite.shift)
	if ok {
		covers := nowhere.covers
		if covers == CoversLink && cite.URL != "" && s.Len() > 0 && !isOneMark(c.text.String()[s.Start:s.End]) {
			covers = CoversClaim // if it is neither a link nor a mark, it must be the claim
		}
		return place{s, anchor, covers}
	}
	if i := c.find(cite.Part); cite.Covers == wire.Point && i >= 0 && cite.Start > 0 && cite.Start < maxOffset {
		end := c.parts[i].end // someone shortened the text: what was cited last is at its end
		return place{Span{end, end}, AnchorMoved, CoversPoint}
	}
	if start, end, ok := c.widen(cite); ok {
		return place{Span{start, end}, AnchorMoved, nowhere.covers}
	}
	return nowhere
}

// widen moves byte offsets inside characters outwards to character boundaries.
func (c *candidate) widen(cite *foldCite) (start, end int, ok bool) {
	text := c.text.String()
	if cite.Unit != wire.Bytes || cite.Start < 0 || cite.End < cite.Start || cite.End > maxOffset {
		return 0, 0, false
	}
	base := c.base(cite) + cite.shift
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
