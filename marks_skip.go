package ibid

import "strings"

// What marks do not stand in. Each function is given a text from the first byte of what it may be, and returns its
// size, 0 where it is none. It is not certain where the text so far does not tell; last says that no more will come.
// All look ahead no further than a bound, so that a hostile text stays cheap, and no further than the paragraph.
const (
	mostInline     = 2048 // bytes of a link's text, its destination, an address
	mostMath       = 4096
	deepestBracket = 16 // brackets within brackets
)

// paragraph returns what of a text is looked at, and whether more text would change nothing.
func paragraph(rest string, most int, last bool) (window string, ended bool) {
	window = rest[:min(len(rest), most)]
	if n := strings.Index(window, "\n\n"); n >= 0 {
		return window[:n], true
	}
	return window, last || len(rest) > most
}

// linkSize reads a link or an image from its bracket on, text and destination. One whose destination does not end,
// because the text was cut perhaps, is its text only.
func linkSize(rest string, last bool) (size int, certain bool) {
	shut, certain := closing(rest, ']', last)
	switch {
	case shut < 0:
		return 0, certain
	case shut+1 == len(rest):
		return 0, last
	case rest[shut+1] != '(':
		return 0, true
	}
	end, certain := closing(rest[shut+1:], ')', last)
	switch {
	case end < 0 && certain:
		return shut + 1, true
	case end < 0 || !isDestination(rest[shut+2:shut+1+end]):
		return 0, certain
	}
	return shut + 1 + end + 1, true
}

// closing returns where the bracket closes that rest begins with; -1: nowhere.
func closing(rest string, closer byte, last bool) (at int, certain bool) {
	depth := 0
	for i := 0; i < min(len(rest), mostInline); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '\n':
			if strings.HasPrefix(rest[i+1:], "\n") {
				return -1, true
			}
		case rest[0]:
			if depth++; depth > deepestBracket {
				return -1, true
			}
		case closer:
			if depth--; depth == 0 {
				return i, true
			}
		}
	}
	return -1, last || len(rest) > mostInline
}

// isDestination reports whether s may stand between a link's parentheses: an address, and perhaps a title.
func isDestination(s string) bool {
	s = strings.TrimSpace(s)
	n := strings.IndexAny(s, " \t\n")
	return n < 0 || s[0] == '<' || strings.IndexByte(`"'(`, strings.TrimSpace(s[n:])[0]) >= 0
}

// autolinkSize reads an address in angle brackets.
func autolinkSize(rest string, last bool) (size int, certain bool) {
	const mostScheme = 32
	colon := 1
	for colon < len(rest) && colon <= mostScheme+1 && isSchemeByte(rest[colon]) {
		colon++
	}
	if colon == len(rest) {
		return 0, last
	}
	if colon < 3 || rest[colon] != ':' {
		return 0, true
	}
	window, ended := paragraph(rest, mostInline, last)
	n := strings.IndexAny(window[1:], "<> \t\n") + 1
	if n > 0 && window[n] == '>' {
		return n + 1, true
	}
	return 0, n > 0 || ended
}

func isSchemeByte(c byte) bool {
	return isASCIIAlpha(c) || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// addressSize reads what follows the scheme of an address in the text: "://" and on. Brackets belong to it behind the
// host, but not where they follow the end of a sentence.
func addressSize(rest string, last bool) (size int, certain bool) {
	const begin = "://"
	if !strings.HasPrefix(rest, begin) {
		return 0, last || !strings.HasPrefix(begin, rest)
	}
	host, depth := true, 0
	for i := len(begin); i < min(len(rest), mostInline); i++ {
		switch c := rest[i]; {
		case c <= ' ', c >= 0x7F, strings.IndexByte("<>\"`|*\\", c) >= 0:
			return i, true
		case c == '[' && (host || strings.IndexByte(".,;:!?)", rest[i-1]) >= 0):
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
	return min(len(rest), mostInline), last || len(rest) >= mostInline
}

// escapeSize reads a backslash with what it escapes, or LaTeX's \(math\) and \[math\].
func escapeSize(rest string, last bool) (size int, certain bool) {
	switch {
	case len(rest) < 2:
		return len(rest), last
	case rest[1] == '(':
		return mathSize(rest, `\)`, last)
	case rest[1] == '[':
		return mathSize(rest, `\]`, last)
	}
	return 2, true
}

// mathSize reads math up to a closer of two bytes. Without one it is the two bytes that rest begins with.
func mathSize(rest, closer string, last bool) (size int, certain bool) {
	window, ended := paragraph(rest, mostMath, last)
	if n := strings.Index(window[2:], closer); n >= 0 {
		return 2 + n + len(closer), true
	}
	return 2, ended
}

// dollarSize reads math between dollar signs. Between single ones it is math only by pandoc's rule, so that prices are
// none: no space inside next to them, no digit after, one line.
func dollarSize(rest string, last bool) (size int, certain bool) {
	switch {
	case len(rest) < 2:
		return 0, last
	case rest[1] == '$':
		return mathSize(rest, "$$", last)
	case isSpaceByte(rest[1]):
		return 0, true
	}
	window := rest[:min(len(rest), mathWindow)]
	for i := 1; i < len(window); i++ {
		switch window[i] {
		case '\\':
			i++
		case '\n':
			return 0, true
		case '$':
			if i+1 == len(rest) && !last {
				return 0, false
			}
			if isSpaceByte(rest[i-1]) || i+1 < len(rest) && '0' <= rest[i+1] && rest[i+1] <= '9' {
				return 0, true
			}
			return i + 1, true
		}
	}
	return 0, last || len(rest) > mathWindow
}
