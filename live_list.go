package ibid

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The headings of what stands between the text and the sources.
const (
	lateHeading      = "Also cited"
	withdrawnHeading = "No longer cited"
)

// end writes what is left, then the lists. A nil answer means that the response broke off.
func (l *Live) end(a *Answer) {
	l.ended = true
	opts := l.options()
	switch {
	case l.whole(), !l.text.filled && l.text.from == 0:
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

// endText ends a text that was written as it came.
func (l *Live) endText(a *Answer) {
	last := l.lastBlock()
	l.endSection()
	if a == nil {
		a = l.known()
	}
	lists := l.lateLists(a)
	l.numberAll(a)
	if l.List || l.Style == StyleFootnotes {
		lists = append(lists, l.sourceList(a))
	}
	for i, list := range lists {
		if n := len(last.blocks); i == 0 && n > 0 {
			l.out.raw(last.blocks[n-1].closer)
		}
		l.out.raw(blankLine(l.out.tail, list))
		l.out.raw(list)
	}
}

// lastBlock parses the block that is still open.
func (l *Live) lastBlock() *tree { return parseTree(string(l.text.buf)) }

// known returns an answer of what events told, without text.
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

// lateCite is a line of the lists of citations: what is cited, by what.
type lateCite struct {
	Span // in the answer's text
	ids  []string
}

// lateLists returns the citations whose markers the text does not have, and those whose markers it should not have.
// Without the words there is nothing to say; the sources have their list.
func (l *Live) lateLists(a *Answer) []string {
	var late, gone []lateCite
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
		out = append(out, l.lateLines(lateHeading, late, a.Text))
	}
	if a.Text != "" && len(gone) > 0 {
		out = append(out, l.lateLines(withdrawnHeading, gone, a.Text))
	}
	return out
}

// lateLines returns a list of citations with its heading.
func (l *Live) lateLines(heading string, list []lateCite, text string) string {
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
				sources = append(sources, l.source(id)) // the marker has each of them once
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
		l.marker(sources, &stop{}, safePlaces{}, "\n")
		l.out.raw("\n")
	}
	out := string(l.out.buf)
	l.out = saved
	return out
}

// quoted returns the words of a span in quotes, on one line and not too long.
func quoted(text string, s Span) string {
	if s.Start < 0 || s.End > len(text) || s.Start >= s.End || !utf8.ValidString(text[s.Start:s.End]) {
		return ""
	}
	if words := tidy(text[s.Start:s.End]); words != "" {
		return "“" + words + "”"
	}
	return ""
}

// sourceList returns the list of sources with the numbers they were shown with.
func (l *Live) sourceList(a *Answer) string {
	r := rendering{
		RenderOptions: l.options(), answer: a,
		numbers: make([]int, len(a.Sources)), cited: make([]bool, len(a.Sources)),
	}
	for i := range a.Sources {
		r.numbers[i] = l.numbers[a.Sources[i].ID]
		r.cited[i] = r.numbers[i] > 0
	}
	return r.list()
}

// numberAll numbers what citations use that were not shown, as Render does.
func (l *Live) numberAll(a *Answer) {
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			l.number(l.source(ref.Source))
		}
	}
}
