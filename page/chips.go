package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// chip is a marker of an answer's text: a link to the first source's row, in the element that opens its card. The
// element's attributes name its citations and rows.
type chip struct {
	n         int    // its place among the chips, from 1
	at        int    // its place in the text
	rows      string // the numbers of its sources
	citations []int
	here      standingSet
	link      string // where it leads
	number    int
	name      string // of its first source: HTML
	rest      string // pages and the number of further sources: HTML
	into      *chip  // the later one that stands for it too; nil if it is shown itself
}

// writeChip returns a placeholder for a marker, which [layout.withChips] replaces.
func (l *layout) writeChip(m ibid.Marker) string {
	bare := ""
	if at := slices.IndexFunc(m.Items, isBare); at >= 0 {
		bare = ` <span class="no-source` + l.shownClass(wordBare) + `" data-s="` + slug(wordBare) + `">` + wordBare +
			`</span>`
		m.Items = slices.Delete(slices.Clone(m.Items), at, at+1)
	}
	if len(m.Items) == 0 {
		return bare
	}
	c := &chip{n: len(l.chips) + 1, at: m.At}
	l.chips = append(l.chips, c)
	var rows []int
	for i := range m.Items {
		rows = append(rows, m.Items[i].Number)
		for _, citation := range m.Items[i].Citations {
			c.here.add(&l.standings[citation])
			if !slices.Contains(c.citations, citation) { // it may have two of these sources
				c.citations = append(c.citations, citation)
			}
			if l.places[citation] == nil {
				l.places[citation] = c
			}
		}
	}
	c.rows = joinNumbers(rows)
	first := &m.Items[0]
	at := l.index[first.Source.ID]
	source := l.sources[at]
	c.link = "#" + l.prefix + "s-" + strconv.Itoa(first.Number)
	if l.links != nil {
		c.link = cmp.Or(l.links[at], c.link)
	}
	c.number = first.Number
	if source.Title != untitled(source.ID) { // which would only repeat a number
		c.name = template.HTMLEscapeString(text.Shorten(shortName(source.Site, source.Title), maxLabel))
	}
	if place := l.pagesOf(first); place != "" {
		c.rest += " <span>" + template.HTMLEscapeString(place) + "</span>"
	}
	if more := len(m.Items) - 1; more > 0 {
		c.rest += fmt.Sprintf(` <span class="more">+%d</span>`, more)
	}
	return placeholder(c.n) + bare
}

// placeholder stands for a chip in rendered text, which never has a NUL.
func placeholder(n int) string { return "\x00" + strconv.Itoa(n) + "\x00" }

// withChips replaces the placeholders of chips. Where one source goes on, its last chip stands for all of them, and a
// source is named once in a paragraph.
func (l *layout) withChips(html template.HTML) template.HTML {
	parts := strings.Split(string(html), "\x00") // text, number, text, number, …, text
	if l.merges {
		for i := 1; i+2 < len(parts); i += 2 {
			c, next := l.chipOf(parts[i]), l.chipOf(parts[i+2])
			if c != nil && next != nil && !l.hasBare(c.at, next.at) && !endsBlock(parts[i+1]) {
				c.merge(next)
			}
		}
	}
	var b strings.Builder
	b.Grow(len(html) + 200*len(l.chips))
	named := map[string]bool{} // in this paragraph
	for i, part := range parts {
		if i%2 == 0 {
			b.WriteString(part)
			if l.merges && endsBlock(part) {
				clear(named)
			}
		} else if c := l.chipOf(part); c != nil && c.into == nil {
			l.appendChip(&b, c, named[c.name])
			named[c.name] = l.merges
		}
	}
	return trustedHTML(b.String())
}

// chipOf returns the chip of a placeholder; nil if there is none.
func (l *layout) chipOf(number string) *chip {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(l.chips) {
		return nil
	}
	return l.chips[n-1]
}

// hasBare reports whether a stretch of the text has words of a sentence without a source.
func (l *layout) hasBare(from, to int) bool {
	at := sort.Search(len(l.weighed.bare), func(i int) bool { return l.weighed.bare[i].End > from })
	return at < len(l.weighed.bare) && l.weighed.bare[at].Start < to
}

// merge makes the next chip of a paragraph stand for this one too, if both are about the same sources, and neither says
// that something is wrong.
func (c *chip) merge(next *chip) {
	if c.rows != next.rows || c.name != next.name || c.rest != next.rest || !c.isQuiet() || !next.isQuiet() {
		return
	}
	c.into = next
	next.citations = append(c.citations, next.citations...)
	slices.Sort(next.citations) // one that both have is named once
	for _, word := range c.here.words {
		if !slices.Contains(next.here.words, word) {
			next.here.words = append(next.here.words, word)
		}
	}
	if c.here.worst.badge != next.here.worst.badge { // what is true of some of them only is no sign of all
		next.here.worst = standing{badge: badge{Kind: badgeNone, Word: wordUnchecked}}
	}
}

// isQuiet reports whether a chip has nothing that its reader must see.
func (c *chip) isQuiet() bool {
	return slices.Contains([]string{badgeGood, badgeFound, badgeNone}, c.here.worst.Kind) && c.here.worst.Note == ""
}

// endsBlock reports whether HTML has the end of a paragraph, an item, a cell or another block.
func endsBlock(html string) bool {
	return slices.ContainsFunc(blockEnds, func(tag string) bool { return strings.Contains(html, tag) })
}

// blockEnds are the tags that end a block, and <br>.
var blockEnds = []string{
	"</p>", "</li>", "</td>", "</th>", "</h", "</pre>", "</dd>", "</dt>", "</blockquote>", "</figcaption>", "<br",
}

// shown returns the chip that is shown for c.
func (c *chip) shown() *chip {
	for c.into != nil {
		c = c.into
	}
	return c
}

// appendChip writes a chip. The name of a source that was named before is not shown.
func (l *layout) appendChip(b *strings.Builder, c *chip, named bool) {
	worst := &c.here.worst
	cites := make([]string, 0, len(c.citations))
	for i, citation := range c.citations {
		if i == 0 || citation != c.citations[i-1] {
			cites = append(cites, l.ids[citation])
		}
	}
	write := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	write(
		`<ibid-cite id="`, l.prefix, "m-", strconv.Itoa(c.n), `"`, c.here.attribute(), ` data-cites="`,
		template.HTMLEscapeString(strings.Join(cites, " ")), `" data-n="`, c.rows, `"><a class="chip `, worst.Kind,
		l.shownClass(c.here.words...), `" href="`, template.HTMLEscapeString(c.link), `">`,
	)
	if worst.Word != wordUnchecked {
		write(`<span class="unseen">`, worst.Word, ": </span>")
	}
	write(`<span class="n">`, strconv.Itoa(c.number), "</span> <bdi")
	if named {
		write(` class="unseen"`)
	}
	write(">", c.name, "</bdi>", c.rest)
	if worst.Note != "" {
		write(` <span class="note">`, template.HTMLEscapeString(worst.Note), "</span>")
	}
	write("</a></ibid-cite>")
}

// isBare reports whether an item of a marker says that a sentence has no source.
func isBare(item ibid.MarkerItem) bool { return item.Source.ID == bareID }

// pagesOf returns the pages of a source that the marker's citations name first; empty if they name none.
func (l *layout) pagesOf(item *ibid.MarkerItem) string {
	for _, c := range item.Citations {
		for _, ref := range l.answer.Citations[c].Refs {
			if place := pageWords(ref.Locator); ref.Source == item.Source.ID && place != "" {
				return place
			}
		}
	}
	return ""
}
