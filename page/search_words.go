package page

import (
	"html/template"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid/internal/prose"
)

const (
	// hitBefore and hitAfter are how many bytes of an answer stand before the first word that was found, and from it
	// on.
	hitBefore = 80
	hitAfter  = 240
	// hitLooked is how many bytes of an answer are looked through for words to mark.
	hitLooked = 256 << 10
	// maxAsked is how many words of a query are marked.
	maxAsked = 32
)

// finder finds the words of a query in a text, as the store does: whatever their case and accents, and of the last one
// the beginning.
type finder struct {
	words []string
	last  string // the beginning of a word; empty: the query ends behind its last word
}

func newFinder(query string) *finder {
	f := &finder{}
	end := 0
	for start, stop := range prose.Words(query) {
		if word := fold(query[start:stop]); len(f.words) < maxAsked {
			f.words, end = append(f.words, word), stop
		}
	}
	if n := len(f.words); n > 0 && end == len(query) {
		f.words, f.last = f.words[:n-1], f.words[n-1]
	}
	return f
}

// fold returns a word in compatibility form, in lower case and without accents.
func fold(word string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(word)))
}

// has reports whether a word of a text is one that is looked for.
func (f *finder) has(word string) bool {
	word = fold(word)
	if f.last != "" && strings.HasPrefix(word, f.last) {
		return true
	}
	return slices.Contains(f.words, word)
}

// excerpt returns a stretch of a text, on one line, as it reads, with what is looked for marked; the beginning, if
// nothing is found.
func (f *finder) excerpt(text string) template.HTML {
	text = cutBytes(text, hitLooked)
	from := f.first(text)
	start := runeStart(text, max(0, from-hitBefore))
	if start > 0 { // at a word's beginning
		if i := strings.IndexFunc(text[start:from], unicode.IsSpace); i >= 0 {
			start += i
		}
	}
	end := runeStart(text, min(len(text), max(from, start)+hitAfter))
	if end < len(text) {
		if i := strings.LastIndexFunc(text[from:end], unicode.IsSpace); i > 0 {
			end = from + i
		}
	}
	var b strings.Builder
	if start > 0 {
		b.WriteString("… ")
	}
	b.WriteString(string(f.mark(plainWords(strings.ToValidUTF8(text[start:end], "\uFFFD")))))
	if end < len(text) {
		b.WriteString(" …")
	}
	return template.HTML(b.String()) //nolint:gosec // mark escapes
}

// first returns where the first word that is looked for begins; 0: there is none.
func (f *finder) first(text string) int {
	if f.last == "" && len(f.words) == 0 {
		return 0
	}
	for start, end := range prose.Words(text) {
		if f.has(text[start:end]) {
			return start
		}
	}
	return 0
}

// mark returns a text as HTML with the words marked that are looked for.
func (f *finder) mark(text string) template.HTML {
	var b strings.Builder
	at := 0
	for start, end := range prose.Words(text) {
		if !f.has(text[start:end]) {
			continue
		}
		b.WriteString(template.HTMLEscapeString(text[at:start]))
		b.WriteString("<mark>" + template.HTMLEscapeString(text[start:end]) + "</mark>")
		at = end
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return template.HTML(b.String()) //nolint:gosec // all of it is escaped
}
