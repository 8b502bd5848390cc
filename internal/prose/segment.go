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
