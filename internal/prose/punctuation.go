package prose

import (
	"strings"
	"unicode"
)

// maxSigns is how many signs of punctuation in a row are passed.
const maxSigns = 16

// AfterPunctuation returns at, moved past the punctuation that directly follows it and belongs to the sentence it
// stands in, so that a mark put there stands where people put one: after the comma or the full stop and after the quote
// or the bracket that they close. It moves over nothing else: no white space, no stop inside a number, name or address,
// no markdown. Brackets and quotes that could open as well are passed only when one of their kind is open in the block.
//
// At the end of a text that is still to grow the result is what it is for the text so far: "3." may become "3.14".
func AfterPunctuation(text string, at int) int {
	at = runeEnd(text, clamp(text, at))
	if prev, w := runeBefore(text, at); w == 0 || isSpace(prev) {
		return at
	}
	text = text[:runeStart(text, min(len(text), at+Window))]
	p := at
	for range maxSigns {
		next := punctuationEnd(text, p)
		if next == p {
			break
		}
		p = next
	}
	if p == at {
		return at
	}
	return GraphemeEnd(text, p)
}

// punctuationEnd returns the end of the punctuation at p, or p.
func punctuationEnd(text string, p int) int {
	r, w := runeAt(text, p)
	switch r {
	case 0:
		return p
	case '.', ',', ';', ':', '!', '?':
		return stopsEnd(text, p)
	case '，', '；', '：', '、', '،', '؛', '…':
		return p + w
	case ')', ']', '}':
		if isOpen(text, p, byte(r)) && !isLinkPart(text, p) {
			return p + w
		}
		return p
	case '"', '\'':
		if next, _ := runeAt(text, p+1); !isWord(next) && quoteIsOpen(text, p, byte(r)) {
			return p + w
		}
		return p
	case '’', '”', '›', '»':
		// German turns the angle quotes round.
		if next, _ := runeAt(text, p+w); isWord(next) && r != '”' {
			return p
		}
		return p + w
	case '“', '‘', '«', '‹':
		if lastIsOpener(text, p, r) {
			return p + w
		}
		return p
	}
	if r >= 0x500 && (terminatorOf(r) != noTerminator || unicode.Is(unicode.Pe, r)) {
		return p + w
	}
	return p
}

// stopsEnd returns the end of the ASCII stops at p, or p where they are inside a number, a name, an address or a sign
// of markdown.
func stopsEnd(text string, p int) int {
	end := p
	for end < len(text) && strings.IndexByte(".,;:!?", text[end]) >= 0 {
		end++
	}
	next, w := runeAt(text, end)
	switch {
	case w == 0 || isSpace(next) || isCaseless(next):
		return end
	case isWord(next) || strings.ContainsRune(`/\@#$%&=+-`, next):
		return p
	case next == '[' && text[end-1] == '!' && linkEnd(text, end) > end: // an image
		return p
	}
	return end
}

// isLinkPart reports whether the bracket at p is the one between the words and the destination of a link.
func isLinkPart(text string, p int) bool {
	return text[p] == ']' && p+1 < len(text) && strings.IndexByte("([:", text[p+1]) >= 0
}

// before returns the part of the block before p, as far as the window reaches.
func before(text string, p int) string {
	return text[blockStart(text, p, runeStart(text, max(0, p-Window))):p]
}

// isOpen reports whether the bracket at p closes one that opened before it in the block.
func isOpen(text string, p int, closer byte) bool {
	opener := byte('(')
	switch closer {
	case ']':
		opener = '['
	case '}':
		opener = '{'
	}
	block := before(text, p)
	depth := 1
	for i := len(block) - 1; i >= 0; i-- {
		switch block[i] {
		case closer:
			depth++
		case opener:
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// quoteIsOpen reports whether an ASCII quotation mark stands open in the block before p. Apostrophes do not count.
func quoteIsOpen(text string, p int, quote byte) bool {
	block := before(text, p)
	open := false
	for i := range len(block) {
		if block[i] != quote {
			continue
		}
		prev, _ := runeBefore(block, i)
		next, _ := runeAt(block, i+1)
		if quote == '\'' && isWord(prev) && (isWord(next) || !open) {
			continue
		}
		open = !open
	}
	return open
}

// lastIsOpener reports whether the last quotation mark before p in the block is the one that r closes in languages that
// close with it: „…“, ‚…‘, »…«, ›…‹.
func lastIsOpener(text string, p int, r rune) bool {
	opener := "„"
	switch r {
	case '‘':
		opener = "‚"
	case '«':
		opener = "»"
	case '‹':
		opener = "›"
	}
	block := before(text, p)
	return strings.LastIndex(block, opener) > strings.LastIndex(block, string(r))
}
