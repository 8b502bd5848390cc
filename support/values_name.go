package support

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// names appends the names of the text: runs of capitalised words, with the small words that stand inside names. What is
// wholly inside a number or a date (the C of 5 °C, BC) is no name.
func (r *valueReader) names(values []Value) {
	at := 0
	for i := 0; i < len(r.tokens); {
		before := len(r.out)
		next := r.name(i)
		if len(r.out) > before {
			span := r.out[before].Span
			for at < len(values) && values[at].Span.End <= span.Start {
				at++
			}
			if at < len(values) && values[at].Span.Start <= span.Start && span.End <= values[at].Span.End {
				r.out = r.out[:before]
			}
		}
		i = max(next, i+1)
	}
}

// maxNameWords bounds one name; longer runs are headings.
const maxNameWords = 12

// name reads a name that begins at token i and returns the token behind it; i if there is none.
func (r *valueReader) name(i int) int {
	if !r.nameWord(i) {
		return i
	}
	next := i + 1
	for next-i < maxNameWords {
		at := r.nameGap(next)
		if !r.nameWord(at) || !r.sameSentence(i, at) || r.tokens[next-1].end > r.tokens[at].start {
			break
		}
		next = at + 1
	}
	first := i
	// A sentence's first word is written large whatever it is.
	for first < next && (r.opens(first) || r.afterQuote(first)) && smallWord(r.low(first)) {
		first++
	}
	if first == next {
		return next
	}
	words := r.nameWords(first, next)
	if len(words) == 0 {
		return next
	}
	v := Value{Kind: ValueName, Span: ibid.Span{Start: r.tokens[first].start, End: r.tokens[next-1].end}, Words: words}
	v.Unsure = next == first+1 && r.opens(first) && !r.tokens[first].caps && !r.tokens[first].initial
	if s := r.text[v.Span.Start:v.Span.End]; strings.HasSuffix(s, "'s") {
		v.Span.End -= 2
	} else if strings.HasSuffix(s, "’s") {
		v.Span.End -= len("’s")
	}
	r.out = append(r.out, v)
	return next
}

func (r *valueReader) afterQuote(i int) bool {
	switch r.low(i - 1) {
	case "\"", "“", "‘", "'", ":", "#", "*", "•":
		return true
	}
	return false
}

// nameWord reports whether token i may stand in a name.
func (r *valueReader) nameWord(i int) bool {
	token := r.at(i)
	if token.kind != wordToken || !token.upper {
		return false
	}
	low := token.low
	if low == "i" || low == "i'm" || weekday(low) {
		return false
	}
	if m, _ := r.month(i); m > 0 {
		return false
	}
	return token.opens || !smallWord(low) || token.caps
}

// nameGap skips what may stand between two words of a name: "of the", "de", a hyphen.
func (r *valueReader) nameGap(i int) int {
	low := r.low(i)
	if low == "-" || low == "‐" || low == "&" {
		return i + 1
	}
	if r.kind(i) != wordToken || r.at(i).upper {
		return i
	}
	switch low {
	case "of":
		if r.low(i+1) == "the" {
			return i + 2
		}
		return i + 1
	case "de", "van", "von", "der", "den", "la", "le", "du", "da", "di", "del", "bin", "al", "el", "y", "dos", "ter":
		return i + 1
	}
	return i
}

func weekday(low string) bool {
	switch low {
	case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
		return true
	}
	return false
}

// nameWords folds the words of a name: no titles, no small words, no possessive, no diacritics.
func (r *valueReader) nameWords(first, next int) []string {
	var words []string
	for i := first; i < next; i++ {
		token := r.tokens[i]
		if token.kind != wordToken || !token.upper {
			continue
		}
		if title(token.low) && i+1 < next {
			continue
		}
		words = append(words, foldWord(withoutPossessive(token.low)))
	}
	// Initials come and go; the family name stays.
	if full := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(w) == 1 }); len(full) > 0 {
		return full
	}
	return words
}

func title(low string) bool {
	switch low {
	case "mr", "mrs", "ms", "dr", "prof", "professor", "president", "sir", "lord", "lady", "king", "queen", "prince",
		"princess", "captain", "colonel", "general", "senator", "governor", "judge", "rev", "reverend", "pope", "the",
		"a", "an", "minister", "director", "actor", "saint", "st", "emperor", "chancellor", "secretary", "mayor",
		"chief", "major", "american", "british":
		return true
	}
	return false
}

// foldWord takes the diacritics from Latin letters.
func foldWord(low string) string {
	ascii := true
	for i := range len(low) {
		ascii = ascii && low[i] < utf8.RuneSelf
	}
	if ascii {
		return low
	}
	var b strings.Builder
	for _, c := range low {
		if plain := plainLetter(c); plain != "" {
			b.WriteString(plain)
		} else if !unicode.Is(unicode.Mn, c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func plainLetter(c rune) string {
	for _, row := range [...]struct{ from, to string }{
		{"àáâãäåāăą", "a"},
		{"çćĉċč", "c"},
		{"ďđ", "d"},
		{"èéêëēĕėęě", "e"},
		{"ĝğġģ", "g"},
		{"ìíîïĩīĭįı", "i"},
		{"ķ", "k"},
		{"ĺļľł", "l"},
		{"ñńņňŋ", "n"},
		{"òóôõöøōŏő", "o"},
		{"ŕŗř", "r"},
		{"śŝşšș", "s"},
		{"ţťŧț", "t"},
		{"ùúûüũūŭůűų", "u"},
		{"ýÿŷ", "y"},
		{"źżž", "z"},
		{"ß", "ss"},
		{"æ", "ae"},
		{"œ", "oe"},
		{"þ", "th"},
		{"ð", "d"},
	} {
		if strings.ContainsRune(row.from, c) {
			return row.to
		}
	}
	return ""
}
