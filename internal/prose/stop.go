package prose

import (
	"strings"
	"unicode"
)

// terminator says what kind of sign may end a sentence.
type terminator uint8

const (
	noTerminator terminator = iota
	period                  // one full stop
	dots                    // an ellipsis
	mark                    // an exclamation or question mark that white space follows
	wide                    // a sign that ends a sentence also without white space: 。 ！ ؟ ।
)

// special marks the bytes at which the search for the end of a sentence stops to look: ASCII signs, and the first byte
// of every rune that may be a terminator.
var special = [256]bool{
	'\n': true, '\f': true, '.': true, '!': true, '?': true, '[': true, '`': true,
	0xD6: true, 0xD8: true, 0xDB: true, 0xDC: true, 0xDF: true, 0xE0: true, 0xE1: true, 0xE2: true, 0xE3: true,
	0xEA: true, 0xEF: true, 0xF0: true,
}

func terminatorOf(r rune) terminator {
	switch r {
	case '.':
		return period
	case '…':
		return dots
	case '!', '?', '‼', '⁇', '⁈', '⁉', '‽':
		return mark
	case '。', '！', '？', '．', '｡', '؟', '۔', '।', '॥':
		return wide
	}
	switch {
	case r < 0x589, '\u0900' <= r && r < '\u0980', '\u2000' <= r && r < '\u2cff', '\u3000' <= r && r < '\ua000':
		return noTerminator // the common scripts, whose terminators are above
	case unicode.Is(unicode.STerm, r):
		return wide
	}
	return noTerminator
}

// terminators returns the end of the run of terminators at p and what it is as a whole.
func terminators(text string, p int) (end int, kind terminator) {
	for {
		r, w := runeAt(text, p)
		t := terminatorOf(r)
		if w == 0 || t == noTerminator {
			return p, kind
		}
		if t == period && kind == period {
			t = dots
		}
		kind = max(kind, t)
		p += w
	}
}

// stopAt decides whether the sign at p ends a sentence. If so, end is the end of the sentence, behind the closing signs
// and citation marks; else it is where to look on.
func stopAt(text string, p int) (end int, ok bool) {
	if text[p] == '.' && p+1 < len(text) && isASCIIWord(text[p+1]) {
		return p + 1, false
	}
	after, kind := terminators(text, p)
	if kind == noTerminator {
		_, w := runeAt(text, p)
		return p + w, false
	}
	end, firm := closers(text, after)
	r, w := runeAt(text, end)
	switch {
	case w == 0:
		return end, true
	case kind == wide:
		return afterMarks(text, end), !continuesWide(text, end, end > after)
	case !isSpace(r):
		return end, firm && opensAnew(r) || endsGlued(text, p, kind, r)
	}
	behind := afterSigns(text, afterMarks(text, end))
	next := openingAt(text, skipSpace(text, behind))
	if !endsBefore(text, p, kind, next) {
		return end, false
	}
	return behind, true
}

// endsBefore reports whether the terminator of the given kind at p ends a sentence, given what comes after white space.
func endsBefore(text string, p int, kind terminator, next opening) bool {
	if next.kind == nothingNext {
		return true
	}
	if next.kind == lowerNext || next.kind == continuesNext || next.kind == digitNext && kind == dots {
		return false
	}
	return kind != period || endsAfter(text, p, next)
}

// continuesWide reports whether the sentence goes on at p, after a terminator that needs no white space.
func continuesWide(text string, p int, quoted bool) bool {
	r, _ := runeAt(text, p)
	switch r {
	case '、', '，', '；', '：', '،', '؛', ',', ';', ':':
		return true
	case 'と': // 「…。」と: what was said goes on with who said it
		return quoted
	}
	return false
}

// opensAnew reports whether r opens a sentence where a closing sign made sure, without white space, that one is over.
func opensAnew(r rune) bool { return unicode.IsUpper(r) || isCaseless(r) }

// endsGlued reports whether the terminator at p ends a sentence though next follows it without white space: between
// ideographs, and where the space after an exclamation or question mark was forgotten. After a full stop that would cut
// names such as http.Handler.
func endsGlued(text string, p int, kind terminator, next rune) bool {
	prev, _ := runeBefore(text, p)
	switch {
	case isCaseless(prev) && isCaseless(next):
		return kind != dots && !inAddress(text, p)
	case unicode.IsLower(prev) && unicode.IsUpper(next):
		return kind == mark && !inAddress(text, p)
	}
	return false
}

// inAddress reports whether p stands in a URL.
func inAddress(text string, p int) bool {
	const longest = 256
	before := text[max(0, p-longest):p]
	for {
		n := strings.Index(before, "://")
		if n < 0 {
			return false
		}
		if before = before[n+len("://"):]; !strings.ContainsAny(before, " \t\n") {
			return true
		}
	}
}

// closers returns the end of the signs directly after a terminator that belong to its sentence: quotes, brackets,
// emphasis, citation marks, emoji. It says whether one of them makes sure that the sentence is over.
func closers(text string, p int) (end int, firm bool) {
	for {
		r, w := runeAt(text, p)
		switch {
		case w == 0:
			return p, firm
		case r == '[' || r == '<' || r == '【':
			end := citeMark(text, p)
			if end == p {
				return p, firm
			}
			p, firm = end, true
		case strings.ContainsRune("*_~`", r) && opensMarkup(text, p, byte(r)):
			return p, firm
		case isCloser(r) || r == '*' || r == '_' || r == '~' || r == '`':
			if next, _ := runeAt(text, p+w); isAmbiguousQuote(r) && isWord(next) {
				return p, firm
			}
			p, firm = p+w, firm || r >= 0x2000
		case isAttached(r):
			p += w
		case isSpace(r) && strings.HasPrefix(text[p+w:], "»"): // French: « Oui. »
			q := p + w + len("»")
			if next, w := runeAt(text, q); w > 0 && !isSpace(next) {
				return p, firm
			}
			p = q
		default:
			return p, firm
		}
	}
}

// opensMarkup reports whether the run of the delimiter at p begins emphasis or code of the next sentence: a word
// follows it and none like it is open.
func opensMarkup(text string, p int, delimiter byte) bool {
	end := p
	for end < len(text) && text[end] == delimiter {
		end++
	}
	if next, _ := runeAt(text, end); !isWord(next) && !isCaseless(next) || p > 0 && text[p-1] == delimiter {
		return false
	}
	return strings.Count(before(text, p), text[p:end])%2 == 0
}

// isCloser reports whether r can close a quotation or brackets.
func isCloser(r rune) bool {
	switch r {
	case ')', ']', '}', '"', '\'', '»', '«', '”', '“', '’', '‘', '›', '‹':
		return true
	}
	return r >= 0x2000 && (unicode.Is(unicode.Pe, r) || unicode.Is(unicode.Pf, r))
}

// isAmbiguousQuote reports whether r also opens quotations, in this or another language.
func isAmbiguousQuote(r rune) bool {
	switch r {
	case '"', '\'', '«', '»', '“', '‘', '’', '‹', '›':
		return true
	}
	return false
}

// isAttached reports whether r goes with the sign before it: combining marks, invisible signs, emoji, raised figures.
func isAttached(r rune) bool {
	switch {
	case r < 0xA0:
		return false
	case r == '¹' || r == '²' || r == '³' || 0x2070 <= r && r < 0x207A:
		return true
	case r == '°' || r == '\u2028' || r == '\u2029':
		return false
	}
	return unicode.In(r, unicode.So, unicode.Mn, unicode.Me, unicode.Cf, unicode.Sk)
}
