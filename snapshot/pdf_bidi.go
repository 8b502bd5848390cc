package snapshot

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// maxTurned is how many glyphs a line has at most of which the order is changed.
const maxTurned = 1024

// sides says where a line has glyphs that are written from the right. A page shows its glyphs from left to right,
// whatever they say; a text says what is to be read first first.
type sides struct {
	ends []int // of the glyphs' texts in the line's; nil: none of them is written from the right
	// how many glyphs written from the right stand right of the one before, less those that stand left of it
	visual int
}

// note notes a glyph that was appended to a line.
func (s *sides) note(line []byte, glyph string) {
	switch {
	case glyph == "", s.ends == nil && !isFromRight(classOf(glyph)):
		return
	case s.ends == nil:
		for at := 0; at < len(line)-len(glyph); {
			_, n := utf8.DecodeRune(line[at:])
			at += n
			s.ends = append(s.ends, at)
		}
	}
	s.ends = append(s.ends, len(line))
}

// step notes where a glyph stands: right of the one before or left of it.
func (s *sides) step(glyph string, right bool) {
	switch {
	case s.ends == nil || !isFromRight(classOf(glyph)):
	case right:
		s.visual++
	default:
		s.visual--
	}
}

// classOf returns what the algorithm for texts in both directions (UAX #9) takes a glyph for.
func classOf(glyph string) bidi.Class {
	r, _ := utf8.DecodeRuneInString(glyph)
	p, _ := bidi.LookupRune(r)
	return p.Class()
}

func isFromRight(c bidi.Class) bool { return c == bidi.R || c == bidi.AL }

func isNumber(c bidi.Class) bool { return c == bidi.EN || c == bidi.AN }

// logical returns a line in the order in which it is read. What direction the line has is not known: that of most of
// its words.
func (s *sides) logical(line []byte) []byte {
	if s.visual <= 0 || len(s.ends) > maxTurned {
		return line
	}
	t := turner{}
	at, balance, last := 0, 0, bidi.ON
	for _, end := range s.ends {
		glyph := string(line[at:end])
		at = end
		c := classOf(glyph)
		t.glyphs, t.classes = append(t.glyphs, glyph), append(t.classes, c)
		switch {
		case c == last: // in a word
		case isFromRight(c):
			balance++
		case c == bidi.L:
			balance--
		}
		last = c
	}
	if balance >= 0 {
		t.turn(0, len(t.glyphs))
	} else {
		t.turnRuns()
	}
	return []byte(strings.Join(t.glyphs, ""))
}

// turner changes the order of glyphs. Their classes keep theirs.
type turner struct {
	glyphs  []string
	classes []bidi.Class
}

// turnRuns turns what is written from the right in a line that is written from the left.
func (t *turner) turnRuns() {
	for i := 0; i < len(t.glyphs); i++ {
		if !isFromRight(t.classes[i]) {
			continue
		}
		end := i + 1
		for k := end; k < len(t.glyphs) && t.classes[k] != bidi.L; k++ {
			if isFromRight(t.classes[k]) {
				end = k + 1
			}
		}
		t.turn(i, end)
		i = end
	}
}

// turn turns the glyphs between two places, but for the words and numbers among them that are written from the left.
func (t *turner) turn(from, to int) {
	for i := from; i < to; {
		if c := t.classes[i]; c != bidi.L && !isNumber(c) {
			i++
			continue
		}
		end := t.runEnd(i, to)
		slices.Reverse(t.glyphs[i:end]) // so that they are as they were when all is turned
		i = end
	}
	slices.Reverse(t.glyphs[from:to])
}

// runEnd returns where a run of words and numbers that are written from the left ends. A bracket that is opened or
// closed in it alone belongs to what is around it; numbers without words between them are a run only where one sign
// joins them, as in 1,204.
func (t *turner) runEnd(from, to int) int {
	end, depth, words := from+1, 0, t.classes[from] == bidi.L
	for i := from + 1; i < to && !isFromRight(t.classes[i]) && depth >= 0; i++ {
		switch c := t.classes[i]; {
		case c == bidi.L && depth == 0:
			end, words = i+1, true
		case isNumber(c) && depth == 0 && (words || i-end <= 1 && t.glyphs[i-1] != " "):
			end = i + 1
		case strings.ContainsAny(t.glyphs[i], "([{"):
			depth++
		case strings.ContainsAny(t.glyphs[i], ")]}"):
			depth--
		}
	}
	return end
}
