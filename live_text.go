package ibid

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// liveText is the open block of a text that grows: what of it may still change how it is read. Offsets in it count from
// the start of the block.
type liveText struct {
	buf  []byte
	from int // where buf begins in the text as it arrived
	// length of the marks that buf begins with, where another block came before: what ends in them belongs there
	lead    int
	written int // how much of buf is out
	known   int // how much of buf there was before the last text
	scan    blockScan
	enough  int // how long buf must be before it is worth looking for a way to shorten it

	parts   []Span // of the answer's text
	message int    // that the last part belongs to
	section int    // the message that is being written
	filled  bool   // it has text
	// A correction moves the places that later events tell: those from lost.End on are shift behind the text as it
	// arrived, those inside lost are in no text that was shown.
	lost  Span
	shift int
}

// part takes the beginning or the correction of a part.
func (t *liveText) part(e *Event) {
	if !e.Corrected {
		t.message = e.Part.Message
		t.parts = append(t.parts, Span{e.Part.Start, e.Part.Start})
		return
	}
	// Of empty parts that begin where a part with text does, the last is that one.
	i := len(t.parts) - 1
	for i >= 0 && t.parts[i].Start != e.Part.Start {
		i--
	}
	if i < 0 {
		return
	}
	old, grown := t.parts[i], e.Part.Len()-t.parts[i].Len()
	if t.lost.Len() == 0 {
		t.lost = old
	}
	t.lost = Span{min(t.lost.Start, old.Start), max(t.lost.End, old.End) + grown}
	t.shift += grown
	t.parts[i].End += grown
	for k := i + 1; k < len(t.parts); k++ {
		t.parts[k].Start += grown
		t.parts[k].End += grown
	}
}

// arrived returns where a span of the answer's text is in the text as it arrived. It is false where it is in neither.
func (t *liveText) arrived(s Span) (Span, bool) {
	switch {
	case s.Start < 0 || s.End < s.Start:
		return Span{}, false
	case t.shift == 0 && t.lost == Span{} || s.End <= t.lost.Start:
		return s, true
	case s.Start >= t.lost.End:
		return Span{s.Start - t.shift, s.End - t.shift}, true
	default:
		return Span{}, false
	}
}

// breaks reports whether the text to come belongs to another message.
func (t *liveText) breaks() bool {
	if !t.filled {
		t.section = t.message
	}
	return t.filled && t.section != t.message
}

// begin begins a message.
func (t *liveText) begin() { t.section, t.filled = t.message, false }

// add appends text.
func (t *liveText) add(s string) {
	t.known = len(t.buf)
	t.buf = append(t.buf, s...)
	t.filled = true
	if len(t.parts) == 0 {
		t.parts = append(t.parts, Span{})
	}
	t.parts[len(t.parts)-1].End += len(s)
}

// drop forgets the beginning of the block, which was written: what follows is a block of its own, behind marks that are
// lead long.
func (t *liveText) drop(n, lead int) {
	t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	t.from += n
	t.lead = lead
	t.written = max(0, t.written-n)
	t.known = max(0, t.known-n)
	t.scan, t.enough = blockScan{parser: t.scan.parser}, 0
}

// isGone reports whether what ends at an offset of the text as it arrived ends in blocks that are written.
func (t *liveText) isGone(end int) bool { return t.from > 0 && end <= t.from+t.lead }

// back returns the last rune boundary up to at.
func (t *liveText) back(at int) int {
	for at > t.written && at < len(t.buf) && !utf8.RuneStart(t.buf[at]) {
		at--
	}
	return max(at, t.written)
}

// lastWord returns where the last word begins, with the space before and all that is no word behind: a citation of it
// may come next, or of the words before it.
func (t *liveText) lastWord() int {
	const long = 24 // bytes of it; in scripts without spaces a word is as long as the sentence
	end := t.wordsEnd(len(t.buf))
	at := end
	for at > t.written && !isSpaceByte(t.buf[at-1]) {
		if at--; end-at > long {
			return t.back(at)
		}
	}
	for at > t.written && isSpaceByte(t.buf[at-1]) {
		at--
	}
	return at
}

// wordsEnd returns where the last word before at ends: before white space, punctuation, and the marks of a list item.
func (t *liveText) wordsEnd(at int) int {
	from := at
	for at > t.written && t.buf[at-1] < 0x80 && !isASCIIAlnum(rune(t.buf[at-1])) {
		at--
	}
	digits := at
	for digits > t.written && '0' <= t.buf[digits-1] && t.buf[digits-1] <= '9' {
		digits--
	}
	mark := at < from && (t.buf[at] == '.' || t.buf[at] == ')') || at == len(t.buf)
	if mark && digits < at && (digits == 0 || isSpaceByte(t.buf[digits-1])) {
		return t.wordsEnd(digits)
	}
	return at
}

// blockScan finds where a block of markdown ends that can be read without the rest: before a line that stands at the
// left edge behind a blank line, a list item or a code block. It finds not all of them, but only true ones: what looks
// like one is held against the parser.
type blockScan struct {
	at     int    // the start of the first line not read yet
	seen   int    // up to where that has no end
	fence  string // the run that opened the code which at stands in, as it seems
	closer string // what closes the HTML that at stands in, as it seems
	closed bool   // the line before closed code
	whole  bool   // math may reach over list items: it began since the last blank line
	filled bool   // there was a line that is not blank
	sure   int    // where the parser last said yes
	denied int    // where it last said no
	parser parser.Parser
}

// next returns the end of the block that buf begins with, and the length of the marks that the next one begins with. It
// is false while there is no end.
func (s *blockScan) next(buf []byte) (end, lead int, ok bool) {
	for s.at < len(buf) {
		if s.filled && s.begins(buf) {
			lead, known := leadLen(buf[s.at:])
			if known && s.asks(buf[:min(len(buf), s.at+lead+maxStart)]) {
				return s.at, lead, true
			}
		}
		n := bytes.IndexByte(buf[max(s.at, s.seen):], '\n')
		if n < 0 {
			s.seen = len(buf)
			break
		}
		n += max(s.at, s.seen)
		s.line(string(buf[s.at:n]))
		s.at = n + 1
	}
	return 0, 0, false
}

// maxStart is how much of a block's content the parser gets to see to tell whether it begins there, in bytes.
const maxStart = 16

// asks reports whether the parser, too, begins a block of text with the line at s.at, or an item of a list at the left
// edge.
func (s *blockScan) asks(text []byte) bool {
	if s.sure == s.at {
		return true
	}
	if s.parser == nil {
		s.parser = parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithParagraphTransformers(util.Prioritized(parser.LinkReferenceParagraphTransformer, 100)),
		)
	}
	doc := s.parser.Parse(gtext.NewReader(slices.Clip(text))) // it appends to what it reads
	for n := doc.LastChild(); n != nil; n = n.PreviousSibling() {
		last := n
		if n.Kind() == ast.KindList {
			last = n.LastChild()
		}
		if n.Pos() == s.at || last != nil && last.Pos() == s.at {
			s.sure = s.at
			return true
		}
	}
	s.denied = s.at
	return false
}

// begins reports whether a block seems to begin at s.at, and it is worth asking the parser.
func (s *blockScan) begins(buf []byte) bool {
	line := buf[s.at:]
	if isSpaceByte(line[0]) || s.fence != "" || s.closer != "" || s.at < 2*s.denied {
		return false
	}
	before := buf[:s.at]
	if s.closed || bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\r\n\r\n")) {
		return true
	}
	return !s.whole && itemMark(line) != ""
}

// leadLen returns the length of what the text begins with that is no content: the marks of headings, quotes, list
// items, tasks and cells, rules, line breaks. It is false while that is open.
func leadLen(text []byte) (int, bool) {
	const most = 512 // bytes of such
	at := 0
	for at < min(len(text), most) {
		if rule := ruleLen(text[at:]); rule > 0 {
			at += rule
			continue
		}
		if strings.IndexByte(" \t\r\n>|#", text[at]) >= 0 {
			at++
			continue
		}
		n := markLength(text[at:])
		if n <= 0 {
			return at, n == 0
		}
		at += n
	}
	return 0, len(text) > most
}

// ruleLen returns the length of the line that text begins with if it is a rule, or may become one.
func ruleLen(text []byte) int {
	const most = 512 // bytes of it
	line, _, whole := bytes.Cut(text[:min(len(text), most)], []byte("\n"))
	if strings.IndexByte("-*_", text[0]) < 0 || len(bytes.Trim(line, "-*_ \t\r")) > 0 || whole && len(line) < 3 {
		return 0
	}
	return len(line)
}

// markLength returns the length of the mark of a list item or task at the start of text; 0 where there is none, -1
// where that is open.
func markLength(text []byte) int {
	n := 0
	for n < len(text) && n < 10 && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	switch {
	case n == len(text):
		return -1
	case n > 0 && (n == 10 || text[n] != '.' && text[n] != ')'):
		return 0
	case n == 0 && text[0] == '[' && len(text) < 3:
		return -1
	case n == 0 && text[0] == '[' && text[2] == ']' && strings.IndexByte(" xX", text[1]) >= 0:
		n = 2
	case n == 0 && strings.IndexByte("-*+", text[0]) < 0:
		return 0
	}
	switch {
	case n+1 == len(text):
		return -1
	case text[n+1] != ' ':
		return 0
	default:
		return n + 1
	}
}

// itemMark returns the mark of the list item that line begins with, if words follow it: -, 1.
func itemMark(line []byte) string {
	n := 0
	for n < len(line) && n < 10 && '0' <= line[n] && line[n] <= '9' {
		n++
	}
	switch {
	case n+2 >= len(line), n == 10:
		return ""
	case n == 0 && strings.IndexByte("-*+", line[0]) < 0, n > 0 && line[n] != '.' && line[n] != ')':
		return ""
	case line[n+1] != ' ' || isSpaceByte(line[n+2]):
		return ""
	}
	return string(line[:n+1])
}

// line reads a line that is complete.
func (s *blockScan) line(line string) {
	content := strings.TrimLeft(line, " \t>")
	s.closed = false
	if strings.TrimSpace(content) == "" {
		s.whole = s.whole && strings.TrimSuffix(line, "\r") != ""
		return
	}
	s.filled = true
	run := fenceRun(content)
	switch {
	case s.fence != "":
		if strings.HasPrefix(run, s.fence) && strings.TrimSpace(content[len(run):]) == "" {
			s.fence, s.closed = "", true
		}
	case s.closer != "":
		if strings.Contains(strings.ToLower(content), s.closer) {
			s.closer = ""
		}
	case len(run) >= 3 && (run[0] != '`' || !strings.Contains(content[len(run):], "`")):
		s.fence = run
	case content[0] == '<':
		s.closer = htmlCloser(strings.ToLower(content))
	}
	s.whole = s.whole || strings.Contains(content, "$$") || strings.Contains(content, `\[`) ||
		strings.Contains(content, `\(`)
}

// htmlCloser returns what a line has to hold that ends the HTML block which begins with this one; empty where a blank
// line does, or this one itself.
func htmlCloser(line string) string {
	for _, tag := range [...]struct{ open, shut string }{
		{"<!--", "-->"},
		{"<?", "?>"},
		{"<![cdata[", "]]>"},
		{"<!", ">"},
		{"<pre", "</pre>"},
		{"<script", "</script>"},
		{"<style", "</style>"},
		{"<textarea", "</textarea>"},
	} {
		if rest, ok := strings.CutPrefix(line, tag.open); ok {
			if strings.Contains(rest, tag.shut) {
				return ""
			}
			return tag.shut
		}
	}
	return ""
}
