package ibid

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/text"
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
	// Note, if not nil, returns what else the list says of a source, in words, behind its site and pages; empty:
	// nothing. It is escaped for the style.
	Note func(*Source) string
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
	default:
		return r.markdown()
	}
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
}

// section is the text of one message.
type section struct {
	Span
	places places // without a document where nothing asks for it
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
		c := citing{span: markdown.Span(cite.Span), link: cite.Covers == CoversLink, index: i}
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
	if len(cites) == 0 && (r.Style == StyleMarkdown || r.Style == StylePlain) && !r.List {
		return
	}
	s.places = places{markdown.Parse(text)}
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

// tidy returns s on one line, without what cannot be seen and what turns the direction of text around: a name must not
// change how what stands beside it reads.
func tidy(s string) string { return text.Line(s, markdown.MaxTitle) }

// markdown renders the styles that keep the text: markdown, plain and footnotes.
func (r *rendering) markdown() string {
	var b strings.Builder
	b.Grow(len(r.answer.Text) + 64*len(r.markers))
	for i := range r.sections {
		r.writeSection(&b, &r.sections[i])
	}
	if r.List || r.Style == StyleFootnotes {
		if list := r.list(); list != "" {
			b.WriteString(r.sections[len(r.sections)-1].places.Closer())
			b.WriteString(text.BlankLine(b.String(), list))
			b.WriteString(list)
		}
	}
	return b.String()
}

// writeSection writes a section without what is cut out of it, and its markers.
func (r *rendering) writeSection(b *strings.Builder, s *section) {
	words := r.answer.Text[s.Start:s.End]
	if s.Start > 0 && words != "" {
		b.WriteString(text.BlankLine(b.String(), words))
	}
	at, cuts := 0, s.layout.cuts
	copyTo := func(end int) {
		for ; len(cuts) > 0 && cuts[0].Start < end; cuts = cuts[1:] {
			b.WriteString(words[at:max(at, cuts[0].Start)])
			at = max(at, cuts[0].End)
		}
		b.WriteString(words[at:max(at, end)])
		at = max(at, end)
	}
	for i := range s.layout.stops {
		st := &s.layout.stops[i]
		copyTo(st.at)
		m := &r.markers[s.first+i]
		if !st.own {
			r.writeMarker(b, m, st, words[at:])
			continue
		}
		b.WriteString(text.BlankLine(b.String(), ""))
		r.writeMarker(b, m, st, "")
		if strings.TrimSpace(words[at:]) != "" {
			b.WriteString(text.BlankLine("x", words[at:]))
		}
	}
	copyTo(len(words))
}

// writeMarker writes the marker m in front of next.
func (r *rendering) writeMarker(b *strings.Builder, m *Marker, st *stop, next string) {
	prev := b.String()
	var text, after string
	switch {
	case r.Marker != nil:
		text = r.Marker(*m)
	case r.Style == StylePlain:
		for _, it := range m.Items {
			text += "[" + r.label(it) + "]"
		}
	case r.Style == StyleFootnotes:
		for _, it := range m.Items {
			text += "[^" + r.footnoteLabel(it) + "]"
		}
		if next != "" && (next[0] == '(' || next[0] == ':') {
			after = " " // [^1]( could be a link and [^1]: a definition
		}
	default:
		text = r.linkMarker(m, prev, next)
	}
	if text == "" {
		return
	}
	if st.space || r.Style != StylePlain && text[0] == '[' && takesBracket(prev) {
		b.WriteByte(' ')
	}
	b.WriteString(text)
	b.WriteString(after)
}

// takesBracket reports whether an opening bracket right after s would mean something with what s ends in: ![ is an
// image, and ][ the label of a reference.
func takesBracket(s string) bool {
	return s != "" && (s[len(s)-1] == '!' || s[len(s)-1] == ']') && !markdown.EndsInEscape(s[:len(s)-1])
}

// footnoteLabel returns the label of a source's footnote. Labels are letters, digits, hyphens, dots and colons.
func (r *rendering) footnoteLabel(it MarkerItem) string {
	return r.labels + strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || strings.ContainsRune("-.:", c) || c >= 0xA0 {
			return c
		}
		return '-'
	}, r.label(it))
}

// footnotePrefix returns what to put before labels so that none is a label of the text already.
func (r *rendering) footnotePrefix() string {
	prefix := r.prefix
	for strings.Contains(r.answer.Text, "[^"+prefix) && (prefix != "" || r.usesLabel()) {
		prefix += "s"
	}
	return prefix
}

// usesLabel reports whether the text has a footnote with one of our labels.
func (r *rendering) usesLabel() bool {
	text := r.answer.Text
	for i := range r.answer.Sources {
		it := MarkerItem{Number: r.numbers[i], Source: &r.answer.Sources[i]}
		if strings.Contains(text, "[^"+r.footnoteLabel(it)+"]") {
			return true
		}
	}
	return false
}

// linkMarker returns m as markdown: a link for each source that can be opened, else its label in brackets. Brackets are
// escaped wherever they could be read as part of a link.
func (r *rendering) linkMarker(m *Marker, prev, next string) string {
	var b strings.Builder
	wasLink := false
	for i, it := range m.Items {
		label := r.label(it)
		url := markdown.SafeURL(it.Source.URL)
		if i > 0 && (url != "" || wasLink) {
			b.WriteByte(' ')
		}
		wasLink = url != ""
		switch {
		case url != "":
			b.WriteString("[" + escapeLabel(label) + "](" + markdownURL(url) + ")")
		case r.needsEscape(m, prev, next):
			b.WriteString(`\[` + escapeLabel(label) + `\]`)
		default:
			b.WriteString("[" + escapeLabel(label) + "]")
		}
	}
	return b.String()
}

// needsEscape reports whether a label in plain brackets could become a link, an image or a task box: before ( [ and :,
// after ] and !, at the start of a line, and where the text defines the label.
func (r *rendering) needsEscape(m *Marker, prev, next string) bool {
	if prev == "" || markdown.IsSpace(prev[len(prev)-1]) || takesBracket(prev) {
		return true
	}
	if next != "" && strings.IndexByte("([:", next[0]) >= 0 {
		return true
	}
	for i := range r.sections {
		d := r.sections[i].places.Document
		if d != nil && slices.ContainsFunc(m.Items, func(it MarkerItem) bool { return d.HasLabel(r.label(it)) }) {
			return true
		}
	}
	return false
}

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
		if !ok { // a marker in a footnote that is not shown
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

// edits returns what the layout changes about the section.
func (s *section) edits() markdown.Edits {
	e := markdown.Edits{Cuts: s.layout.cuts}
	for _, st := range s.layout.stops {
		e.Marks = append(e.Marks, markdown.Mark{At: st.at, Own: st.own, Space: st.space})
	}
	return e
}

// mostCited is how many citations are named for one stretch of text: those that come first in Answer.Citations. It
// keeps the work in the order of the citations, however deep their claims lie in each other.
const mostCited = 64

// claimEdges returns where in a section the claims of citations begin and end.
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
	in := make([]uint64, (len(r.answer.Citations)+63)/64) // a bit for each citation whose claim is open
	open := 0                                             // how many that are
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
		cites := make([]int, 0, min(open, mostCited))
		for k := 0; len(cites) < cap(cites); k++ {
			for word := in[k]; word != 0 && len(cites) < cap(cites); word &= word - 1 {
				cites = append(cites, 64*k+bits.TrailingZeros64(word))
			}
		}
		edges = append(edges, markdown.Edge{At: e.at, In: cites})
	}
	return edges
}

// Numbering keeps the numbers of sources over the answers of a conversation: [Source.Key] to number. It only grows, so
// a number never comes to mean another source. As JSON it is an object.
//
// The zero value is ready to use through a pointer. It is not safe for concurrent use.
type Numbering map[string]int

// Number returns the number of the source with that key. A key that is new gets the next number, the first one 1.
func (n *Numbering) Number(key string) int { return n.numberAll([]string{key})[key] }

// numberAll is Number for each of keys. It looks only once through what is numbered already.
func (n *Numbering) numberAll(keys []string) Numbering {
	if *n == nil {
		*n = make(Numbering, len(keys))
	}
	last := 0
	for _, number := range *n {
		last = max(last, number)
	}
	for _, key := range keys {
		if _, known := (*n)[key]; !known {
			last++
			(*n)[key] = last
		}
	}
	return *n
}
