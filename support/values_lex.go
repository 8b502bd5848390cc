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
		case r >= '0' && r <= '9':
			tokens = append(tokens, valueToken{kind: numberToken, start: at, end: figureEnd(text, at, end)})
		case unicode.IsLetter(r):
			tokens = append(tokens, wordAt(text, at, end))
		default:
			tokens = append(tokens, valueToken{kind: signToken, start: at, end: at + size})
		}
		last := &tokens[len(tokens)-1]
		last.glued = glued
		at = last.end
		glued = true
		if last.kind != wordToken {
			last.low = text[last.start:last.end]
		}
	}
	return tokens
}

// figureEnd finds the end of digits with their points and commas: 1,234.5 but not the comma of "1, 2".
func figureEnd(text string, at, end int) int {
	digit := func(i int) bool { return i < end && text[i] >= '0' && text[i] <= '9' }
	for digit(at) {
		for digit(at) {
			at++
		}
		switch {
		case at < end && (text[at] == '.' || text[at] == ',') && digit(at+1):
			at++
		case strings.HasPrefix(text[at:end], "\u202f") || strings.HasPrefix(text[at:end], "\u2009") || strings.HasPrefix(text[at:end], "\u00a0"):
			// A thin or fixed space stands between thousands, if exactly three digits follow.
			_, size := utf8.DecodeRuneInString(text[at:end])
			next := at + size
			if !digit(next) || !digit(next+1) || !digit(next+2) || digit(next+3) {
				return at
			}
			at = next
		}
	}
	return at
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
	i := at
	for i < end {
		r, size := utf8.DecodeRuneInString(text[i:end])
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
	if capitals > 0 && i+1 < end && text[i] == '-' && text[i+1] >= '0' && text[i+1] <= '9' && monthOf(strings.ToLower(text[at:i])) == 0 {
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

// initialsEnd finds the end of capitals with stops, as J. or U.S.A., at the beginning of text[at:end]; at if there are none.
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
