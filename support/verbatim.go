package support

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verbatim reports whether the claim's words stand in the text one after the other. Case, accents, punctuation, white
// space, citation marks and the grouping of digits do not matter; everything else does: what an apostrophe joins to a
// word (can't, he'll), and the sign, currency or percent of a number. A claim without words stands nowhere. It takes
// time linear in both.
func Verbatim(claim, text string) bool {
	c := newRawClaim(claim)
	r := rawReader{reader: reader{text: text}}
	return c.in(&r, len(text))
}

// rawClaim is a claim whose words are looked for one after the other.
type rawClaim struct {
	words []uint32
	fall  []int // by Knuth, Morris and Pratt: how many words are matched still where words[i] does not match
	keys  []rawKey
}

// rawKey is where an index has a word: under the one key, if it has none under the other. Neither: it may be anywhere.
type rawKey struct{ key, not uint32 }

func newRawClaim(claim string) *rawClaim {
	c := &rawClaim{}
	r := rawReader{reader: reader{text: claim}}
	for word, ok := r.next(); ok; word, ok = r.next() {
		c.words, c.keys = append(c.words, word), append(c.keys, rawKeyOf(&r.token))
	}
	words := c.words
	c.fall = make([]int, len(words))
	for i, n := 1, 0; i < len(words); i++ {
		for n > 0 && words[n] != words[i] {
			n = c.fall[n-1]
		}
		if words[n] == words[i] {
			n++
		}
		c.fall[i] = n
	}
	return c
}

// rawKeyOf returns the keys of a word. The digits of a number may stand in a text as a word, if they are wide ones.
func rawKeyOf(t *token) rawKey {
	switch digits := len(bytes.Trim(t.word, " .0123456789")) == 0; {
	case !digits:
		return rawKey{key: t.key}
	case t.key&1 != 0:
		return rawKey{key: t.key, not: stemKey(t.word[1 : len(t.word)-1])}
	}
	return rawKey{}
}

// in reports whether the claim is in the next words of a text, up to the given number of them.
func (c *rawClaim) in(r *rawReader, most int) bool {
	if len(c.words) == 0 {
		return false
	}
	n := 0
	for ; most > 0; most-- {
		word, ok := r.next()
		if !ok {
			return false
		}
		for n > 0 && c.words[n] != word {
			n = c.fall[n-1]
		}
		if c.words[n] == word {
			n++
		}
		if n == len(c.words) {
			return true
		}
	}
	return false
}

const (
	// maxRawPlaces is up to how many places of a claim's rarest word are looked at one by one.
	maxRawPlaces = 8
	// rawStart is how many words that are none a sentence may begin with, where it begins inside of one.
	rawStart = 4
)

// verbatim is Verbatim, of a text that was read before: most have no place where the claim could stand.
func (x *indexedPassage) verbatim(c *rawClaim) bool {
	at, places, known := 0, []uint32(nil), false
	for i, k := range c.keys {
		slot := noSlot
		if k.key != 0 && (k.not == 0 || len(x.at(x.place(k.not))) == 0) {
			slot = x.place(k.key)
		}
		if slot == noSlot {
			continue
		}
		if p := x.at(slot); !known || len(p) < len(places) {
			at, places, known = i, p, true
		}
	}
	if known && len(places) <= maxRawPlaces &&
		!slices.ContainsFunc(places, func(p uint32) bool { return x.mayStand(c, int(p)-at) }) {
		return false
	}
	r := rawReader{reader: reader{text: x.text}}
	return c.in(&r, len(x.text))
}

// mayStand reports whether the claim may begin with a token: it looks from the beginning of its sentence on.
func (x *indexedPassage) mayStand(c *rawClaim, first int) bool {
	if first < 0 || first+len(c.words) > x.tokens {
		return false
	}
	s := &x.sentences[x.sentence[first]]
	r := rawReader{reader: reader{text: x.text, pos: int(s.start)}}
	return c.in(&r, first-int(s.first)+len(c.words)+rawStart)
}

// rawReader reads the words of a text as they are written.
type rawReader struct {
	reader

	token token
	more  []byte // what belongs to the word beside its letters and digits
}

// next returns the key of the next word.
func (r *rawReader) next() (uint32, bool) {
	t := &r.token
	if !r.reader.next(t) {
		return 0, false
	}
	key := t.raw()
	r.more = r.more[:0]
	if behind := r.text[t.end:r.pos]; behind != "" {
		r.add(behind) // he'll, 5th
	} else if written := r.text[t.start:t.end]; strings.ContainsAny(written, "'’") {
		r.add(written) // didn't, which is read as not
	}
	if classes[r.text[t.start]] == classDigit {
		r.signs()
	}
	if len(r.more) > 0 {
		key = uint32(mix(uint64(key)<<32 | uint64(hash(r.more))))
	}
	return key, true
}

func (r *rawReader) add(text string) {
	r.more = append(r.more, strings.ReplaceAll(strings.ToLower(text), "’", "'")...)
}

// signs adds what stands beside a number and makes another one of it. White space may part them, but not a minus from
// its number; nor may a letter or digit stand before that: the dash of 5-10 is none.
func (r *rawReader) signs() {
	for before := r.text[:r.token.start]; ; {
		trimmed := strings.TrimRightFunc(before, unicode.IsSpace)
		sign, n := utf8.DecodeLastRuneInString(trimmed)
		glued := len(trimmed) == len(before)
		before = trimmed[:len(trimmed)-n]
		switch {
		case unicode.Is(unicode.Sc, sign), strings.ContainsRune("<>≤≥±", sign):
		case strings.ContainsRune("-−–", sign) && glued && !endsInWord(before):
			sign = '-'
		case sign != '+' || !glued || endsInWord(before):
			r.behind()
			return
		}
		r.more = utf8.AppendRune(r.more, sign)
	}
}

// behind adds the sign behind a number.
func (r *rawReader) behind() {
	sign, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(r.text[r.pos:], unicode.IsSpace))
	if sign == '％' {
		sign = '%'
	}
	if unicode.Is(unicode.Sc, sign) || strings.ContainsRune("%‰°", sign) {
		r.more = utf8.AppendRune(append(r.more, ' '), sign)
	}
}

func endsInWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}
