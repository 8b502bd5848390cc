package ibid

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// OpenAI's file search takes its marks, 【4:0†report.pdf】, out of the text and sends citations of the points where they
// stood. What stands between may leave them in. Then each citation takes the place of a mark of its own, as its marker
// does that of a link; a mark that is nobody's stays, and is reported.

// fileMark matches such a mark. What follows the dagger is a file's name, "source", lines, or a name and lines.
var fileMark = regexp.MustCompile(`^【\d+(?::\d+)?†[^【】\n]{0,200}】`)

const (
	maxFileMark = 1024 // is more bytes than a mark has
	maxMarkRun  = 64   // marks in a row, to either side of a point, and citations that share them
	maxMarkGap  = 8    // bytes between a point and its mark, of no words
	maxMarkHead = 32   // is more bytes than a mark has before the dagger
)

// fileMarkAt returns the length of the mark that s begins with; 0: none.
func fileMarkAt(s string) int {
	if !strings.HasPrefix(s, markBegin) {
		return 0
	}
	return len(fileMark.FindString(s[:min(len(s), maxFileMark)]))
}

// beginsFileMark reports whether s, which may go on, begins with what may become a mark.
func beginsFileMark(s string) bool {
	rest, ok := strings.CutPrefix(s, markBegin)
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, "0123456789:")
	return rest == "" || len(rest) < len(s)-len(markBegin) && strings.HasPrefix(rest, "†")
}

// fileMarkBefore returns the length of the mark that s ends with; 0: none.
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

// markGap is what may stand between a point and its mark: space, and what ends a sentence or an emphasis.
const markGap = " \t.,;:!?)*_\"'。，、！？…）”’»"

// linkTail matches the rest of a link behind its words.
var linkTail = regexp.MustCompile(`\]\([^()\s]{0,500}\)$`)

// markRun returns the marks in a row before and behind a point, in order. Only spaces and commas separate them.
func (c *candidate) markRun(at int) []Span {
	const between = " ,;"
	text := c.text.String()
	var run []Span
	head := text[:at]
	if trimmed := strings.TrimRight(head, markGap); len(head)-len(trimmed) <= maxMarkGap {
		head = trimmed
	}
	if strings.HasSuffix(text[max(0, at-1):at], ")") { // the mark may be the last of a link's words
		tail := linkTail.FindString(text[max(0, at-maxFileMark):at])
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

// takeMark divides the marks around a citation between the citations there and returns the place of this one.
func (c *candidate) takeMark(i int) place {
	p := c.cites[i].found
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
		to := c.cites[members[k]].found
		if mark.Len() > 0 {
			to.span, to.covers = mark, CoversLink
		}
		if members[k] == i {
			p = to
			continue
		}
		c.moveCite(members[k], to)
	}
	return p
}

// moveCite gives another place to a citation that has one, and tells of it.
func (c *candidate) moveCite(i int, to place) {
	cite := &c.cites[i]
	if cite.withdrawn || cite.place == to {
		return
	}
	if was := cite.span; c.linkEnds[was.End] == was.Start && i < c.linked {
		delete(c.linkEnds, was.End)
	}
	if cite.place = to; to.covers == CoversLink && i < c.linked {
		c.linkEnds[to.span.End] = to.span.Start
	}
	if cite.told && c.fold.onEvent != nil {
		c.emitCite(i, c.citation(cite))
	}
}

// takeMarks divides all marks anew, now that the whole text is there, and reports those that are nobody's.
func (c *candidate) takeMarks() {
	text := c.text.String()
	if !strings.Contains(text, markBegin) {
		return
	}
	c.markCites = nil
	for i := range c.cites {
		if !c.cites[i].withdrawn {
			c.moveCite(i, c.takeMark(i))
		}
	}
	if !c.closed || c.fold.format == Generic {
		return
	}
	taken := map[int]bool{}
	for i := range c.cites {
		if !c.cites[i].withdrawn && c.cites[i].covers == CoversLink {
			taken[c.cites[i].span.Start] = true
		}
	}
	for at := 0; ; at += len(markBegin) {
		n := strings.Index(text[at:], markBegin)
		if n < 0 {
			return
		}
		at += n
		if n := fileMarkAt(text[at:]); n > 0 && !taken[at] {
			c.fold.issue("marker-without-citation", text[at:at+n])
		}
	}
}

// divideMarks returns which mark of a run each of the citations takes; an empty one: none. One that a citation covers
// is its own. One that names a file is for the nearest citation of that file, and for none of another. The others go
// to the citations in the order in which both come, so that a later one takes nothing from a former.
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

// namesFile reports whether a mark names a file that a citation is of, or else one that it is not of. Many marks name
// none, and the files of some citations have no name.
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

// isFilename reports whether s looks like a file's name.
func isFilename(s string) bool {
	ext := path.Ext(s)
	return len(ext) >= 2 && len(ext) <= 6 && !strings.ContainsAny(ext, " ,;:")
}
