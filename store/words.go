package store

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of what is searched. Beyond them text is stored all the same, but not found by its words.
const (
	maxWord = 64 // bytes of one word; what is longer is found by these
	// bytes of all different names of an answer, as hashes: some 18,000; PostgreSQL takes 1 MiB with the words
	maxNames      = 512 << 10
	maxWords      = 512 << 10 // bytes of all different words of an answer
	maxQueryWords = 64        // of a query; the rest of it is not looked at
)

// A tokenizer cuts text into words, as they are searched: in lower case, without accents and in compatibility form.
// Scripts that put no spaces between words are cut into pairs of characters, and the last character of a run also is a
// word by itself, so that each character begins a word.
type tokenizer struct {
	put   func(word []byte) bool // takes a word; reports whether the answer did not have it yet
	bytes int                    // of the terms that put did not have yet

	word  []byte // the one being read
	plain bool   // it is ASCII, and in lower case
	pair  []byte // the last character of a run without spaces, and when it is put the next
	size  int    // of that last character
	alone bool   // it began its run

	query bool        // the words are looked for: an end of a run only counts if it is all of it
	asked []queryTerm // by a query, in their order
}

// add puts the words of text.
func (t *tokenizer) add(text string) {
	t.word, t.plain, t.pair, t.size = t.word[:0], true, t.pair[:0], 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			t.ascii(c)
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		t.rune(r, text[i:i+size])
		i += size
	}
	t.end()
	t.endRun()
}

func (t *tokenizer) ascii(c byte) {
	if t.size > 0 {
		t.endRun()
	}
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		t.word = append(t.word, c)
	case 'A' <= c && c <= 'Z':
		t.word = append(t.word, c+'a'-'A')
	case len(t.word) > 0:
		t.end()
	}
}

func (t *tokenizer) rune(r rune, text string) {
	switch {
	case isUnspaced(r):
		t.end()
		t.alone = t.size == 0
		t.pair = append(t.pair, text...)
		if !t.alone {
			t.addWord(t.pair, false)
		}
		t.pair, t.size = append(t.pair[:0], text...), len(text)
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
		t.endRun()
		t.word, t.plain = append(t.word, text...), false
	default:
		t.endRun()
		t.end()
	}
}

// end ends a word.
func (t *tokenizer) end() {
	if len(t.word) == 0 {
		return
	}
	if !t.plain {
		t.fold()
		t.plain = true
	}
	if n := maxWord; len(t.word) > n {
		for !utf8.RuneStart(t.word[n]) {
			n--
		}
		t.word = t.word[:n]
	}
	if len(t.word) > 0 {
		t.addWord(t.word, false)
	}
	t.word = t.word[:0]
}

// fold takes accents off, and what else is only another way to write the same.
func (t *tokenizer) fold() {
	if len(t.word) > 8*maxWord { // it is cut anyway
		t.word = t.word[:8*maxWord]
	}
	folded := t.word[:0]
	for _, r := range string(norm.NFKD.Bytes(t.word)) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			folded = utf8.AppendRune(folded, unicode.ToLower(r))
		}
	}
	t.word = folded
}

// endRun ends a run of characters without spaces.
func (t *tokenizer) endRun() {
	if t.size > 0 && (!t.query || t.alone) {
		t.addWord(t.pair, true)
	}
	t.pair, t.size = t.pair[:0], 0
}

// addWord hands a word on. In a query a single character out of a run stands for all pairs that begin with it.
func (t *tokenizer) addWord(word []byte, single bool) {
	switch {
	case t.query && len(t.asked) < maxQueryWords:
		t.asked = append(t.asked, queryTerm{string(word), single})
	case !t.query && t.bytes+len(word) <= maxWords && t.put(word):
		t.bytes += len(word) + 1
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
	t := tokenizer{query: true}
	t.add(query)
	last, _ := utf8.DecodeLastRuneInString(query)
	if n := len(t.asked); n > 0 && n < maxQueryWords &&
		(unicode.IsLetter(last) || unicode.IsNumber(last) || unicode.IsMark(last)) {
		t.asked[n-1].prefix = true
	}
	return t.asked
}
