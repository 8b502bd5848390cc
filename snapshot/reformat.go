package snapshot

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// reformatted looks for the letters, digits and symbols of the quote.
func (f *finder) reformatted() (Match, bool) {
	needle := reduced(f.exact)
	if needle == "" {
		return Match{}, false
	}
	text := f.reduced()
	if !strings.Contains(text, needle) {
		return Match{}, false
	}
	b := best{finder: f}
	r := reducer{text: f.text}
	done := 0 // bytes of text that r has made
	for at := 0; ; {
		i := strings.Index(text[at:], needle)
		if i < 0 {
			break
		}
		from, to := at+i, at+i+len(needle)
		at = to
		var h hit
		for done <= from { // up to the character that makes the first byte
			h.start = r.next()
			done += r.made
		}
		if needle[0] == signByte || needle[0] == parenByte {
			_, n := utf8.DecodeLastRuneInString(f.text[:h.start])
			h.start -= n
		}
		h.end = r.pos
		for done < to {
			r.next()
			done += r.made
			h.end = r.pos
		}
		if f.isWhole(h, f.exact) && !f.isAsked(h) {
			b.add(h)
		}
	}
	return b.match(MatchReformatted)
}

// isAsked reports whether the text asks what the quote says.
func (f *finder) isAsked(h hit) bool {
	next, _ := utf8.DecodeRuneInString(f.text[h.end:])
	last, _ := utf8.DecodeLastRuneInString(f.exact)
	return isQuestion(next) && (last == '.' || last == '!' || last == '。' || last == '！')
}

// reduced returns the letters, digits and symbols of a text, and what else makes another number or word of it. Equal
// texts that are set in another way are reduced to the same.
func reduced(text string) string {
	out := make([]byte, 0, len(text))
	r := reducer{text: text}
	for r.next(); r.made > 0; r.next() {
		if r.between != 0 {
			out = append(out, r.between)
		}
		out = append(out, r.text[r.from:r.pos]...)
	}
	return string(out)
}

// reducer reads what counts of a text, character by character.
type reducer struct {
	text    string
	pos     int  // behind the character
	last    kind // of the character before
	char    rune // that character
	between byte // what stands between it and this one and counts; 0: nothing
	from    int  // where the character begins
	made    int  // bytes: of between and the character; 0: the text has ended
}

// kind is what a character is to a [reducer].
type kind uint8

const (
	noKind kind = iota // punctuation, white space and the like
	letterKind
	digitKind
	otherKind // symbols, and what counts as such
)

// next reads the next character that counts, and returns where it begins.
func (r *reducer) next() (start int) {
	gap := r.pos
	for r.pos < len(r.text) {
		c, n := rune(r.text[r.pos]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(r.text[r.pos:])
		}
		k := kindOf(c)
		if c == minus && startsWithDigit(r.text[r.pos+n:]) {
			k = noKind // a sign, or between digits, as a hyphen is
		}
		if k == noKind {
			r.pos += n
			continue
		}
		start = r.pos
		r.pos += n
		r.between = r.betweenOf(gap, start, c, k)
		r.from, r.last, r.char = start, k, c
		r.made = r.pos - start
		if r.between != 0 {
			r.made++
		}
		return start
	}
	r.made = 0
	return r.pos
}

// What stands between two characters, where it counts. None of these is a character that a reducer makes of a text
// itself.
const (
	signByte  = '-'
	parenByte = '(' // around a number, which is how accounts write a loss
	dashByte  = '_' // of whatever length, between digits
	otherByte = ' ' // anything else between digits, or between words
)

// betweenOf returns what counts of the text[gap:start] between two characters, the second of which is c.
func (r *reducer) betweenOf(gap, start int, c rune, k kind) byte {
	if gap == start {
		return 0
	}
	between := r.text[gap:start]
	switch {
	case k == digitKind && isSign(r.text[:start]):
		return signByte
	case k == digitKind && strings.HasSuffix(between, "(") && isAccounting(r.text[start:]):
		return parenByte
	case k == digitKind && r.last == digitKind:
		return betweenDigits(between)
	case k == letterKind && r.last == letterKind:
		return betweenLetters(between, r.char, c)
	}
	return 0
}

func betweenDigits(gap string) byte {
	switch gap {
	case ".", ",":
		return gap[0] // a decimal point
	case "·":
		return '*'
	case "٫", "٬":
		return ';'
	}
	switch c, n := utf8.DecodeRuneInString(strings.TrimSpace(gap)); {
	case n != len(strings.TrimSpace(gap)):
	case c == '/', c == ':':
		return byte(c)
	case isDash(c):
		return dashByte
	}
	return otherByte
}

// betweenLetters tells a gap between words from what stands inside one: a hyphen, with the end of a line or without.
func betweenLetters(gap string, last, next rune) byte {
	if gap == "'" || gap == "’" {
		return '\''
	}
	c, n := utf8.DecodeRuneInString(gap)
	if (c == '-' || c == '‐' || c == '‑') && strings.TrimSpace(gap[n:]) == "" {
		return 0
	}
	if unicode.IsUpper(next) && !unicode.IsUpper(last) || unspaced(last) || unspaced(next) {
		return 0 // texts of pages often lack the space there
	}
	return otherByte
}

// unspaced reports whether the script of a letter puts no white space between words.
func unspaced(r rune) bool {
	return r > 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// minus is the sign that is no dash to Unicode.
const minus = '\u2212'

// isDash reports whether a character is a hyphen, a dash or the minus.
func isDash(r rune) bool { return r == '-' || r > 0x7f && (r == minus || unicode.Is(unicode.Pd, r)) }

// isSign reports whether what stands before a number ends with a dash that joins it to nothing: not behind a letter, a
// digit or another dash.
func isSign(before string) bool {
	last, n := utf8.DecodeLastRuneInString(before)
	if !isDash(last) {
		return false
	}
	last, n = utf8.DecodeLastRuneInString(before[:len(before)-n])
	return n == 0 || !unicode.IsLetter(last) && !unicode.IsMark(last) && !unicode.IsNumber(last) && !isDash(last)
}

// isAccounting reports whether a text begins with a number behind which a parenthesis is closed.
func isAccounting(text string) bool {
	const longest = 32
	for i, r := range text[:min(len(text), longest)] {
		switch {
		case r == ')':
			return i > 0
		case !unicode.IsDigit(r) && r != '.' && r != ',' && !isPercent(r):
			return false
		}
	}
	return false
}

func isPercent(r rune) bool {
	return r > 0 && strings.ContainsRune("%‰‱％﹪٪؉؊", r)
}

func isQuestion(r rune) bool { return r == '?' || r == '？' || r == '؟' }

func kindOf(c rune) kind {
	switch {
	case c < utf8.RuneSelf:
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			return letterKind
		case '0' <= c && c <= '9':
			return digitKind
		}
		if c > 0 && strings.ContainsRune("$+<=>^`|~%?", c) {
			return otherKind
		}
		return noKind
	case unicode.IsLetter(c), unicode.IsMark(c):
		return letterKind
	case unicode.IsNumber(c):
		return digitKind
	case unicode.IsSymbol(c), isPercent(c), isQuestion(c), '′' <= c && c <= '‷': // primes: feet, minutes
		return otherKind
	}
	return noKind
}
