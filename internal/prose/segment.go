package prose

import (
	"iter"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/words"
)

// Graphemes yields the graphemes of text as half-open byte ranges. They lie side by side and cover the text.
func Graphemes(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for it := graphemes.FromString(text); it.Next(); {
			if !yield(it.Start(), it.End()) {
				return
			}
		}
	}
}

// Words yields the words of text as half-open byte ranges: those segments that have a letter or a digit in them.
func Words(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for it := words.FromString(text); it.Next(); {
			if hasWord(it.Value()) && !yield(it.Start(), it.End()) {
				return
			}
		}
	}
}

func hasWord(s string) bool {
	for _, r := range s {
		if isWord(r) {
			return true
		}
	}
	return false
}

// GraphemeEnd returns the smallest offset from at on that stands between two graphemes of text, or at its start or end.
func GraphemeEnd(text string, at int) int {
	at = clamp(text, at)
	from := graphemeSync(text, at)
	if from == at {
		return at
	}
	rest := wholeRunes(text[from:min(len(text), at+Window)])
	for it := graphemes.FromString(rest); it.Next(); {
		if from+it.End() >= at {
			return from + it.End()
		}
	}
	return runeEnd(text, at)
}

// WordEnd returns the smallest offset from at on that stands between two word segments of text and between two
// graphemes, or at its start or end: at itself, unless at stands inside a word.
func WordEnd(text string, at int) int {
	at = clamp(text, at)
	// A grapheme that reaches over a word boundary is rare, and the next one doing so too unheard of; the bounds keep
	// hostile text from making this loop walk.
	limit := at + Window
	for range 8 {
		end := wordEnd(text, at)
		at = GraphemeEnd(text, end)
		if at == end || at >= limit {
			break
		}
	}
	return at
}

func wordEnd(text string, at int) int {
	from := wordSync(text, at)
	if from == at {
		return at
	}
	rest := wholeRunes(text[from:min(len(text), at+Window)])
	for it := words.FromString(rest); it.Next(); {
		if from+it.End() >= at {
			return from + it.End()
		}
	}
	return runeEnd(text, at)
}

// graphemeSync returns the last certain grapheme boundary up to at: one between two runes that never join.
func graphemeSync(text string, at int) int {
	if at == 0 || at == len(text) {
		return at
	}
	p := runeStart(text, at)
	next, _ := runeAt(text, p)
	for floor := max(0, at-Window); p > floor; {
		prev, w := runeBefore(text, p)
		if standsAlone(prev) && standsAlone(next) && (prev != '\r' || next != '\n') {
			return p
		}
		p -= w
		next = prev
	}
	return p
}

// standsAlone reports whether r starts a grapheme after, and ends one before, every other such rune. It says no to many
// runes that do; that only costs time.
func standsAlone(r rune) bool {
	switch {
	case r < 0x300: // Latin
		return true
	case r < 0x3000:
		return 0x370 <= r && r < 0x483 || // Greek, Cyrillic
			0x5D0 <= r && r < 0x5EB || 0x620 <= r && r < 0x64B || // Hebrew, Arabic
			0x915 <= r && r < 0x93A || // Devanagari
			0x2010 <= r && r < 0x2028 // dashes, quotes
	default:
		return r < 0x302A || // CJK punctuation
			0x3041 <= r && r < 0x3097 || 0x30A1 <= r && r < 0x30FB || // kana
			0x3400 <= r && r < 0xA000 || 0xAC00 <= r && r < 0xD7A4 || // Han, Hangul syllables
			0xFF01 <= r && r < 0xFF61 // full-width forms
	}
}

// wordSync returns the last certain word boundary up to at: one after white space, or before an ideograph.
func wordSync(text string, at int) int {
	if at == 0 || at == len(text) {
		return at
	}
	p := runeStart(text, at)
	next, _ := runeAt(text, p)
	for floor := max(0, at-Window); p > floor; {
		prev, w := runeBefore(text, p)
		if isIdeograph(next) || next < utf8.RuneSelf && !isSpace(next) && (prev == ' ' || prev == '\n') {
			return p
		}
		p -= w
		next = prev
	}
	return p
}

// isIdeograph reports whether r is Han or Hiragana: a word of its own to UAX 29.
func isIdeograph(r rune) bool {
	return 0x3400 <= r && r < 0xA000 || 0x3041 <= r && r < 0x3097 || r >= 0x20000 && unicode.Is(unicode.Han, r)
}

// Window is how many bytes to either side of an offset the functions that take one look at. What is longer (a sentence,
// a word, a grapheme) is cut there, on a rune boundary.
const Window = 4096

// clamp returns at, moved into the text.
func clamp(text string, at int) int {
	return min(max(at, 0), len(text))
}

// runeStart returns the start of the rune that at stands in.
func runeStart(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for p := at; p > max(0, at-utf8.UTFMax); p-- {
		if utf8.RuneStart(text[p]) {
			return p
		}
	}
	return at
}

// runeEnd returns at, or the end of the rune that at stands in.
func runeEnd(text string, at int) int {
	p := runeStart(text, at)
	if p == at {
		return at
	}
	_, w := utf8.DecodeRuneInString(text[p:])
	return max(at, p+w)
}

// wholeRunes returns text without an incomplete rune at its end.
func wholeRunes(text string) string {
	for p := len(text) - 1; p >= max(0, len(text)-utf8.UTFMax); p-- {
		if !utf8.RuneStart(text[p]) {
			continue
		}
		if !utf8.FullRuneInString(text[p:]) {
			return text[:p]
		}
		break
	}
	return text
}

// runeAt returns the rune at p and its width; width 0 at the end of text.
func runeAt(text string, p int) (rune, int) {
	if p >= len(text) {
		return 0, 0
	}
	if c := text[p]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text[p:])
}

// runeBefore returns the rune that ends at p and its width; width 0 at the start of text.
func runeBefore(text string, p int) (rune, int) {
	if p <= 0 {
		return 0, 0
	}
	if c := text[p-1]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeLastRuneInString(text[:p])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isASCIIWord(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c)
}

// isWord reports whether r is a letter or a digit.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIIWord(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isCaseless reports whether r is a letter of a script without capitals, as Chinese, Arabic or Hindi.
func isCaseless(r rune) bool {
	return r >= utf8.RuneSelf && unicode.Is(unicode.Lo, r)
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r'
	}
	return r >= 0x85 && unicode.IsSpace(r)
}

// skipSpace returns the first offset from p on that is not white space.
func skipSpace(text string, p int) int {
	for {
		r, w := runeAt(text, p)
		if w == 0 || !isSpace(r) {
			return p
		}
		p += w
	}
}

// skipBlanks is skipSpace within the line.
func skipBlanks(text string, p int) int {
	for p < len(text) && (text[p] == ' ' || text[p] == '\t') {
		p++
	}
	return p
}
