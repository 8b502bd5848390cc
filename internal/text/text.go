package text

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Head returns the longest prefix of s that has at most n bytes and ends between two runes. It adds no ellipsis. In
// invalid UTF-8 it cuts between any two bytes, so that the result is not empty if n is at least utf8.UTFMax.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for at := n; at >= 0 && at > n-utf8.UTFMax; at-- {
		if utf8.RuneStart(s[at]) {
			return s[:at]
		}
	}
	return s[:n]
}

// Tail returns the longest suffix of s that has at most n bytes and begins between two runes.
func Tail(s string, n int) string {
	at := max(len(s)-n, 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

// Runes returns the first n runes of s, without an ellipsis.
func Runes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// LastRunes returns the last n runes of s, without an ellipsis.
func LastRunes(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// Shorten returns s if it has at most n runes, and otherwise its first n runes, without white space at their end, and
// an ellipsis.
func Shorten(s string, n int) string {
	head := Runes(s, n)
	if len(head) == len(s) {
		return s
	}
	return strings.TrimRightFunc(head, func(r rune) bool { return r == '…' || unicode.IsSpace(r) }) + "…"
}

// Line returns s as a single line that is safe to display: runs of white space become single spaces, invalid UTF-8
// becomes U+FFFD, and [Hidden] runes are removed. The line is shortened to n runes and an ellipsis; n <= 0 means no
// limit.
//
// Use it for untrusted strings (a file name, a title, a provider's message) before showing them in a terminal, a header
// or a message.
func Line(s string, n int) string {
	var b strings.Builder
	count, space := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if Hidden(r) {
			continue
		}
		if space {
			count++
		}
		if count++; n > 0 && count > n {
			return b.String() + "…"
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	line := b.String()
	if strings.Trim(line, joiners+" ") == "" {
		return ""
	}
	return line
}

// joiners are the format characters without which Persian words and many emoji are misspelt.
const joiners = "\u200c\u200d"

// Hidden reports whether a rune is invisible, or only affects how its neighbours are displayed or ordered: control and
// format characters, private use, surrogates, and letters and symbols without a glyph. White space is not hidden unless
// it is a control character; zero-width joiners are not hidden.
func Hidden(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Co) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// Strings converts a list of a string type to strings.
func Strings[T ~string](names []T) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return all
}

// Host returns the host of a URL in lower case, without port, brackets and final dot, or "" if there is none.
func Host(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// BlankLine returns the line breaks needed between two texts so that a blank line separates them: none if before is
// blank.
func BlankLine(before, after string) string {
	if strings.Trim(before, " \t\r\n") == "" {
		return ""
	}
	n := strings.Count(before[len(strings.TrimRight(before, " \t\r\n")):], "\n") +
		strings.Count(after[:len(after)-len(strings.TrimLeft(after, " \t\r\n"))], "\n")
	return "\n\n"[min(n, 2):]
}
