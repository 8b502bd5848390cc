package snapshot

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How glyphs are put together, in the size of the font.
const (
	wordGap      = 0.17 // what is farther apart is two words
	columnGap    = 2.5  // what is farther apart on a line stands in two columns, or cells
	lineShift    = 0.45 // what is farther up or down is another line
	paragraphGap = 1.35 // what is farther down than so many usual lines is another paragraph
	sizeStep     = 1.12 // what is so many times as large is something else
	headingSize  = 1.15 // what is so many times as large as most text is a heading
	maxHeading   = 250  // bytes
)

// layout puts glyphs together to lines, and lines to paragraphs, in the order in which the pages show them.
type layout struct {
	lines  []textLine
	open   *textLine
	number int     // of the page
	start  float64 // of the last glyph, and its end
	end    float64
	glyphs int              // of the page
	next   string           // what the next glyphs say, however they look
	hold   func(n int) bool // counts memory, and reports whether there may be more
}

// What text takes, about.
const (
	sizeOfLine = 192 // bytes, besides its text
	sizeOfText = 6   // times its bytes: here, as a stream, normalised, and grown
)

// textLine is one line of text.
type textLine struct {
	page  int
	text  []byte
	size  float64 // of its font, on the page
	x, y  float64 // where it begins, along and across its direction
	angle float64
	sides sides
}

// page begins a page.
func (l *layout) page(number int) {
	l.flush()
	l.number = number
}

// pend says what the next glyphs mean.
func (l *layout) pend(text string) { l.next = text }

// add adds a glyph: m places it, width and size are in its own space.
func (l *layout) add(text string, m pdfMatrix, width, size float64) {
	if l.next != "" {
		text, l.next = l.next, ""
	}
	stretch := math.Hypot(m[0], m[1])
	height := math.Abs(size) * math.Hypot(m[2], m[3])
	if stretch == 0 || height == 0 || math.IsNaN(m[4]) || math.IsInf(m[4], 0) {
		l.put(text)
		return
	}
	cos, sin := m[0]/stretch, m[1]/stretch
	x, y := m[4]*cos+m[5]*sin, m[5]*cos-m[4]*sin
	angle := math.Atan2(sin, cos)
	from, to := min(x, x+width*stretch), max(x, x+width*stretch)
	if o := l.open; o == nil {
		l.begin(x, y, height, angle)
	} else {
		unit := max(o.size, height)
		gap := from - l.end
		switch {
		case math.Abs(y-o.y) > lineShift*unit, math.Abs(angle-o.angle) > 0.1, gap < -1.5*unit,
			gap > columnGap*unit && strings.TrimSpace(text) != "":
			if text == "" || strings.TrimSpace(text) == "" && gap < -1.5*unit {
				return // a space at the end of nothing
			}
			l.begin(x, y, height, angle)
		case gap > wordGap*min(o.size, height) && len(o.text) > 0 && !endsInSpace(o.text):
			l.put(" ")
		}
		o.sides.step(text, from > l.start)
	}
	if o := l.open; o != nil && height > o.size && strings.TrimSpace(text) != "" {
		o.size = max(o.size, height*0.999)
	}
	l.put(text)
	l.start, l.end = from, to
}

// put appends to the line.
func (l *layout) put(text string) {
	if l.open == nil {
		if strings.TrimSpace(text) == "" {
			return
		}
		l.begin(0, 0, 1, 0)
	}
	if l.hold(sizeOfText * len(text)) {
		l.open.text = append(l.open.text, text...)
		l.open.sides.note(l.open.text, text)
	}
}

func endsInSpace(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return unicode.IsSpace(r)
}

func (l *layout) begin(x, y, size, angle float64) {
	l.flush()
	l.hold(sizeOfLine)
	l.open = &textLine{page: l.number, size: size, x: x, y: y, angle: angle}
}

func (l *layout) flush() {
	if l.open != nil && strings.TrimSpace(string(l.open.text)) != "" {
		l.open.text = l.open.sides.logical(l.open.text)
		l.open.sides = sides{}
		l.lines = append(l.lines, *l.open)
	}
	l.open = nil
}

// finish returns the paragraphs as a stream.
func (l *layout) finish() *stream {
	l.flush()
	s := &stream{}
	body := l.bodySize()
	leading := l.leadings()
	for i := range l.lines {
		line := &l.lines[i]
		text := strings.TrimSpace(string(line.text))
		if i > 0 && !l.breaks(&l.lines[i-1], line, leading) {
			join(s, text)
			continue
		}
		kind, level := Paragraph, 0
		switch {
		case line.size >= headingSize*body && len(text) <= maxHeading && hasLetter(text):
			kind, level = Heading, headingRank(line.size/body)
		case isBullet(text):
			kind = Item
		}
		s.begin(kind, level, line.page)
		s.raw = append(s.raw, text...)
	}
	return s
}

// join appends a line to a paragraph. A word that is hyphenated between them is put together again.
func join(s *stream, text string) {
	s.raw = bytes.TrimRight(s.raw, " ")
	hyphen, w := utf8.DecodeLastRune(s.raw)
	before, _ := utf8.DecodeLastRune(s.raw[:len(s.raw)-w])
	after, _ := utf8.DecodeRuneInString(text)
	switch {
	case (hyphen == '-' || hyphen == '‐') && unicode.IsLetter(before) && unicode.IsLower(after):
		s.raw = s.raw[:len(s.raw)-w]
	case hyphen == '\u00ad':
	case isUnspacedScript(hyphen) && isUnspacedScript(after):
	default:
		s.raw = append(s.raw, ' ')
	}
	s.raw = append(s.raw, text...)
}

// isUnspacedScript reports whether a rune is of a script that is written without spaces.
func isUnspacedScript(r rune) bool {
	return unicode.In(
		r,
		unicode.Han,
		unicode.Hiragana,
		unicode.Katakana,
		unicode.Thai,
		unicode.Lao,
		unicode.Khmer,
		unicode.Myanmar,
	) ||
		r >= 0x3000 && r <= 0x303F ||
		r >= 0xFF00 && r <= 0xFF65
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

// leadings returns how far apart lines usually are, by page and size of the font: the median.
func (l *layout) leadings() map[int]float64 {
	gaps := map[int][]float64{}
	for i := 1; i < len(l.lines); i++ {
		a, b := &l.lines[i-1], &l.lines[i]
		down := a.y - b.y
		if sizeKey(a) == sizeKey(b) && down > lineShift*a.size && down < 2.2*a.size {
			gaps[sizeKey(a)] = append(gaps[sizeKey(a)], down)
		}
	}
	usual := make(map[int]float64, len(gaps))
	for key, all := range gaps {
		slices.Sort(all)
		usual[key] = all[(len(all)-1)/3] // paragraphs are of few lines, so that the gaps between them are many
	}
	return usual
}

// bodySize returns the size that most text has.
func (l *layout) bodySize() float64 {
	count := map[int]int{}
	for i := range l.lines {
		count[int(l.lines[i].size*4)] += len(l.lines[i].text)
	}
	best := 0
	for size, n := range count {
		if n > count[best] || n == count[best] && size < best {
			best = size
		}
	}
	return cmp.Or(float64(best)/4, 1)
}

func headingRank(ratio float64) int {
	switch {
	case ratio >= 1.8:
		return 1
	case ratio >= 1.4:
		return 2
	}
	return 3
}

func hasLetter(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

func isBullet(s string) bool {
	r, w := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("•◦▪‣–*·●○■", r) && len(s) > w && s[w] == ' '
}
