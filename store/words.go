package store

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of what is searched. Beyond them text is stored all the same, but not found by its words.
const (
	maxWord       = 64        // bytes of one word; what is longer is found by these
	maxWords      = 512 << 10 // bytes of all different words of an answer; PostgreSQL takes 1 MiB
	maxQueryWords = 64        // of a query; the rest of it is not looked at
)

// A wordReader cuts text into words, as they are searched: in lower case, without accents and in compatibility form. Scripts
// that put no spaces between words are cut into pairs of characters, and the last character of a run also is a word by
// itself, so that each character begins a word.
type wordReader struct {
	put   func(word []byte) bool // takes a word; reports whether the answer did not have it yet
	bytes int                    // of the words that put did not have yet

	word  []byte // the one being read
	plain bool   // it is ASCII, and in lower case
	pair  []byte // the last character of a run without spaces, and when it is put the next
	size  int    // of that last character
	alone bool   // it began its run

	query bool        // the words are looked for: an end of a run only counts if it is all of it
	asked []queryTerm // by a query, in their order
}

// add puts the words of text.
func (w *wordReader) add(text string) {
	w.word, w.plain, w.pair, w.size = w.word[:0], true, w.pair[:0], 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			w.ascii(c)
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		w.rune(r, text[i:i+size])
		i += size
	}
	w.end()
	w.endRun()
}

func (w *wordReader) ascii(c byte) {
	if w.size > 0 {
		w.endRun()
	}
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		w.word = append(w.word, c)
	case 'A' <= c && c <= 'Z':
		w.word = append(w.word, c+'a'-'A')
	case len(w.word) > 0:
		w.end()
	}
}

func (w *wordReader) rune(r rune, text string) {
	switch {
	case isUnspaced(r):
		w.end()
		w.alone = w.size == 0
		w.pair = append(w.pair, text...)
		if !w.alone {
			w.take(w.pair, false)
		}
		w.pair, w.size = append(w.pair[:0], text...), len(text)
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
		w.endRun()
		w.word, w.plain = append(w.word, text...), false
	default:
		w.endRun()
		w.end()
	}
}

// end ends a word.
func (w *wordReader) end() {
	if len(w.word) == 0 {
		return
	}
	if !w.plain {
		w.fold()
		w.plain = true
	}
	if n := maxWord; len(w.word) > n {
		for !utf8.RuneStart(w.word[n]) {
			n--
		}
		w.word = w.word[:n]
	}
	if len(w.word) > 0 {
		w.take(w.word, false)
	}
	w.word = w.word[:0]
}

// fold takes accents off, and what else is only another way to write the same.
func (w *wordReader) fold() {
	if len(w.word) > 8*maxWord { // it is cut anyway
		w.word = w.word[:8*maxWord]
	}
	folded := w.word[:0]
	for _, r := range string(norm.NFKD.Bytes(w.word)) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			folded = utf8.AppendRune(folded, unicode.ToLower(r))
		}
	}
	w.word = folded
}

// endRun ends a run of characters without spaces.
func (w *wordReader) endRun() {
	if w.size > 0 && (!w.query || w.alone) {
		w.take(w.pair, true)
	}
	w.pair, w.size = w.pair[:0], 0
}

// take hands a word on. In a query a single character out of a run stands for all pairs that begin with it.
func (w *wordReader) take(word []byte, single bool) {
	switch {
	case w.query && len(w.asked) < maxQueryWords:
		w.asked = append(w.asked, queryTerm{string(word), single})
	case !w.query && w.bytes+len(word) <= maxWords && w.put(word):
		w.bytes += len(word) + 1
	}
}

// isUnspaced reports whether r is of a script that is written without spaces between words, or with endings that are.
func isUnspaced(r rune) bool {
	const prolonged = 'ー' // of no script
	return r >= 0x0E00 && (r < 0x2000 || r > 0x2E7F) && (r == prolonged || unicode.In(r, unicode.Han, unicode.Hiragana,
		unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// queryWords returns the words of a query. The last is a beginning, unless something that is no word follows it.
func queryWords(query string) []queryTerm {
	w := wordReader{query: true}
	w.add(query)
	last, _ := utf8.DecodeLastRuneInString(query)
	if n := len(w.asked); n > 0 && n < maxQueryWords && (unicode.IsLetter(last) || unicode.IsNumber(last) || unicode.IsMark(last)) {
		w.asked[n-1].prefix = true
	}
	return w.asked
}
