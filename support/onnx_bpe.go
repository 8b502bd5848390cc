package support

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// maxBPEWord is how many bytes of one word are merged: merging takes the square of it. A longer word is cut.
const maxBPEWord = 256

// bytePairs is the tokenizer of GPT-2, RoBERTa and ModernBERT: byte-level BPE.
type bytePairs struct {
	ids     map[string]int64
	ranks   map[[2]string]int
	space   bool // a space is thought before the text
	letters [256]rune
}

// pieces implements tokenizer.
func (b *bytePairs) pieces(text string) []piece {
	shift := 0
	if b.space && text != "" && text[0] != ' ' {
		text, shift = " "+text, 1
	}
	var all []piece
	for from := 0; from < len(text); {
		to := from + nextBPEWord(text[from:])
		for from < to {
			cut := min(to, from+maxBPEWord)
			all = b.appendWord(all, text[from:cut], from-shift)
			from = cut
		}
	}
	return all
}

// appendWord merges the bytes of a word, which begins at a place in the text.
func (b *bytePairs) appendWord(all []piece, word string, at int) []piece {
	parts := make([]string, len(word)) // spelled in letters, one for each byte
	sizes := make([]int, len(word))    // in bytes of the text
	for i := range len(word) {
		parts[i], sizes[i] = string(b.letters[word[i]]), 1
	}
	for len(parts) > 1 {
		best, where := -1, 0
		for i := range len(parts) - 1 {
			if rank, ok := b.ranks[[2]string{parts[i], parts[i+1]}]; ok && (best < 0 || rank < best) {
				best, where = rank, i
			}
		}
		if best < 0 {
			break
		}
		parts[where] += parts[where+1]
		sizes[where] += sizes[where+1]
		parts = append(parts[:where+1], parts[where+2:]...)
		sizes = append(sizes[:where+1], sizes[where+2:]...)
	}
	for i, part := range parts {
		if id, ok := b.ids[part]; ok { // every byte has one, unless the vocabulary is damaged
			all = append(all, piece{id, ibid.Span{Start: max(0, at), End: at + sizes[i]}})
		}
		at += sizes[i]
	}
	return all
}

// nextBPEWord returns the length of the first match of GPT-2's pattern
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+, which matches at the beginning of any
// text.
func nextBPEWord(text string) int {
	for _, end := range [...]string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	body := strings.TrimPrefix(text, " ")
	r, _ := utf8.DecodeRuneInString(body)
	kind := bpeKind(r)
	if body == "" || kind == ' ' {
		return spaceLength(text)
	}
	for i, r := range body {
		if bpeKind(r) != kind {
			return len(text) - len(body) + i
		}
	}
	return len(text)
}

// spaceLength is the length of the white space at the beginning of text, less its last character if a word follows, to
// which that belongs.
func spaceLength(text string) int {
	last := 0
	for i, r := range text {
		if !unicode.IsSpace(r) {
			if last > 0 {
				return last
			}
			return i
		}
		last = i
	}
	return len(text)
}

// bpeKind is what a character is to the pattern: a letter, a digit, white space or something else.
func bpeKind(r rune) rune {
	switch {
	case unicode.IsLetter(r):
		return 'L'
	case unicode.IsNumber(r):
		return 'N'
	case unicode.IsSpace(r):
		return ' '
	default:
		return 'P'
	}
}

// byteLetters are the letters that stand for bytes in the vocabulary: printable characters for themselves, the others
// from U+0100 on.
func byteLetters() [256]rune {
	var letters [256]rune
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE && b <= 0xFF {
			letters[b] = b
			continue
		}
		letters[b] = next
		next++
	}
	return letters
}
