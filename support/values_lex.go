package support

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"
)

type valueTokenKind uint8

const (
	wordToken valueTokenKind = iota
	numberToken
	signToken // one rune that is neither: punctuation, currency, percent
)

// valueToken is one word, figure or sign.
type valueToken struct {
	kind       valueTokenKind
	start, end int
	low        string // lower case, apostrophes straight, stops of initials left out; of signs and figures as written
	upper      bool   // begins with a capital
	caps       bool   // at least two letters, and no small one
	initial    bool   // a capital with its stop: J. or U.S.
	glued      bool   // no white space before it
	opens      bool   // the first word of its sentence
	sentence   int
}

// valueTokens cuts a text into words, figures and signs, in time linear in it.
func valueTokens(text string) []valueToken {
	tokens := make([]valueToken, 0, len(text)/5+1)
	sentence := 0
	for start, end := range prose.Sentences(text) {
		before := len(tokens)
		tokens = sentenceTokens(tokens, text, start, end)
		first := true
		for i := before; i < len(tokens); i++ {
			tokens[i].sentence = sentence
			if tokens[i].kind != signToken && first {
				tokens[i].opens, first = tokens[i].kind == wordToken, false
			}
		}
		sentence++
	}
	return tokens
}

func sentenceTokens(tokens []valueToken, text string, at, end int) []valueToken {
	glued := false
	for at < end {
		r, size := utf8.DecodeRuneInString(text[at:end])
		switch {
		case unicode.IsSpace(r):
			at += size
			glued = false
			continue
		case r == '[' && markEnd(text, at) > at && markEnd(text, at) <= end:
			at = markEnd(text, at) // a citation mark: [3]
			glued = false
			continue
		case r >= '0' && (r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r)):
			tokens = append(tokens, numberAt(text[:end], at))
		case ideograph(r):
			tokens = append(tokens, valueToken{kind: wordToken, start: at, end: at + size, low: text[at : at+size]})
		case unicode.IsLetter(r):
			tokens = append(tokens, wordAt(text, at, end).withoutStop(tokens, end))
		default:
			tokens = append(tokens, valueToken{kind: signToken, start: at, end: at + size})
		}
		last := &tokens[len(tokens)-1]
		last.glued = glued
		at = last.end
		glued = true
		if last.kind == signToken {
			last.low = text[last.start:last.end]
		}
	}
	return tokens
}

// digitAt reads a digit of the scripts that modern texts write numbers in; size 0: there is none.
func digitAt(text string, at int) (digit byte, size int) {
	if at >= len(text) {
		return 0, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		if c >= '0' && c <= '9' {
			return c, 1
		}
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	for _, zero := range [...]rune{'０', '٠', '۰', '०'} {
		if r >= zero && r <= zero+9 {
			return '0' + byte(r-zero), size
		}
	}
	return 0, 0
}

// separatorAt reads what stands between digits: a decimal sign, or what groups thousands. Spaces of any width are one.
func separatorAt(text string, at int) (plain byte, size int) {
	r, size := utf8.DecodeRuneInString(text[at:])
	switch r {
	case '.', '．', '٫':
		return '.', size
	case ',', '，', '٬':
		return ',', size
	case ' ', '\u00a0', '\u2009', '\u202f':
		return ' ', size
	}
	return 0, 0
}

// numberAt reads the figure at a place, or the digit of another script as a sign.
func numberAt(text string, at int) valueToken {
	end, plain := lexFigure(text, at)
	if end == at {
		_, size := utf8.DecodeRuneInString(text[at:])
		return valueToken{kind: signToken, start: at, end: at + size}
	}
	return valueToken{kind: numberToken, start: at, end: end, low: plain}
}

// lexFigure reads digits with what stands between them, and returns their end and their plain form: 1,234.5 and 1 234
// but neither the comma of "1, 2" nor the space of "12 34" or "1999 300".
func lexFigure(text string, at int) (end int, plain string) {
	start, digits, groups := at, 0, 0
	spaces := true // spaces may group what follows
	folded := make([]byte, 0, maxFoldedFigure)
	for {
		for digit, size := digitAt(text, at); size > 0; digit, size = digitAt(text, at) {
			folded = append(folded, digit)
			at += size
			digits++
		}
		sign, size := separatorAt(text, at)
		if _, next := digitAt(text, at+size); sign == 0 || next == 0 {
			break
		}
		if sign == ' ' {
			if !spaces || digits > 3 || groups > 0 && digits != 3 || !threeDigits(text, at+size) || text[start] == '0' {
				break
			}
			groups++
		} else {
			spaces = false
		}
		folded = append(folded, sign)
		at += size
		digits = 0
	}
	if at-start == len(folded) {
		return at, text[start:at]
	}
	return at, string(folded)
}

// maxFoldedFigure is how many bytes of a figure are kept without asking for memory.
const maxFoldedFigure = 32

// threeDigits reports whether exactly three digits stand at a place.
func threeDigits(text string, at int) bool {
	for range 3 {
		_, size := digitAt(text, at)
		if size == 0 {
			return false
		}
		at += size
	}
	_, size := digitAt(text, at)
	return size == 0
}

// wordAt reads the word that begins at a place.
//
//nolint:gocognit // one loop over the runes of a word
func wordAt(text string, at, end int) valueToken {
	token := valueToken{kind: wordToken, start: at}
	if stop := initialsEnd(text, at, end); stop > at {
		token.end, token.upper, token.initial = stop, true, true
		token.caps = stop-at > 2
		token.low = strings.ToLower(strings.ReplaceAll(text[at:stop], ".", ""))
		return token
	}
	letters, capitals := 0, 0
	i, before := at, rune(0)
	for i < end {
		r, size := utf8.DecodeRuneInString(text[i:end])
		if ideograph(r) || unicode.IsDigit(r) && (unspaced(before) || i == at+1 && before == 'v') {
			break // v3.2 is a version
		}
		before = r
		if i > at && isApostrophe(r) {
			next, _ := utf8.DecodeRuneInString(text[min(i+size, end):end])
			if !unicode.IsLetter(next) {
				break
			}
		} else if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
			break
		}
		if unicode.IsLetter(r) {
			letters++
		}
		if unicode.IsUpper(r) {
			capitals++
			token.upper = token.upper || i == at
		}
		i += size
	}
	// COVID-19, B-52: the figure belongs to the name.
	if capitals > 0 && i+1 < end && text[i] == '-' && text[i+1] >= '0' && text[i+1] <= '9' &&
		monthOf(strings.ToLower(text[at:i])) == 0 {
		i++
		for i < end && (text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z') {
			i++
		}
	}
	token.end = i
	token.caps = letters >= 2 && capitals == letters
	token.low = foldApostrophe(strings.ToLower(text[at:i]))
	return token
}

// withoutStop takes the stop from a unit that ends a sentence behind its figure and looks like an initial: 5 W., 482
// °F.
func (t valueToken) withoutStop(before []valueToken, end int) valueToken {
	if !t.initial || t.end-t.start != len("F.") || len(before) == 0 {
		return t
	}
	if last := before[len(before)-1]; last.low == "°" || last.kind == numberToken && t.end == end {
		t.end--
		t.initial = false
	}
	return t
}

// initialsEnd finds the end of capitals with stops, as J. or U.S.A., at the beginning of text[at:end]; at if there are
// none.
func initialsEnd(text string, at, end int) int {
	i := at
	for i+1 < end && text[i] >= 'A' && text[i] <= 'Z' && text[i+1] == '.' {
		i += 2
	}
	if i == at+2 && i < end && text[i] >= 'a' && text[i] <= 'z' {
		return at // "A.b" is no initial
	}
	return i
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' }

func foldApostrophe(s string) string {
	if !strings.ContainsAny(s, "’ʼ") {
		return s
	}
	return strings.NewReplacer("’", "'", "ʼ", "'").Replace(s)
}

// withoutPossessive takes 's and a closing apostrophe from a folded word.
func withoutPossessive(low string) string {
	return strings.TrimSuffix(strings.TrimSuffix(low, "'s"), "'")
}
