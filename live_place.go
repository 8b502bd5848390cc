package ibid

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/prose"
)

// livePlaces knows the citations of an answer that grows, and what became of them.
type livePlaces struct {
	all     []*liveCite          // in the order they were said
	keys    map[string]*liveCite // those with a key
	pending []*liveCite          // those that wait for their place
	links   linkHope

	parsed int  // bytes parsed in search of places
	looked int  // how far the text went at the last try
	retry  int  // how far it has to go before the next
	step   int  // how far that is
	forced bool // one was made because text was held too long

	last struct {
		at      int      // where the last marker stands, in the text as it arrived
		sources []string // that it names
	}
}

// liveCite is one citation.
type liveCite struct {
	Citation
	span      Span // in the text as it arrived; meaningless where lost
	lost      bool // its place was not shown, or has none
	waits     bool // it is pending
	withdrawn bool
	behind    bool     // it stands in a block that its marker follows as a paragraph: the text need not wait
	shown     []string // ids of the sources that its markers name
}

// missing returns the sources that no marker of c names yet.
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

// isOpen reports whether c still has a place ahead, and sources to name there.
func (c *liveCite) isOpen() bool { return !c.lost && len(c.missing()) > 0 }

// removed returns the sources that markers of c name although c does not any more.
func (c *liveCite) removed() []string {
	return slices.DeleteFunc(slices.Clone(c.shown), func(id string) bool {
		return !c.withdrawn && slices.ContainsFunc(c.Refs, func(r Ref) bool { return r.Source == id })
	})
}

// cite takes a citation, its replacement, or its end.
func (p *livePlaces) cite(e *Event, t *liveText) {
	c := p.keys[e.Key]
	if e.Key == "" {
		c = nil
	}
	switch {
	case e.Withdrawn:
		if c != nil {
			c.withdrawn = true
			p.await(c)
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
	p.await(c)
}

// await files a citation that waits for a place, and takes one out that does not any more.
func (p *livePlaces) await(c *liveCite) {
	switch waits := c.isOpen(); {
	case waits && !c.waits:
		p.pending = append(p.pending, c)
		c.waits = true
		p.retry, p.step, p.forced = 0, 0, false
	case !waits && c.waits:
		p.settle()
	}
}

// settle forgets the pending citations that wait for nothing any more.
func (p *livePlaces) settle() {
	p.pending = slices.DeleteFunc(p.pending, func(c *liveCite) bool {
		c.waits = c.isOpen()
		return !c.waits
	})
}

// clip moves what ends in the marks before a block to the end of the block before.
func (p *livePlaces) clip(marks Span) {
	for _, c := range p.pending {
		if c.span.End > marks.Start && c.span.End <= marks.End {
			c.span = Span{min(c.span.Start, marks.Start), marks.Start}
		}
	}
}

// leave gives up the places before at, which are written.
func (p *livePlaces) leave(at int) {
	for _, c := range p.pending {
		if c.span.End <= at {
			c.lost = true
		}
	}
	p.settle()
}

// due reports whether it is worth looking for places again: only text that came since can have made one certain. The
// steps between two tries grow, and what all tries cost is bounded, so that no text is read more often than a few
// times.
func (l *Live) due(overdue bool) bool {
	p, t := &l.places, &l.text
	const floor, per = 1 << 20, 8 // bytes parsed at most: besides, and per byte of text
	end := t.from + len(t.buf)
	if p.parsed > floor+per*end {
		return false
	}
	return end >= p.retry || overdue && !p.forced || bytes.IndexByte(t.buf[t.known:], '\n') >= 0
}

// place writes the open block up to end as far as citations stand in it at certain places, with their markers, none of
// them behind limit. It returns up to where the text may be written without taking a place away. Where the block is
// final all places are certain.
func (l *Live) place(end, limit int, final bool) int {
	cites := l.waiting(end)
	if len(cites) == 0 {
		return end
	}
	p, t := &l.places, &l.text
	low := t.lowest(cites, p.looked)
	overdue := len(t.buf)-min(limit, low) > l.hold()
	if !final && (!overdue && !t.looksPast(cites) || !l.due(overdue)) {
		return low
	}
	block := string(t.buf[:end])
	p.parsed += len(block)
	p.forced = p.forced || overdue
	places := newSafePlaces(block)
	p.looked = t.from + end
	citings, sources := l.citings(places, cites, final)
	lay := places.lay(citings, sources)
	for i := range lay.stops {
		st := &lay.stops[i]
		if !final && (st.at > limit || !places.settled(st, overdue) || p.links.wait() && t.joins(st.at, limit)) {
			break
		}
		l.stopAt(places, &lay, i, citings, cites)
	}
	p.settle()
	rest := l.waiting(end)
	if p.step *= 2; len(rest) < len(cites) || p.step == 0 {
		p.step, p.forced = 1, false
	}
	p.retry = t.from + len(t.buf) + p.step
	return t.lowest(rest, p.looked)
}

// waiting returns the citations that wait for a place in the open block up to end.
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

// looksPast reports whether the text goes on far enough behind any of cites to tell where its marker stands.
func (t *liveText) looksPast(cites []*liveCite) bool {
	const enough = 64 // bytes that are looked at
	return slices.ContainsFunc(cites, func(c *liveCite) bool {
		at := max(t.written, c.span.End-t.from)
		return looksPast(string(t.buf[at:min(len(t.buf), at+enough)]))
	})
}

// lowest returns where the first of cites may have its marker at the earliest: behind the last word of the text it
// covers. One whose place was written may have it at the next end of a sentence that was not looked at yet.
func (t *liveText) lowest(cites []*liveCite, looked int) int {
	low, passed := len(t.buf), false
	for _, c := range cites {
		at := c.span.End - t.from
		if at < t.written || c.behind {
			passed = passed || !c.behind
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
	// bytes of what was the end of the text when it was looked at, and may have become that of a sentence
	const most = 4
	at := max(t.written, looked-most-t.from)
	if n := bytes.IndexAny(t.buf[min(at, low):low], ".!?…。！？\n"); n >= 0 {
		return at + n
	}
	return low
}

// citings returns cites as laying out sees them. Those whose place was written already go to the end of their sentence,
// wait for it, or are given up. Index is that of cites.
func (l *Live) citings(p safePlaces, cites []*liveCite, final bool) ([]citing, []Source) {
	t := &l.text
	var out []citing
	var sources []Source
	index := map[string]int{}
	for i, c := range cites {
		next := citing{span: Span{max(0, c.span.Start-t.from), c.span.End - t.from}, index: i}
		next.link = c.Covers == CoversLink && c.span.Start >= t.from+t.written
		place := p.after(next.span.End)
		if c.behind = !final && (place.own || p.inRaw(next.span.End)); c.behind {
			continue
		}
		if !next.link && place.at < t.written {
			_, end := prose.SentenceAt(p.text, next.span.End)
			switch {
			case place.own:
				c.lost = true
				continue
			case !final && end >= len(strings.TrimRight(p.text, " \t")):
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

// stopAt writes the text up to the i-th stop of lay and the markers there.
func (l *Live) stopAt(p safePlaces, lay *layout, i int, citings []citing, cites []*liveCite) {
	t, st := &l.text, &lay.stops[i]
	if st.at < t.written {
		for _, k := range st.cites {
			cites[citings[k].index].lost = true
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
		c := cites[citings[k].index]
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
	const near = 256 // bytes of what follows that a marker depends on
	next := string(t.buf[st.at:min(len(t.buf), st.at+near)])
	if !st.own {
		l.marker(sources, st, p, next)
		return
	}
	l.out.raw(blankLine(l.out.tail, ""))
	l.marker(sources, st, p, "")
	if strings.TrimSpace(next) != "" {
		l.out.raw(blankLine("x", next))
	}
}

// joins reports whether what follows at is a link or mark whose citation may still come and then has its marker here as
// well.
func (t *liveText) joins(at, limit int) bool {
	return limit < len(t.buf) && strings.Trim(string(t.buf[at:max(at, limit)]), " ,;(") == "" &&
		isLinkStart(t.buf[limit:])
}
