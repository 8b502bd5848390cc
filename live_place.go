package ibid

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
)

// livePlaces tracks the citations of a growing answer.
type livePlaces struct {
	all     []*liveCite          // in order of arrival
	keys    map[string]*liveCite // those with a key
	pending []*liveCite          // those that wait to be placed
	links   linkExpectation

	parsed   int  // bytes parsed to find places
	examined int  // length of the text at the last attempt
	retry    int  // length of the text at which to try again
	step     int  // bytes from one attempt to the next
	forced   bool // an attempt was made because text was held too long

	last struct {
		at      int      // place of the last marker, in the text as it arrived
		sources []string // in that marker
	}
}

// liveCite is a citation and its progress.
type liveCite struct {
	Citation
	span       Span // in the text as it arrived; meaningless if lost
	lost       bool // it has no place, or none that a marker can follow any more
	waits      bool // it is in livePlaces.pending
	withdrawn  bool
	afterBlock bool     // its marker is a paragraph after its block: the text need not wait
	shown      []string // ids of the sources in its markers
}

// missing returns the sources of c that are in none of its markers yet.
func (c *liveCite) missing() []string {
	var out []string
	if c.withdrawn {
		return nil
	}
	for i := range c.Refs {
		if id := c.Refs[i].Source; !slices.Contains(c.shown, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// isOpen reports whether c still needs a marker and can get one.
func (c *liveCite) isOpen() bool { return !c.lost && len(c.missing()) > 0 }

// removed returns the sources in markers of c that c does not name any more.
func (c *liveCite) removed() []string {
	return slices.DeleteFunc(slices.Clone(c.shown), func(id string) bool {
		return !c.withdrawn && slices.ContainsFunc(c.Refs, func(r Ref) bool { return r.Source == id })
	})
}

// addCitation handles a new, changed or withdrawn citation.
func (p *livePlaces) addCitation(e *Event, t *liveText) {
	c := p.keys[e.Key]
	if e.Key == "" {
		c = nil
	}
	switch {
	case e.Withdrawn:
		if c != nil {
			c.withdrawn = true
			p.updatePending(c)
		}
		return
	case e.Citation == nil:
		return
	case c == nil:
		c = &liveCite{}
		p.all = append(p.all, c)
		if p.keys == nil {
			p.keys = map[string]*liveCite{}
		}
		if e.Key != "" {
			p.keys[e.Key] = c
		}
	}
	c.Citation, c.withdrawn = *e.Citation, false
	span, ok := t.arrived(c.Span)
	c.span, c.lost = span, !ok || !c.Placed() || t.isGone(span.End)
	p.links.cited(c)
	p.updatePending(c)
}

// updatePending adds c to the pending citations, or removes it, as needed.
func (p *livePlaces) updatePending(c *liveCite) {
	switch waits := c.isOpen(); {
	case waits && !c.waits:
		p.pending = append(p.pending, c)
		c.waits = true
		p.retry, p.step, p.forced = 0, 0, false
	case !waits && c.waits:
		p.removeSettled()
	}
}

// removeSettled removes the pending citations that are not open any more.
func (p *livePlaces) removeSettled() {
	p.pending = slices.DeleteFunc(p.pending, func(c *liveCite) bool {
		c.waits = c.isOpen()
		return !c.waits
	})
}

// giveUpBefore gives up pending citations that end before at, which is written.
func (p *livePlaces) giveUpBefore(at int) {
	for _, c := range p.pending {
		if c.span.End <= at {
			c.lost = true
		}
	}
	p.removeSettled()
}

// due reports whether it is worth looking for places again: only new text can make one certain. The steps between
// attempts grow, and their total cost is bounded, so that no text is parsed more than a few times.
func (l *Live) due(overdue bool) bool {
	p, t := &l.places, &l.text
	const floor, per = 1 << 20, 8 // maximum bytes parsed: base, and per byte of text
	end := t.from + len(t.buf)
	if p.parsed > floor+per*end {
		return false
	}
	return end >= p.retry || overdue && !p.forced || bytes.IndexByte(t.buf[t.oldLen:], '\n') >= 0
}

// place writes the open block, which ends at end, up to the last marker whose place is certain and not after limit. It
// returns how far the text may be written without passing a place still needed. If final is set, all places are
// certain.
func (l *Live) place(end, limit int, final bool) int {
	cites := l.waiting(end)
	if len(cites) == 0 {
		return end
	}
	p, t := &l.places, &l.text
	low := t.lowest(cites, p.examined)
	overdue := len(t.buf)-min(limit, low) > l.hold()
	if !final && (!overdue && !t.enoughFollows(cites) || !l.due(overdue)) {
		return low
	}
	block := string(t.buf[:end])
	p.parsed += len(block)
	p.forced = p.forced || overdue
	if isJSON(block) {
		for _, c := range cites {
			c.lost = true
		}
		p.removeSettled()
		return end
	}
	places := places{markdown.Parse(block)}
	p.examined = t.from + end
	layoutCites, sources := l.layoutCites(places, cites, final)
	lay := places.layOut(nil, layoutCites, sources)
	for i := range lay.stops {
		st := &lay.stops[i]
		if !final && (st.at > limit || !places.settled(st, overdue) || p.links.wait() && t.joins(st.at, limit)) {
			break
		}
		l.stopAt(places, &lay, i, layoutCites, cites)
	}
	p.removeSettled()
	rest := l.waiting(end)
	if p.step *= 2; len(rest) < len(cites) || p.step == 0 {
		p.step, p.forced = 1, false
	}
	p.retry = t.from + len(t.buf) + p.step
	return t.lowest(rest, p.examined)
}

// waiting returns the pending citations that end in the open block, up to end.
func (l *Live) waiting(end int) []*liveCite {
	if len(l.places.pending) == 0 {
		return nil
	}
	var out []*liveCite
	for _, c := range l.places.pending {
		if c.span.End <= l.text.from+end {
			out = append(out, c)
		}
	}
	return out
}

// enoughFollows reports whether enough text follows any of cites to determine the place of its marker.
func (t *liveText) enoughFollows(cites []*liveCite) bool {
	const enough = 64 // bytes examined
	return slices.ContainsFunc(cites, func(c *liveCite) bool {
		at := max(t.written, c.span.End-t.from)
		return enoughFollows(string(t.buf[at:min(len(t.buf), at+enough)]))
	})
}

// lowest returns the earliest place of a marker of cites: after the last word that a citation covers. If its place is
// already written, it is the next sentence end not examined yet.
func (t *liveText) lowest(cites []*liveCite, examined int) int {
	low, passed := len(t.buf), false
	for _, c := range cites {
		at := c.span.End - t.from
		if at < t.written || c.afterBlock {
			passed = passed || !c.afterBlock
			continue
		}
		if c.Covers == CoversLink && c.span.Start >= t.from+t.written {
			at = c.span.Start - t.from
		}
		low = min(low, t.wordsEnd(at))
	}
	if !passed {
		return low
	}
	// bytes at the end of the examined text that may now end a sentence
	const limit = 4
	at := max(t.written, examined-limit-t.from)
	if n := bytes.IndexAny(t.buf[min(at, low):low], ".!?…。！？\n"); n >= 0 {
		return at + n
	}
	return low
}

// layoutCites converts cites for [places.layOut]; their index is that in cites. Those whose place is already written
// move to the end of their sentence, wait for it, or are given up.
func (l *Live) layoutCites(p places, cites []*liveCite, final bool) ([]layoutCite, []Source) {
	t := &l.text
	var out []layoutCite
	var sources []Source
	index := map[string]int{}
	for i, c := range cites {
		next := layoutCite{span: markdown.Span{Start: max(0, c.span.Start-t.from), End: c.span.End - t.from}, index: i}
		next.link = c.Covers == CoversLink && c.span.Start >= t.from+t.written
		place := p.after(next.span.End)
		b := p.BlocksBefore(next.span.End - 1)
		if c.afterBlock = !final && (place.standalone || b > 0 && p.Blocks[b-1].Raw); c.afterBlock {
			continue
		}
		if !next.link && place.at < t.written {
			_, end := prose.SentenceAt(p.Text, next.span.End)
			switch {
			case place.standalone:
				c.lost = true
				continue
			case !final && end >= len(strings.TrimRight(p.Text, " \t")):
				continue
			case p.after(end).at < t.written:
				c.lost = true
				continue
			}
			next.span.End = end
		}
		for _, id := range c.missing() {
			if _, ok := index[id]; !ok {
				index[id] = len(sources)
				sources = append(sources, *l.source(id))
			}
			next.sources = append(next.sources, index[id])
		}
		out = append(out, next)
	}
	return out, sources
}

// stopAt writes the text up to the i-th stop of lay, and the marker there.
func (l *Live) stopAt(p places, lay *layout, i int, layoutCites []layoutCite, cites []*liveCite) {
	t, st := &l.text, &lay.stops[i]
	if st.at < t.written {
		for _, k := range st.cites {
			cites[layoutCites[k].index].lost = true
		}
		return
	}
	for _, cut := range lay.cuts {
		if cut.Start < st.at && cut.End > t.written {
			l.write(cut.Start)
			t.written = max(t.written, cut.End)
		}
	}
	l.write(st.at)
	var sources []*Source
	here := t.from + st.at
	if l.places.last.at != here {
		l.places.last.at, l.places.last.sources = here, nil
	}
	for _, k := range st.cites {
		c := cites[layoutCites[k].index]
		for _, id := range c.missing() {
			c.shown = append(c.shown, id)
			if !slices.Contains(l.places.last.sources, id) {
				l.places.last.sources = append(l.places.last.sources, id)
				sources = append(sources, l.source(id))
			}
		}
	}
	if len(sources) == 0 {
		return
	}
	const near = 256 // bytes of the following text that a marker depends on
	next := string(t.buf[st.at:min(len(t.buf), st.at+near)])
	if !st.standalone {
		l.marker(sources, st, p, next)
		return
	}
	l.out.raw(text.BlankLine(l.out.tail, ""))
	l.marker(sources, st, p, "")
	if strings.TrimSpace(next) != "" {
		l.out.raw(text.BlankLine("x", next))
	}
}

// joins reports whether a link or mark follows at whose citation may still come and would then share the marker at at.
func (t *liveText) joins(at, limit int) bool {
	return limit < len(t.buf) && strings.Trim(string(t.buf[at:max(at, limit)]), " ,;(（") == "" &&
		isLinkStart(t.buf[limit:])
}

// linkExpectation tracks whether citations are expected to come as visible links and marks. If so, these are held back
// until their citation has come.
type linkExpectation struct {
	seen   bool // one came
	absent bool // citations came in another form, or a link got none
}

// cited updates h from a citation.
func (h *linkExpectation) cited(c *liveCite) {
	switch {
	case c.Covers == CoversLink:
		h.seen = true
	case c.Placed():
		h.absent = true
	}
}

func (h *linkExpectation) wait() bool { return h.seen || !h.absent }

// holdLinks returns the start of the first link or mark in the open block, up to end, that is incomplete or whose
// citation may still come, or end if there is none. The flag ended means that the block ends there.
func (l *Live) holdLinks(end int, ended bool) int {
	t := &l.text
	// Unlike a link, a file-search mark is never meant for readers, so it always waits for its citation.
	wait := l.places.links.wait()
	if end <= t.written { // text held too long was written beyond the end of its block
		return end
	}
	if t.blocks.InCode() || !wait && !bytes.Contains(t.buf[t.written:end], []byte(markBegin)) {
		return end
	}
	for at := t.written; at < end; {
		switch t.buf[at] {
		case '[', markBegin[0], '(', '<', 0xC2, 0xE2, 0xEF: // the first bytes of marks
			if !wait && !beginsFileMark(string(t.buf[at:min(end, at+maxMarkHead)])) {
				at++
				continue
			}
		case '\\':
			at += 2
			continue
		case '`':
			n, _ := markdown.Code(string(t.buf[at:end]), true)
			at += max(n, markdown.Run(string(t.buf[at:end])))
			continue
		default:
			at++
			continue
		}
		size, state := linkLen(t.buf[at:end], ended)
		switch {
		case state == notLink || beginsImage(t.buf, at):
			at += size
		case state == wholeLink && l.cites(at, at+size):
			at += size
		case state == wholeLink && l.expired(at, at+size, ended):
			l.places.links.absent = true
			at += size
		default:
			return t.before(at)
		}
	}
	return end
}

// cites reports whether a citation for the link has arrived.
func (l *Live) cites(start, end int) bool {
	for _, c := range l.places.pending {
		if c.Covers == CoversLink && c.span.Start-l.text.from < end && c.span.End-l.text.from > start {
			return true
		}
	}
	return false
}

// expired reports whether a citation for the link is no longer expected. Providers send it directly after the text that
// completes the link.
func (l *Live) expired(start, end int, ended bool) bool {
	t := &l.text
	if len(t.buf)-start > l.hold() {
		return true
	}
	return t.oldLen > end && (ended || bytes.IndexByte(t.buf[end:t.oldLen], '\n') >= 0)
}

// before returns where the white space and parentheses directly before a link begin.
func (t *liveText) before(at int) int {
	return t.written + len(bytes.TrimRight(t.buf[t.written:at], " \t\r\n(（%"))
}

// linkState is how far a possible link is one.
type linkState uint8

const (
	notLink linkState = iota
	openLink
	wholeLink
)

// isLinkStart reports whether s may begin with a link, perhaps after a parenthesis.
func isLinkStart(s []byte) bool {
	s = bytes.TrimLeft(s, " ,;(（")
	return len(s) == 0 || s[0] == '[' || s[0] == '<' || bytes.HasPrefix(s, []byte(markBegin)) ||
		bytes.HasPrefix(s, []byte("［"))
}

// linkLen returns the length and state of a possible link or mark at the start of s: [a](u), [1], 【1†a】. The flag ended
// means that nothing follows s.
func linkLen(s []byte, ended bool) (int, linkState) {
	if n := bytes.IndexByte(s, '\n'); n >= 0 {
		s, ended = s[:n], true
	}
	open := openLink
	if ended {
		open = notLink
	}
	if s[0] == '<' {
		n, certain := markdown.Raised(string(s), ended)
		switch {
		case !certain:
			return len(s), openLink
		case n > 0 && isRaisedMark(string(s[:n])):
			return n, wholeLink
		}
		return 1, notLink
	}
	if s[0] == '(' || s[0] != '[' && !bytes.HasPrefix(s, []byte(markBegin)) && !bytes.HasPrefix([]byte(markBegin), s) {
		return wideLen(string(s), open)
	}
	if s[0] != '[' {
		longest := 64 // bytes
		if bytes.Contains(s[:min(len(s), longest)], []byte("†")) {
			longest = maxFileMark
		}
		s = s[:min(len(s), longest)]
		n := bytes.Index(s, []byte(markEnd))
		switch {
		case !bytes.HasPrefix(s, []byte(markBegin)):
			return 1, notLink
		case n >= 0:
			return n + len(markEnd), wholeLink
		case len(s) < longest:
			return len(s), open
		default:
			return len(markBegin), notLink
		}
	}
	n, certain := markdown.Link(string(s), ended)
	switch {
	case !certain:
		return len(s), openLink
	case n > 0 && s[n-1] == ')':
		return n, wholeLink
	}
	n, _ = markdown.Brackets(string(s), true)
	if n > 0 && isMark(string(s[:n])) {
		return n, wholeLink
	}
	return 1, notLink
}

// wideLen is linkLen for marks in parentheses and in other wide brackets, and for superscript numbers.
func wideLen(s string, open linkState) (int, linkState) {
	const longest = 24 // bytes of an incomplete mark
	n, certain := markdown.Wide(s, open == notLink)
	_, size := utf8.DecodeRuneInString(s)
	switch {
	case n == len(s) && open == openLink && s[0] != '(' && superscript(s) != "": // more digits may follow
		return n, openLink
	case n > 0 && (s[0] != '(' || isRound(s[:n])):
		return n, wholeLink
	case !certain && len(s) < longest && (s[0] != '(' || isRoundStart(s[1:])):
		return len(s), openLink
	}
	return size, notLink
}

// isRoundStart reports whether a mark in parentheses may begin with s: a number, or a word that may be a noun.
func isRoundStart(s string) bool {
	word := strings.TrimRight(s, " 0123456789,;:-–")
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
}

// isRaisedMark reports whether a <sup> element may be a mark.
func isRaisedMark(s string) bool {
	inside, _ := raisedInside(s)
	return isMark("[" + inside + "]")
}

// isMark reports whether the bracketed s may be a mark such as [1], [1, 3], [2-4], [doc1], [kb-310] or [plan.pdf].
func isMark(s string) bool {
	const longest = 40 // bytes
	inside := strings.Trim(s, "[]^")
	switch {
	case inside == "" || len(s) >= longest:
		return false
	case strings.Trim(strings.ReplaceAll(inside, "doc", ""), "0123456789,;-– ") == "":
		return true
	}
	return numbered().MatchString(inside) ||
		strings.ContainsAny(inside, "-_.:0123456789") && !strings.Contains(inside, " ")
}

// The headings of the lists between the text and the sources.
const (
	lateHeading      = "Also cited"
	withdrawnHeading = "No longer cited"
)

// end writes the rest of the text, then the lists. A nil answer means that the response broke off.
func (l *Live) end(a *Answer) {
	l.ended = true
	opts := l.options()
	switch {
	case l.needsWhole(), !l.text.filled && l.text.from == 0:
		if a != nil {
			l.out.text([]byte(a.Render(&opts)))
		}
	default:
		l.endText(a)
	}
	if tail := l.out.tail; tail != "" && tail[len(tail)-1] != '\n' {
		l.out.raw("\n")
	}
	l.text, l.places, l.sources = liveText{}, livePlaces{}, nil
}

// endText ends a text that was written as it arrived.
func (l *Live) endText(a *Answer) {
	last := markdown.Parse(string(l.text.buf)) // the open block
	l.endSection()
	if a == nil {
		a = l.known()
	}
	if l.asWritten(a) {
		return
	}
	lists := l.lateLists(a)
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			l.number(l.source(ref.Source))
		}
	}
	if l.List || l.Style == StyleFootnotes {
		r := rendering{
			RenderOptions: l.options(), answer: a,
			numbers: make([]int, len(a.Sources)), cited: make([]bool, len(a.Sources)),
		}
		for i := range a.Sources {
			r.numbers[i] = l.numbers[a.Sources[i].ID]
			r.cited[i] = r.numbers[i] > 0
		}
		lists = append(lists, r.list())
	}
	for i, list := range lists {
		if i == 0 {
			l.out.raw(last.Closer())
		}
		l.out.raw(text.BlankLine(l.out.tail, list))
		l.out.raw(list)
	}
}

// known returns an answer from the events so far, without text.
func (l *Live) known() *Answer {
	a := &Answer{}
	for _, c := range l.places.all {
		if !c.withdrawn {
			a.Citations = append(a.Citations, c.Citation)
		}
	}
	for _, s := range l.sources {
		a.Sources = append(a.Sources, *s)
	}
	slices.SortFunc(a.Sources, func(x, y Source) int {
		return cmp.Or(cmp.Compare(l.numbers[x.ID], l.numbers[y.ID]), strings.Compare(x.ID, y.ID))
	})
	return a
}

// asWritten reports whether the text shows its citations as the model wrote them: by marks that became citations only
// with the list, at its end, that says what they refer to.
func (l *Live) asWritten(a *Answer) bool {
	_, entries, ok := a.printedList()
	if !ok {
		return false
	}
	named := map[string]bool{}
	for _, e := range entries {
		if e.source >= 0 {
			named[a.Sources[e.source].ID] = true
		}
	}
	for _, c := range l.places.all {
		if c.Origin != OriginMarker || c.Covers != CoversLink || len(c.missing()) < len(c.Refs) ||
			slices.ContainsFunc(c.Refs, func(r Ref) bool { return !named[r.Source] }) {
			return false
		}
	}
	return true
}

// lateCite is an item of the lists of citations: a span and the ids of its sources.
type lateCite struct {
	Span // in the answer's text
	ids  []string
}

// lateLists returns the lists of the citations whose markers are missing in the text, and of those whose markers should
// not be there. Without the text there are none; the sources have their own list.
func (l *Live) lateLists(a *Answer) []string {
	var late, gone []lateCite
	if isJSON(a.Text) {
		return nil
	}
	for _, c := range l.places.all {
		if !c.Placed() {
			continue
		}
		s := c.Claim
		if s.Len() <= 0 {
			s = c.Span
		}
		if ids := c.missing(); len(ids) > 0 {
			late = append(late, lateCite{s, ids})
		}
		if ids := c.removed(); len(ids) > 0 {
			gone = append(gone, lateCite{s, ids})
		}
	}
	var out []string
	if a.Text != "" && len(late) > 0 {
		out = append(out, l.lateList(lateHeading, late, a.Text))
	}
	if a.Text != "" && len(gone) > 0 {
		out = append(out, l.lateList(withdrawnHeading, gone, a.Text))
	}
	return out
}

// lateList returns a list of citations with its heading.
func (l *Live) lateList(heading string, list []lateCite, text string) string {
	slices.SortStableFunc(list, func(x, y lateCite) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
	})
	saved := l.out
	l.out = liveOutput{}
	l.out.raw(heading + ":\n\n")
	for len(list) > 0 {
		words, n := quoted(text, list[0].Span), 0
		var sources []*Source
		for n < len(list) && list[n].Span == list[0].Span {
			for _, id := range list[n].ids {
				sources = append(sources, l.source(id)) // the marker drops duplicates
			}
			n++
		}
		list = list[n:]
		if l.Style != StylePlain {
			words = "- " + escapeMarkdown(strings.NewReplacer("**", "", "__", "", "`", "").Replace(words))
		}
		l.out.raw(words)
		if words != "" && !strings.HasSuffix(words, " ") {
			l.out.raw(" ")
		}
		l.marker(sources, &stop{}, places{}, "\n")
		l.out.raw("\n")
	}
	out := string(l.out.buf)
	l.out = saved
	return out
}

// quoted returns the words of a span in quotes, shortened and on one line.
func quoted(text string, s Span) string {
	if s.Start < 0 || s.End > len(text) || s.Start >= s.End || !utf8.ValidString(text[s.Start:s.End]) {
		return ""
	}
	if words := tidy(text[s.Start:s.End]); words != "" {
		return "“" + words + "”"
	}
	return ""
}
