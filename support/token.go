package support

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word are read. Words with the same first maxWord bytes are one.
const maxWord = 64

// tokenFlags describe a token.
type tokenFlags uint16

const (
	flagNumber   tokenFlags = 1 << iota // digits, or a word for them
	flagCapital                         // begins with a capital
	flagUpper                           // at least two letters, all capitals
	flagNegation                        // not, n't, no, never …
	flagGlued                           // directly follows the previous token: the 19 of COVID-19
	flagWhole                           // one rune of a script without spaces
	flagStop                            // carries no information: the, however
	flagPerson                          // I, you: small talk
	flagClause                          // begins a clause: and, which
)

// token is a word or a number.
type token struct {
	start, end int
	key        uint32 // of its stem; odd for a number
	prefix     uint32 // of its first five letters; 0 for a number or a shorter word
	flags      tokenFlags
	word       []byte // in lower case, between two spaces; valid until the next token
}

// reader splits a text into tokens. It never fails: anything but letters and digits separates tokens, as do bytes that
// are not valid UTF-8. It does not allocate.
type reader struct {
	text string
	pos  int
	last int // the end of the previous token
	n    int // bytes of the word in buf, from buf[1]
	buf  [maxWord + 8]byte
	more string // the second word of an abbreviation that is read as two; it begins at from
	from int

	onlyKeys bool // prefixes are not needed
}

// The classes of a byte.
const (
	classSpace = iota // and punctuation
	classLower
	classUpper
	classDigit
	classRune // part of a multi-byte rune
)

var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z':
			t[c] = classLower
		case 'A' <= c && c <= 'Z':
			t[c] = classUpper
		case '0' <= c && c <= '9':
			t[c] = classDigit
		case c >= utf8.RuneSelf:
			t[c] = classRune
		}
	}
	return t
}()

// next reads the next token into t and reports whether there was one.
func (r *reader) next(t *token) bool {
	if r.more != "" {
		r.n = copy(r.buf[1:], r.more)
		r.more = ""
		t.start, t.flags = r.from, flagCapital
		r.finish(t, r.last, r.pos)
		t.resolve(r)
		return true
	}
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; classes[c] {
		case classSpace:
			if c == '[' {
				r.pos = max(r.pos+1, markEnd(r.text, r.pos))
				continue
			}
			r.pos++
			continue
		case classDigit:
			r.number(t)
			return true
		case classRune:
			ch, w := utf8.DecodeRuneInString(r.text[r.pos:])
			if !unicode.IsLetter(ch) && !unicode.IsNumber(ch) {
				r.pos += w
				continue
			}
		}
		if r.word(t) {
			return true
		}
	}
	return false
}

// markEnd returns the end of the citation mark at p ("[1]", "[2, 3]", "[4-6]"), or p if there is none.
func markEnd(text string, p int) int {
	const longest = 24
	digits := 0
	for i := p + 1; i < len(text) && i < p+longest; i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == ',' || c == ' ' || c == '-' || c == '^':
		case c == ']' && digits > 0 && digits < 8:
			return i + 1
		default:
			return p
		}
	}
	return p
}

// begin starts a token at pos.
func (r *reader) begin(t *token) {
	t.start, t.flags = r.pos, 0
	if r.pos == r.last && r.pos > 0 || r.pos == r.last+1 && r.text[r.last] == '-' {
		t.flags = flagGlued
	}
	r.buf[0], r.n = ' ', 0
}

// finish ends a token at end, and moves the reader to behind.
func (r *reader) finish(t *token, end, behind int) {
	r.pos, r.last, t.end = behind, end, end
	r.buf[r.n+1] = ' '
	t.word = r.buf[:r.n+2]
}

func (r *reader) put(c byte) {
	if r.n < maxWord {
		r.n++
		r.buf[r.n] = c
	}
}

// word reads a word. It returns false if it only skipped a rune that is not part of a word.
func (r *reader) word(t *token) bool {
	r.begin(t)
	p, letters, uppers := r.pos, 0, 0
	for p < len(r.text) && t.flags&flagWhole == 0 {
		c := r.text[p]
		switch classes[c] {
		case classLower, classDigit:
			r.put(c)
		case classUpper:
			if letters == 0 {
				t.flags |= flagCapital
			}
			r.put(c | 0x20)
			uppers++
		default:
			w, upper := r.other(t, p, letters)
			if p += w; w == 0 {
				return r.close(t, p, uppers > 1 && uppers == letters)
			}
			uppers += upper
			letters++
			continue
		}
		p++
		letters++
	}
	return r.close(t, p, uppers > 1 && uppers == letters)
}

// other reads anything but an ASCII letter or digit at p. It returns 0 if the word ends before it.
func (r *reader) other(t *token, p, letters int) (width, uppers int) {
	if r.text[p] < utf8.RuneSelf {
		if letters > 0 && isAcronymDot(r.text, p) {
			return 1, 1
		}
		return 0, 0
	}
	ch, w := utf8.DecodeRuneInString(r.text[p:])
	if ch == '’' || !r.rune(t, ch, letters) {
		return 0, 0
	}
	if unicode.IsUpper(ch) {
		return w, 1
	}
	return w, 0
}

// close ends the word before p.
func (r *reader) close(t *token, p int, upper bool) bool {
	if p == r.pos {
		_, w := utf8.DecodeRuneInString(r.text[p:])
		r.pos += w
		return false
	}
	if upper {
		t.flags |= flagUpper
	}
	end, behind, negated := contraction(r.text, p)
	if negated && r.n > 0 && r.buf[r.n] == 'n' {
		r.n = copy(r.buf[1:], "not")
		end = behind
	} else if negated {
		end, behind = p, p
	}
	r.finish(t, end, behind)
	t.resolve(r)
	return true
}

// rune adds a multi-byte rune to the word. It returns false if the word ends before it.
func (r *reader) rune(t *token, ch rune, letters int) bool {
	switch {
	case 0xC0 <= ch && ch < 0x180 && ch != '×' && ch != '÷':
		if letters == 0 && unicode.IsUpper(ch) {
			t.flags |= flagCapital
		}
		r.put(folded[ch-0xC0])
		return true
	case 0x300 <= ch && ch < 0x370:
		return letters > 0 // a combining mark: e with ´ is é, which is read as e
	case 0xFF01 <= ch && ch <= 0xFF5E && (unicode.IsLetter(ch) || unicode.IsDigit(ch)):
		r.put(byte(unicode.ToLower(ch - 0xFEE0)))
		return true
	case isUnspaced(ch):
		if letters > 0 {
			return false
		}
		t.flags |= flagWhole
	case unicode.IsLetter(ch), unicode.IsNumber(ch), unicode.IsMark(ch) && letters > 0:
	default:
		return false
	}
	if letters == 0 && unicode.IsUpper(ch) {
		t.flags |= flagCapital
	}
	var b [utf8.UTFMax]byte
	n := utf8.EncodeRune(b[:], unicode.ToLower(ch))
	for _, c := range b[:n] {
		r.put(c)
	}
	return true
}

// folded has the letters U+00C0 to U+017F in lower case and without diacritics.
const folded = "aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllll" +
	"nnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"

// ideograph reports whether a rune is Han or Kana.
func ideograph(r rune) bool {
	return r >= 0x3005 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana))
}

// isUnspaced reports whether r belongs to a script written without spaces: each of its runes is a token.
func isUnspaced(r rune) bool {
	return r >= 0x0E00 && (ideograph(r) || unicode.In(r, unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer))
}

// unspaced reports whether digits after a rune are a figure of their own, not part of a word, as in scripts with few
// spaces.
func unspaced(r rune) bool { return isUnspaced(r) || unicode.Is(unicode.Hangul, r) }

// isAcronymDot reports whether the full stop at p is between the letters of "U.S." or after the last.
func isAcronymDot(text string, p int) bool {
	single := p >= 1 && isLetter(text[p-1]) && (p == 1 || text[p-2] == '.' || classes[text[p-2]] == classSpace)
	return single && p+2 < len(text) && isLetter(text[p+1]) && (text[p+2] == '.' || classes[text[p+2]] == classSpace)
}

func isLetter(c byte) bool { k := classes[c]; return k == classLower || k == classUpper }

// contraction reads what an apostrophe at p joins to the word before it. The word ends at end, and reading continues at
// behind; negated means that it was the 't of n't, if the word ends in n.
func contraction(text string, p int) (end, behind int, negated bool) {
	q := p
	switch {
	case q < len(text) && text[q] == '\'':
		q++
	case q+3 <= len(text) && text[q:q+3] == "’":
		q += 3
	default:
		return p, p, false
	}
	e := q
	for e < len(text) && e-q < 3 && isLetter(text[e]) {
		e++
	}
	switch text[q:e] {
	case "s", "S", "re", "ve", "ll", "d", "m", "RE", "VE", "LL", "D", "M":
		return p, e, false
	case "t", "T":
		return p, e, true
	}
	return p, p, false
}

// prefixLetters is the length of a word's prefix in letters.
const prefixLetters = 5

// resolve sets the keys of a word.
func (t *token) resolve(r *reader) {
	t.prefix = 0
	raw := t.raw()
	if t.flags&flagWhole != 0 {
		t.key = raw
		return
	}
	if t.flags&flagUpper != 0 {
		r.expand(t)
	}
	if w := knownWords()[raw]; w != nil {
		t.flags |= w.flags
		if t.key = w.key; w.flags&flagNumber != 0 {
			return
		}
	} else {
		t.key = 0
	}
	word := t.word[1 : len(t.word)-1]
	if !r.onlyKeys {
		if n := prefixLen(word); n > 0 {
			t.prefix = hash(word[:n])
		}
	}
	if t.key == 0 {
		t.key = stemKey(word)
	}
}

// expand replaces the commonest abbreviations of countries by their names.
func (r *reader) expand(t *token) {
	switch string(t.word) {
	case " us ", " usa ":
		r.more = "states"
	case " uk ":
		r.more = "kingdom"
	default:
		return
	}
	r.n = copy(r.buf[1:], "united")
	r.from = t.start
	r.finish(t, t.end, r.pos)
	t.flags &^= flagUpper
}

// prefixLen returns the length of the first five letters of a word in bytes, 0 if it has fewer.
func prefixLen(word []byte) int {
	n := 0
	for i, c := range word {
		if !utf8.RuneStart(c) {
			continue
		}
		if n++; n > prefixLetters {
			return i
		}
	}
	if n < prefixLetters {
		return 0
	}
	return len(word)
}

// raw returns the key of the word as it is, in lower case.
func (t *token) raw() uint32 { return hash(t.word[1:len(t.word)-1]) &^ 1 }

// maxStem is how many bytes of an ASCII stem count: that unites electric and electricity, which [stem] keeps apart.
const maxStem = 6

// stemKey returns the key of a lower-case word.
func stemKey(word []byte) uint32 {
	var b [maxWord]byte
	n := copy(b[:], word)
	w := stem(american(b[:n]))
	if len(w) > maxStem && isASCII(w[:maxStem]) {
		w = w[:maxStem]
	}
	return hash(w) &^ 1
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// number reads a number: digits with grouping and decimal signs. 1,234.50 and 1234.5 are the same.
func (r *reader) number(t *token) {
	r.begin(t)
	t.flags |= flagNumber
	t.prefix = 0
	p, point := r.pos, 0 // where the decimals begin in buf
	for p < len(r.text) {
		c := r.text[p]
		if classes[c] != classDigit {
			if c != '.' && c != ',' || p+1 >= len(r.text) || classes[r.text[p+1]] != classDigit {
				break
			}
			if c == '.' || !isGroup(r.text, p+1) {
				r.put('.')
				point = r.n
			}
			p++
			continue
		}
		if r.n == 1 && r.buf[1] == '0' {
			r.n = 0 // no leading zero
		}
		r.put(c)
		p++
	}
	if point > 0 {
		r.n = len(bytes.TrimSuffix(bytes.TrimRight(r.buf[:r.n+1], "0"), []byte("."))) - 1
	}
	r.finish(t, p, p)
	t.key = hash(r.buf[1:r.n+1]) | 1
	r.pos = ordinalEnd(r.text, p)
}

// isGroup reports whether there are exactly three digits at p.
func isGroup(text string, p int) bool {
	for i := range 3 {
		if p+i >= len(text) || classes[text[p+i]] != classDigit {
			return false
		}
	}
	return p+3 >= len(text) || classes[text[p+3]] != classDigit
}

// ordinalEnd returns the end of the suffix that makes the number before p an ordinal.
func ordinalEnd(text string, p int) int {
	if p+2 > len(text) || p+2 < len(text) && classes[text[p+2]] != classSpace {
		return p
	}
	switch text[p : p+2] {
	case "st", "nd", "rd", "th", "ST", "ND", "RD", "TH":
		return p + 2
	}
	return p
}

// hash hashes bytes to 32 bits. It is part of the format of idf.bin.
func hash(b []byte) uint32 {
	const k = 0x9E3779B97F4A7C15
	h := uint64(len(b)) * k
	for len(b) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var tail uint64
	if cap(b) >= 8 { // usually: b is in the reader's buffer
		tail = binary.LittleEndian.Uint64(b[:8]) & (1<<(8*len(b)) - 1)
	} else {
		for i, c := range b {
			tail |= uint64(c) << (8 * i)
		}
	}
	return max(uint32(mix(h^tail)>>32), 2) // 0 and 1 mean none
}

func hashString(s string) uint32 {
	var b [maxWord]byte
	return hash(b[:copy(b[:], s)])
}

func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	h ^= h >> 29
	h *= 0xA0761D6478BD642F
	return h ^ h>>32
}

// stem removes the endings of English inflection and the commonest of derivation from a lower-case word, and returns
// the rest of w, which it may change. It only has to map related words to the same result, which need not be a word.
func stem(w []byte) []byte {
	n := len(w)
	if n < 4 || w[0] >= 0x80 {
		return w
	}
	w = stemPlural(w)
	w = stemVerb(w)
	w = stemSuffix(w)
	n = len(w)
	switch {
	case n > 3 && w[n-1] == 'e':
		w = w[:n-1]
	case n > 2 && w[n-1] == 'y' && !isVowel(w[n-2]):
		w[n-1] = 'i'
	}
	return w
}

func stemPlural(w []byte) []byte {
	n := len(w)
	if w[n-1] != 's' {
		return w
	}
	switch {
	case hasSuffix(w, "sses"):
		return w[:n-2]
	case hasSuffix(w, "ies") && n > 4:
		w[n-3] = 'y'
		return w[:n-2]
	case hasSuffix(w, "ches"), hasSuffix(w, "shes"), hasSuffix(w, "xes"):
		return w[:n-2]
	case w[n-2] == 's', w[n-2] == 'u', w[n-2] == 'i':
		return w
	}
	return w[:n-1]
}

func stemVerb(w []byte) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "ied") && n > 4:
		w[n-3] = 'y'
		return w[:n-2]
	case hasSuffix(w, "eed"):
		return w
	case hasSuffix(w, "ed") && n > 4 && hasVowel(w[:n-2]):
		return undouble(w[:n-2])
	case hasSuffix(w, "ing") && n > 5 && hasVowel(w[:n-3]):
		return undouble(w[:n-3])
	}
	return w
}

func stemSuffix(w []byte) []byte {
	n := len(w)
	switch {
	case n > 5 && hasSuffix(w, "ly"):
		w = w[:n-2]
	case n > 7 && (hasSuffix(w, "ment") || hasSuffix(w, "ness")):
		w = w[:n-4]
	case n > 6 && (hasSuffix(w, "tion") || hasSuffix(w, "sion")):
		w = w[:n-3]
	}
	return w
}

// undouble removes the doubled consonant of stopped and running.
func undouble(w []byte) []byte {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !isVowel(w[n-1]) && w[n-1] != 'l' && w[n-1] != 's' && w[n-1] != 'z' {
		return w[:n-1]
	}
	return w
}

func hasSuffix(w []byte, s string) bool { return len(w) >= len(s) && string(w[len(w)-len(s):]) == s }

func hasVowel(w []byte) bool {
	return slices.ContainsFunc(w, func(c byte) bool { return isVowel(c) || c == 'y' })
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	}
	return false
}

// american replaces British endings by American ones. Words of up to five letters stay.
func american(w []byte) []byte {
	n := len(w)
	if n <= 5 {
		return w
	}
	switch w[n-1] {
	case 's', 'd', 'g', 'n':
		return americanInflected(w)
	case 'r':
		if hasSuffix(w, "our") {
			return append(w[:n-2], 'r')
		}
	case 'e':
		switch {
		case hasSuffix(w, "ise"), hasSuffix(w, "yse"):
			w[n-2] = 'z'
		case hasSuffix(w, "tre"):
			w[n-2], w[n-1] = 'e', 'r'
		case hasSuffix(w, "ogue") && n > 6:
			return w[:n-2]
		}
	}
	return w
}

func americanInflected(w []byte) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "ised"), hasSuffix(w, "ises"):
		w[n-3] = 'z'
	case hasSuffix(w, "ising"):
		w[n-4] = 'z'
	case hasSuffix(w, "isation"):
		w[n-6] = 'z'
	case hasSuffix(w, "isations"):
		w[n-7] = 'z'
	case hasSuffix(w, "ours"):
		return append(w[:n-3], w[n-2:]...)
	case hasSuffix(w, "oured"):
		return append(w[:n-4], w[n-3:]...)
	case hasSuffix(w, "ouring"):
		return append(w[:n-5], w[n-4:]...)
	}
	return w
}
