package ibid

import (
	"math/bits"
	"unicode/utf8"
)

// Offsets converts offsets into one text between units. An answer of n bytes with m spans costs O(n + m) in all,
// whatever the order of the spans: an index is built the first time it is needed, only as far as it is needed, and not
// at all for [UTF8] or while the text is ASCII. No conversion allocates, but for the growth of that index.
//
// Invalid UTF-8 counts as Go counts it: every byte that belongs to no valid character is one code point, one UTF-16
// unit.
//
// An Offsets builds its index as it is asked, so it is not safe for concurrent use; making one is free. The zero value
// converts offsets of the empty text.
type Offsets struct {
	text  string
	ascii int         // text[:ascii] is known to be ASCII, where all units are the same
	marks []unitCount // marks[k]: how many units begin before byte k<<blockBits
	// blocks says for every 1<<blockBits-th code point and UTF-16 unit in which block of bytes it begins. It makes the
	// way back from units to bytes as direct as the way there.
	blocks [2][]int32
	valid  int    // text[:valid] is valid UTF-8 and ends with a whole character
	due    uint64 // which bytes after the last mark continue the character before it, as in tally
	broken bool   // invalid UTF-8 was seen: characters must be decoded to be counted
}

// unitCount holds the number of units that begin before some byte.
type unitCount struct{ point, utf16 int }

// blockBits is the binary logarithm of the distance of two marks in bytes. The byte-wide sums of tally and countUnits
// hold for blocks of at most 256 bytes.
const (
	blockBits = 8
	blockSize = 1 << blockBits
)

// NewOffsets returns the conversions for text. It does no work yet.
func NewOffsets(text string) *Offsets { return &Offsets{text: text} }

// Span returns the span of bytes from start to end, both counted in u from the beginning of the text. It reports false,
// and no span, when start or end is negative or beyond the text, when end is before start, when one of them is inside
// of a character (a byte that continues one, the second half of a surrogate pair), or when u is no unit. Offsets are
// never moved to fit.
func (o *Offsets) Span(u Unit, start, end int) (Span, bool) {
	if end < start {
		return Span{}, false
	}
	from, ok := o.byte(u, start)
	if !ok {
		return Span{}, false
	}
	to := from
	if end != start {
		if to, ok = o.byte(u, end); !ok {
			return Span{}, false
		}
	}
	return Span{Start: from, End: to}, true
}

// In returns where s begins and ends, counted in u. It is the inverse of [Offsets.Span]: for what that never returns (a
// span that is not of this text, has its end before its start, or cuts a character) and for an unknown unit, both
// results are -1.
func (o *Offsets) In(u Unit, s Span) (start, end int) {
	if s.Start < 0 || s.End < s.Start || s.End > len(o.text) || !isBoundary(o.text, s.Start) ||
		!isBoundary(o.text, s.End) {
		return -1, -1
	}
	switch u {
	case "", UTF8:
		return s.Start, s.End
	case CodePoint:
		start, end = o.before(s.Start).point, o.before(s.End).point
	case UTF16:
		start, end = o.before(s.Start).utf16, o.before(s.End).utf16
	default:
		return -1, -1
	}
	return start, end
}

// grow replaces the text by one that begins with the former text. What is known of the former text is kept, so that
// growing a text step by step costs no more than indexing it once. The former text may end inside of a character.
func (o *Offsets) grow(text string) { o.text = text }

// byte returns the byte where the n-th unit of u begins; the end of the text counts as the beginning of one unit more.
// It reports false where [Offsets.Span] does.
func (o *Offsets) byte(u Unit, n int) (int, bool) {
	if n < 0 || n > len(o.text) { // no unit is shorter than a byte
		return 0, false
	}
	switch u {
	case "", UTF8:
		return n, isBoundary(o.text, n)
	case CodePoint:
		return o.find(n, false)
	case UTF16:
		return o.find(n, true)
	default:
		return 0, false
	}
}

// before returns how many units begin before byte i.
func (o *Offsets) before(i int) unitCount {
	if o.isASCII(i) {
		return unitCount{i, i}
	}
	o.index(i>>blockBits, func(unitCount) bool { return false })
	k := min(i>>blockBits, len(o.marks)-1)
	m := o.marks[k]
	n := o.count(k<<blockBits, i)
	return unitCount{m.point + n.point, m.utf16 + n.utf16}
}

// find returns where the n-th code point, or UTF-16 unit, begins.
func (o *Offsets) find(n int, utf16 bool) (int, bool) {
	if o.isASCII(n) {
		return n, true
	}
	units, row := func(m unitCount) int { return m.point }, 0
	if utf16 {
		units, row = func(m unitCount) int { return m.utf16 }, 1
	}
	o.index(len(o.text), func(last unitCount) bool { return units(last) > n })
	k := len(o.marks) - 1
	if units(o.marks[k]) > n {
		// The block of the last counted unit before n, and from there a few blocks on: 256 units are at most 1024
		// bytes.
		k = int(o.blocks[row][n>>blockBits])
		for units(o.marks[k+1]) <= n {
			k++
		}
	}
	return o.skip(k<<blockBits, n-units(o.marks[k]), utf16)
}

// isASCII reports whether text[:i] is ASCII.
func (o *Offsets) isASCII(i int) bool {
	for o.ascii < i {
		rest := o.text[o.ascii:]
		n := asciiPrefix(rest[:min(len(rest), max(blockSize, i-o.ascii))])
		o.ascii += n
		if n == 0 {
			return false
		}
	}
	return true
}

// index adds marks up to the one of block k, or until done says of the last one that it is enough, or the text ends. It
// leaves the last bytes of the text out, whose meaning more text may change; there is always at least one mark.
func (o *Offsets) index(k int, done func(last unitCount) bool) {
	if len(o.marks) == 0 {
		o.marks = append(o.marks, unitCount{})
	}
	for len(o.marks) <= k && !done(o.marks[len(o.marks)-1]) {
		from := (len(o.marks) - 1) << blockBits
		to := from + blockSize
		if to > len(o.text)-utf8.UTFMax {
			return
		}
		n, last := o.block(from, to), o.marks[len(o.marks)-1]
		last.point += n.point
		last.utf16 += n.utf16
		o.marks = append(o.marks, last)
		o.blocks[0] = noteBlock(o.blocks[0], from, last.point)
		o.blocks[1] = noteBlock(o.blocks[1], from, last.utf16)
	}
}

// noteBlock adds the block that begins at byte from to blocks, once for each of the units below end that blocks waits
// for.
func noteBlock(blocks []int32, from, end int) []int32 {
	for len(blocks)<<blockBits < end {
		blocks = append(blocks, int32(from>>blockBits))
	}
	return blocks
}

// block returns how many units begin in text[from:to], the first block without a mark.
func (o *Offsets) block(from, to int) unitCount {
	if o.broken {
		return countBroken(o.text, from, to)
	}
	n, due, ok := tally(o.text[from:to], o.due)
	o.due = due
	if ok {
		last := to - 1
		for last > from && !utf8.RuneStart(o.text[last]) {
			last--
		}
		o.valid = max(o.valid, last) // the last character may go on beyond the block: check sees to it
	}
	if !o.check(to) {
		return countBroken(o.text, from, to)
	}
	return n
}

// count returns how many units begin in text[from:to], which is at most a block and the few bytes index leaves out.
func (o *Offsets) count(from, to int) unitCount {
	if !o.check(to) {
		return countBroken(o.text, from, to)
	}
	s := o.text[from:to]
	var n unitCount
	for len(s) > blockSize {
		m := countUnits(s[:blockSize])
		n.point += m.point
		n.utf16 += m.utf16
		s = s[blockSize:]
	}
	m := countUnits(s)
	return unitCount{n.point + m.point, n.utf16 + m.utf16}
}

// check reports whether the characters that begin before byte to are valid.
func (o *Offsets) check(to int) bool {
	if o.broken || o.valid >= to {
		return !o.broken
	}
	for to < len(o.text) && !utf8.RuneStart(o.text[to]) {
		to++ // not to cut the last character
	}
	if utf8.ValidString(o.text[o.valid:to]) {
		o.valid = to
		return true
	}
	o.broken = true
	return false
}

// skip returns where the n-th unit at or after byte i begins.
func (o *Offsets) skip(i, n int, utf16 bool) (int, bool) {
	if !o.check(min(len(o.text), i+4*blockSize)) {
		return skipBroken(o.text, i, n, utf16)
	}
	for ; n >= 16 && i+8 <= len(o.text); i += 8 {
		w := load8(o.text[i:])
		n -= 8 - bits.OnesCount64(continuations(w))
		if utf16 {
			n -= bits.OnesCount64(astral(w))
		}
	}
	for ; i < len(o.text); i++ {
		c := o.text[i]
		if !utf8.RuneStart(c) {
			continue
		}
		if n <= 0 {
			break
		}
		n--
		if utf16 && c >= firstAstral {
			n--
		}
	}
	return i, n == 0
}

// firstAstral is the smallest byte that begins a character of two UTF-16 units.
const firstAstral = 0xF0

// lowBits has the lowest bit of each byte set.
const lowBits = 0x0101010101010101

// load8 reads eight bytes of s.
func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// continuations has the lowest bit set of each byte of w that continues a character.
func continuations(w uint64) uint64 { return (w >> 7) &^ (w >> 6) & lowBits }

// astral has the lowest bit set of each byte of w that begins a character of two UTF-16 units.
func astral(w uint64) uint64 { return (w >> 7) & (w >> 6) & (w >> 5) & (w >> 4) & lowBits }

// tally returns how many units begin in s, a block, and whether its characters are valid as far as s shows them. It may
// say no to rare ones that are valid, which it cannot tell. Bit 8·i of due is set when byte i of s must continue a
// character, and of the due it returns when byte i after s must.
func tally(s string, due uint64) (n unitCount, next uint64, ok bool) {
	var cont, pairs, bad uint64 // cont and pairs are sums in each byte, of at most blockSize/8 words
	n.point = len(s)
	for ; len(s) >= 8; s = s[8:] {
		w := load8(s)
		if w&(lowBits<<7) == 0 {
			bad |= due
			due = 0
			continue
		}
		lead := (w >> 7) & (w >> 6) & lowBits // begins a character of two bytes or more
		three := lead & (w >> 5)
		four := three & (w >> 4)
		c := continuations(w)
		bad |= c ^ (due | lead<<8 | three<<16 | four<<24)
		// C0 and C1 begin nothing; E0, ED and all that begin four bytes do not go with every second byte.
		some := w>>3 | w>>2 | w>>1
		bad |= lead&^(w>>5|w>>4|some) | three&^(some|w) | three&(w>>3)&(w>>2)&w&^(w>>1) | four
		due = lead>>56 | three>>48 | four>>40
		cont += c
		pairs += four
	}
	n.point -= sumBytes(cont)
	n.utf16 = n.point + sumBytes(pairs)
	return n, due, bad == 0
}

// sumBytes adds the bytes of w, which must come to less than 256.
func sumBytes(w uint64) int { return int(w * lowBits >> 56) }

// countUnits returns how many units begin in s, at most a block of valid text that may begin and end inside of a
// character.
func countUnits(s string) unitCount {
	var cont, pairs uint64 // a sum in each byte, of at most blockSize/8 words
	n := len(s)
	for len(s) >= 8 {
		w := load8(s)
		cont += continuations(w)
		pairs += astral(w)
		s = s[8:]
	}
	// Of a block at most three quarters and three bytes continue characters, so that the sums of all bytes fit in one.
	point, utf16 := n-sumBytes(cont), sumBytes(pairs)
	for i := range len(s) {
		switch {
		case !utf8.RuneStart(s[i]):
			point--
		case s[i] >= firstAstral:
			utf16++
		}
	}
	return unitCount{point, point + utf16}
}

// countBroken is countUnits for text that is not valid UTF-8.
func countBroken(text string, from, to int) unitCount {
	var n unitCount
	for i := from; i < to; {
		if !isBoundary(text, i) {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		n.point++
		n.utf16 += utf16Width(r)
		i += size
	}
	return n
}

// skipBroken is [Offsets.skip] for text that is not valid UTF-8.
func skipBroken(text string, i, n int, utf16 bool) (int, bool) {
	for i < len(text) && !isBoundary(text, i) {
		i++
	}
	for i < len(text) && n > 0 {
		r, size := utf8.DecodeRuneInString(text[i:])
		n--
		if utf16 {
			n -= utf16Width(r) - 1
		}
		i += size
	}
	return i, n == 0
}

// utf16Width returns how many UTF-16 units r takes.
func utf16Width(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// isBoundary reports whether byte i of text, 0 ≤ i ≤ len(text), begins a character or ends the text. A byte is inside
// of a character only if that character is valid.
func isBoundary(text string, i int) bool {
	if i == len(text) || utf8.RuneStart(text[i]) {
		return true
	}
	for j := i - 1; j >= 0 && i-j < utf8.UTFMax; j-- {
		if utf8.RuneStart(text[j]) {
			_, size := utf8.DecodeRuneInString(text[j:])
			return j+size <= i
		}
	}
	return true
}

// asciiPrefix returns how many bytes at the beginning of s are ASCII.
func asciiPrefix(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if high := load8(s[i:]) & (lowBits << 7); high != 0 {
			return i + bits.TrailingZeros64(high)/8
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}
