package ibid

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/text"
)

// OpenAI's file search removes its marks, 【4:0†report.pdf】, from the text and sends citations of the points where they
// were. Programs between it and ibid may leave the marks in. Then each citation is assigned a mark and moved there, so
// that its marker replaces the mark as it would a link. A mark without a citation stays in the text and is reported.

// fileMark matches such a mark. After the dagger comes a file name, "source", lines, or a file name and lines.
var fileMark = text.Pattern(`^【\d+(?::\d+)?†[^【】\n]{0,200}】`)

const (
	maxFileMark = 1024 // bytes of a mark: fileMark matches no longer ones
	maxMarkRun  = 64   // consecutive marks to either side of a point, and citations among which they are divided
	maxMarkGap  = 8    // bytes of markGap between a point and its mark
	maxMarkHead = 32   // bytes of a mark before its dagger
	maxFarMarks = 64   // free marks, and points, that are matched by takeFarMarks
)

// fileMarkAt returns the length in bytes of the mark at the start of s, or 0 if there is none.
func fileMarkAt(s string) int {
	if !strings.HasPrefix(s, markBegin) {
		return 0
	}
	return len(fileMark().FindString(s[:min(len(s), maxFileMark)]))
}

// beginsFileMark reports whether s begins with a mark or is the beginning of one.
func beginsFileMark(s string) bool {
	rest, ok := strings.CutPrefix(s, markBegin)
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, "0123456789:")
	return rest == "" || len(rest) < len(s)-len(markBegin) && strings.HasPrefix(rest, "†")
}

// fileMarkBefore returns the length in bytes of the mark at the end of s, or 0 if there is none.
func fileMarkBefore(s string) int {
	if !strings.HasSuffix(s, markEnd) {
		return 0
	}
	s = s[max(0, len(s)-maxFileMark):]
	n := len(s) - max(0, strings.LastIndex(s, markBegin))
	if fileMarkAt(s[len(s)-n:]) != n {
		return 0
	}
	return n
}

// markGap are the characters allowed between a point and its mark: space, and what ends a sentence or emphasis.
const markGap = " \t.,;:!?)*_\"'。，、！？…）”’»"

// linkTail matches what follows the words of a link: its URL.
var linkTail = text.Pattern(`\]\([^()\s]{0,500}\)$`)

// markRun returns the marks before and after a point, in order, separated only by spaces, commas and semicolons.
func (c *candidate) markRun(at int) []Span {
	const between = " ,;"
	text := c.text.String()
	var run []Span
	head := text[:at]
	if trimmed := strings.TrimRight(head, markGap); len(head)-len(trimmed) <= maxMarkGap {
		head = trimmed
	}
	if strings.HasSuffix(text[max(0, at-1):at], ")") { // the mark may end the words of a link
		tail := linkTail().FindString(text[max(0, at-maxFileMark):at])
		if before := text[:at-len(tail)]; fileMarkBefore(before) > 0 {
			head = before
		}
	}
	for range maxMarkRun {
		n := fileMarkBefore(head)
		if n == 0 {
			break
		}
		run = append(run, Span{len(head) - n, len(head)})
		head = strings.TrimRight(head[:len(head)-n], between)
	}
	slices.Reverse(run)
	tail := text[at:]
	if trimmed := strings.TrimLeft(tail, markGap); len(tail)-len(trimmed) <= maxMarkGap {
		tail = trimmed
	}
	for range maxMarkRun {
		n := fileMarkAt(tail)
		if n == 0 {
			break
		}
		start := len(text) - len(tail)
		run = append(run, Span{start, start + n})
		tail = strings.TrimLeft(tail[n:], between)
	}
	return run
}

// takeMark assigns the marks around citation i to the citations there, moves the other citations to their marks, and
// returns the place of citation i, which is where it was found if it gets no mark.
func (c *candidate) takeMark(i int) place {
	p := c.outsideMark(c.cites[i].found)
	point := p.covers == CoversPoint
	if p.anchor == AnchorNone || p.covers == CoversBlock || !point && p.span.Len() > maxFileMark {
		return p
	}
	if text := c.text.String(); !point && fileMarkAt(text[p.span.Start:]) != p.span.Len() {
		return p
	}
	run := c.markRun(p.span.Start)
	if len(run) == 0 {
		return p
	}
	members := c.markCites[run[0].Start]
	if !slices.Contains(members, i) {
		if len(members) == maxMarkRun {
			return p
		}
		if c.markCites == nil {
			c.markCites = map[int][]int{}
		}
		members = append(members, i)
		c.markCites[run[0].Start] = members
	}
	for k, mark := range c.divideMarks(members, run) {
		to := c.outsideMark(c.cites[members[k]].found)
		if mark.Len() > 0 {
			to.span, to.covers = mark, CoversLink
		}
		if members[k] == i {
			p = to
			continue
		}
		other := &c.cites[members[k]].place
		if mark.Len() == 0 && other.covers == CoversLink && !slices.Contains(run, other.span) {
			continue // assigned by takeFarMarks
		}
		c.moveCite(members[k], to)
	}
	return p
}

// moveCite changes the place of a citation. emitMoved emits its event.
func (c *candidate) moveCite(i int, to place) {
	cite := &c.cites[i]
	if cite.withdrawn || cite.place == to {
		return
	}
	if _, noted := c.moved[i]; cite.emitted && !noted && c.fold.onEvent != nil {
		if c.moved == nil {
			c.moved = map[int]place{}
		}
		c.moved[i] = cite.place
	}
	if was := cite.span; c.linkEnds[was.End] == was.Start && i < c.linked {
		delete(c.linkEnds, was.End)
	}
	if cite.place = to; to.covers == CoversLink && i < c.linked {
		if c.linkEnds == nil {
			c.linkEnds = map[int]int{}
		}
		c.linkEnds[to.span.End] = to.span.Start
	}
}

// emitMoved emits the citations that have moved, unless they are back where they were.
func (c *candidate) emitMoved() {
	for _, i := range slices.Sorted(maps.Keys(c.moved)) {
		if c.cites[i].place != c.moved[i] {
			c.emitCite(i, c.citation(&c.cites[i]))
		}
	}
	clear(c.moved)
}

// takeMarks reassigns all marks, now that the whole text is known, and reports those without a citation.
func (c *candidate) takeMarks() {
	c.markCites = nil
	for i := range c.cites {
		c.fold.halt.Check()
		if !c.cites[i].withdrawn {
			c.moveCite(i, c.takeMark(i))
		}
	}
	c.takeFarMarks()
	c.emitMoved()
	if c.closed && c.fold.format != Generic {
		text := c.text.String()
		for _, m := range c.freeMarks() {
			c.fold.issue("marker-without-citation", text[m.Start:m.End])
		}
	}
}

// freeMarks returns the marks without a citation, in order.
func (c *candidate) freeMarks() []Span {
	text := c.text.String()
	if !strings.Contains(text, markBegin) {
		return nil
	}
	taken := map[int]bool{}
	for i := range c.cites {
		if !c.cites[i].withdrawn && c.cites[i].covers == CoversLink {
			taken[c.cites[i].span.Start] = true
		}
	}
	var free []Span
	for at := 0; ; at += len(markBegin) {
		n := strings.Index(text[at:], markBegin)
		if n < 0 {
			return free
		}
		at += n
		if n := fileMarkAt(text[at:]); n > 0 && !taken[at] {
			free = append(free, Span{at, at + n})
		}
	}
}

// takeFarMarks assigns free marks to citations whose points refer to the text without its marks, so that they are too
// far to the front. It does so for a file whose citations all lack a mark if the same number of free marks name it, and
// for all points if one of them is inside a mark: then each gets the next free mark that is not another file's.
func (c *candidate) takeFarMarks() {
	free := c.freeMarks()
	if len(free) == 0 {
		return
	}
	var points []int // the citations found at points, with or without a mark, in the order of the text
	displaced := false
	for i := range c.cites {
		cite := &c.cites[i]
		if !cite.withdrawn && cite.anchor != AnchorNone && cite.found.covers == CoversPoint {
			points = append(points, i)
			displaced = displaced || c.outsideMark(cite.found) != cite.found
		}
	}
	slices.SortStableFunc(points, func(a, b int) int {
		return c.cites[a].found.span.Start - c.cites[b].found.span.Start
	})
	if len(points) > maxFarMarks || len(free) > maxFarMarks {
		return
	}
	text := c.text.String()
	names := func(i int) func(Span) bool {
		return func(m Span) bool {
			_, named := c.namesFile(text[m.Start:m.End], &c.cites[i])
			return named
		}
	}
	give := func(i, mark int) {
		to := c.cites[i].found
		to.span, to.covers = free[mark], CoversLink
		c.moveCite(i, to)
		free = slices.Delete(free, mark, mark+1)
	}
	for _, i := range points {
		first := slices.IndexFunc(free, names(i))
		if c.cites[i].covers != CoversPoint || first < 0 {
			continue
		}
		var same []int // citations of the file
		marked := false
		for _, k := range points {
			if names(k)(free[first]) {
				same = append(same, k)
				marked = marked || c.cites[k].covers != CoversPoint
			}
		}
		if n := len(free) - len(slices.DeleteFunc(slices.Clone(free), names(i))); marked || n != len(same) {
			continue
		}
		for _, k := range same {
			give(k, slices.IndexFunc(free, names(i)))
		}
	}
	for _, i := range points {
		cite := &c.cites[i]
		next := slices.IndexFunc(free, func(m Span) bool {
			foreign, _ := c.namesFile(text[m.Start:m.End], cite)
			return !foreign && m.End > cite.found.span.Start && c.partBefore(m.End) == c.partBefore(cite.span.End)
		})
		if displaced && cite.covers == CoversPoint && next >= 0 {
			give(i, next)
		}
	}
}

// outsideMark moves a point that is inside a mark to the end of the mark.
func (c *candidate) outsideMark(p place) place {
	if p.anchor == AnchorNone || p.covers != CoversPoint {
		return p
	}
	text, at := c.text.String(), p.span.End
	low := max(0, at-maxFileMark)
	n := strings.LastIndex(text[low:min(len(text), at+len(markBegin)-1)], markBegin)
	if n < 0 || low+n >= at {
		return p
	}
	if end := low + n + fileMarkAt(text[low+n:]); end > at {
		p.span = Span{end, end}
	}
	return p
}

// divideMarks returns the mark of a run for each of the citations, or an empty span for none. A citation that covers a
// mark gets it. A mark with the name of a file goes to the nearest citation of that file, and never to one of another
// file. The remaining marks go to the remaining citations, both in order, so that a later citation does not take the
// mark of an earlier one.
func (c *candidate) divideMarks(members []int, run []Span) []Span {
	out, taken := make([]Span, len(members)), make([]bool, len(run))
	text := c.text.String()
	take := func(nearest bool, fits func(cite *foldCite, mark Span) bool) {
		for k, i := range members {
			cite := &c.cites[i]
			if out[k].Len() > 0 || cite.withdrawn {
				continue
			}
			at, best := cite.found.span, -1
			distance := func(m Span) int { return max(m.Start-at.Start, at.Start-m.End, 0) }
			for j, m := range run {
				if !taken[j] && fits(cite, m) && (best < 0 || nearest && distance(m) < distance(run[best])) {
					best = j
				}
			}
			if best >= 0 {
				out[k], taken[best] = run[best], true
			}
		}
	}
	take(true, func(cite *foldCite, m Span) bool { return cite.found.span == m })
	take(true, func(cite *foldCite, m Span) bool {
		_, named := c.namesFile(text[m.Start:m.End], cite)
		return named
	})
	take(false, func(cite *foldCite, m Span) bool {
		foreign, _ := c.namesFile(text[m.Start:m.End], cite)
		return !foreign
	})
	return out
}

// namesFile reports whether a mark contains the name of a file that the citation cites (named) or does not cite
// (foreign). It is neither if the mark or a cited file has no name.
func (c *candidate) namesFile(mark string, cite *foldCite) (foreign, named bool) {
	_, name, _ := strings.Cut(strings.TrimSuffix(mark, markEnd), "†")
	first, _, _ := strings.Cut(name, "†")
	foreign = isFilename(first)
	for _, r := range cite.Refs {
		s := c.fold.sources.resolve(r.Source)
		if s == nil || s.Filename == "" {
			foreign = false
			continue
		}
		if name == s.Filename || strings.HasPrefix(name, s.Filename+"†") ||
			strings.EqualFold(first, strings.TrimSuffix(s.Filename, path.Ext(s.Filename))) {
			return false, true
		}
	}
	return foreign, false
}

// isFilename reports whether s looks like a file name.
func isFilename(s string) bool {
	ext := path.Ext(s)
	return len(ext) >= 2 && len(ext) <= 6 && !strings.ContainsAny(ext, " ,;:")
}
