package support

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verbatim reports whether the text contains the claim's words in sequence. Case, accents, punctuation, white space,
// citation marks and the grouping of digits do not matter; everything else does, including what an apostrophe joins to
// a word (can't, he'll), and the sign, currency or percent of a number. No text contains a claim without words. It
// takes time linear in both.
func Verbatim(claim, text string) bool {
	words, all := rawWords(claim), rawWords(text)
	for at := 0; len(words) > 0; at++ {
		n := bytes.Index(all[at:], words)
		if n < 0 {
			return false
		}
		if at += n; at%rawWord == 0 {
			return true
		}
	}
	return false
}

// rawWord is the length of a word's key in bytes.
const rawWord = 4

// rawWords returns the concatenated keys of the words of a text.
func rawWords(text string) (keys []byte) {
	r := rawReader{reader: reader{text: text}}
	for word, ok := r.next(); ok; word, ok = r.next() {
		keys = binary.BigEndian.AppendUint32(keys, word)
	}
	return keys
}

// rawReader reads the words of a text as written.
type rawReader struct {
	reader

	token token
	more  []byte // what belongs to the word besides its letters and digits
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

// signs adds the signs next to a number that change it. White space may separate them, except for a minus, which also
// must not follow a letter or digit: the dash of 5-10 is not one.
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

// behind adds the sign after a number.
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
