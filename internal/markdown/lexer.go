package markdown

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a half-open range of bytes of a text.
type Span struct{ Start, End int }

// How far constructs are followed, in bytes. What is longer is none.
const (
	maxCode    = 4096
	maxLink    = 2048 // the words of a link, its destination, an address; each
	maxMath    = 4096
	maxInline  = 512 // math between single dollar signs
	maxNesting = 16  // brackets within brackets
	maxBracket = 40  // what is between two brackets that make no link
	maxLine    = 1024
)

// The functions below return the length of the construct that s begins with, and 0 where it begins with none. They are
// not certain where s is too short to tell; last says that no more of it will come. The result is then 0.

// Code reads a code span.
func Code(s string, last bool) (n int, certain bool) {
	run := Run(s)
	if run == len(s) && !last {
		return 0, false
	}
	rest, ended := paragraph(s[run:], maxCode, last)
	for at := 0; ; {
		i := strings.IndexByte(rest[at:], '`')
		if i < 0 {
			return 0, ended
		}
		at += i
		closing := Run(rest[at:])
		if at+closing == len(rest) && !ended {
			return 0, false
		}
		at += closing
		if closing == run {
			return run + at, true
		}
	}
}

// Run returns how many bytes like the first one s begins with.
func Run(s string) int {
	if s == "" {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}

// paragraph returns what of s is looked at, and whether more of s would change nothing.
func paragraph(s string, most int, last bool) (window string, ended bool) {
	window = s[:min(len(s), most)]
	for _, blank := range [...]string{"\n\n", "\n\r\n"} {
		if n := strings.Index(window, blank); n >= 0 {
			window, last = window[:n], true
		}
	}
	return window, last || len(s) > most
}

// Link reads a link or an image from its bracket on: [words](destination "title"). One whose destination does not end,
// because the text was cut perhaps, is its words only.
func Link(s string, last bool) (n int, certain bool) {
	words, certain := Brackets(s, last)
	switch {
	case words == 0:
		return 0, certain
	case words == len(s):
		return 0, last
	case s[words] != '(':
		return 0, true
	}
	dest, certain := Brackets(s[words:], last)
	switch {
	case dest == 0 && certain:
		return words, true
	case dest == 0 || !isDestination(s[words+1:words+dest-1]):
		return 0, certain
	}
	return words + dest, true
}

// Brackets reads s up to the bracket or parenthesis that closes the one it begins with.
func Brackets(s string, last bool) (n int, certain bool) {
	if s == "" {
		return 0, last
	}
	opening, closing, depth := s[0], byte(']'), 0
	if opening == '(' {
		closing = ')'
	}
	for i := 0; i < min(len(s), maxLink); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n':
			if strings.HasPrefix(s[i+1:], "\n") {
				return 0, true
			}
		case opening:
			if depth++; depth > maxNesting {
				return 0, true
			}
		case closing:
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, last || len(s) > maxLink
}

// isDestination reports whether s may stand between a link's parentheses: an address, and perhaps a title.
func isDestination(s string) bool {
	s = strings.TrimSpace(s)
	n := strings.IndexAny(s, " \t\n")
	return n < 0 || s[0] == '<' || strings.IndexByte(`"'(`, strings.TrimSpace(s[n:])[0]) >= 0
}

// autolink reads an address in angle brackets.
func autolink(s string, last bool) (n int, certain bool) {
	const longestScheme = 32
	colon := 1
	for colon < len(s) && colon <= longestScheme+1 && (isAlnum(s[colon]) || strings.IndexByte("+-.", s[colon]) >= 0) {
		colon++
	}
	if colon == len(s) {
		return 0, last
	}
	if colon < 3 || s[colon] != ':' {
		return 0, true
	}
	window, ended := paragraph(s, maxLink, last)
	n = strings.IndexAny(window[1:], "<> \t\n") + 1
	if n > 0 && window[n] == '>' {
		return n + 1, true
	}
	return 0, n > 0 || ended
}

// address reads what follows the scheme of an address in the text: "://" and on. Brackets belong to it behind the host,
// but not where they follow the end of a sentence.
func address(s string, last bool) (n int, certain bool) {
	const begin = "://"
	if !strings.HasPrefix(s, begin) {
		return 0, last || !strings.HasPrefix(begin, s)
	}
	host, depth := true, 0
	for i := len(begin); i < min(len(s), maxLink); i++ {
		switch c := s[i]; {
		case c <= ' ', c >= 0x7F, strings.IndexByte("<>\"`|*\\", c) >= 0,
			c == '[' && (host || strings.IndexByte(".,;:!?)", s[i-1]) >= 0):
			return i, true
		case c == '/', c == '?', c == '#':
			host = false
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 { // the parentheses that the address stands in
				return i, true
			}
		}
	}
	if certain = last || len(s) >= maxLink; !certain {
		return 0, false
	}
	return min(len(s), maxLink), true
}

// math reads a formula: \(…\), \[…\], $$…$$ or $…$. Between single dollar signs it is one only by pandoc's rule, so
// that prices are none: no space inside next to them, no digit after, one line.
func math(s string, last bool) (n int, certain bool) {
	if len(s) < 2 {
		return 0, last
	}
	var closer string
	switch s[:2] {
	case `\(`:
		closer = `\)`
	case `\[`:
		closer = `\]`
	case "$$":
		closer = "$$"
	default:
		if s[0] != '$' || IsSpace(s[1]) {
			return 0, true
		}
		line := s[:min(len(s), maxInline)]
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '\n':
				return 0, true
			case '$':
				if i+1 == len(s) && !last {
					return 0, false
				}
				if IsSpace(s[i-1]) || i+1 < len(s) && '0' <= s[i+1] && s[i+1] <= '9' {
					return 0, true
				}
				return i + 1, true
			}
		}
		return 0, last || len(s) > maxInline
	}
	window, ended := paragraph(s, maxMath, last)
	if i := strings.Index(window[2:], closer); i > 0 {
		return 2 + i + len(closer), true
	}
	return 0, ended
}

// Lexer finds words in brackets that make no link, and stand in no code, link, address or formula. It reads a text
// once, as it grows, and stops before whatever the next bytes may still change. The zero value reads from the
// beginning.
type Lexer struct {
	At    int // how far the text was read
	fence Fence
}

// Next returns the next such words, brackets included; the ones after it may begin inside. It is false at the end of
// what can be read for now. Text is the whole text so far, and last says that it is complete.
func (l *Lexer) Next(text string, last bool) (Span, bool) {
	for l.skipCode(text, last) {
		n := strings.IndexAny(text[l.At:], "`\\[\n<:$")
		if n < 0 {
			l.At = len(text)
			break
		}
		l.At += n
		var certain bool
		rest, step := text[l.At:], 1
		switch rest[0] {
		case '\n':
			l.At++
			continue
		case '`':
			n, certain = Code(rest, last)
			step = Run(rest)
		case '<':
			n, certain = autolink(rest, last)
		case ':':
			n, certain = address(rest, last)
		case '[':
			if n, certain = Link(rest, last); certain && n == 0 {
				if n, certain = bracket(rest, last); certain && n > 0 {
					l.At++
					return Span{l.At - 1, l.At - 1 + n}, true
				}
			}
		default: // \ and $
			n, certain = math(rest, last)
			if rest[0] == '\\' || strings.HasPrefix(rest, "$$") {
				step = min(2, len(rest)) // an escape, or signs that open nothing
			}
		}
		if !certain {
			return Span{}, false
		}
		l.At += cmp.Or(n, step)
	}
	return Span{}, false
}

// bracket reads brackets without others inside.
func bracket(s string, last bool) (n int, certain bool) {
	end := strings.IndexAny(s[1:], "[]\n")
	switch {
	case end < 0 || end > maxBracket:
		return 0, last || len(s) > maxBracket
	case s[1+end] != ']':
		return 0, true
	}
	return end + 2, true
}

// skipCode moves past code blocks and reports whether there is text to read after them. A long line is not waited for:
// its beginning tells.
func (l *Lexer) skipCode(text string, last bool) bool {
	for l.At < len(text) {
		rest := text[l.At:]
		if l.At > 0 && text[l.At-1] != '\n' {
			if !l.fence.Open() {
				return true
			}
			l.At += lineLen(rest) // what is left of a long line in a code block
			continue
		}
		line := rest[:min(len(rest), lineLen(rest), maxLine)]
		whole := last || len(line) == maxLine || strings.HasSuffix(line, "\n")
		run := fenceRun(line)
		mayOpen := len(run) >= 3 || strings.TrimLeft(line, " \t>") == run
		if !whole && (l.fence.Open() || mayOpen) {
			return false
		}
		if !l.fence.Line(line) {
			return true
		}
		l.At += len(line)
	}
	return false
}

// lineLen returns the length of the line that s begins with, its end included.
func lineLen(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n + 1
	}
	return len(s)
}

// Fence follows fenced code over the lines of a text. The zero value stands outside of code.
type Fence struct{ run string }

// Open reports whether the next line stands in code, or closes it.
func (f *Fence) Open() bool { return f.run != "" }

// Run returns the signs that opened the code, which would also close it; empty outside of code.
func (f *Fence) Run() string { return f.run }

// Line reads the next line and reports whether it belongs to code, fences included. It may stand in quotes and lists.
func (f *Fence) Line(line string) bool {
	run := fenceRun(line)
	info := line[strings.Index(line, run)+len(run):]
	switch {
	case f.Open():
		if strings.HasPrefix(run, f.run) && strings.TrimSpace(info) == "" {
			f.run = ""
		}
		return true
	case len(run) >= 3 && (run[0] != '`' || !strings.Contains(info, "`")):
		f.run = run
		return true
	}
	return false
}

// fenceRun returns the backquotes or tildes that a line begins with, behind indentation and quote marks.
func fenceRun(line string) string {
	line = strings.TrimLeft(line, " \t>")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	return line[:Run(line)]
}

// ItemMark returns the length of the mark of a list item that s begins with: -, *, + or a number of at most nine digits
// with a full stop or a parenthesis, which white space or the end of s follows. It is 0 where there is none.
func ItemMark(s string) int {
	n := digits(s)
	switch {
	case n == len(s), n > 9, n == 0 && strings.IndexByte("-*+", s[0]) < 0, n > 0 && s[n] != '.' && s[n] != ')':
		return 0
	case n+1 == len(s) || IsSpace(s[n+1]):
		return n + 1
	}
	return 0
}

// digits returns how many digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// HeadingLevel returns the level of the heading that begins with the # signs of line; 0: it is none.
func HeadingLevel(line string) int {
	n := len(line) - len(strings.TrimLeft(line, "#"))
	if n > 6 || len(line) > n && !IsSpace(line[n]) {
		return 0
	}
	return n
}

// IsSpace reports whether c is ASCII white space.
func IsSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// isPunct reports whether a backslash before c escapes it.
func isPunct(c byte) bool { return '!' <= c && c <= '~' && !isAlnum(c) }

// IsDelimiter reports whether c delimits emphasis or strikethrough.
func IsDelimiter(c byte) bool { return c == '*' || c == '_' || c == '~' }

// isAlnum reports whether c is an ASCII letter or digit.
func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// EndsInEscape reports whether s ends in an odd number of backslashes: the last one then escapes what follows.
func EndsInEscape(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// EntityEnd returns how many bytes of the entity that at stands inside of come behind at; 0: it stands in none.
func EntityEnd(s string, at int) int {
	const longest = 33 // &CounterClockwiseContourIntegral;
	before := s[max(0, at-longest):at]
	amp := strings.LastIndexByte(before, '&')
	end := strings.IndexByte(s[at:min(len(s), at+longest)], ';')
	if amp < 0 || end < 0 {
		return 0
	}
	name := before[amp+1:] + s[at:at+end]
	other := func(r rune) bool { return r >= 0x80 || !isAlnum(byte(r)) && r != '#' }
	if name == "" || strings.ContainsFunc(name, other) {
		return 0
	}
	return end + 1
}

// SafeURL returns raw as an address that may be linked and that can stand in a markdown destination, an HTML attribute
// and a LaTeX argument without ending it; empty if it is none. Only http, https and mailto addresses are.
func SafeURL(raw string) string {
	raw = strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	scheme, rest, _ := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "http", "https":
		if !strings.HasPrefix(rest, "//") || len(rest) == 2 {
			return ""
		}
	case "mailto":
		if rest == "" {
			return ""
		}
	default:
		return ""
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i, r := range raw {
		_, n := utf8.DecodeRuneInString(raw[i:])
		// What could end the place an address stands in, or change how it is shown, is escaped. Readers of addresses
		// stop after fullwidth punctuation.
		odd := r <= ' ' || strings.ContainsRune("()<>\"'`\\{}|^*~$\x7f", r)
		if r >= utf8.RuneSelf {
			odd = r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r) ||
				0x3000 <= r && r < 0x3040 || 0xFF00 <= r && r < 0xFFEF && unicode.IsPunct(r)
		}
		if !odd {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(raw[i : i+n]) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
