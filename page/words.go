package page

import (
	"html"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
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

// plainWords returns a stretch of an answer's text on one line as it reads on a page: without the signs of its
// Markdown, which are not there.
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

// cut returns the first n characters of a line, and says if there are more.
func cut(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return strings.TrimRight(s[:i], " …") + "…"
		}
	}
	return s
}

// short returns the beginning of a text on one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(cutBytes(text, most*8)), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)[:most]
	for i := len(runes) - 1; i > most*3/4; i-- {
		if unicode.IsSpace(runes[i]) {
			runes = runes[:i]
			break
		}
	}
	return strings.TrimRightFunc(string(runes), unicode.IsSpace) + "…"
}

// shorten returns a text that is not longer than a page should show at once.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return trail.Excerpt(text, n)
}

// cutBytes returns at most so many bytes of a text, whole characters.
func cutBytes(text string, most int) string { return text[:runeStart(text, min(len(text), most))] }

// runeStart returns the last place up to n where a character of s begins.
func runeStart(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
