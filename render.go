package ibid

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is a way to write an answer with its citations.
type Style string

// The styles. The zero Style, and any other, mean [StyleMarkdown].
const (
	StyleMarkdown  Style = "markdown"  // [1](https://…); several: [1](u) [2](v); a source without a URL: [1]
	StylePlain     Style = "plain"     // [1]; several: [1][2]; the text's own markdown stays as it is
	StyleHTML      Style = "html"      // the markdown as HTML, markers as <sup class="ibid">
	StyleFootnotes Style = "footnotes" // markdown with [^1] and a definition of each
	StyleLaTeX     Style = "latex"     // the markdown as LaTeX, markers as \cite; needs hyperref and ulem
)

// Styles returns all styles, the default first.
func Styles() []Style {
	return []Style{StyleMarkdown, StylePlain, StyleHTML, StyleFootnotes, StyleLaTeX}
}

// RenderOptions says how [Answer.Render] writes an answer. The zero value, and nil, mean markdown with numbers and
// without a list of sources.
type RenderOptions struct {
	Style Style
	// ByID writes [Source.ID] into the markers instead of the number.
	ByID bool
	// Marker, if not nil, writes the markers: what it returns goes into the output unchanged, so it escapes for the
	// style itself. It is called once for each place in the order of the text. The list of sources does not change with
	// it.
	Marker func(Marker) string
	// Cited, if not nil, says for StyleHTML what stands around visible words that lie in the claims of citations. It is
	// called for each stretch of text inside one element that lies in the same citations' claims, with their indices in
	// Answer.Citations, ascending; of more than 64 it gets the first. What it returns goes into the output unchanged,
	// so it must be tags that open and close there. Stretches do not overlap, and end at every tag and marker, but for
	// the element of inline math, which is in one as a whole. Without the strings that Cited returns, the output is
	// what it is without Cited.
	Cited func(citations []int) (before, after string)
	// Numbering gives the numbers, and takes up the sources it does not have yet. Nil: numbers start at 1.
	Numbering *Numbering
	// List appends the list of the cited sources, or says that there are none. StyleFootnotes always has its
	// definitions.
	List bool
	// Uncited adds the sources that no citation uses to the list, under a heading of their own. It does nothing without
	// List.
	Uncited bool
	// Quotes adds the sources' own words to the list, as far as citations have them.
	Quotes bool
	// IDPrefix begins the ids in HTML, the labels of footnotes and the keys in LaTeX, so that several answers fit into
	// one document. Letters, digits and hyphens only; everything else is left out of it.
	IDPrefix string
}

// Marker is what stands at one place of a rendered answer.
type Marker struct {
	At    int // the byte of Answer.Text that it stands before
	Items []MarkerItem
}

// MarkerItem is one source of a [Marker]. A source is one item, whatever number of citations use it there.
type MarkerItem struct {
	Number    int
	Source    *Source // of the Answer; not to be changed
	Citations []int   // which of Answer.Citations
}

// Render returns the text of the answer with a marker after the words of each citation, in opts.Style.
//
// Markers never change what the text's markdown means: they go after the words, the punctuation and the markup that a
// citation ends in, never into a word, a link, code or math, and never out of a list item or a table cell. A citation
// that ends in a code or HTML block has its marker in a paragraph of its own after the block, or inside lists and
// quotes at the end of the line before the block. Where the provider cites by a visible link or mark ([CoversLink]) the
// marker takes its place. Citations of one place share a marker, in which a source occurs once. Numbers are those of
// [Answer.Document]. Citations without a place have no marker; their sources are in the list.
//
// The text of each message is rendered alone, and a blank line keeps messages apart. Without citations the markdown,
// plain and footnote styles return the text as it is.
//
// Titles and URLs of sources are treated as hostile: only http, https and mailto addresses become links, and nothing in
// them can leave its place. HTML shows the text's own HTML as text and its images as links, so that opening an answer
// loads nothing.
func (a *Answer) Render(opts *RenderOptions) string {
	r := newRendering(a, opts)
	switch r.Style {
	case StyleHTML:
		return r.html()
	case StyleLaTeX:
		return r.latex()
	case StyleMarkdown, StylePlain, StyleFootnotes:
	}
	return r.markdown()
}

// SourceList returns the list of sources that Render appends with [RenderOptions].List, alone.
func (a *Answer) SourceList(opts *RenderOptions) string {
	var o RenderOptions
	if opts != nil {
		o = *opts
	}
	o.List = true
	return newRendering(a, &o).list()
}

// rendering is one call of Render.
type rendering struct {
	RenderOptions
	answer   *Answer
	sections []section
	numbers  []int // by index of Answer.Sources; 0: has none
	cited    []bool
	markers  []Marker // in the order of the text, over all sections
	prefix   string
	labels   string // what comes before the number in footnote labels
	runs     []run  // where the answer's text stands in what goldmark reads; in order
}

// section is the text of one message.
type section struct {
	Span
	places safePlaces
	layout layout
	first  int // index of its first marker
}

// newRendering lays the answer out and numbers its sources.
func newRendering(a *Answer, opts *RenderOptions) *rendering {
	r := &rendering{answer: a}
	if opts != nil {
		r.RenderOptions = *opts
	}
	r.Style = cmp.Or(r.Style, StyleMarkdown)
	r.prefix = strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || c == '-' {
			return c
		}
		return -1
	}, r.IDPrefix)
	r.cited = make([]bool, len(a.Sources))
	r.numbers = make([]int, len(a.Sources))
	sources := a.sourceIndexes()
	r.sections = sections(a)
	placed := r.assign(sources)
	for i := range r.sections {
		r.lay(&r.sections[i], placed[i])
	}
	r.number()
	if r.Style == StyleFootnotes {
		r.labels = r.footnotePrefix()
	}
	return r
}

// sections divides the text where the message changes.
func sections(a *Answer) []section {
	var out []section
	start := 0
	for i := 1; i < len(a.Parts); i++ {
		at := a.Parts[i].Start
		if a.Parts[i].Message == a.Parts[i-1].Message || at <= start || at >= len(a.Text) ||
			!utf8.RuneStart(a.Text[at]) {
			continue
		}
		out = append(out, section{Span: Span{start, at}})
		start = at
	}
	return append(out, section{Span: Span{start, len(a.Text)}})
}

// assign hands each citation with a place to the section that its span ends in.
func (r *rendering) assign(sources map[string]int) [][]citing {
	placed := make([][]citing, len(r.sections))
	for i := range r.answer.Citations {
		cite := &r.answer.Citations[i]
		c := citing{span: cite.Span, link: cite.Covers == CoversLink, index: i}
		for _, ref := range cite.Refs {
			if s, ok := sources[ref.Source]; ok {
				c.sources = append(c.sources, s)
				r.cited[s] = true
			}
		}
		if len(c.sources) == 0 || !cite.Placed() {
			continue
		}
		at, _ := slices.BinarySearchFunc(
			r.sections, c.span.End,
			func(s section, end int) int { return cmp.Compare(s.End, end) },
		)
		at = min(at, len(r.sections)-1)
		base := r.sections[at].Start
		c.span.Start -= base
		c.span.End -= base
		placed[at] = append(placed[at], c)
	}
	return placed
}

// lay finds the places of a section's markers.
func (r *rendering) lay(s *section, cites []citing) {
	text := r.answer.Text[s.Start:s.End]
	s.first = len(r.markers)
	if len(cites) == 0 && !r.needsTree() {
		return
	}
	s.places = newSafePlaces(text)
	s.layout = s.places.lay(cites, r.answer.Sources)
	for _, stop := range s.layout.stops {
		m := Marker{At: s.Start + stop.at}
		for _, c := range stop.cites {
			for _, src := range cites[c].sources {
				m.add(&r.answer.Sources[src], cites[c].index)
			}
		}
		r.markers = append(r.markers, m)
	}
}

// needsTree reports whether the style needs a section's structure even without citations.
func (r *rendering) needsTree() bool {
	return r.Style == StyleHTML || r.Style == StyleLaTeX || r.List || r.Style == StyleFootnotes
}

// add adds a use of src.
func (m *Marker) add(src *Source, citation int) {
	for i := range m.Items {
		if it := &m.Items[i]; it.Source == src {
			if it.Citations[len(it.Citations)-1] != citation {
				it.Citations = append(it.Citations, citation)
			}
			return
		}
	}
	m.Items = append(m.Items, MarkerItem{Source: src, Citations: []int{citation}})
}

// number numbers the sources by first use, then the uncited ones if they are listed.
func (r *rendering) number() {
	keys := numberKeys(r.answer)
	use := make([]string, 0, 2*len(keys))
	for _, i := range r.answer.firstUse() {
		use = append(use, keys[i])
	}
	if r.List && r.Uncited {
		use = append(use, keys...)
	}
	numbering := r.Numbering
	if numbering == nil {
		numbering = &Numbering{}
	}
	numbers := numbering.numberAll(use)
	index := make(map[*Source]int, len(keys))
	for i, key := range keys {
		r.numbers[i] = numbers[key]
		index[&r.answer.Sources[i]] = i
	}
	for m := range r.markers {
		items := r.markers[m].Items
		for i := range items {
			items[i].Number = r.numbers[index[items[i].Source]]
		}
		slices.SortStableFunc(items, func(a, b MarkerItem) int { return cmp.Compare(a.Number, b.Number) })
	}
}

// label returns what stands inside a marker for one source, not escaped.
func (r *rendering) label(it MarkerItem) string {
	if id := tidy(it.Source.ID); r.ByID && id != "" {
		return id
	}
	return strconv.Itoa(it.Number)
}

// tooLongTitle is how many runes of a name are shown.
const tooLongTitle = 200

// tidy returns s on one line, without control characters and without those that turn the direction of text around: a
// name must not change how what stands beside it reads.
func tidy(s string) string {
	var b strings.Builder
	space, n := false, 0
	for _, r := range s {
		switch {
		case r == ' ' || '\t' <= r && r <= '\r' || r == 0x85 || r == 0xA0 || r == 0x2028 || r == 0x2029:
			space = b.Len() > 0
			continue
		case r < ' ' || 0x7F <= r && r < 0xA0 || r == 0xFEFF || r == utf8.RuneError,
			0x200B <= r && r <= 0x200F && r != 0x200C && r != 0x200D, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F, r == 0x061C,
			0xFDD0 <= r && r <= 0xFDEF, 0xE000 <= r && r <= 0xF8FF, r&0xFFFE == 0xFFFE:
			continue
		}
		if n++; n > tooLongTitle {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
