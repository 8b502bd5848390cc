package ibid

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// citing is a citation as laying out a text sees it.
type citing struct {
	span    Span // of the text at hand
	link    bool // span is a visible link or mark, which the marker replaces
	sources []int
	index   int // of Answer.Citations
}

// stop is one place of a text with the markers that stand there.
type stop struct {
	spot
	cites []int // indices of the citings
}

// layout says where the markers of one text go and what of it goes for them. Both lists are in the order of the text,
// and no stop lies inside a cut.
type layout struct {
	stops []stop
	cuts  []Span
}

// visible is a link or mark in the text that its citation's marker replaces, or a run of such.
type visible struct {
	Span
	line  Span
	prose bool // a link with words of its own, not parenthesised
	cites []int
	spot
}

// lay finds the stops for cites.
func (p safePlaces) lay(cites []citing, sources []Source) layout {
	var out layout
	links := p.visibles(cites, sources)
	taken := make(map[int]bool, len(cites))
	for i := range links {
		v := &links[i]
		p.replace(v)
		out.cuts = append(out.cuts, v.Span)
		out.stops = append(out.stops, stop{v.spot, v.cites})
		for _, c := range v.cites {
			taken[c] = true
		}
	}
	for i := range cites {
		if taken[i] {
			continue
		}
		s := p.after(cites[i].span.End)
		if at, _ := slices.BinarySearchFunc(
			links, s.at+1,
			func(v visible, at int) int { return cmp.Compare(v.Start, at) },
		); at > 0 &&
			!s.own {
			if v := links[at-1]; s.at <= max(v.End, v.at) {
				s = v.spot // it would stand before or in what is replaced: the markers are one group
			}
		}
		out.stops = append(out.stops, stop{s, []int{i}})
	}
	slices.SortStableFunc(out.stops, func(a, b stop) int { return cmp.Compare(a.at, b.at) })
	out.stops = joinStops(out.stops)
	return out
}

// joinStops makes one stop of those at the same place.
func joinStops(stops []stop) []stop {
	out := stops[:0]
	for _, s := range stops {
		if n := len(out); n > 0 && out[n-1].at == s.at {
			out[n-1].cites = append(out[n-1].cites, s.cites...)
			out[n-1].own = out[n-1].own || s.own
			out[n-1].space = out[n-1].space || s.space
			continue
		}
		out = append(out, s)
	}
	for i := range out {
		slices.Sort(out[i].cites)
	}
	return out
}

// visibles returns the links and marks to be replaced, in order. Those that only commas and spaces separate are one.
func (p safePlaces) visibles(cites []citing, sources []Source) []visible {
	var all []visible
	for i := range cites {
		if !cites[i].link {
			continue
		}
		if v, ok := p.visible(&cites[i], sources); ok {
			v.cites = []int{i}
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b visible) int { return cmp.Compare(a.Start, b.Start) })
	out := all[:0]
	for _, v := range all {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if v.Start <= last.End || v.line == last.line && strings.Trim(p.text[last.End:v.Start], " ,;") == "" {
				last.End = max(last.End, v.End)
				last.prose = last.prose && v.prose
				last.cites = append(last.cites, v.cites...)
				continue
			}
		}
		out = append(out, v)
	}
	for i := range out {
		p.widen(&out[i])
	}
	return slices.DeleteFunc(out, p.isProse)
}

// visible returns c's link, if its whole span is one and stands in a line of content. A span inside a link, in code or
// around other words is none: nothing the reader needs may go.
func (p safePlaces) visible(c *citing, sources []Source) (visible, bool) {
	s := c.span
	if s.Start < 0 || s.End > len(p.text) || s.Start >= s.End {
		return visible{}, false
	}
	for s.Start < s.End && isSpaceByte(p.text[s.Start]) {
		s.Start++
	}
	for s.Start < s.End && isSpaceByte(p.text[s.End-1]) {
		s.End--
	}
	line, ok := p.lineAt(s.End)
	if !ok || s.Start < line.Start || !isMarks(p.text[s.Start:s.End]) {
		return visible{}, false
	}
	for _, at := range [...]int{s.Start, s.End} {
		if _, ok := p.solidAround(at); ok {
			return visible{}, false
		}
	}
	if h, ok := p.solidAt(s.Start); ok && h.kind == codeSolid {
		return visible{}, false
	}
	return visible{Span: s, line: line, prose: isProseLink(p.text[s.Start:s.End], c, sources)}, true
}

// widen takes the parentheses around v into it.
func (p safePlaces) widen(v *visible) {
	if v.Start > v.line.Start && v.End < v.line.End && p.text[v.Start-1] == '(' && p.text[v.End] == ')' {
		v.Start--
		v.End++
		v.prose = false
	}
}

// isProse reports whether v is part of a sentence, which would lose its words with it: "According to [Reuters](u), …",
// or a list of titles. A link that follows its sentence is a citation and no such part.
func (p safePlaces) isProse(v visible) bool {
	if !v.prose {
		return false
	}
	before := strings.TrimRight(p.text[v.line.Start:v.Start], " \t")
	if strings.Trim(before, "*_~") == "" {
		return true
	}
	after := strings.TrimLeft(p.text[v.End:v.line.End], "*_~ \t")
	return after != "" && !endsSentence(before) && strings.IndexByte(".!?", after[0]) < 0
}

// replace decides what goes with v and where its marker stands. The space before goes too, and of two equal full stops
// around it the second.
func (p safePlaces) replace(v *visible) {
	before := strings.TrimRight(p.text[v.line.Start:v.Start], " \t")
	after := p.text[v.End:v.line.End]
	if before == "" || isDelimiter(before[len(before)-1]) && after != "" && isDelimiter(after[0]) {
		v.spot = spot{at: v.End} // alone on its line or in its emphasis
		return
	}
	v.Start = v.line.Start + len(before)
	if last, n := utf8.DecodeLastRuneInString(
		before,
	); endsSentence(before) && strings.HasPrefix(after, before[len(before)-n:]) &&
		last != utf8.RuneError {
		v.End += n
	}
	v.spot = p.after(v.End)
	if v.at < v.End || v.own { // in gaps only; the text is odd, the marker takes the link's place
		v.spot = spot{at: v.End}
	}
	// What stands before the marker is now what stood before the cut.
	if v.at == v.End {
		v.space = p.needsSpace(v.Start, v.line)
	}
}

// endsSentence reports whether s ends in a full stop, or what does its work.
func endsSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?。！？…", r)
}

// isProseLink reports whether a link's text is words of the answer rather than a number or the name of its source.
func isProseLink(s string, c *citing, sources []Source) bool {
	label, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "](")
	if !ok || s[0] != '[' {
		return false
	}
	label = strings.Trim(label, "[]*_`\\ ")
	if !strings.ContainsFunc(label, unicode.IsLetter) {
		return false
	}
	for _, i := range c.sources {
		src := &sources[i]
		for _, name := range [...]string{src.Title, src.Site, src.Filename, src.URL, src.ID, hostOf(src.URL)} {
			if name != "" && strings.EqualFold(name, label) {
				return false
			}
		}
	}
	return true
}

// isMarks reports whether s is nothing but links and marks: ([a](u)), [a](u), [[1]](u), [1], [doc1], 【1†a】, <u>, http://u.
func isMarks(s string) bool {
	found := false
	for s != "" {
		n := markLen(s)
		switch {
		case n > 0:
			found = true
		case strings.IndexByte(" ,;|()", s[0]) >= 0:
			n = 1
		default:
			return false
		}
		s = s[n:]
	}
	return found
}

// markLen returns the length of the link or mark at the start of s; 0: none.
func markLen(s string) int {
	switch {
	case s[0] == '[':
		n := balanced(s, '[', ']')
		if n > 0 && n < len(s) && s[n] == '(' {
			if m := balanced(s[n:], '(', ')'); m > 0 {
				n += m
			}
		}
		return n
	case strings.HasPrefix(s, "【"):
		if i := strings.Index(s, "】"); i > 0 {
			return i + len("】")
		}
	case s[0] == '<':
		if i := strings.IndexAny(s[1:], "<> "); i > 0 && s[i+1] == '>' {
			return i + 2
		}
	case strings.HasPrefix(s, "http://"), strings.HasPrefix(s, "https://"), strings.HasPrefix(s, "sandbox:/"):
		if i := strings.IndexAny(s, " \t\n)>"); i > 0 {
			return i
		}
		return len(s)
	}
	return 0
}

// balanced returns the length of the bracketed run at the start of s; 0: it does not end.
func balanced(s string, opening, closing byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
