package prose

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/words"
)

// Graphemes yields the graphemes of text as half-open byte ranges, which are adjacent and cover the text.
func Graphemes(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for it := graphemes.FromString(text); it.Next(); {
			if !yield(it.Start(), it.End()) {
				return
			}
		}
	}
}

// Words yields the words of text as half-open byte ranges: the word segments with a letter or a digit.
func Words(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for it := words.FromString(text); it.Next(); {
			if strings.ContainsFunc(it.Value(), isWord) && !yield(it.Start(), it.End()) {
				return
			}
		}
	}
}

// GraphemeStart returns the largest offset up to at that is between two graphemes of text, or at its start or end.
func GraphemeStart(text string, at int) int {
	start, _ := graphemeAt(text, at)
	return start
}

// GraphemeEnd returns the smallest offset from at on that is between two graphemes of text, or at its start or end.
func GraphemeEnd(text string, at int) int {
	_, end := graphemeAt(text, at)
	return end
}

// graphemeAt returns the bounds of the grapheme around an offset, which are the offset if it is between two.
func graphemeAt(text string, at int) (start, end int) {
	at = clamp(text, at)
	from := certainBefore(text, at, func(prev, next rune) bool {
		return standsAlone(prev) && standsAlone(next) && (prev != '\r' || next != '\n')
	})
	if from == at {
		return at, at
	}
	it := graphemes.FromString(wholeRunes(text[from:min(len(text), at+Window)]))
	start = from
	for it.Next() {
		switch end = from + it.End(); {
		case end == at:
			return at, at
		case end > at:
			return start, end
		}
		start = end
	}
	return start, runeEnd(text, at)
}

// WordEnd returns the smallest offset from at on that is between two word segments of text and between two graphemes,
// or at its start or end: at itself, unless at is inside a word.
func WordEnd(text string, at int) int {
	at = clamp(text, at)
	// Graphemes that cross a word boundary are rare, and never consecutive in real text; the bounds limit the loop for
	// hostile text.
	limit := at + Window
	for range 8 {
		end := wordEnd(text, at)
		at = GraphemeEnd(text, end)
		if at == end || at >= limit {
			break
		}
	}
	return at
}

func wordEnd(text string, at int) int {
	from := certainBefore(text, at, func(prev, next rune) bool { // after white space, or before an ideograph
		return isIdeograph(next) || next < utf8.RuneSelf && !isSpace(next) && (prev == ' ' || prev == '\n')
	})
	if from == at {
		return at
	}
	it := words.FromString(wholeRunes(text[from:min(len(text), at+Window)]))
	for it.Next() {
		if from+it.End() >= at {
			return from + it.End()
		}
	}
	return runeEnd(text, at)
}

// certainBefore returns the last boundary up to at that is certain from the two runes around it.
func certainBefore(text string, at int, certain func(prev, next rune) bool) int {
	if at == 0 || at == len(text) {
		return at
	}
	p := runeStart(text, at)
	next, _ := runeAt(text, p)
	for floor := max(0, at-Window); p > floor; {
		prev, w := runeBefore(text, p)
		if certain(prev, next) {
			return p
		}
		p -= w
		next = prev
	}
	return p
}

// standsAlone reports whether there is always a grapheme boundary between r and another such rune. It is false for many
// runes of which that is true; this only costs time.
func standsAlone(r rune) bool {
	switch {
	case r < 0x300: // Latin
		return true
	case r < 0x3000:
		return 0x370 <= r && r < 0x483 || // Greek, Cyrillic
			0x5D0 <= r && r < 0x5EB || 0x620 <= r && r < 0x64B || // Hebrew, Arabic
			0x915 <= r && r < 0x93A || // Devanagari
			0x2010 <= r && r < 0x2028 // dashes, quotes
	default:
		return r < 0x302A || // CJK punctuation
			0x3041 <= r && r < 0x3097 || 0x30A1 <= r && r < 0x30FB || // kana
			0x3400 <= r && r < 0xA000 || 0xAC00 <= r && r < 0xD7A4 || // Han, Hangul syllables
			0xFF01 <= r && r < 0xFF61 // full-width forms
	}
}

// isIdeograph reports whether r is Han or Hiragana: a separate word in UAX 29.
func isIdeograph(r rune) bool {
	return 0x3400 <= r && r < 0xA000 || 0x3041 <= r && r < 0x3097 || r >= 0x20000 && unicode.Is(unicode.Han, r)
}

// Window is how many bytes to either side of an offset are examined by functions that take one. A longer sentence, word
// or grapheme is cut there, on a rune boundary.
const Window = 4096

// clamp returns at, moved into the text.
func clamp(text string, at int) int { return min(max(at, 0), len(text)) }

// runeStart returns the start of the rune that contains at.
func runeStart(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for p := at; p > max(0, at-utf8.UTFMax); p-- {
		if utf8.RuneStart(text[p]) {
			return p
		}
	}
	return at
}

// runeEnd returns at, or the end of the rune that contains at.
func runeEnd(text string, at int) int {
	p := runeStart(text, at)
	if p == at {
		return at
	}
	_, w := utf8.DecodeRuneInString(text[p:])
	return max(at, p+w)
}

// wholeRunes returns text without an incomplete rune at its end.
func wholeRunes(text string) string {
	for p := len(text) - 1; p >= max(0, len(text)-utf8.UTFMax); p-- {
		if !utf8.RuneStart(text[p]) {
			continue
		}
		if !utf8.FullRuneInString(text[p:]) {
			return text[:p]
		}
		break
	}
	return text
}

// runeAt returns the rune at p and its width; width 0 at the end of text.
func runeAt(text string, p int) (rune, int) {
	if p >= len(text) {
		return 0, 0
	}
	if c := text[p]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text[p:])
}

// runeBefore returns the rune that ends at p and its width; width 0 at the start of text.
func runeBefore(text string, p int) (rune, int) {
	if p <= 0 {
		return 0, 0
	}
	if c := text[p-1]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeLastRuneInString(text[:p])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isASCIIWord(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c)
}

// isWord reports whether r is a letter or a digit.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIIWord(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isCaseless reports whether r is a letter of a script without capitals, such as Chinese, Arabic or Hindi.
func isCaseless(r rune) bool {
	return r >= utf8.RuneSelf && unicode.Is(unicode.Lo, r)
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r'
	}
	return r >= 0x85 && unicode.IsSpace(r)
}

// skipSpace returns the first offset from p on that is not white space.
func skipSpace(text string, p int) int {
	for {
		r, w := runeAt(text, p)
		if w == 0 || !isSpace(r) {
			return p
		}
		p += w
	}
}

// skipBlanks is skipSpace within the line.
func skipBlanks(text string, p int) int {
	for p < len(text) && (text[p] == ' ' || text[p] == '\t') {
		p++
	}
	return p
}

// maxSigns is the maximum number of consecutive punctuation marks to skip.
const maxSigns = 16

// AfterPunctuation returns at, moved past the punctuation that directly follows it and belongs to its sentence, so that
// a mark put there is where people put one: after the comma or full stop, and after the quote or bracket that closes
// there. It skips nothing else: no white space, no stop inside a number, name or URL, no markdown. Brackets and
// ambiguous quotes are skipped only if one of their kind is open in the block.
//
// At the end of a growing text the result is that for the text so far: "3." may become "3.14".
func AfterPunctuation(text string, at int) int {
	if at = clamp(text, at); at < len(text) && !utf8.RuneStart(text[at]) {
		at = runeEnd(text, at)
	}
	if prev, w := runeBefore(text, at); w == 0 || isSpace(prev) {
		return at
	}
	if at+Window < len(text) {
		text = text[:runeStart(text, at+Window)]
	}
	p := at
	for range maxSigns {
		next := punctuationEnd(text, p)
		if next == p {
			break
		}
		p = next
	}
	if p == at || p == len(text) || text[p] < utf8.RuneSelf { // ASCII never extends a grapheme
		return p
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
		end := p // unless they are inside a number, a name, a URL or markdown syntax
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
		// German uses reversed angle quotes.
		if next, _ := runeAt(text, p+w); isWord(next) && r != '”' {
			return p
		}
		return p + w
	case '\u00a0', '\u202f': // French: « oui »
		if next, n := runeAt(text, p+w); next == '»' || next == '›' {
			if end := punctuationEnd(text, p+w); end == p+w+n {
				return end
			}
		}
		return p
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

// isLinkPart reports whether the bracket at p is the one between the words and the destination of a link.
func isLinkPart(text string, p int) bool {
	return text[p] == ']' && p+1 < len(text) && strings.IndexByte("([:", text[p+1]) >= 0
}

// before returns the part of the block before p, limited by the window.
func before(text string, p int) string {
	return text[blockStart(text, p, runeStart(text, max(0, p-Window))):p]
}

// isOpen reports whether the bracket at p closes one opened before it in the block.
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

// quoteIsOpen reports whether an ASCII quotation mark is open in the block before p. Apostrophes do not count.
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

// lastIsOpener reports whether the last quotation mark before p in the block is the opening one that belongs to r as a
// closing one: „…“, ‚…‘, »…«, ›…‹.
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
