package ibid

import (
	"sort"
	"unicode/utf8"
)

// Offsets converts offsets in a text between units. A conversion scans a short distance from the nearest of the marks
// that are set every few hundred bytes. Marks are made when first needed, only as far as needed, and not at all for
// [UTF8] or while the text is ASCII.
//
// Invalid UTF-8 counts as in Go: each byte that is not part of a valid character is one code point and one UTF-16 unit.
//
// An Offsets is not safe for concurrent use, as conversions add marks; making one is free. The zero value converts
// offsets of the empty text.
type Offsets struct {
	text  string
	ascii int          // text[:ascii] is known to be ASCII, where all units are equal
	marks []offsetMark // marks[k] is at the first character that begins at byte k*markDistance or later
}

// offsetMark is the beginning of a character in all units.
type offsetMark struct{ byte, point, utf16 int }

// in returns the offset of the mark in u.
func (m offsetMark) in(u Unit) int {
	if u == UTF16 {
		return m.utf16
	}
	return m.point
}

// step moves m to the next character of text.
func (m *offsetMark) step(text string) {
	m.point++
	m.utf16++
	if text[m.byte] < utf8.RuneSelf {
		m.byte++
		return
	}
	r, size := utf8.DecodeRuneInString(text[m.byte:])
	m.byte += size
	if r > 0xFFFF {
		m.utf16++
	}
}

// markDistance is the distance between marks in bytes.
const markDistance = 256

// NewOffsets returns an Offsets for text. It does no work yet.
func NewOffsets(text string) *Offsets { return &Offsets{text: text} }

// Span returns the span of bytes from start to end, both counted in u from the beginning of the text. It returns false
// if start or end is negative or beyond the text, if end is before start, if either is inside a character (at a
// continuation byte or the second half of a surrogate pair), or if u is not a unit. Offsets are never adjusted.
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

// In returns the start and end of s, counted in u. It is the inverse of [Offsets.Span]: for spans that Span never
// returns (outside the text, with the end before the start, or cutting a character) and for an unknown unit, both
// results are -1.
func (o *Offsets) In(u Unit, s Span) (start, end int) {
	if s.Start < 0 || s.End < s.Start || s.End > len(o.text) || !isBoundary(o.text, s.Start) ||
		!isBoundary(o.text, s.End) {
		return -1, -1
	}
	switch u {
	case "", UTF8:
		return s.Start, s.End
	case CodePoint, UTF16:
		return o.before(u, s.Start), o.before(u, s.End)
	}
	return -1, -1
}

// Grow replaces the text by one that begins with it, as while an answer arrives, and returns o. What was found out
// about the old text, which may end inside a character, is kept.
func (o *Offsets) Grow(text string) *Offsets {
	o.text = text
	return o
}

// byte returns the byte where the n-th unit of u begins; the end of the text counts as the beginning of one more unit.
// It returns false where [Offsets.Span] does.
func (o *Offsets) byte(u Unit, n int) (int, bool) {
	switch {
	case n < 0 || n > len(o.text): // no unit is shorter than a byte
		return 0, false
	case u == "" || u == UTF8:
		return n, isBoundary(o.text, n)
	case u != CodePoint && u != UTF16:
		return 0, false
	case o.isASCII(n):
		return n, true
	}
	o.mark(func(last offsetMark) bool { return last.in(u) > n })
	k := sort.Search(len(o.marks), func(k int) bool { return o.marks[k].in(u) > n })
	m := o.marks[k-1]
	for m.in(u) < n && m.byte < len(o.text) {
		m.step(o.text)
	}
	return m.byte, m.in(u) == n
}

// before returns how many units of u begin before byte i, which must be a character boundary.
func (o *Offsets) before(u Unit, i int) int {
	if o.isASCII(i) {
		return i
	}
	o.mark(func(last offsetMark) bool { return last.byte > i })
	m := o.marks[min(i/markDistance, len(o.marks)-1)]
	for m.byte < i {
		m.step(o.text)
	}
	return m.in(u)
}

// isASCII reports whether text[:i] is ASCII.
func (o *Offsets) isASCII(i int) bool {
	for o.ascii < min(i, len(o.text)) && o.text[o.ascii] < utf8.RuneSelf {
		o.ascii++
	}
	return o.ascii >= i
}

// mark adds marks until enough returns true for the last one or the text ends. It excludes the last bytes of the text,
// as more text may change what they mean. There is always at least one mark.
func (o *Offsets) mark(enough func(last offsetMark) bool) {
	if len(o.marks) == 0 {
		o.marks = append(o.marks, offsetMark{})
	}
	for {
		m := o.marks[len(o.marks)-1]
		if enough(m) {
			return
		}
		for next := len(o.marks) * markDistance; m.byte < next; m.step(o.text) {
			if m.byte > len(o.text)-utf8.UTFMax {
				return
			}
		}
		o.marks = append(o.marks, m)
	}
}
