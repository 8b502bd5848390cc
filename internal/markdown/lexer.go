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

// The maximum lengths of constructs in bytes. Longer ones are not recognised.
const (
	maxCode    = 4096
	maxLink    = 2048 // the words of a link, its destination, a URL; each
	maxMath    = 4096
	maxInline  = 512 // math between single dollar signs
	maxNesting = 16  // brackets within brackets
	maxBracket = 160 // the contents of brackets that are not a link
	maxLine    = 1024
)

// The functions below return the length of the construct at the start of s, or 0 if there is none. If s is too short to
// decide, they return 0 and false; last means that s is complete.

// Code parses a code span.
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

// Run returns the length of the run of equal bytes at the start of s.
func Run(s string) int {
	if s == "" {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}

// paragraph returns the part of s to examine, and whether more of s would make no difference.
func paragraph(s string, most int, last bool) (window string, ended bool) {
	window = s[:min(len(s), most)]
	for _, blank := range [...]string{"\n\n", "\n\r\n"} {
		if n := strings.Index(window, blank); n >= 0 {
			window, last = window[:n], true
		}
	}
	return window, last || len(s) > most
}

// Link parses a link or an image from its bracket on: [words](destination "title"). If the destination does not end,
// perhaps because the text is truncated, only the words count.
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

// Brackets parses s up to the bracket or parenthesis that closes the one at its start.
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

// isDestination reports whether s is valid between a link's parentheses: a URL, and perhaps a title.
func isDestination(s string) bool {
	s = strings.TrimSpace(s)
	n := strings.IndexAny(s, " \t\n")
	return n < 0 || s[0] == '<' || strings.IndexByte(`"'(`, strings.TrimSpace(s[n:])[0]) >= 0
}

// autolink parses a URL in angle brackets.
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

// address parses what follows the scheme of a URL in the text: "://" and so on. Brackets belong to it after the host,
// unless they follow the end of a sentence.
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
			if depth--; depth < 0 { // closes a parenthesis around the URL
				return i, true
			}
		}
	}
	if certain = last || len(s) >= maxLink; !certain {
		return 0, false
	}
	return min(len(s), maxLink), true
}

// math parses a formula: \(…\), \[…\], $$…$$ or $…$. Single dollar signs follow pandoc's rule, so that prices are not
// formulas: no space inside next to them, no digit after, one line.
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

// Lexer finds words in brackets that are not a link, nor in code, a link, a URL or a formula. It reads a text once, as
// it grows, and stops before anything that the next bytes may still change. The zero value reads from the beginning.
type Lexer struct {
	At int // offset up to which the text has been read
	// Wide also finds words in 【】, ［］, parentheses and <sup>, and numbers in superscript digits; Links also finds
	// links. What was found is told by its first character, and a link by its last.
	Wide, Links bool
	fence       Fence
}

// Next returns the next such words, including the brackets; later ones may begin inside. It returns false at the end of
// what can be read for now. text is the whole text so far, and last means that it is complete.
func (l *Lexer) Next(text string, last bool) (Span, bool) {
	stops := &lexerStops
	if l.Wide {
		stops = &wideStops
	}
	for l.skipCode(text, last) {
		for l.At < len(text) && !stops[text[l.At]] {
			l.At++
		}
		if l.At == len(text) {
			break
		}
		var n int
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
			n, certain = opaqueElement(rest, last)
			if l.Wide && certain && n == 0 {
				if n, certain = Raised(rest, last); certain && n > 0 {
					l.At++
					return Span{l.At - 1, l.At - 1 + n}, true
				}
			}
		case ':':
			n, certain = address(rest, last)
		case '[':
			n, certain = Link(rest, last)
			switch {
			case certain && n == 0:
				if n, certain = bracket(rest, last); certain && n > 0 {
					l.At++
					return Span{l.At - 1, l.At - 1 + n}, true
				}
			case certain && l.Links && rest[n-1] == ')':
				l.At += n
				return Span{l.At - n, l.At}, true
			}
		case '\\', '$':
			n, certain = math(rest, last)
			step = mathStep(rest)
		default:
			if n, certain = Wide(rest, last); certain && n > 0 {
				from := l.At
				l.At += wideStart(rest, n)
				return Span{from, from + n}, true
			}
		}
		if !certain {
			return Span{}, false
		}
		l.At += cmp.Or(n, step)
	}
	return Span{}, false
}

// opaqueElement parses what begins with < and is read as one: code, or a URL in angle brackets.
func opaqueElement(s string, last bool) (n int, certain bool) {
	if n, certain = codeElement(s, last); certain && n == 0 {
		n, certain = autolink(s, last)
	}
	return n, certain
}

// mathStep returns how much of a \ or $ that begins no formula is read: two bytes of an escape, or of delimiters that
// open nothing.
func mathStep(s string) int {
	if s[0] == '\\' || strings.HasPrefix(s, "$$") {
		return min(2, len(s))
	}
	return 1
}

// lexerStops are the bytes at which a [Lexer] stops, wideStops those at which a wide one does: the first bytes of wide
// brackets and superscript digits, too.
var lexerStops, wideStops = stops("`\\[\n<:$"), stops("`\\[\n<:$(\xC2\xE2\xE3\xEF")

func stops(bytes string) (table [256]bool) {
	for i := range len(bytes) {
		table[bytes[i]] = true
	}
	return table
}

// wideStart returns how much of what [Wide] parsed, n bytes, is read with it: all digits, or the opening bracket,
// because more words may begin inside.
func wideStart(s string, n int) int {
	if s[0] == 0xC2 || s[0] == 0xE2 {
		return n
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}

// Wide parses parentheses, wide brackets, or superscript digits.
func Wide(s string, last bool) (n int, certain bool) {
	for _, pair := range [...][2]string{{"(", ")"}, {"【", "】"}, {"［", "］"}, {"〔", "〕"}} {
		if strings.HasPrefix(s, pair[0]) {
			return bracketed(s, pair[0], pair[1], last)
		}
		if len(s) < len(pair[0]) && strings.HasPrefix(pair[0], s) {
			return 0, last
		}
	}
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if SuperscriptDigit(r) < 0 {
			whole := utf8.FullRuneInString(s[n:])
			return n, last || whole
		}
		n += size
	}
	return n, last
}

// SuperscriptDigit returns the value of a superscript digit, or -1.
func SuperscriptDigit(r rune) int {
	switch {
	case r == '¹':
		return 1
	case r == '²' || r == '³':
		return int(r-'²') + 2
	case r == '⁰' || '⁴' <= r && r <= '⁹':
		return int(r - '⁰')
	}
	return -1
}

// maxRaised is the maximum length of a <sup> element in bytes.
const maxRaised = 256

// Raised parses a <sup> element of one line.
func Raised(s string, last bool) (n int, certain bool) {
	const name = "<sup"
	window, ended := s[:min(len(s), maxRaised)], last || len(s) >= maxRaised
	if m := min(len(window), len(name)); !strings.EqualFold(window[:m], name[:m]) {
		return 0, true
	} else if len(window) == m {
		return 0, ended
	}
	if window[len(name)] != '>' && window[len(name)] != ' ' {
		return 0, true
	}
	if line, _, more := strings.Cut(window, "\n"); more {
		window, ended = line, true
	}
	const closing = "</sup>"
	for i := len(name); i+len(closing) <= len(window); i++ {
		if window[i] == '<' && strings.EqualFold(window[i:i+len(closing)], closing) {
			return i + len(closing), true
		}
	}
	return 0, ended
}

// bracket parses brackets without nested ones.
func bracket(s string, last bool) (n int, certain bool) { return bracketed(s, "[", "]", last) }

// bracketed is bracket for any pair.
func bracketed(s, opening, closing string, last bool) (n int, certain bool) {
	begin := len(opening)
	end := strings.IndexAny(s[begin:min(len(s), begin+maxBracket)], opening+closing+"\n")
	switch {
	case end < 0:
		return 0, last || len(s) >= begin+maxBracket
	case strings.HasPrefix(s[begin+end:], closing):
		return begin + end + len(closing), true
	}
	return 0, true
}

// codeElement parses an HTML element that contains code: <code>x[1]</code>.
func codeElement(s string, last bool) (n int, certain bool) {
	const longest = 64 // bytes of an opening tag
	for _, name := range [...]string{"code", "pre", "kbd", "samp", "tt", "var"} {
		if m := min(len(s)-1, len(name)); !strings.EqualFold(s[1:1+m], name[:m]) {
			continue
		} else if m < len(name) || len(s) == 1+m {
			return 0, last
		}
		tag, ended := s[:min(len(s), longest)], last || len(s) >= longest
		if !strings.Contains(tag, ">") || s[1+len(name)] != '>' && s[1+len(name)] != ' ' {
			return 0, ended || s[1+len(name)] != '>' && s[1+len(name)] != ' '
		}
		window, ended := s[:min(len(s), maxCode)], last || len(s) >= maxCode
		if i := strings.Index(window, "</"+s[1:1+len(name)]+">"); i > 0 {
			return i + len("</>") + len(name), true
		}
		return 0, ended
	}
	return 0, true
}

// skipCode moves past code blocks and reports whether there is text to read after them. For a long line its beginning
// is enough.
func (l *Lexer) skipCode(text string, last bool) bool {
	for l.At < len(text) {
		rest := text[l.At:]
		if l.At > 0 && text[l.At-1] != '\n' {
			if !l.fence.Open() {
				return true
			}
			l.At += lineLen(rest) // the rest of a long line in a code block
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

// lineLen returns the length of the first line of s, including its line break.
func lineLen(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n + 1
	}
	return len(s)
}

// Fence tracks fenced code across the lines of a text. The zero value is outside code.
type Fence struct{ run string }

// Open reports whether the next line is in code, or closes it.
func (f *Fence) Open() bool { return f.run != "" }

// Run returns the delimiter that opened the code and would close it, or "" outside code.
func (f *Fence) Run() string { return f.run }

// Line reads the next line and reports whether it belongs to code, including fences. The line may be in quotes and
// lists.
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

// fenceRun returns the backquotes or tildes at the start of a line, after indentation and quote marks.
func fenceRun(line string) string {
	line = strings.TrimLeft(line, " \t>")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	return line[:Run(line)]
}

// ItemMark returns the length of the list item mark at the start of s, or 0 if there is none: -, *, + or a number of at
// most nine digits with a full stop or a parenthesis, followed by white space or the end of s.
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

// digits returns the number of digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// HeadingLevel returns the level of the heading in line, which begins with # signs, or 0 if it is not one.
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

// EntityEnd returns how many bytes of the entity that contains at follow at, or 0 if there is no entity.
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

// SafeURL returns raw as a URL that is safe to link to and cannot break out of a markdown destination, an HTML
// attribute or a LaTeX argument. It returns "" unless raw is an http, https or mailto URL.
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
		// Escape what could break out of the context of a URL, or change how it is displayed. URL detectors stop at
		// fullwidth punctuation.
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
