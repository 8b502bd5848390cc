package prose

import (
	"unicode"
	"unicode/utf8"
)

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
