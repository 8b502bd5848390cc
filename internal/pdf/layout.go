package pdf

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// Distances for joining glyphs, relative to the size of the font.
const (
	wordGap      = 0.17 // a larger gap separates words
	columnGap    = 2.5  // a larger gap on a line separates columns or cells
	lineShift    = 0.45 // a larger vertical distance makes another line
	paragraphGap = 1.35 // a distance of more usual lines makes another paragraph
	sizeStep     = 1.12 // a larger ratio of sizes separates paragraphs
	headingSize  = 1.15 // text larger than most by this ratio is a heading
	maxHeading   = 250  // bytes
)

// layout joins glyphs to lines, and lines to paragraphs, in the order in which the pages show them.
type layout struct {
	lines  []textLine
	open   *textLine
	number int     // of the page
	start  float64 // of the last glyph, as is end
	end    float64
	glyphs int              // of the page
	next   string           // replaces the text of the next glyph
	hold   func(n int) bool // counts memory, and reports whether it is within the limit
	spend  func(n int) bool // counts work, as in file
}

// Approximate memory use of text.
const (
	sizeOfLine = 384 // bytes, without its text
	sizeOfText = 6   // times its bytes: here, as a stream, normalised, and for growth
)

// textLine is one line of text.
type textLine struct {
	page  int
	text  []byte
	size  float64 // of its font, on the page
	x, y  float64 // its start, along and across its direction
	angle float64
	sides sides
}

// page begins a page.
func (l *layout) page(number int) {
	l.flush()
	l.number = number
}

// add adds a glyph: m places it, width and size are in its own space.
func (l *layout) add(text string, m transform, width, size float64) {
	if l.next != "" {
		text, l.next = l.next, ""
	}
	stretch := math.Hypot(m[0], m[1])
	height := math.Abs(size) * math.Hypot(m[2], m[3])
	if stretch == 0 || height == 0 || math.IsNaN(m[4]) || math.IsInf(m[4], 0) {
		l.write(text)
		return
	}
	cos, sin := m[0]/stretch, m[1]/stretch
	x, y := m[4]*cos+m[5]*sin, m[5]*cos-m[4]*sin
	angle := math.Atan2(sin, cos)
	from, to := min(x, x+width*stretch), max(x, x+width*stretch)
	if o := l.open; o == nil {
		l.beginLine(x, y, height, angle)
	} else {
		unit := max(o.size, height)
		gap := from - l.end
		switch {
		case math.Abs(y-o.y) > lineShift*unit, math.Abs(angle-o.angle) > 0.1, gap < -1.5*unit,
			gap > columnGap*unit && strings.TrimSpace(text) != "":
			if text == "" || strings.TrimSpace(text) == "" && gap < -1.5*unit {
				return // a space after nothing
			}
			l.beginLine(x, y, height, angle)
		case gap > wordGap*min(o.size, height) && len(o.text) > 0 && !endsInSpace(o.text):
			l.write(" ")
		}
		o.sides.step(text, from > l.start)
	}
	if o := l.open; o != nil && height > o.size && strings.TrimSpace(text) != "" {
		o.size = max(o.size, height*0.999)
	}
	l.write(text)
	l.start, l.end = from, to
}

// write appends to the line.
func (l *layout) write(text string) {
	if l.open == nil {
		if strings.TrimSpace(text) == "" {
			return
		}
		l.beginLine(0, 0, 1, 0)
	}
	if l.hold(sizeOfText * len(text)) {
		l.open.text = append(l.open.text, text...)
		if l.open.sides.noteGlyph(l.open.text, text); l.open.sides.ends != nil {
			l.spend(workOfClasses)
		}
	}
}

func endsInSpace(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return unicode.IsSpace(r)
}

func (l *layout) beginLine(x, y, size, angle float64) {
	l.flush()
	l.hold(sizeOfLine)
	l.spend(workOfLine)
	l.open = &textLine{page: l.number, size: size, x: x, y: y, angle: angle}
}

func (l *layout) flush() {
	if l.open != nil && strings.TrimSpace(string(l.open.text)) != "" {
		l.open.text = l.open.sides.logical(l.open.text, l.spend)
		l.open.sides = sides{}
		l.lines = append(l.lines, *l.open)
	}
	l.open = nil
}

// finish returns the paragraphs.
func (l *layout) finish() []Paragraph {
	l.flush()
	var all []Paragraph
	var open []byte // the text of the last one
	end := func() {
		if n := len(all); n > 0 {
			all[n-1].Text = string(open)
		}
	}
	body := l.bodySize()
	leading := l.leadings()
	for i := range l.lines { // paid: its memory was held, as for the loops below
		line := &l.lines[i]
		text := strings.TrimSpace(string(line.text))
		if i > 0 && !l.breaks(&l.lines[i-1], line, leading) {
			open = join(open, text)
			continue
		}
		end()
		p := Paragraph{Page: line.page}
		switch {
		case line.size >= headingSize*body && len(text) <= maxHeading && strings.ContainsFunc(text, unicode.IsLetter):
			p.Kind, p.Level = Heading, 3
			if ratio := line.size / body; ratio >= 1.8 {
				p.Level = 1
			} else if ratio >= 1.4 {
				p.Level = 2
			}
		case isBullet(text):
			p.Kind = Item
		}
		all, open = append(all, p), append(open[:0], text...)
	}
	end()
	return all
}

// join appends a line to a paragraph, and joins a word that is hyphenated between them.
func join(open []byte, text string) []byte {
	open = bytes.TrimRight(open, " ")
	hyphen, w := utf8.DecodeLastRune(open)
	before, _ := utf8.DecodeLastRune(open[:len(open)-w])
	after, _ := utf8.DecodeRuneInString(text)
	switch {
	case (hyphen == '-' || hyphen == '‐') && unicode.IsLetter(before) && unicode.IsLower(after):
		open = open[:len(open)-w]
	case hyphen == '\u00ad':
	case isUnspacedScript(hyphen) && isUnspacedScript(after):
	default:
		open = append(open, ' ')
	}
	return append(open, text...)
}

// isUnspacedScript reports whether a rune belongs to a script without spaces.
func isUnspacedScript(r rune) bool {
	return r >= 0x3000 && r <= 0x303F || r >= 0xFF00 && r <= 0xFF65 || unicode.In(r, unicode.Han, unicode.Hiragana,
		unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// breaks reports whether a paragraph ends between two lines.
func (l *layout) breaks(a, b *textLine, leading map[int]float64) bool {
	if a.page != b.page || math.Abs(a.angle-b.angle) > 0.1 {
		return true
	}
	if ratio := max(a.size, b.size) / max(1e-9, min(a.size, b.size)); ratio > sizeStep {
		return true
	}
	down := a.y - b.y
	if usual := leading[sizeKey(a)]; usual > 0 && down > paragraphGap*usual {
		return true
	}
	return down <= lineShift*a.size || down > 2.2*max(a.size, b.size) || isBullet(strings.TrimSpace(string(b.text)))
}

func sizeKey(t *textLine) int { return t.page<<12 | int(min(4095, t.size*4)) }

// leadings returns the usual distance of lines by page and font size: a low quantile.
func (l *layout) leadings() map[int]float64 {
	gaps := map[int][]float64{}
	for i := 1; i < len(l.lines); i++ { // paid: as in finish
		a, b := &l.lines[i-1], &l.lines[i]
		down := a.y - b.y
		if sizeKey(a) == sizeKey(b) && down > lineShift*a.size && down < 2.2*a.size {
			gaps[sizeKey(a)] = append(gaps[sizeKey(a)], down)
		}
	}
	usual := make(map[int]float64, len(gaps))
	for key, all := range gaps { // paid: as in finish
		slices.Sort(all)
		usual[key] = all[(len(all)-1)/3] // paragraphs often have few lines, so that there are many gaps between them
	}
	return usual
}

// bodySize returns the size of most text.
func (l *layout) bodySize() float64 {
	count := map[int]int{}
	for i := range l.lines { // paid: as in finish
		count[int(l.lines[i].size*4)] += len(l.lines[i].text)
	}
	best := 0
	for size, n := range count { // paid: as in finish
		if n > count[best] || n == count[best] && size < best {
			best = size
		}
	}
	return cmp.Or(float64(best)/4, 1)
}

func isBullet(s string) bool {
	r, w := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("•◦▪‣–*·●○■", r) && len(s) > w && s[w] == ' '
}

// maxReordered is the maximum number of glyphs of a line whose order is changed.
const maxReordered = 1024

// sides tracks the right-to-left glyphs of a line. A page shows its glyphs from left to right, in any script; a text
// has them in reading order.
type sides struct {
	// ends of the glyphs' texts in the line's, one more than maxReordered at most; nil if none is right-to-left
	ends []int
	// number of right-to-left glyphs to the right of the previous one, minus those to its left
	visual int
}

// noteGlyph records a glyph that was appended to a line.
func (s *sides) noteGlyph(line []byte, glyph string) {
	switch {
	case glyph == "", len(s.ends) > maxReordered, s.ends == nil && !isRightToLeft(classOf(glyph)):
		return
	case s.ends == nil:
		for at := 0; at < len(line)-len(glyph) && len(s.ends) <= maxReordered; { // paid: that many are few
			_, n := utf8.DecodeRune(line[at:])
			at += n
			s.ends = append(s.ends, at)
		}
	}
	s.ends = append(s.ends, len(line))
}

// step records whether a glyph is to the right or to the left of the previous one.
func (s *sides) step(glyph string, right bool) {
	switch {
	case s.ends == nil || !isRightToLeft(classOf(glyph)):
	case right:
		s.visual++
	default:
		s.visual--
	}
}

// classOf returns the class of a glyph in the bidirectional algorithm (UAX #9).
func classOf(glyph string) bidi.Class {
	r, _ := utf8.DecodeRuneInString(glyph)
	p, _ := bidi.LookupRune(r)
	return p.Class()
}

func isRightToLeft(c bidi.Class) bool { return c == bidi.R || c == bidi.AL }

func isNumber(c bidi.Class) bool { return c == bidi.EN || c == bidi.AN }

// logical returns a line in reading order. Its direction is not given, so it is that of most of its words.
func (s *sides) logical(line []byte, spend func(n int) bool) []byte {
	if s.visual <= 0 || len(s.ends) > maxReordered {
		return line
	}
	t := reorderer{spend: spend}
	at, balance, last := 0, 0, bidi.ON
	for _, end := range s.ends { // paid: by show
		glyph := string(line[at:end])
		at = end
		c := classOf(glyph)
		t.glyphs, t.classes = append(t.glyphs, glyph), append(t.classes, c)
		switch {
		case c == last: // in a word
		case isRightToLeft(c):
			balance++
		case c == bidi.L:
			balance--
		}
		last = c
	}
	if balance >= 0 {
		t.reverse(0, len(t.glyphs))
	} else {
		t.reverseRuns()
	}
	return []byte(strings.Join(t.glyphs, ""))
}

// reorderer reorders glyphs. Their classes keep their order.
type reorderer struct {
	spend   func(n int) bool
	glyphs  []string
	classes []bidi.Class
}

// reverseRuns reverses the right-to-left runs in a left-to-right line.
func (t *reorderer) reverseRuns() {
	for i := 0; i < len(t.glyphs); i++ { // paid: by show; a glyph is looked at twice
		if !isRightToLeft(t.classes[i]) {
			continue
		}
		end := i + 1
		for k := end; k < len(t.glyphs) && t.classes[k] != bidi.L; k++ { // paid: as above
			if isRightToLeft(t.classes[k]) {
				end = k + 1
			}
		}
		t.reverse(i, end)
		i = end
	}
}

// reverse reverses the glyphs between two places, except for the left-to-right words and numbers among them.
func (t *reorderer) reverse(from, to int) {
	for i := from; i < to; { // paid: by show, and by runEnd
		if c := t.classes[i]; c != bidi.L && !isNumber(c) {
			i++
			continue
		}
		end := t.runEnd(i, to)
		slices.Reverse(t.glyphs[i:end]) // so that they are unchanged after the final reversal
		i = end
	}
	slices.Reverse(t.glyphs[from:to])
}

// runEnd returns the end of a run of left-to-right words and numbers. An unmatched bracket in it belongs to the
// surrounding text; numbers without words between them are a run only if a single sign joins them, as in 1,204.
func (t *reorderer) runEnd(from, to int) int {
	end, depth, words := from+1, 0, t.classes[from] == bidi.L
	for i := from + 1; i < to && t.spend(3) && !isRightToLeft(t.classes[i]) && depth >= 0; i++ {
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
