package markdown

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Blocks finds the end of a block in a growing text: before an unindented line that follows a blank line or a code
// block, or is a list item. It does not find all ends, but those it finds are correct: it verifies candidates with
// goldmark's parser. The zero value is at the beginning of a block.
type Blocks struct {
	at        int    // start of the first line not read yet
	seen      int    // offset up to which that line has no end
	fence     Fence  // fenced code that seems to contain at
	closer    string // what closes the HTML that seems to contain at
	closed    bool   // the previous line closed code
	openMath  bool   // math may extend over list items: it began after the last blank line
	filled    bool   // there was a non-blank line
	confirmed int    // where the parser last confirmed
	denied    int    // where it last denied
	parser    parser.Parser
}

// Next returns the end of the block at the start of buf, and the length of the marks at the start of the next block. It
// returns false while there is no end.
func (s *Blocks) Next(buf []byte) (end, lead int, ok bool) {
	for s.at < len(buf) {
		if s.filled && s.mayBegin(buf) {
			lead, known := leadLen(buf[s.at:])
			if known && s.begins(buf[:min(len(buf), s.at+lead+maxStart)]) {
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

// Cut drops the block that was found, and everything before it.
func (s *Blocks) Cut() { *s = Blocks{parser: s.parser} }

// FirstLine reports whether no line of the block is complete yet.
func (s *Blocks) FirstLine() bool { return s.at == 0 }

// InCode reports whether the last line seems to be in fenced code.
func (s *Blocks) InCode() bool { return s.fence.Open() }

// maxStart is how many bytes of a block's content the parser gets to decide whether a block begins there.
const maxStart = 16

// begins reports whether the parser confirms that a block, or an item of an unindented list, begins at s.at.
func (s *Blocks) begins(txt []byte) bool {
	if s.confirmed == s.at {
		return true
	}
	if s.parser == nil {
		s.parser = parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithParagraphTransformers(util.Prioritized(definitions{}, 100)),
		)
	}
	doc := s.parser.Parse(text.NewReader(shallow(string(txt))))
	for n := doc.LastChild(); n != nil; n = n.PreviousSibling() {
		last := n
		if n.Kind() == ast.KindList {
			last = n.LastChild()
		}
		if n.Pos() == s.at || last != nil && last.Pos() == s.at {
			s.confirmed = s.at
			return true
		}
	}
	s.denied = s.at
	return false
}

// mayBegin reports whether a block seems to begin at s.at, so that it is worth asking the parser.
func (s *Blocks) mayBegin(buf []byte) bool {
	line, before := buf[s.at:], buf[:s.at]
	if IsSpace(line[0]) || s.fence.Open() || s.closer != "" || s.at < 2*s.denied {
		return false
	}
	if s.closed || bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\r\n\r\n")) {
		return true
	}
	n := ItemMark(string(line[:min(len(line), 12)]))
	return !s.openMath && n > 0 && n+1 < len(line) && line[n] == ' ' && !IsSpace(line[n+1])
}

// leadLen returns the length of what precedes the content of txt: marks of headings, quotes, list items, tasks and
// cells, rules and line breaks. It returns false while that is not certain.
func leadLen(txt []byte) (int, bool) {
	const limit = 512 // bytes
	at := 0
	for at < min(len(txt), limit) {
		s := string(txt[at:min(len(txt), at+limit)])
		line, _, whole := strings.Cut(s, "\n")
		if strings.IndexByte("-*_", s[0]) >= 0 && strings.Trim(line, "-*_ \t\r") == "" && (!whole || len(line) >= 3) {
			at += len(line) // a rule, or what may become one
			continue
		}
		if strings.IndexByte(" \t\r\n>|#", s[0]) >= 0 {
			at++
			continue
		}
		n := ItemMark(s)
		if len(s) >= 3 && s[0] == '[' && s[2] == ']' && strings.IndexByte(" xX", s[1]) >= 0 {
			n = 3 // a task
		}
		switch {
		case n > 0 && n == len(s), digits(s) == len(s), s[0] == '[' && len(s) < 3:
			return at, false
		case n == 0 || s[n] != ' ':
			return at, true
		}
		at += n
	}
	return 0, len(txt) > limit
}

// line reads a complete line.
func (s *Blocks) line(line string) {
	content := strings.TrimLeft(line, " \t>")
	s.closed = false
	if strings.TrimSpace(content) == "" {
		s.openMath = s.openMath && strings.TrimSuffix(line, "\r") != ""
		return
	}
	s.filled = true
	lower := strings.ToLower(content)
	switch code := s.fence.Open(); {
	case s.closer != "":
		if strings.Contains(lower, s.closer) {
			s.closer = ""
		}
	case s.fence.Line(line):
		s.closed = code && !s.fence.Open()
	case content[0] == '<':
		for _, tag := range htmlBlocks {
			if rest, ok := strings.CutPrefix(lower, tag.begin); ok {
				if !strings.Contains(rest, tag.end) {
					s.closer = tag.end
				}
				break
			}
		}
	}
	s.openMath = s.openMath || strings.Contains(content, "$$") || strings.Contains(content, `\[`) ||
		strings.Contains(content, `\(`)
}

// htmlBlocks are the beginnings and ends of HTML blocks that may contain blank lines.
var htmlBlocks = [...]struct{ begin, end string }{
	{"<!--", "-->"},
	{"<?", "?>"},
	{"<![cdata[", "]]>"},
	{"<!", ">"},
	{"<pre", "</pre>"},
	{"<script", "</script>"},
	{"<style", "</style>"},
	{"<textarea", "</textarea>"},
}

// OpenBefore reports what is open before at and would contain it if closed after it: a solid, such as code, a link, a
// tag or math, or else a phrase.
func (d *Document) OpenBefore(at int) (solid, phrase bool) {
	brackets := 0
	from := d.contextStart(at)
	k := sort.Search(len(d.Solids), func(i int) bool { return d.Solids[i].Start >= from })
	for i := from; i < at; {
		stop := at // before the next solid
		if k < len(d.Solids) {
			stop = min(stop, d.Solids[k].Start)
		}
		n := strings.IndexAny(d.Text[i:stop], "\\`[]<$*_~")
		if n < 0 {
			if stop < at {
				tag := d.Text[stop:d.Solids[k].End]
				if name, _ := tagName(tag); tag[0] == '<' && noProse[name] && !strings.Contains(tag, "</") {
					return true, false
				}
				stop = d.Solids[k].End
				k++
			}
			i = stop
			continue
		}
		i += n
		opensSolid, opensPhrase, size := d.opener(i, at)
		switch {
		case opensSolid:
			return true, false
		case opensPhrase:
			phrase = true
		case d.Text[i] == '[':
			brackets++
		case d.Text[i] == ']':
			brackets = max(0, brackets-1)
		}
		i += size
	}
	return brackets > 0 || d.mathBefore(at), phrase
}

// opener reports what the delimiter at i may open before at, and the length of the delimiter.
func (d *Document) opener(i, at int) (solid, phrase bool, size int) {
	rest := d.Text[i:]
	next := byte('$')
	if len(rest) > 1 {
		next = rest[1]
	}
	size = 1
	switch rest[0] {
	case '`':
		solid = true
	case '\\':
		size = 2
		solid = i+1 < at && (next == '(' || next == '[')
	case ']':
		solid = len(rest) > 1 && (next == '(' || next == ':')
	case '<':
		solid = len(rest) == 1 || isAlnum(next) || strings.IndexByte("/!?", next) >= 0
	case '$':
		solid = next == '$' || !IsSpace(next) && at-i < maxInline && !strings.Contains(d.Text[i:at], "\n")
	case '*', '_', '~':
		size = Run(rest)
		end := i + size
		_, closed := d.PhraseAround(i + 1) // or it is inside a closed one
		phrase = (end == len(d.Text) || !IsSpace(d.Text[end])) && !closed &&
			(rest[0] != '_' || i == 0 || !isAlnum(d.Text[i-1]))
	}
	return solid, phrase, size
}

// mathBefore reports whether math may be open before at. It ends at a blank line.
func (d *Document) mathBefore(at int) bool {
	for i := max(0, strings.LastIndex(d.Text[:at], "\n\n"), strings.LastIndex(d.Text[:at], "\r\n\r\n")); ; i++ {
		n := strings.IndexAny(d.Text[i:at], `\$`)
		if n < 0 || i+n+1 >= at {
			return false
		}
		i += n
		if s, ok := d.SolidAround(i + 1); ok {
			i = s.End - 1
			continue
		}
		switch d.Text[i : i+2] {
		case `\(`, `\[`, "$$":
			return true
		}
		if d.Text[i] == '\\' {
			i++
		}
	}
}

// contextStart returns where the paragraph, item or row of at begins, or an earlier place.
func (d *Document) contextStart(at int) int {
	for at > 0 {
		start := strings.LastIndexByte(d.Text[:at], '\n') + 1
		line := strings.TrimLeft(d.Text[start:at], " \t>")
		if start == 0 || line != "" && (strings.IndexByte("#|", line[0]) >= 0 || ItemMark(line) == 1) ||
			strings.HasSuffix(d.Text[:start], "\n\n") || strings.HasSuffix(d.Text[:start], "\r\n\r\n") {
			return start
		}
		at = start - 1
	}
	return 0
}

// MayBeRow reports whether the line of at may turn out to be the head of a table, whose cells end before their bars.
// That depends on the next line.
func (d *Document) MayBeRow(at int) bool {
	row, next, _ := strings.Cut(d.Text[strings.LastIndexByte(d.Text[:at], '\n')+1:], "\n")
	if !strings.Contains(row, "|") {
		return false
	}
	if line, ok := d.LineAt(at); ok && strings.Contains(strings.Trim(row, "| \t\r"), "|") &&
		!strings.Contains(d.Text[line.Start:line.End], "|") {
		return false // a cell already
	}
	under, _, done := strings.Cut(next, "\n")
	return next == "" || !done && strings.Trim(under, "|:-> \t\r") == ""
}

// FirstOpen returns where the first delimiter of emphasis, code or a link that is not closed in txt begins, or -1 if
// there is none. txt is in one paragraph and ends after a space, or its last character is not part of a delimiter.
func FirstOpen(txt string) int {
	open := map[string]int{}
	for i := 0; i < len(txt); {
		mark := markAt(txt, i)
		after := i + max(len(mark), 1)
		_, is := open[mark]
		switch {
		case mark == "":
		case mark[0] == '\\':
			after++
		case mark[0] == '`':
			n, _ := Code(txt[i:], true)
			if n == 0 { // there are no other delimiters in code
				open[mark] = i
				after = len(txt)
			}
			after = max(after, i+n)
		case mark == "]" || mark == ")":
			if mark == ")" || after < len(txt) && txt[after] != '(' {
				delete(open, "[")
			}
		case is && mark != "[" && (mark[0] != '_' || !isWordRune(utf8.DecodeRuneInString(txt[after:]))):
			delete(open, mark)
		case !is && !strings.HasPrefix(txt[after:], " ") &&
			(mark[0] != '_' || !isWordRune(utf8.DecodeLastRuneInString(txt[:i]))):
			open[mark] = i // except one before a space, and an underscore within a word
		}
		i = after
	}
	first := -1
	for _, at := range open {
		if first < 0 || at < first {
			first = at
		}
	}
	return first
}

// markAt returns the delimiter at offset i of txt, or "" if there is none.
func markAt(txt string, i int) string {
	switch c := txt[i]; c {
	case '`':
		return txt[i : i+Run(txt[i:])]
	case '*', '_', '~':
		if strings.HasPrefix(txt[i+1:], txt[i:i+1]) {
			return txt[i : i+2]
		}
		if c != '~' {
			return txt[i : i+1]
		}
	case '[', ']', ')', '\\':
		return txt[i : i+1]
	}
	return ""
}

func isWordRune(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
