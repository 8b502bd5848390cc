package page

import (
	"html"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"
)

const (
	// maxShownQuote is how many bytes of one quote a list of sources shows. The panel shows all.
	maxShownQuote = 6 << 10
	// shortQuote is how many characters of a quote are shown before a reader asks for more.
	shortQuote = 280
	// maxCompared is how many bytes of a claim are compared with a quote.
	maxCompared = 4 << 10
	// minCompared is how many letters a word has from which on it counts as one that two texts share. Numbers always count.
	minCompared = 4
)

// quoteView is the source's words, with those marked that a claim shares.
type quoteView struct {
	Short template.HTML // its beginning, where it is long; empty: it is not
	Full  template.HTML
}

// claimWords is what a quote is compared with.
type claimWords struct {
	text  string              // in lower case
	words map[string]struct{} // of it, that count
}

func newClaimWords(claim string) *claimWords {
	c := &claimWords{text: strings.ToLower(claim[:runeStart(claim, min(len(claim), maxCompared))]), words: map[string]struct{}{}}
	for start, end := range prose.Words(c.text) {
		if word := c.text[start:end]; counts(word) {
			c.words[word] = struct{}{}
		}
	}
	return c
}

// counts reports whether a word says something of its own.
func counts(word string) bool {
	if strings.ContainsFunc(word, unicode.IsDigit) {
		return true
	}
	if utf8.RuneCountInString(word) < minCompared {
		return false
	}
	switch word {
	case "about", "after", "also", "been", "before", "being", "between", "could", "does", "each", "from", "have", "into", "many", "more", "most",
		"much", "only", "other", "over", "same", "should", "some", "such", "than", "that", "their", "them", "then", "there", "these", "they",
		"this", "those", "under", "very", "were", "what", "when", "where", "which", "while", "will", "with", "would", "your":
		return false
	}
	return true
}

// show returns a quote with the words marked that the claim shares.
func (c *claimWords) show(quote string) quoteView {
	quote = strings.TrimSpace(strings.ToValidUTF8(quote, "\uFFFD"))
	gap := ""
	if len(quote) > maxShownQuote {
		quote, gap = strings.TrimSpace(quote[:prose.GraphemeEnd(quote, runeStart(quote, maxShownQuote))]), " …"
	}
	hits := c.hits(quote)
	v := quoteView{Full: markHits(quote, hits) + template.HTML(gap)} //nolint:gosec // markHits escapes
	if cut := shortEnd(quote); cut > 0 {
		v.Short = markHits(quote[:cut], hits)
	}
	return v
}

// shortEnd returns where the beginning of a long quote ends, between words; 0 for one that is not long.
func shortEnd(quote string) int {
	if len(quote) <= shortQuote {
		return 0
	}
	n, space := 0, 0
	for i, r := range quote {
		if n++; n > shortQuote {
			if len(quote)-i < shortQuote/4 { // not worth a fold
				return 0
			}
			if space > i/2 {
				return space
			}
			return i
		}
		if r == ' ' {
			space = i
		}
	}
	return 0
}

// hits returns which bytes of a quote are words of the claim, ascending, with only spaces between two of them taken in.
func (c *claimWords) hits(quote string) [][2]int {
	if len(c.words) == 0 && len(c.text) == 0 {
		return nil
	}
	var out [][2]int
	add := func(start, end int) {
		if last := len(out) - 1; last >= 0 && (start <= out[last][1] || strings.TrimLeft(quote[out[last][1]:start], " ") == "") {
			out[last][1] = max(end, out[last][1])
			return
		}
		out = append(out, [2]int{start, end})
	}
	before := [2]int{} // the word before, where it is one ideograph
	for start, end := range prose.Words(quote) {
		word := quote[start:end]
		if r, n := utf8.DecodeRuneInString(word); n == len(word) && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			if before[1] == start && start > 0 && strings.Contains(c.text, quote[before[0]:end]) {
				add(before[0], end)
			}
			before = [2]int{start, end}
			continue
		}
		before = [2]int{}
		if _, ok := c.words[strings.ToLower(word)]; ok {
			add(start, end)
		}
	}
	return out
}

// markHits returns a quote as HTML with marks around the hits.
func markHits(quote string, hits [][2]int) template.HTML {
	var b strings.Builder
	b.Grow(len(quote) + len(quote)/4)
	at := 0
	for _, h := range hits {
		if h[1] > len(quote) {
			break
		}
		b.WriteString(html.EscapeString(quote[at:h[0]]))
		b.WriteString("<mark>" + html.EscapeString(quote[h[0]:h[1]]) + "</mark>")
		at = h[1]
	}
	b.WriteString(html.EscapeString(quote[at:]))
	return template.HTML(b.String()) //nolint:gosec // escaped above
}
