package prose

import (
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
)

// lineKind is the role of a line in its block.
type lineKind uint8

const (
	plainLine   lineKind = iota // continues the block before it
	blankLine                   // empty
	itemLine                    // starts a list item, a quoted line or a footnote
	headingLine                 // a separate block
	rowLine                     // a table row: a separate block
	ruleLine                    // a thematic break, the underline of a heading or of a table's head; no words
	fenceLine                   // opens or closes a code block
)

// maxNesting is the maximum number of markers at the start of a line. Each means reading the line again.
const maxNesting = 8

// alone reports whether the line after one of kind k starts a block.
func (k lineKind) alone() bool { return k != plainLine && k != itemLine }

// classify returns the kind of the line at text[p:], and where its words start after markers.
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

// wholeLine recognises lines that are a separate block.
func wholeLine(text string, p int) (lineKind, int) {
	line := lineAt(text, p)
	switch c := text[p]; c {
	case '#':
		if n := markdown.HeadingLevel(line); n > 0 {
			return headingLine, skipBlanks(text, p+n)
		}
	case '|':
		if strings.Trim(line, "|-: \t\r") == "" && strings.Contains(line, "-") {
			return ruleLine, p
		}
		return rowLine, p
	case '`', '~':
		var fence markdown.Fence
		if fence.Line(line) {
			return fenceLine, p
		}
	case '-', '_', '=':
		words := strings.TrimRight(line, " \t\r")
		if len(words) >= 2 && strings.Trim(words, line[:1]) == "" || isThematic(line) {
			return ruleLine, p
		}
	case '*':
		if isThematic(line) {
			return ruleLine, p
		}
		if isBoldLine(line) {
			return headingLine, p
		}
	}
	return plainLine, p
}

// isThematic reports whether a line consists of three or more of its first character, possibly with spaces between
// them.
func isThematic(line string) bool {
	return strings.Trim(line, line[:1]+" \t\r") == "" && strings.Count(line, line[:1]) >= 3
}

// isBoldLine reports whether the whole line is bold, which is meant as a heading.
func isBoldLine(line string) bool {
	words, ok := strings.CutPrefix(strings.TrimRight(line, " \t\r:"), "**")
	return ok && len(words) > 2 && strings.Index(words, "**") == len(words)-2
}

// bulletEnd returns the place after the list, quote or footnote marker at p, or p if there is none.
func bulletEnd(text string, p int) int {
	switch c := text[p]; {
	case c == '>':
		return p + 1
	case isDigit(c) || strings.IndexByte("-*+", c) >= 0:
		const limit = 4 // longer numbers at the start of a line are years and amounts, not list numbers
		if n := markdown.ItemMark(text[p:min(len(text), p+limit+2)]); 1 < n && n <= limit {
			return p + n
		} else if n == 1 {
			return taskEnd(text, p+1)
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

// blockStart returns the start of the block that contains at, not before floor.
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

// lineStart returns the start of the line that contains at, not before floor.
func lineStart(text string, at, floor int) int {
	return floor + strings.LastIndexByte(text[floor:max(floor, at)], '\n') + 1
}

// nextLine returns the start of the line after that of p.
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

// fenceEnd returns the end of the code block whose fence is at p: after the closing fence, or the end of text.
func fenceEnd(text string, p int) int {
	var fence markdown.Fence
	for {
		line := text[p:nextLine(text, p)]
		if fence.Line(line); !fence.Open() {
			return p + len(strings.TrimRight(line, " \t\r\n"))
		}
		if p += len(line); p == len(text) {
			return p
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func atLineEnd(text string, p int) bool {
	return p >= len(text) || text[p] == '\n' || text[p] == '\r' && (p+1 == len(text) || text[p+1] == '\n')
}

// The maximum lengths of marks. They avoid reading text again for each unclosed bracket.
const (
	maxNote  = 64   // "[1, 2]", "[^name]", "【4:0†source】"
	maxTitle = 300  // the words of a link before a citation
	maxURL   = 1024 // its destination; a group of links; the contents of <sup>
)

// linkEnd returns the end of the markdown link whose bracket is at p, or p if there is none on the line.
func linkEnd(text string, p int) int {
	n, _ := markdown.Link(lineAt(text, p), true)
	if n == 0 || text[p+n-1] != ')' {
		return p
	}
	return p + n
}

// codeEnd returns the end of the code span that begins with the backticks at p, or the place after them if it does not
// end on the line.
func codeEnd(text string, p int) int {
	line := lineAt(text, p)
	n, _ := markdown.Code(line, true)
	return p + max(n, markdown.Run(line))
}

// noteMark returns the end of "[1]", "[^1]", "[2, 3]", "[4-6]", "[^name]" or "[[1]]" at p, or p.
func noteMark(text string, p int) int {
	line := text[p:min(len(text), p+maxNote)]
	n := strings.IndexByte(line, ']')
	if n < 0 || line[0] != '[' {
		return p
	}
	inner := line[1:n]
	double := strings.HasPrefix(inner, "[") && strings.HasPrefix(line[n:], "]]")
	if double {
		inner, n = inner[1:], n+1
	}
	if name, ok := strings.CutPrefix(inner, "^"); ok && name != "" && !strings.ContainsAny(name, " \n[") {
		return p + n + 1
	}
	if !isNumbers(inner) {
		return p
	}
	return p + n + 1
}

// isNumbers reports whether s is a list of numbers and ranges as in citation marks.
func isNumbers(s string) bool {
	digit := false
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			digit = true
		case r != ' ' && r != ',' && r != ';' && r != '-' && r != '–':
			return false
		}
	}
	return digit
}

// citeMark returns the end of the citation mark at p, or p: a number in brackets, linked or not; links in parentheses;
// 【…】; a superscript element.
func citeMark(text string, p int) int {
	rest := text[p:]
	switch {
	case rest == "":
		return p
	case rest[0] == '[':
		end := noteMark(text, p)
		if end == p {
			return p
		}
		return max(end, linkEnd(text, p))
	case strings.HasPrefix(rest, "(["):
		return linkGroup(text, p)
	case strings.HasPrefix(rest, "【"):
		// Marks of file search, with a dagger, contain file names and may be long.
		if n := strings.Index(rest[:min(len(rest), maxURL)], "】"); n > 0 &&
			(n < maxNote || strings.Contains(rest[:maxNote], "†")) {
			return p + n + len("】")
		}
	case strings.HasPrefix(rest, supOpen):
		if n := strings.Index(rest[:min(len(rest), maxURL)], supClose); n > 0 {
			return p + n + len(supClose)
		}
	}
	return p
}

const (
	supOpen  = "<sup>"
	supClose = "</sup>"
)

// afterSigns returns the end of emoji and similar symbols that end the line after p, or p if there are none or words
// follow.
func afterSigns(text string, p int) int {
	const limit = 48 // bytes
	end := p
	for q := p; q < min(len(text), p+limit); {
		r, w := runeAt(text, q)
		switch {
		case atLineEnd(text, q):
			return end
		case !isBlank(text[q]) && !isAttached(r):
			return p
		}
		if q += w; !isBlank(text[q-1]) {
			end = q
		}
	}
	if p+limit < len(text) {
		return p
	}
	return end
}

// linkGroup returns the end of "([a](u), [b](v))" at p, or p.
func linkGroup(text string, p int) int {
	q := p + 1
	for {
		end := linkEnd(text, q)
		if end == q {
			if end = noteMark(text, q); end == q {
				return p
			}
		}
		q = end
		for q < len(text) && strings.IndexByte(" ,;", text[q]) >= 0 {
			q++
		}
		switch {
		case q >= len(text) || q-p > maxURL:
			return p
		case text[q] == ')':
			return q + 1
		case text[q] != '[':
			return p
		}
	}
}

// afterMarks returns the end of the citation marks that follow p on the line, with or without spaces between them.
// Other links count as marks if only marks and links follow on the line.
func afterMarks(text string, p int) int {
	kept := p
	for {
		q := skipBlanks(text, p)
		end := citeMark(text, q)
		switch {
		case end > q:
			if p == kept {
				kept = end
			}
			p = end
		case q < len(text) && text[q] == '[':
			end = linkEnd(text, q)
			if end == q {
				return kept
			}
			p = end
		case atLineEnd(text, q):
			return p
		default:
			return kept
		}
	}
}
