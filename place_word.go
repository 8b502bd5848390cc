package ibid

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// unspacedWordEnd returns the end of the word of Chinese or Japanese that contains at, or at if it is between two
// words. Without a dictionary a run of ideographs may be one word or several, so only where the script changes, and at
// punctuation, is certainly no word; a marker that goes there is late, but never inside 電話. A particle after
// ideographs begins a word, other Hiragana is the ending of one.
func unspacedWordEnd(line string, at int) int {
	const far = 256 // bytes; bounds the cost for hostile text
	limit := min(len(line), at+far)
	for at < limit {
		prev, _ := utf8.DecodeLastRuneInString(line[:at])
		next, n := utf8.DecodeRuneInString(line[at:])
		a, b := unspacedScript(prev), unspacedScript(next)
		switch {
		case a == noScript, b == noScript:
			return at
		case a == b:
		case a != hiragana && b == hiragana && !strings.ContainsRune(particles, next):
		default:
			return at
		}
		at += n
	}
	return at
}

// particles are the Japanese particles of one character that follow a noun.
const particles = "はがをにのとでもへやか"

// script is a script that does not put spaces between words.
type script uint8

const (
	noScript script = iota
	han
	hiragana
	katakana
)

func unspacedScript(r rune) script {
	switch {
	case r < 0x3000:
		return noScript
	case r == 'ー', r >= 0x30A1 && r <= 0x30FA, r >= 0xFF66 && r <= 0xFF9F: // also of half width
		return katakana
	case r >= 0x3041 && r <= 0x309E:
		return hiragana
	case r == '々', r == '〆', r == '〇', unicode.Is(unicode.Han, r):
		return han
	}
	return noScript
}

// isJSON reports whether a text is JSON, as structured outputs are, perhaps still growing: a program reads it, so no
// marker may go into it. Prose does not begin with an object or a list of them. A block of code with JSON is such a
// text if it is all there is.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	if fence, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(fence, "```") {
		mark := fence[:len(fence)-len(strings.TrimLeft(fence, "`"))]
		if rest, ok = strings.CutSuffix(rest, "\n"+mark); !ok || strings.Contains(rest, mark) {
			return false
		}
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return false
	}
	inside := strings.TrimLeft(text[1:], " \t\r\n")
	if text[0] == '[' && strings.HasPrefix(inside, "{") {
		text, inside = inside, strings.TrimLeft(inside[1:], " \t\r\n")
	}
	return text[0] == '{' && (strings.HasPrefix(inside, `"`) || strings.HasPrefix(inside, "}"))
}
