package ibid

import (
	"cmp"
	"fmt"
	"html"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
)

// html renders the answer as HTML.
func (r *rendering) html() string {
	var b strings.Builder
	for i := range r.sections {
		s := &r.sections[i]
		text := r.answer.Text[s.Start:s.End]
		h := markdown.HTML{Edits: s.edits(), Around: r.Cited, Mark: func(i int) string {
			m := &r.markers[s.first+i]
			if r.Marker != nil {
				return r.Marker(*m)
			}
			return r.markerHTML(m)
		}}
		if r.Cited != nil {
			h.Edges = r.claimEdges(s)
		}
		if markdown.HasFootnotes(text) {
			h.Prefix = r.prefix + "text-"
			if i > 0 {
				h.Prefix += strconv.Itoa(i+1) + "-"
			}
		}
		out, ok := s.places.HTML(&h)
		if !ok { // a marker is in a footnote that is not shown
			h.Prefix = ""
			out, _ = places{markdown.Parse(text)}.HTML(&h)
		}
		b.WriteString(out)
	}
	if r.List {
		b.WriteString(r.list())
	}
	return b.String()
}

// latex renders the answer as the body of a LaTeX document.
func (r *rendering) latex() string {
	var b strings.Builder
	for i := range r.sections {
		s := &r.sections[i]
		b.WriteString(s.places.LaTeX(s.edits(), func(i int) string {
			m := &r.markers[s.first+i]
			if r.Marker != nil {
				return r.Marker(*m)
			}
			keys := make([]string, len(m.Items))
			for i, it := range m.Items {
				keys[i] = r.citeKey(it)
			}
			return "\\cite{" + strings.Join(keys, ",") + "}"
		}))
	}
	out := strings.TrimLeft(b.String(), "\n")
	if r.List {
		out += "\n" + r.list()
	}
	return out
}

// edits returns the changes of the layout to the section.
func (s *section) edits() markdown.Edits {
	e := markdown.Edits{Cuts: s.layout.cuts}
	for _, st := range s.layout.stops {
		e.Marks = append(e.Marks, markdown.Mark{At: st.at, Standalone: st.standalone, Space: st.space})
	}
	return e
}

// maxCited is the maximum number of citations passed for one stretch of text, the first in Answer.Citations. It keeps
// the work linear in the number of citations, however deeply their claims nest.
const maxCited = 64

// claimEdges returns where the claims of citations begin and end in a section.
func (r *rendering) claimEdges(s *section) []markdown.Edge {
	type event struct{ at, cite int }
	var events []event
	for i := range r.answer.Citations {
		c := &r.answer.Citations[i]
		if !c.Placed() || c.Claim.Len() == 0 || badSpan(r.answer.Text, c.Claim) != "" {
			continue
		}
		claim := Span{max(c.Claim.Start, s.Start) - s.Start, min(c.Claim.End, s.End) - s.Start}
		if claim.Len() <= 0 {
			continue
		}
		if math, ok := s.places.SolidAround(claim.Start); ok && math.Kind == markdown.MathSolid {
			claim.Start = math.Start
		}
		if math, ok := s.places.SolidAround(claim.End); ok && math.Kind == markdown.MathSolid {
			claim.End = math.End
		}
		events = append(events, event{claim.Start, i}, event{claim.End, i})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var edges []markdown.Edge
	in := make([]uint64, (len(r.answer.Citations)+63)/64) // bit set of the citations whose claim is open
	open := 0                                             // how many are
	for i, e := range events {
		bit := uint64(1) << (e.cite % 64)
		if in[e.cite/64] ^= bit; in[e.cite/64]&bit != 0 {
			open++
		} else {
			open--
		}
		if i+1 < len(events) && events[i+1].at == e.at {
			continue
		}
		cites := make([]int, 0, min(open, maxCited))
		for k := 0; len(cites) < cap(cites); k++ {
			for word := in[k]; word != 0 && len(cites) < cap(cites); word &= word - 1 {
				cites = append(cites, 64*k+bits.TrailingZeros64(word))
			}
		}
		edges = append(edges, markdown.Edge{At: e.at, In: cites})
	}
	return edges
}

// markerHTML returns a marker as HTML. Its links go to the list if there is one, else to the source itself.
func (r *rendering) markerHTML(m *Marker) string {
	var b strings.Builder
	b.WriteString(`<sup class="ibid">`)
	for i, it := range m.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		source := r.repeats.of(it.Source)
		if source.title == "" {
			name := sourceName(it.Source)
			title := name
			if d := sourceDetail(it.Source, name, source.url, nil); d != "" {
				title += " — " + d
			}
			source.title = ` title="` + html.EscapeString(title) + `"`
		}
		label, title, url := html.EscapeString(r.label(it)), source.title, source.url
		if r.List {
			url = ""
		}
		if url != "" {
			url = ` href="` + html.EscapeString(url) + `"`
		}
		if !r.repeats.allow(source, len(title)+len(url)) {
			title, url = "", ""
		}
		switch {
		case r.List:
			fmt.Fprintf(&b, `<a href="#%s"%s>%s</a>`, r.sourceAnchor(it.Number), title, label)
		case url != "":
			fmt.Fprintf(&b, `<a%s%s rel="noopener noreferrer nofollow">%s</a>`, url, title, label)
		default:
			fmt.Fprintf(&b, `<span%s>%s</span>`, title, label)
		}
	}
	return b.String() + "</sup>"
}

// sourceAnchor returns the HTML id of a source in the list.
func (r *rendering) sourceAnchor(number int) string {
	return r.prefix + "source-" + strconv.Itoa(number)
}

// htmlList writes the list of sources.
func (r *rendering) htmlList(b *strings.Builder, cited, uncited []entry) {
	b.WriteString("<section class=\"ibid-sources\">\n")
	if len(cited)+len(uncited) == 0 {
		b.WriteString("<p>" + r.noSources() + "</p>\n")
	}
	r.writeListHTML(b, listHeading, cited)
	r.writeListHTML(b, uncitedHeading, uncited)
	b.WriteString("</section>\n")
}

func (r *rendering) writeListHTML(b *strings.Builder, heading string, entries []entry) {
	if len(entries) == 0 {
		return
	}
	b.WriteString("<h2>" + heading + "</h2>\n<ol>\n")
	for _, e := range entries {
		fmt.Fprintf(b, `<li value="%d" id="%s">`, e.Number, r.sourceAnchor(e.Number))
		name := "<bdi>" + html.EscapeString(e.name) + "</bdi>"
		if e.url != "" {
			name = fmt.Sprintf(`<a href="%s" rel="noopener noreferrer nofollow">%s</a>`, html.EscapeString(e.url), name)
		}
		b.WriteString(name)
		if e.detail != "" {
			b.WriteString(" — <bdi>" + html.EscapeString(e.detail) + "</bdi>")
		}
		for _, q := range e.quotes {
			b.WriteString("\n<blockquote>" + html.EscapeString(q) + "</blockquote>")
		}
		b.WriteString("</li>\n")
	}
	b.WriteString("</ol>\n")
}

// citeKey returns the key of a source in the bibliography.
func (r *rendering) citeKey(it MarkerItem) string {
	if !r.ByID || it.Source.ID == "" {
		return r.prefix + "source-" + strconv.Itoa(it.Number)
	}
	return r.prefix + strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || c == '-' || c == '.' || c == ':' {
			return c
		}
		return '-'
	}, it.Source.ID)
}

// latexList writes the list of sources as a bibliography.
func (r *rendering) latexList(b *strings.Builder, cited, uncited []entry) {
	if len(cited)+len(uncited) == 0 {
		b.WriteString(r.noSources() + "\n")
		return
	}
	if len(cited) > 0 {
		widest := 0
		for _, e := range cited {
			widest = max(widest, e.Number)
		}
		fmt.Fprintf(b, "\\begin{thebibliography}{%d}\n", widest)
		for _, e := range cited {
			label := strconv.Itoa(e.Number)
			if r.ByID {
				label = "{" + markdown.EscapeLaTeX(r.label(e.MarkerItem)) + "}"
			}
			fmt.Fprintf(b, "\\bibitem[%s]{%s} %s\n", label, r.citeKey(e.MarkerItem), latexEntry(&e))
		}
		b.WriteString("\\end{thebibliography}\n")
	}
	if len(uncited) > 0 {
		b.WriteString("\\paragraph*{" + uncitedHeading + "}\n\\begin{itemize}\n")
		for _, e := range uncited {
			fmt.Fprintf(b, "\\item[%d.] %s\n", e.Number, latexEntry(&e))
		}
		b.WriteString("\\end{itemize}\n")
	}
}

// latexEntry returns a source in LaTeX, without its number.
func latexEntry(e *entry) string {
	out := markdown.EscapeLaTeX(e.name)
	if e.url != "" {
		out = "\\href{" + markdown.LaTeXURL(e.url) + "}{" + out + "}"
	}
	if e.detail != "" {
		out += " --- " + markdown.EscapeLaTeX(e.detail)
	}
	for _, q := range e.quotes {
		out += " ``" + markdown.EscapeLaTeX(q) + "''"
	}
	return out
}
