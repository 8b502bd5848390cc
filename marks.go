package ibid

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/wire"
)

// marks finds the marks of a provider that cites in the text itself: [1], [1][3], [1, 2], [doc1]. It ignores lookalikes
// in code, math, an address or a link. It reads the text once, as it grows, and stops before anything that the next
// bytes may still change.
type marks struct {
	wire.Markers
	from  int    // where the text to search begins
	past  []Span // marks whose number exceeds the list
	lexer markdown.Lexer
}

// restart reads the text from the beginning again.
func (m *marks) restart() { m.lexer, m.past = markdown.Lexer{At: m.from}, nil }

// textMark is one mark in the text.
type textMark struct {
	span    Span
	numbers []int // from 1
}

// setMarks sets the list of refs that the marks number.
func (c *candidate) setMarks(w *wire.Markers) {
	if c.marks != nil && c.marks.Style == w.Style && slices.EqualFunc(c.marks.Refs, w.Refs, sameRef) {
		return
	}
	const limit = 64 // changes of the list, each of which means reading the text again
	if c.relisted++; c.relisted > limit {
		c.fold.limit("marker lists")
		return
	}
	c.marks = &marks{Markers: wire.Markers{Style: w.Style, Refs: slices.Clone(w.Refs)}, from: c.marked}
	c.marks.restart()
	c.scanMarks(c.closed)
}

// scanMarks adds citations for the marks that have become certain.
func (c *candidate) scanMarks(last bool) {
	text := c.text.String()
	for {
		found, ok := c.marks.next(text, last)
		if !ok {
			break
		}
		cite := wire.Cite{
			Key:    markKey(found.span.Start),
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
				if len(c.marks.past) < c.fold.limits.Issues {
					c.marks.past = append(c.marks.past, found.span)
				}
				continue
			}
			if len(cite.Refs) < c.fold.limits.Items {
				cite.Refs = append(cite.Refs, c.marks.Refs[n-1])
			}
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

// markKey returns the key of the citation that was read from the mark at an offset.
func markKey(at int) string { return "mark:" + strconv.Itoa(at) }

// next returns the next mark, or false at the end of what can be read for now.
func (m *marks) next(text string, last bool) (textMark, bool) {
	for {
		t, ok := m.lexer.Next(text, last)
		if !ok {
			return textMark{}, false
		}
		numbers := m.numbers(text[t.Start+1 : t.End-1])
		if numbers == nil {
			continue
		}
		if t.End == len(text) && !last {
			m.lexer.At = t.Start // it is read again
			return textMark{}, false
		}
		m.lexer.At = t.End
		definition := t.End < len(text) && text[t.End] == ':' && beginsLine(text, t.Start) // of a link or footnote
		if !definition && (t.Start == 0 || text[t.Start-1] != '[' && !beginsImage(text, t.Start)) {
			return textMark{Span(t), numbers}, true
		}
	}
}

// beginsImage reports whether an image may begin before the bracket at an offset: ![1] does, "Wow![1]" does not.
func beginsImage[T string | []byte](text T, at int) bool {
	return at > 0 && text[at-1] == '!' && (at == 1 || markdown.IsSpace(text[at-2]))
}

// beginsLine reports whether only white space and quote or list marks precede an offset on its line.
func beginsLine(text string, at int) bool {
	const limit = 64 // bytes
	before := text[max(0, at-limit):at]
	newline := strings.LastIndexByte(before, '\n')
	return (newline >= 0 || at <= limit) && strings.Trim(before[newline+1:], " \t\r>-*+") == ""
}

// numbers parses the inside of a mark, such as "1", "1, 3", "2-4" or "doc1". It returns nil if s is not a mark.
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

// number parses one to four digits. It returns 0 for anything else.
func number(s string) int {
	if len(s) == 0 || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, _ := strconv.Atoi(s)
	return n
}
