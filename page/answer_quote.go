package page

import (
	"cmp"
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
	// maxShownQuotes is how many bytes of quotes a list of sources shows. Of more only the beginnings.
	maxShownQuotes = 512 << 10
	// shortQuote is how many characters of a quote are shown before a reader asks for more.
	shortQuote = 280
	// maxCompared is how many bytes of a claim are compared with a quote.
	maxCompared = 4 << 10
	// minCompared is how many letters a word has from which on it counts as one that two texts share. Numbers always
	// count.
	minCompared = 4
)

// quoteView is the source's words, with those marked that a claim shares.
type quoteView struct {
	Short template.HTML // its beginning, where it is long; empty: it is not
	Full  template.HTML
}

// markedQuote is a quoteView that is not written yet.
type markedQuote struct {
	text  string
	hits  []hit  // what of it is marked, ascending and apart from each other
	short int    // where its beginning ends, where it is long; 0: it is not
	gap   string // follows it; empty: it is whole
}

// hit is a stretch of a quote that claims share.
type hit struct {
	start, end int // bytes of the quote
	// the ids of the citations whose claims do, as in an attribute; empty: all that the quote stands for
	of string
}

// maxClaims is how many claims one quote is compared with. What others share with it is not marked.
const maxClaims = 16

// also marks what another citation's claim shares. All are the ids of the citations before it, as in an attribute.
func (q *markedQuote) also(words *claimWords, id, all string) {
	both := func(of string) string {
		if of == "" {
			return ""
		}
		return of + " " + id
	}
	more := words.hits(q.text)
	var out []hit
	put := func(start, end int, of string) {
		if start < end {
			out = append(out, hit{start, end, of})
		}
	}
	for _, h := range q.hits {
		for len(more) > 0 && more[0].end <= h.start {
			put(more[0].start, more[0].end, id)
			more = more[1:]
		}
		at := h.start
		for len(more) > 0 && more[0].start < h.end {
			m := &more[0]
			put(m.start, min(m.end, at), id) // what of it stands before
			from := max(m.start, at)
			put(at, from, cmp.Or(h.of, all))
			at = min(m.end, h.end)
			put(from, at, both(h.of))
			if m.end > h.end {
				m.start = h.end
				break
			}
			more = more[1:]
		}
		put(at, h.end, cmp.Or(h.of, all))
	}
	for _, m := range more {
		put(m.start, m.end, id)
	}
	q.hits = out
}

// claimWords is what a quote is compared with.
type claimWords struct {
	text  string              // in lower case
	words map[string]struct{} // of it, that count
}

func newClaimWords(claim string) *claimWords {
	c := &claimWords{words: map[string]struct{}{}}
	c.set(claim)
	return c
}

// set puts another claim in the place of what was compared with.
func (c *claimWords) set(claim string) {
	clear(c.words)
	c.text = strings.ToLower(claim[:runeStart(claim, min(len(claim), maxCompared))])
	for start, end := range prose.Words(c.text) {
		if word := c.text[start:end]; counts(word) {
			c.words[word] = struct{}{}
		}
	}
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
	case "about", "after", "also", "been", "before", "being", "between", "could", "does", "each", "from", "have",
		"into", "many", "more", "most", "much", "only", "other", "over", "same", "should", "some", "such", "than",
		"that", "their", "them", "then", "there", "these", "they", "this", "those", "under", "very", "were", "what",
		"when", "where", "which", "while", "will", "with", "would", "your":
		return false
	}
	return true
}

// mark finds the words of a quote that the claim shares.
func (c *claimWords) mark(quote string) markedQuote { return c.markUpTo(quote, maxShownQuote) }

// markUpTo does so with the beginning of the quote, of so many bytes.
func (c *claimWords) markUpTo(quote string, most int) markedQuote {
	q := markedQuote{text: strings.TrimSpace(strings.ToValidUTF8(quote, "\uFFFD"))}
	if len(q.text) > most {
		q.text, q.gap = strings.TrimSpace(q.text[:prose.GraphemeEnd(q.text, runeStart(q.text, most))]), " …"
	}
	q.hits, q.short = c.hits(q.text), shortEnd(q.text)
	return q
}

// quote marks a quote, or its beginning where the list of sources has shown enough.
func (l *layout) quote(words *claimWords, quote string) markedQuote {
	most := maxShownQuote
	if l.quoted >= maxShownQuotes {
		most = shortQuote
	}
	q := words.markUpTo(quote, most)
	l.quoted += len(q.text)
	return q
}

// show returns a quote with the words marked that the claim shares.
func (c *claimWords) show(quote string) quoteView {
	q := c.mark(quote)
	var short, full strings.Builder
	q.write(&full)
	if q.short > 0 {
		q.writeTo(&short, q.short)
	}
	return quoteView{
		Short: template.HTML(short.String()),
		Full:  template.HTML(full.String()),
	} //nolint:gosec // write escapes
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
func (c *claimWords) hits(quote string) []hit {
	if len(c.words) == 0 && len(c.text) == 0 {
		return nil
	}
	var out []hit
	add := func(start, end int) {
		if last := len(
			out,
		) - 1; last >= 0 &&
			(start <= out[last].end || strings.TrimLeft(quote[out[last].end:start], " ") == "") {
			out[last].end = max(end, out[last].end)
			return
		}
		out = append(out, hit{start: start, end: end})
	}
	before := [2]int{} // the word before, where it is one ideograph
	for start, end := range prose.Words(quote) {
		word := quote[start:end]
		if r, n := utf8.DecodeRuneInString(
			word,
		); n == len(word) &&
			unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
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

// write writes the quote as HTML with marks around the hits.
func (q *markedQuote) write(b *strings.Builder) {
	q.writeTo(b, len(q.text))
	b.WriteString(q.gap)
}

// writeTo writes its beginning.
func (q *markedQuote) writeTo(b *strings.Builder, end int) {
	at := 0
	for _, h := range q.hits {
		if h.end > end {
			break
		}
		b.WriteString(html.EscapeString(q.text[at:h.start]))
		if h.of == "" {
			b.WriteString("<mark>")
		} else {
			b.WriteString(`<mark data-of="` + h.of + `">`)
		}
		b.WriteString(html.EscapeString(q.text[h.start:h.end]))
		b.WriteString("</mark>")
		at = h.end
	}
	b.WriteString(html.EscapeString(q.text[at:end]))
}
