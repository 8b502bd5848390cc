package support

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid"
)

// wordPiece is BERT's tokenizer.
type wordPiece struct {
	ids                   map[string]int64
	unknown               int64
	prefix                string // of a piece that goes on a word
	longest               int    // characters of a word; a longer one is unknown
	lower, strip, chinese bool   // lower case, no accents, each Chinese character a word
}

// letter is a character after normalising, and where it comes from.
type letter struct {
	r    rune
	span ibid.Span
}

// pieces implements tokenizer.
func (w *wordPiece) pieces(text string) []piece {
	var all []piece
	var word []letter
	end := func() {
		all = w.appendWord(all, word)
		word = word[:0]
	}
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError { // or a byte that is no character
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		at := ibid.Span{Start: i, End: i + size}
		switch {
		case r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.Zs, r):
			end()
		case r == 0 || r == utf8.RuneError || unicode.Is(unicode.C, r):
		case isBERTPunct(r) || w.chinese && unicode.Is(unicode.Han, r):
			end()
			word = append(word, letter{r, at})
			end()
		default:
			word = w.appendLetter(word, r, at)
		}
	}
	end()
	return all
}

// appendLetter normalises a character.
func (w *wordPiece) appendLetter(word []letter, r rune, at ibid.Span) []letter {
	if w.lower {
		r = unicode.ToLower(r)
	}
	if !w.strip || r < utf8.RuneSelf {
		return append(word, letter{r, at})
	}
	for _, part := range norm.NFD.String(string(r)) {
		if !unicode.Is(unicode.Mn, part) {
			word = append(word, letter{part, at})
		}
	}
	return word
}

// appendWord cuts a word into the longest pieces, from its beginning. A word that cannot be cut is one unknown piece.
func (w *wordPiece) appendWord(all []piece, word []letter) []piece {
	if len(word) == 0 {
		return all
	}
	whole := piece{w.unknown, ibid.Span{Start: word[0].span.Start, End: word[len(word)-1].span.End}}
	if len(word) > w.longest {
		return append(all, whole)
	}
	known := len(all)
	for from := 0; from < len(word); {
		to := len(word)
		for ; to > from; to-- {
			if id, ok := w.ids[w.spell(word[from:to], from > 0)]; ok {
				all = append(all, piece{id, ibid.Span{Start: word[from].span.Start, End: word[to-1].span.End}})
				break
			}
		}
		if to == from {
			return append(all[:known], whole)
		}
		from = to
	}
	return all
}

func (w *wordPiece) spell(letters []letter, goesOn bool) string {
	var b []byte
	if goesOn {
		b = append(b, w.prefix...)
	}
	for _, l := range letters {
		b = utf8.AppendRune(b, l.r)
	}
	return string(b)
}

// isBERTPunct reports whether a character is a word by itself: all that is no letter, digit or space in ASCII, and
// Unicode's punctuation.
func isBERTPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.Is(unicode.P, r)
}
