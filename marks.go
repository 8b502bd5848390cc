package ibid

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/wire"
)

// marks finds the marks of a provider that cites in the text itself: [1], [1][3], [1, 2], [doc1]. What looks like one
// inside code, math, an address or a link is none. It reads the text once, as it grows, and stops before whatever the
// next bytes may still change.
type marks struct {
	wire.Markers
	from  int    // where the text that they are of begins
	at    int    // how far the text was read
	past  []Span // marks whose number is past the list
	fence string // the run that opened the code block which at lies in; empty: in none
}

// restart reads the text from the beginning again.
func (m *marks) restart() { m.at, m.fence, m.past = m.from, "", nil }

// textMark is one mark in the text.
type textMark struct {
	span    Span
	numbers []int // from 1
}

// setMarks takes the list that marks count in.
func (c *candidate) setMarks(w *wire.Markers) {
	if c.marks != nil && c.marks.Style == w.Style && slices.EqualFunc(c.marks.Refs, w.Refs, sameRef) {
		return
	}
	const most = 64 // changes of the list, each of which reads the text again
	if c.relisted++; c.relisted > most {
		c.fold.limit("marker lists")
		return
	}
	c.marks = &marks{Markers: wire.Markers{Style: w.Style, Refs: slices.Clone(w.Refs)}, from: c.marked, at: c.marked}
	c.scanMarks(c.closed)
}

// endMarks says that later marks count in another list, or in none.
func (c *candidate) endMarks() {
	if c.marks != nil {
		c.scanMarks(true)
	}
	c.marks, c.marked = nil, c.text.Len()
}

// scanMarks makes citations of the marks that have become certain.
func (c *candidate) scanMarks(last bool) {
	text := c.text.String()
	for {
		found, ok := c.marks.next(text, last)
		if !ok {
			break
		}
		cite := wire.Cite{
			Key: "mark:" + strconv.Itoa(
				found.span.Start,
			),
			Part:   wire.Part{Candidate: c.index},
			Base:   wire.AnswerBase,
			Unit:   wire.Bytes,
			Start:  found.span.Start,
			End:    found.span.End,
			Covers: wire.Link,
			Origin: wire.OriginMarker,
			Quote:  text[found.span.Start:found.span.End],
		}
		for _, n := range found.numbers {
			if n > len(c.marks.Refs) || c.marks.Refs[n-1].Source == "" {
				c.marks.past = append(c.marks.past, found.span)
				continue
			}
			cite.Refs = append(cite.Refs, c.marks.Refs[n-1])
		}
		if len(cite.Refs) > 0 {
			c.addCite(&cite)
		}
	}
	if last {
		for _, s := range c.marks.past {
			c.fold.issue("marker-out-of-range", text[s.Start:s.End])
		}
	}
}

// next returns the next mark. It is false at the end of what can be read for now.
func (m *marks) next(text string, last bool) (textMark, bool) {
	for m.prose(text, last) {
		n := strings.IndexAny(text[m.at:], "`\\[\n<:$")
		if n < 0 {
			m.at = len(text)
			break
		}
		m.at += n
		found, certain := m.special(text, last)
		if !certain || len(found.numbers) > 0 {
			return found, certain
		}
	}
	return textMark{}, false
}

// prose moves past code blocks and reports whether there is text to read after them.
func (m *marks) prose(text string, last bool) bool {
	for m.at < len(text) {
		if m.at == 0 || text[m.at-1] == '\n' {
			if wait := m.line(text, last); wait {
				return false
			}
		} else if m.fence != "" { // the rest of a long line in a code block
			n := strings.IndexByte(text[m.at:], '\n')
			if n < 0 {
				m.at = len(text)
				return false
			}
			m.at += n + 1
			continue
		}
		if m.fence == "" {
			return m.at < len(text)
		}
	}
	return false
}

// special reads what begins at m.at: a mark, a new line, or something that marks do not stand in. It is not certain where
// the text so far does not tell what it is.
func (m *marks) special(text string, last bool) (found textMark, certain bool) {
	var size int
	switch rest := text[m.at:]; rest[0] {
	case '\n':
		certain = true
	case '`':
		return textMark{}, m.code(text, last)
	case '\\':
		size, certain = escapeSize(rest, last)
	case '<':
		size, certain = autolinkSize(rest, last)
	case ':':
		size, certain = addressSize(rest, last)
	case '$':
		size, certain = dollarSize(rest, last)
	default:
		found, size, certain = m.bracket(text, last)
	}
	if certain {
		m.at += max(size, 1)
	}
	return found, certain
}

// line looks at the beginning of a line: a code fence opens or closes there, and the lines between hold no marks. It is
// true where more text is needed to tell.
func (m *marks) line(text string, last bool) (wait bool) {
	const most = 1024 // bytes of a line that are waited for
	end := strings.IndexByte(text[m.at:min(len(text), m.at+most)], '\n')
	whole := end >= 0 || last || len(text)-m.at >= most
	if end < 0 {
		end = min(len(text)-m.at, most)
	} else {
		end++
	}
	line := strings.TrimLeft(text[m.at:m.at+end], " \t>")
	run := fenceRun(line)
	switch {
	case m.fence != "":
		if !whole {
			return true
		}
		if strings.HasPrefix(run, m.fence) && strings.TrimSpace(line[len(run):]) == "" {
			m.fence = ""
		}
		m.at += end
	case len(run) >= 3:
		if !whole {
			return true
		}
		if run[0] != '`' || !strings.Contains(line[len(run):], "`") {
			m.fence = run
			m.at += end
		}
	case !whole && len(run) == len(line) && len(line) < 3: // may become a fence
		return true
	}
	return false
}

// fenceRun returns the run of backquotes or tildes that a line begins with.
func fenceRun(line string) string {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	return line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
}

// code skips a code span. It is false where the text so far does not tell whether the run of backquotes at m.at opens one.
func (m *marks) code(text string, last bool) bool {
	size := len(text[m.at:]) - len(strings.TrimLeft(text[m.at:], "`"))
	if m.at+size == len(text) && !last {
		return false
	}
	const most = 4096 // bytes of a code span
	paragraph := text[m.at+size:]
	ended := last || len(paragraph) > most
	paragraph = paragraph[:min(len(paragraph), most)]
	if n := strings.Index(paragraph, "\n\n"); n >= 0 {
		paragraph, ended = paragraph[:n], true
	}
	for at := 0; ; {
		n := strings.IndexByte(paragraph[at:], '`')
		if n < 0 {
			break
		}
		at += n
		run := len(paragraph[at:]) - len(strings.TrimLeft(paragraph[at:], "`"))
		if at+run == len(paragraph) && !ended {
			return false
		}
		if run == size {
			m.at += size + at + run
			return true
		}
		at += run
	}
	if ended {
		m.at += size
	}
	return ended
}

// bracket reads what may be a mark at m.at and returns how far to go on. It is not certain where the text ends too
// early.
func (m *marks) bracket(text string, last bool) (found textMark, size int, certain bool) {
	const most = 40 // bytes of a mark
	rest := text[m.at:]
	if size, certain = linkSize(rest, last); size > 0 || !certain {
		return textMark{}, size, certain
	}
	end := strings.IndexAny(rest[1:], "[]\n")
	if end < 0 || end > most {
		return textMark{}, 1, last || len(rest) > most
	}
	end += 2
	if rest[end-1] != ']' {
		return textMark{}, 1, true
	}
	numbers := m.numbers(rest[1 : end-1])
	if numbers == nil {
		return textMark{}, 1, true
	}
	if end < len(rest) && rest[end] == ':' && beginsLine(text, m.at) {
		return textMark{}, end, true // a link or footnote definition
	}
	if m.at > 0 && text[m.at-1] == '[' || m.at > 0 && text[m.at-1] == '!' {
		return textMark{}, end, true
	}
	return textMark{Span{m.at, m.at + end}, numbers}, end, true
}

// beginsLine reports whether at most white space stands before an offset on its line.
func beginsLine(text string, at int) bool {
	const most = 64 // bytes of white space
	before := text[max(0, at-most):at]
	newline := strings.LastIndexByte(before, '\n')
	return (newline >= 0 || at <= most) && strings.TrimSpace(before[newline+1:]) == ""
}

// numbers reads the inside of a mark: 1, 1, 3, 2-4, doc1. Nil: it is none.
func (m *marks) numbers(s string) []int {
	var out []int
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if m.Style == wire.DocNumber {
			var ok bool
			if item, ok = strings.CutPrefix(item, "doc"); !ok {
				return nil
			}
		}
		from, to, ranged := strings.Cut(strings.ReplaceAll(item, "–", "-"), "-")
		if !ranged {
			to = from
		}
		first, last := number(from), number(to)
		if first <= 0 || last < first || last-first > 100 || ranged && last > len(m.Refs) {
			return nil
		}
		for n := first; n <= last; n++ {
			out = append(out, n)
		}
	}
	return out
}

// number reads one to four digits; 0 for anything else.
func number(s string) int {
	if len(s) == 0 || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, _ := strconv.Atoi(s)
	return n
}
