package ibid

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		e := entry{MarkerItem: MarkerItem{Number: r.numbers[i], Source: src}, url: safeURL(src.URL), quotes: quotes[i]}
		e.name = sourceName(src)
		e.detail = sourceDetail(src, e.name, e.url, pages[i])
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
			if p := pagesOf(ref.Locator); p.Start > 0 && !slices.Contains(pages[s], p) {
				pages[s] = append(pages[s], p)
			}
			if q := tidy(ref.Quote); r.Quotes && q != "" && !slices.Contains(quotes[s], q) {
				quotes[s] = append(quotes[s], q)
			}
		}
	}
	return pages, quotes
}

// pagesOf returns first and last page; zero: unknown.
func pagesOf(l *Locator) Span {
	switch {
	case l == nil:
		return Span{}
	case len(l.Pages) > 0:
		return Span{l.Pages[0], max(l.Pages[0], l.Pages[len(l.Pages)-1])}
	default:
		return Span{l.Page, l.Page}
	}
}

// sourceName returns what a reader knows the source by.
func sourceName(s *Source) string {
	for _, name := range [...]string{s.Title, s.Filename, s.Site, hostOf(s.URL), s.URL, s.ID} {
		if name = tidy(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// sourceDetail returns what the list says after the name.
func sourceDetail(s *Source, name, url string, pages []Span) string {
	var out []string
	for _, d := range [...]string{tidy(cmp.Or(s.Site, hostOf(s.URL))), tidy(s.Filename)} {
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
		b.WriteString(blankLine(b.String(), "") + uncitedHeading + ":\n\n")
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
		b.WriteString(markdownEntry(&e))
		b.WriteByte('\n')
		for _, q := range e.quotes {
			b.WriteString("\n" + indent + "> " + escapeStart(q) + "\n")
		}
		if len(e.quotes) > 0 && i+1 < len(entries) && counts {
			b.WriteByte('\n')
		}
	}
}

// markdownEntry returns a source in markdown, without its number.
func markdownEntry(e *entry) string {
	var b strings.Builder
	if e.url != "" {
		b.WriteString("[" + escapeMarkdown(e.name) + "](" + markdownURL(e.url) + ")")
	} else {
		b.WriteString(escapeStart(e.name))
	}
	if e.detail != "" {
		b.WriteString(" — " + escapeMarkdown(e.detail))
	}
	return b.String()
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
		b.WriteString(blankLine(b.String(), "") + uncitedHeading + ":\n\n")
		markdownEntries(b, uncited)
	}
}
