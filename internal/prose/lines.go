package prose

import "strings"

// lineKind says what a line is to its block.
type lineKind uint8

const (
	plainLine   lineKind = iota // goes on with the block before it
	blankLine                   // nothing
	itemLine                    // starts a list item, a quoted line or a footnote
	headingLine                 // a block of its own
	rowLine                     // a table row: a block of its own
	ruleLine                    // a thematic break, the underline of a heading or of a table's head: no words
	fenceLine                   // opens or closes a code block
)

// maxNesting is how many markers one line may begin with. Each makes the line be read again.
const maxNesting = 8

// alone reports whether the line after such a line starts a block.
func (k lineKind) alone() bool { return k != plainLine && k != itemLine }

// classify says what the line at text[p:] is, and where its own words start behind markers.
func classify(text string, p int) (lineKind, int) {
	kind := plainLine
	for range maxNesting {
		p = skipBlanks(text, p)
		if atLineEnd(text, p) {
			if kind == plainLine {
				return blankLine, p
			}
			return kind, p
		}
		if k, content := wholeLine(text, p); k != plainLine {
			return k, content
		}
		next := bulletEnd(text, p)
		if next == p {
			return kind, p
		}
		kind, p = itemLine, next
	}
	return kind, p
}

// wholeLine recognises the lines that are a block of their own.
func wholeLine(text string, p int) (lineKind, int) {
	switch c := text[p]; c {
	case '#':
		n := runOf(text, p, '#')
		if n <= 6 && (atLineEnd(text, p+n) || isBlank(text[p+n])) {
			return headingLine, skipBlanks(text, p+n)
		}
	case '|':
		if onlyOf(text, p, "|-: \t") {
			return ruleLine, p
		}
		return rowLine, p
	case '`', '~':
		n := runOf(text, p, c)
		if n >= 3 && (c == '~' || strings.IndexByte(lineAt(text, p+n), '`') < 0) {
			return fenceLine, p
		}
	case '-', '_', '=':
		if n := runOf(text, p, c); n >= 2 && atLineEnd(text, skipBlanks(text, p+n)) || isThematic(text, p, c) {
			return ruleLine, p
		}
	case '*':
		if isThematic(text, p, c) {
			return ruleLine, p
		}
		if isBoldLine(text, p) {
			return headingLine, p
		}
	}
	return plainLine, p
}

// isThematic reports whether the line has nothing but three or more c, perhaps apart.
func isThematic(text string, p int, c byte) bool {
	n := 0
	for ; !atLineEnd(text, p); p++ {
		switch {
		case text[p] == c:
			n++
		case !isBlank(text[p]):
			return false
		}
	}
	return n >= 3
}

// isBoldLine reports whether the line is bold from end to end: a heading to those who wrote it.
func isBoldLine(text string, p int) bool {
	if !strings.HasPrefix(text[p:], "**") {
		return false
	}
	line := strings.TrimRight(lineAt(text, p+2), " \t\r:")
	return len(line) > 2 && strings.Index(line, "**") == len(line)-2
}

// bulletEnd returns the place after the list, quote or footnote marker at p, or p when there is none.
func bulletEnd(text string, p int) int {
	switch c := text[p]; {
	case c == '>':
		return p + 1
	case c == '-' || c == '*' || c == '+':
		if !spaceOrEnd(text, p+1) {
			return p
		}
		return taskEnd(text, p+1)
	case isDigit(c):
		n := p
		for n < len(text) && isDigit(text[n]) {
			n++
		}
		// Longer numbers at the start of a line are years and amounts, not the places of a list.
		if n-p <= 3 && n < len(text) && (text[n] == '.' || text[n] == ')') && spaceOrEnd(text, n+1) {
			return n + 1
		}
	case c == '[':
		if end := noteMark(text, p); end > p && end < len(text) && text[end] == ':' {
			return end + 1
		}
	case c >= 0xC2:
		r, w := runeAt(text, p)
		switch r {
		case '•', '‣', '◦', '●', '▪', '·':
			return p + w
		}
	}
	return p
}

// taskEnd returns the place after a task's check box at p, or p.
func taskEnd(text string, p int) int {
	q := skipBlanks(text, p)
	if len(text)-q > 3 && text[q] == '[' && text[q+2] == ']' && isBlank(text[q+3]) {
		if c := text[q+1]; c == ' ' || c|0x20 == 'x' {
			return q + 3
		}
	}
	return p
}

// blockStart returns the start of the block that at stands in, not before floor.
func blockStart(text string, at, floor int) int {
	p := lineStart(text, at, floor)
	for p > floor {
		if k, _ := classify(text, p); k != plainLine {
			return p
		}
		before := lineStart(text, p-1, floor)
		if before > floor || floor == 0 {
			if k, _ := classify(text, before); k.alone() {
				return p
			}
		}
		p = before
	}
	return p
}

// lineStart returns the start of the line that at stands in, not before floor.
func lineStart(text string, at, floor int) int {
	return floor + strings.LastIndexByte(text[floor:max(floor, at)], '\n') + 1
}

// nextLine returns the start of the line after p's.
func nextLine(text string, p int) int {
	if n := strings.IndexByte(text[p:], '\n'); n >= 0 {
		return p + n + 1
	}
	return len(text)
}

// lineAt returns the rest of the line from p on.
func lineAt(text string, p int) string {
	line, _, _ := strings.Cut(text[min(p, len(text)):], "\n")
	return line
}

// fenceEnd returns the end of the code block whose fence stands at p: after the closing fence, or the end of text.
func fenceEnd(text string, p int) int {
	c := text[p]
	n := runOf(text, p, c)
	for q := nextLine(text, p); q < len(text); q = nextLine(text, q) {
		s := q
		for s < len(text) && (isBlank(text[s]) || text[s] == '>') {
			s++
		}
		if m := runOf(text, s, c); m >= n && atLineEnd(text, skipBlanks(text, s+m)) {
			return s + m
		}
	}
	return len(text)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func atLineEnd(text string, p int) bool {
	return p >= len(text) || text[p] == '\n' || text[p] == '\r' && (p+1 == len(text) || text[p+1] == '\n')
}

func spaceOrEnd(text string, p int) bool { return atLineEnd(text, p) || isBlank(text[p]) }

// runOf returns how many c stand at p.
func runOf(text string, p int, c byte) int {
	n := 0
	for p+n < len(text) && text[p+n] == c {
		n++
	}
	return n
}

// onlyOf reports whether the line from p on has no other characters than those of set, and one dash at least.
func onlyOf(text string, p int, set string) bool {
	dash := false
	for ; !atLineEnd(text, p); p++ {
		if strings.IndexByte(set, text[p]) < 0 {
			return false
		}
		dash = dash || text[p] == '-'
	}
	return dash
}
