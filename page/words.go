package page

import (
	"html"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// claimOf returns the words of an answer that a citation stands for, as the answer has them; empty: it has no place.
func claimOf(a *ibid.Answer, c *ibid.Citation) string {
	for _, s := range [...]ibid.Span{c.Claim, c.Span} {
		if c.Placed() && 0 <= s.Start && s.Start < s.End && s.End <= len(a.Text) {
			return a.Text[s.Start:s.End]
		}
	}
	return ""
}

// plainWords returns a stretch of an answer's text on one line as it reads on a page: without the signs of its Markdown, which are not
// there.
func plainWords(text string) string {
	// In what is rendered there is a < only where a tag begins, and a > only where it ends.
	rest := (&ibid.Answer{Text: text}).Render(&ibid.RenderOptions{Style: ibid.StyleHTML})
	var b strings.Builder
	for rest != "" {
		words, behind, _ := strings.Cut(rest, "<")
		b.WriteString(html.UnescapeString(words))
		tag, after, _ := strings.Cut(behind, ">")
		if !isInline(tag) {
			b.WriteByte(' ')
		}
		rest = after
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// isInline reports whether words around a tag are one word.
func isInline(tag string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
	switch name {
	case "a", "code", "del", "em", "s", "span", "strong", "sub", "sup":
		return true
	}
	return false
}

// day returns a date as it is written on pages.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// moment returns a date with its time as it is written on pages.
func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }
