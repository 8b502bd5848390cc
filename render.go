package ibid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/text"
)

// Style is a way to write an answer with its citations.
type Style string

// The styles. The zero Style and unknown styles mean [StyleMarkdown].
const (
	StyleMarkdown  Style = "markdown"  // [1](https://…); several: [1](u) [2](v); without a URL: [1]
	StylePlain     Style = "plain"     // [1]; several: [1][2]; the text's own markdown is kept
	StyleHTML      Style = "html"      // the markdown as HTML, with markers as <sup class="ibid">
	StyleFootnotes Style = "footnotes" // markdown with [^1] and the definitions
	StyleLaTeX     Style = "latex"     // the markdown as LaTeX, with markers as \cite; needs hyperref and ulem
)

// Styles returns all styles, the default first.
func Styles() []Style {
	return []Style{StyleMarkdown, StylePlain, StyleHTML, StyleFootnotes, StyleLaTeX}
}

// RenderOptions controls how [Answer.Render] writes an answer. With nil or the zero value, it writes markdown with
// numbers and without a list of sources.
type RenderOptions struct {
	Style Style
	// ByID writes [Source.ID] into the markers instead of the number.
	ByID bool
	// Marker, if not nil, returns the markers. They go into the output unchanged, so Marker must escape for the style.
	// It is called once for each place, in the order of the text. It does not affect the list of sources.
	Marker func(Marker) string
	// Cited, if not nil, wraps visible words in the claims of citations (StyleHTML only). It is called for each stretch
	// of text within one element that lies in the claims of the same citations, with their indexes in Answer.Citations,
	// ascending and at most the first 64. The strings it returns are put before and after the stretch unchanged, so
	// they must be matching tags. Stretches do not overlap and end at every tag and marker, except that an element of
	// inline math lies in one as a whole. Cited changes nothing else in the output.
	Cited func(citations []int) (before, after string)
	// Numbering assigns the numbers and is extended by new sources. If nil, numbers start at 1.
	Numbering *Numbering
	// List appends a list of the cited sources, or a line saying that there are none. StyleFootnotes always has its
	// definitions.
	List bool
	// NoList leaves out a list of sources that the model itself printed at the end of the text. Without it, such a list
	// stays, and List appends none if it names all cited sources.
	NoList bool
	// Numbers is which numbers the sources get.
	Numbers Numbers
	// Uncited adds uncited sources to the list, under their own heading. It has no effect without List.
	Uncited bool
	// Quotes adds the quotes of citations to the list.
	Quotes bool
	// Note, if not nil, returns plain text to show in the list after the site and pages of a source; empty for none.
	// Render escapes it for the style.
	Note func(*Source) string
	// IDPrefix is the prefix of ids in HTML, footnote labels and LaTeX keys, so that several answers fit into one
	// document. All characters but letters, digits and hyphens are removed from it.
	IDPrefix string
	// Context, if not nil, ends Render soon after it has ended itself: what Render returns is then empty, or complete.
	Context context.Context //nolint:containedctx // options of one call

	halt *halt.Halt
}

// Marker is the citation marker at one place of a rendered answer.
type Marker struct {
	At    int // the byte of Answer.Text that it precedes
	Items []MarkerItem
}

// MarkerItem is one source of a [Marker]. A source is one item, however many citations use it there.
type MarkerItem struct {
	Number    int
	Source    *Source // in Answer.Sources; must not be modified
	Citations []int   // indexes in Answer.Citations
}

// Render returns the text of the answer with a marker after the words of each citation, in opts.Style.
//
// Markers never change the meaning of the text's markdown: they follow the words, punctuation and markup at the end of
// a citation, are never put into a word, a link, code or math, and never leave a list item or a table cell. If a
// citation ends in a code or HTML block, its marker is a separate paragraph after the block or, inside lists and
// quotes, at the end of the line before the block. If the provider cites by a visible link or mark ([CoversLink]), the
// marker replaces it. Citations at one place share a marker, in which a source occurs once. Numbers are those of
// [Answer.Document]. Citations without a place have no marker; their sources are in the list.
//
// The text of each message is rendered separately, with a blank line between messages. Without citations, the markdown,
// plain and footnote styles return the text unchanged.
//
// Titles and URLs of sources are untrusted: only http, https and mailto addresses become links, and nothing can escape
// its context. In HTML, the text's own HTML is shown as text and its images as links, so that opening an answer loads
// nothing.
func (a *Answer) Render(opts *RenderOptions) string {
	if opts == nil || opts.Context == nil {
		return a.render(opts)
	}
	o, out := *opts, ""
	_ = halt.Do(o.Context, func(h *halt.Halt) {
		o.halt = h
		out = a.render(&o)
	})
	return out
}

func (a *Answer) render(opts *RenderOptions) string {
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

// SourceList returns only the list of sources that Render appends with [RenderOptions].List.
func (a *Answer) SourceList(opts *RenderOptions) string {
	var o RenderOptions
	if opts != nil {
		o = *opts
	}
	o.List = true
	return newRendering(a, &o).list()
}

// rendering is the state of one call of Render.
type rendering struct {
	RenderOptions
	answer   *Answer
	sections []section
	numbers  []int // by index in Answer.Sources; 0 for none
	cited    []bool
	markers  []Marker // of all sections, in the order of the text
	prefix   string
	labels   string // prefix of footnote labels
	repeats  *repeats
}

// section is the text of one message.
type section struct {
	Span
	places places // without a document if it is not needed
	layout layout
	first  int // index of its first marker
}

// sectionsOf returns the sections of an answer: one begins where the message changes.
func sectionsOf(a *Answer) (sections []section) {
	start := 0
	for i := 1; i < len(a.Parts); i++ {
		at := a.Parts[i].Start
		if a.Parts[i].Message == a.Parts[i-1].Message || at <= start || at >= len(a.Text) ||
			!utf8.RuneStart(a.Text[at]) {
			continue
		}
		sections = append(sections, section{Span: Span{start, at}})
		start = at
	}
	return append(sections, section{Span: Span{start, len(a.Text)}})
}

// newRendering places the markers of the answer and numbers its sources.
func newRendering(a *Answer, opts *RenderOptions) *rendering {
	r := &rendering{answer: a}
	if opts != nil {
		r.RenderOptions = *opts
	}
	if r.NoList {
		if a = a.withoutPrintedList(); a != r.answer {
			r.Numbers = cmp.Or(r.Numbers, NumbersProvider)
		}
		r.answer = a
	}
	r.Style = cmp.Or(r.Style, StyleMarkdown)
	r.prefix = strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || c == '-' {
			return c
		}
		return -1
	}, r.IDPrefix)
	r.numbers, r.cited = r.Numbering.number(a, r.List && r.Uncited, r.Numbers)
	r.sections = sectionsOf(a)
	sources := a.sourceIndexes()
	placed := make([][]layoutCite, len(r.sections)) // citations by the section in which their span ends
	for i := range a.Citations {
		r.halt.Check()
		cite := &a.Citations[i]
		c := layoutCite{span: markdown.Span(cite.Span), link: cite.Covers == CoversLink, index: i}
		for _, ref := range cite.Refs {
			if s, ok := sources[ref.Source]; ok {
				c.sources = append(c.sources, s)
			}
		}
		if len(c.sources) == 0 || !cite.Placed() {
			continue
		}
		in, _ := slices.BinarySearchFunc(r.sections, c.span.End, func(s section, end int) int { return s.End - end })
		in = min(in, len(r.sections)-1)
		c.span.Start -= r.sections[in].Start
		c.span.End -= r.sections[in].Start
		placed[in] = append(placed[in], c)
	}
	for i := range r.sections {
		s, cites := &r.sections[i], placed[i]
		s.first = len(r.markers)
		if len(cites) == 0 && (r.Style == StyleMarkdown || r.Style == StylePlain) && !r.List {
			continue
		}
		s.places = places{markdown.ParseUntil(r.halt, a.Text[s.Start:s.End])}
		s.layout = s.places.layOut(r.halt, cites, a.Sources)
		for _, stop := range s.layout.stops {
			m := Marker{At: s.Start + stop.at}
			for _, c := range stop.cites {
				for _, src := range cites[c].sources {
					m.add(MarkerItem{Number: r.numbers[src], Source: &a.Sources[src]}, cites[c].index)
				}
			}
			slices.SortStableFunc(m.Items, func(a, b MarkerItem) int { return cmp.Compare(a.Number, b.Number) })
			r.markers = append(r.markers, m)
		}
	}
	if r.Style == StyleFootnotes {
		r.labels = r.freeLabels()
	}
	r.repeats = &repeats{size: len(a.Text) + citationSize*len(a.Citations)}
	return r
}

// A marker repeats its source's address and title, which may be as long as the answer. Beyond these bounds, only the
// first marker of each source has them.
const (
	repeatFloor  = 256 << 10 // bytes
	repeatPer    = 4         // bytes per byte of the answer
	citationSize = 64        // of a citation, as part of the answer's size
)

// repeats counts what markers repeat, and keeps it.
type repeats struct {
	size    int // of the answer
	bytes   int
	sources map[*Source]*sourceText
}

// sourceText is what the markers of one source repeat.
type sourceText struct {
	url     string // safe; empty if there is none
	title   string // the attribute in HTML, once it was needed
	written bool
}

// of returns what the markers of s repeat.
func (r *repeats) of(s *Source) *sourceText {
	known := r.sources[s]
	if known == nil {
		if r.sources == nil {
			r.sources = map[*Source]*sourceText{}
		}
		known = &sourceText{url: markdown.SafeURL(s.URL)}
		r.sources[s] = known
	}
	return known
}

// allow reports whether another marker may be written with n bytes of them.
func (r *repeats) allow(s *sourceText, n int) bool {
	switch {
	case !s.written:
		s.written = true
	case n > repeatFloor+repeatPer*r.size-r.bytes:
		return false
	default:
		r.bytes += n
	}
	return true
}

// add records that a citation uses the source of item.
func (m *Marker) add(item MarkerItem, citation int) {
	for i := range m.Items {
		if it := &m.Items[i]; it.Source == item.Source {
			if it.Citations[len(it.Citations)-1] != citation {
				it.Citations = append(it.Citations, citation)
			}
			return
		}
	}
	item.Citations = []int{citation}
	m.Items = append(m.Items, item)
}

// label returns the unescaped text for one source in a marker.
func (r *rendering) label(it MarkerItem) string {
	if id := tidy(it.Source.ID); r.ByID && id != "" {
		return id
	}
	return strconv.Itoa(it.Number)
}

// tidy returns s on one line, without invisible characters and those that change the direction of text, so that a name
// cannot alter how its surroundings read.
func tidy(s string) string { return text.Line(s, markdown.MaxTitle) }

// markdown renders the styles that keep the text: markdown, plain and footnotes.
func (r *rendering) markdown() string {
	var b strings.Builder
	b.Grow(len(r.answer.Text) + 64*len(r.markers))
	for i := range r.sections {
		s := &r.sections[i]
		words := r.answer.Text[s.Start:s.End]
		if s.Start > 0 && words != "" {
			b.WriteString(text.BlankLine(b.String(), words))
		}
		at, cuts := 0, s.layout.cuts
		copyTo := func(end int) { // except for the cuts
			for ; len(cuts) > 0 && cuts[0].Start < end; cuts = cuts[1:] {
				b.WriteString(words[at:max(at, cuts[0].Start)])
				at = max(at, cuts[0].End)
			}
			b.WriteString(words[at:max(at, end)])
			at = max(at, end)
		}
		for k := range s.layout.stops {
			r.halt.Check()
			st := &s.layout.stops[k]
			copyTo(st.at)
			m := &r.markers[s.first+k]
			if !st.standalone {
				r.writeMarker(&b, m, st, words[at:])
				continue
			}
			b.WriteString(text.BlankLine(b.String(), ""))
			r.writeMarker(&b, m, st, "")
			if strings.TrimSpace(words[at:]) != "" {
				b.WriteString(text.BlankLine("x", words[at:]))
			}
		}
		copyTo(len(words))
	}
	if r.List && !r.answer.printsAll(r.numbers, r.cited) || r.Style == StyleFootnotes {
		if list := r.list(); list != "" {
			b.WriteString(r.sections[len(r.sections)-1].places.Closer())
			b.WriteString(text.BlankLine(b.String(), list))
			b.WriteString(list)
		}
	}
	return b.String()
}

// writeMarker writes the marker m before next.
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
			after = " " // [^1]( could be read as a link and [^1]: as a definition
		}
	default:
		// A link for each source with a safe URL, else its label in brackets, escaped if they could be read as part of
		// a link.
		var links strings.Builder
		wasLink := false
		for i, it := range m.Items {
			label, source := r.label(it), r.repeats.of(it.Source)
			url := source.url
			if r.ByID {
				label = escapeLabel(label)
			}
			if url != "" && !r.repeats.allow(source, len(url)) {
				url = ""
			}
			if i > 0 && (url != "" || wasLink) {
				links.WriteByte(' ')
			}
			wasLink = url != ""
			switch {
			case wasLink:
				links.WriteString("[" + label + "](" + markdownURL(url) + ")")
			case r.needsEscape(m, prev, next):
				links.WriteString(`\[` + label + `\]`)
			default:
				links.WriteString("[" + label + "]")
			}
		}
		text = links.String()
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

// takesBracket reports whether an opening bracket after s would form markup with the end of s: ![ begins an image, and
// ][ the label of a reference.
func takesBracket(s string) bool {
	return s != "" && (s[len(s)-1] == '!' || s[len(s)-1] == ']') && !markdown.EndsInEscape(s[:len(s)-1])
}

// footnoteLabel returns the label of a source's footnote, of letters, digits, hyphens, dots and colons.
func (r *rendering) footnoteLabel(it MarkerItem) string {
	return r.labels + strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || strings.ContainsRune("-.:", c) || c >= 0xA0 {
			return c
		}
		return '-'
	}, r.label(it))
}

// freeLabels returns a prefix for our labels with which none of them equals a label in the text.
func (r *rendering) freeLabels() string {
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

// entry is one line of a list of sources.
type entry struct {
	MarkerItem
	name   string // never empty
	url    string // safe; empty if there is no link
	detail string // site, pages; or the address if it must not be linked
	quotes []string
}

// The headings of the list.
const (
	listHeading    = "Sources"
	uncitedHeading = "Not cited"
)

// noSources returns the line shown instead of an empty list.
func (r *rendering) noSources() string {
	if len(r.answer.Sources) > 0 {
		return "No sources cited."
	}
	return "No sources."
}

// entries returns the cited sources and, if requested, the uncited ones, each sorted by number.
func (r *rendering) entries() (cited, uncited []entry) {
	// the cited pages and quotes, by source
	pages, quotes := make([][]Span, len(r.numbers)), make([][]string, len(r.numbers))
	index := r.answer.sourceIndexes()
	for i := range r.answer.Citations {
		for _, ref := range r.answer.Citations[i].Refs {
			s, ok := index[ref.Source]
			if !ok {
				continue
			}
			if l := ref.Locator; l != nil {
				p := Span{l.Page, l.Page} // first and last page
				if len(l.Pages) > 0 {
					p = Span{l.Pages[0], max(l.Pages[0], l.Pages[len(l.Pages)-1])}
				}
				if p.Start > 0 && !slices.Contains(pages[s], p) {
					pages[s] = append(pages[s], p)
				}
			}
			if q := tidy(ref.Quote); r.Quotes && q != "" && !slices.Contains(quotes[s], q) {
				quotes[s] = append(quotes[s], q)
			}
		}
	}
	for i := range r.answer.Sources {
		if r.numbers[i] == 0 {
			continue
		}
		src := &r.answer.Sources[i]
		item := MarkerItem{Number: r.numbers[i], Source: src}
		e := entry{MarkerItem: item, name: sourceName(src), url: markdown.SafeURL(src.URL), quotes: quotes[i]}
		e.detail = sourceDetail(src, e.name, e.url, pages[i])
		if r.Note != nil {
			if note := tidy(r.Note(src)); note != "" {
				e.detail = strings.TrimPrefix(e.detail+", "+note, ", ")
			}
		}
		if r.cited[i] {
			cited = append(cited, e)
		} else if r.Uncited {
			uncited = append(uncited, e)
		}
	}
	byNumber := func(a, b entry) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortFunc(cited, byNumber)
	slices.SortFunc(uncited, byNumber)
	return cited, uncited
}

// sourceName returns the name under which a source is shown.
func sourceName(s *Source) string {
	for _, name := range [...]string{s.Title, s.Filename, s.Site, sourceHost(s), s.URL, s.ID} {
		if name = tidy(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// sourceDetail returns what the list shows after the name.
func sourceDetail(s *Source, name, url string, pages []Span) string {
	var out []string
	for _, d := range [...]string{tidy(cmp.Or(s.Site, sourceHost(s))), tidy(s.Filename)} {
		if d != "" && d != name && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if raw := tidy(s.URL); url == "" && raw != "" && raw != name {
		out = append(out, raw)
	}
	slices.SortFunc(pages, func(a, b Span) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	for i, p := range pages { // p. 3; pp. 3, 5–7
		word := strconv.Itoa(p.Start)
		if p.End > p.Start {
			word += "–" + strconv.Itoa(p.End)
		}
		switch {
		case i > 0:
		case len(pages) > 1 || p.End > p.Start:
			word = "pp. " + word
		default:
			word = "p. " + word
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

// list returns the list of sources in the style.
func (r *rendering) list() string {
	cited, uncited := r.entries()
	var b strings.Builder
	switch r.Style {
	case StyleHTML:
		r.htmlList(&b, cited, uncited)
	case StyleLaTeX:
		r.latexList(&b, cited, uncited)
	case StyleFootnotes:
		r.footnoteList(&b, cited, uncited)
	default:
		write := markdownEntries
		if r.Style == StylePlain {
			write = r.plainEntries
		}
		if len(cited) > 0 {
			b.WriteString(listHeading + ":\n\n")
			write(&b, cited)
		}
		if len(uncited) > 0 {
			b.WriteString(text.BlankLine(b.String(), "") + uncitedHeading + ":\n\n")
			write(&b, uncited)
		}
		if b.Len() == 0 {
			b.WriteString(r.noSources() + "\n")
		}
	}
	return b.String()
}

// plainEntries writes one line for each source: [1] title — site, page — URL.
func (r *rendering) plainEntries(b *strings.Builder, entries []entry) {
	for _, e := range entries {
		fmt.Fprintf(b, "[%s] %s", r.label(e.MarkerItem), e.name)
		if e.detail != "" {
			b.WriteString(" — " + e.detail)
		}
		if e.url != "" && e.url != e.name {
			b.WriteString(" — " + e.url)
		}
		b.WriteByte('\n')
		for _, q := range e.quotes {
			b.WriteString("    “" + q + "”\n")
		}
	}
}

// markdownEntries writes an ordered list. Markdown numbers list items consecutively, so if the numbers have gaps, each
// source is a paragraph instead.
func markdownEntries(b *strings.Builder, entries []entry) {
	counts := true
	for i, e := range entries {
		// a list mark has at most nine digits
		counts = counts && e.Number == entries[0].Number+i && e.Number < 1e9
	}
	for i, e := range entries {
		indent := ""
		if counts {
			fmt.Fprintf(b, "%d. ", e.Number)
			indent = strings.Repeat(" ", len(strconv.Itoa(e.Number))+2)
		} else {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(b, "%d\\. ", e.Number)
		}
		if e.url != "" {
			b.WriteString("[" + escapeMarkdown(e.name) + "](" + markdownURL(e.url) + ")")
		} else {
			b.WriteString(escapeStart(e.name))
		}
		if e.detail != "" {
			b.WriteString(" — " + escapeMarkdown(e.detail))
		}
		b.WriteByte('\n')
		for _, q := range e.quotes {
			b.WriteString("\n" + indent + "> " + escapeStart(q) + "\n")
		}
		if len(e.quotes) > 0 && i+1 < len(entries) && counts {
			b.WriteByte('\n')
		}
	}
}

// footnoteList writes the definitions of the footnotes and, if requested, the uncited sources.
func (r *rendering) footnoteList(b *strings.Builder, cited, uncited []entry) {
	if len(cited)+len(uncited) == 0 && r.List {
		b.WriteString(r.noSources() + "\n")
	}
	for _, e := range cited {
		fmt.Fprintf(b, "[^%s]: %s", r.footnoteLabel(e.MarkerItem), escapeStart(e.name))
		if e.detail != "" {
			b.WriteString(" — " + escapeMarkdown(e.detail))
		}
		if e.url != "" {
			b.WriteString(" <" + markdownURL(e.url) + ">")
		}
		b.WriteByte('\n')
		for _, q := range e.quotes {
			b.WriteString("\n    > " + escapeStart(q) + "\n")
		}
		if len(e.quotes) > 0 {
			b.WriteByte('\n')
		}
	}
	if len(uncited) > 0 {
		b.WriteString(text.BlankLine(b.String(), "") + uncitedHeading + ":\n\n")
		markdownEntries(b, uncited)
	}
}

// escapeLabel escapes what has a meaning in markdown. Ids such as doc:0, file-a.b and turn0_1 remain unchanged.
func escapeLabel(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := c >= 0x80 || isASCIIAlnum(rune(c)) || c == ' ' || strings.IndexByte("-.:,", c) >= 0 ||
			c == '_' && i > 0 && i+1 < len(s) && isASCIIAlnum(rune(s[i-1])) && isASCIIAlnum(rune(s[i+1]))
		if !plain {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// escapeMarkdown escapes a name or quote for the middle of a markdown line.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("\\`*_[]<>&$~|!#@^", c) >= 0,
			c == ':' && strings.HasPrefix(s[i:], "://"),
			c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escapeStart is escapeMarkdown for the start of a line, where list marks and rules have a meaning too.
func escapeStart(s string) string {
	out := escapeMarkdown(s)
	digits := len(out) - len(strings.TrimLeft(out, "0123456789"))
	switch {
	case out == "":
	case strings.IndexByte("-+=:%", out[0]) >= 0:
		return `\` + out
	case digits > 0 && digits < len(out) && (out[digits] == '.' || out[digits] == ')'):
		return out[:digits] + `\` + out[digits:]
	}
	return out
}

// markdownURL returns a safe URL as a markdown destination. CommonMark decodes entities there, so it escapes &.
func markdownURL(url string) string {
	if !strings.Contains(url, ";") {
		return url
	}
	return strings.ReplaceAll(url, "&", "&amp;")
}
