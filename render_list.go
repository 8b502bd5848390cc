package ibid

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/text"
)

// entry is one line of a list of sources.
type entry struct {
	MarkerItem
	name   string // never empty
	url    string // safe; empty: not to be linked
	detail string // site, pages; or the address that may not be linked
	quotes []string
}

// The words of the list.
const (
	listHeading    = "Sources"
	uncitedHeading = "Not cited"
)

// noSources says that there is nothing to list.
func (r *rendering) noSources() string {
	if len(r.answer.Sources) > 0 {
		return "No sources cited."
	}
	return "No sources."
}

// entries returns the cited sources by number and, if asked for, the others.
func (r *rendering) entries() (cited, uncited []entry) {
	pages, quotes := r.locate()
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

// locate collects, by source, the pages and the words that citations name.
func (r *rendering) locate() (pages [][]Span, quotes [][]string) {
	pages = make([][]Span, len(r.numbers))
	quotes = make([][]string, len(r.numbers))
	index := make(map[string]int, len(r.numbers))
	for i, src := range slices.Backward(r.answer.Sources) {
		index[src.ID] = i
	}
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
	return pages, quotes
}

// sourceName returns what a reader knows the source by.
func sourceName(s *Source) string {
	for _, name := range [...]string{s.Title, s.Filename, s.Site, sourceHost(s), s.URL, s.ID} {
		if name = tidy(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// sourceDetail returns what the list says after the name.
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
	if p := pageList(pages); p != "" {
		out = append(out, p)
	}
	return strings.Join(out, ", ")
}

// pageList returns pages as people write them: p. 3; pp. 3, 5–7.
func pageList(pages []Span) string {
	if len(pages) == 0 {
		return ""
	}
	slices.SortFunc(
		pages,
		func(a, b Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) },
	)
	var b strings.Builder
	b.WriteString("p. ")
	if len(pages) > 1 || pages[0].End > pages[0].Start {
		b.Reset()
		b.WriteString("pp. ")
	}
	for i, p := range pages {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(p.Start))
		if p.End > p.Start {
			b.WriteString("–" + strconv.Itoa(p.End))
		}
	}
	return b.String()
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
	case StylePlain:
		r.writeLists(&b, cited, uncited, r.plainEntries)
	case StyleMarkdown:
		fallthrough
	default:
		r.writeLists(&b, cited, uncited, markdownEntries)
	}
	return b.String()
}

// writeLists writes the lists with their headings.
func (r *rendering) writeLists(b *strings.Builder, cited, uncited []entry, write func(*strings.Builder, []entry)) {
	if len(cited)+len(uncited) == 0 {
		b.WriteString(r.noSources() + "\n")
		return
	}
	if len(cited) > 0 {
		b.WriteString(listHeading + ":\n\n")
		write(b, cited)
	}
	if len(uncited) > 0 {
		b.WriteString(text.BlankLine(b.String(), "") + uncitedHeading + ":\n\n")
		write(b, uncited)
	}
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

// markdownEntries writes an ordered list. Markdown counts a list up by one from its first number, so where the numbers
// do not, each source is a paragraph instead.
func markdownEntries(b *strings.Builder, entries []entry) {
	counts := true
	for i, e := range entries {
		// nine digits are the most a list mark may have
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

// footnoteList writes the definitions of the footnotes, and what else was asked for.
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

// markerHTML returns a marker as HTML. Its links go to the list where there is one, else to the source itself.
func (r *rendering) markerHTML(m *Marker) string {
	var b strings.Builder
	b.WriteString(`<sup class="ibid">`)
	for i, it := range m.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		name := sourceName(it.Source)
		title := name
		if d := sourceDetail(it.Source, name, markdown.SafeURL(it.Source.URL), nil); d != "" {
			title += " — " + d
		}
		label, title := html.EscapeString(r.label(it)), html.EscapeString(title)
		switch url := markdown.SafeURL(it.Source.URL); {
		case r.List:
			fmt.Fprintf(&b, `<a href="#%s" title="%s">%s</a>`, r.sourceAnchor(it.Number), title, label)
		case url != "":
			fmt.Fprintf(
				&b, `<a href="%s" title="%s" rel="noopener noreferrer nofollow">%s</a>`, html.EscapeString(url), title,
				label,
			)
		default:
			fmt.Fprintf(&b, `<span title="%s">%s</span>`, title, label)
		}
	}
	return b.String() + "</sup>"
}

// sourceAnchor returns the id of a source's line in the list.
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

// citeKey returns the key under which the bibliography has a source.
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

// escapeLabel escapes what has a meaning in markdown. Ids such as doc:0, file-a.b and turn0_1 stay as they are.
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

// escapeStart is escapeMarkdown for the start of a line, where also list marks and rules have a meaning.
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

// markdownURL returns a safe URL as a markdown destination: CommonMark reads entities in it.
func markdownURL(url string) string {
	if !strings.Contains(url, ";") {
		return url
	}
	return strings.ReplaceAll(url, "&", "&amp;")
}
