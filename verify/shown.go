package verify

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxShown is how many code points of one string a report for people shows.
const maxShown = 600

// shown returns a string so that it does nothing but stand there: control characters, line ends, what turns the
// direction of text, what cannot be seen, and bytes that are no text are escaped; it is cut to a length.
func shown(s string) string {
	var b strings.Builder
	n := 0
	right := false
	for i, r := range s {
		if n++; n > maxShown {
			b.WriteString("…")
			break
		}
		right = right || isRightToLeft(r)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Cf, r) && !isUnseen(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		}
	}
	if right {
		const isolate, end = "\u2068", "\u2069" // what stands around it stays where it is
		return isolate + b.String() + end
	}
	return b.String()
}

// isUnseen reports whether a character that Unicode calls printable shows nothing, or strikes out the one before.
func isUnseen(r rune) bool {
	switch {
	case r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x2800, r == 0x3164, r == 0xffa0:
		return true
	case 0x334 <= r && r <= 0x338, 0x20d2 <= r && r <= 0x20d3, 0x20d8 <= r && r <= 0x20da,
		0x20dd <= r && r <= 0x20eb && r != 0x20e1 && r != 0x20e9:
		return true
	default:
		return unicode.Is(unicode.Variation_Selector, r)
	}
}

func isRightToLeft(r rune) bool {
	return r >= 0x590 &&
		(r < 0x8ff || 0xfb1d <= r && r <= 0xfdff || 0xfe70 <= r && r <= 0xfefc || 0x10800 <= r && r <= 0x10fff || 0x1e800 <= r && r <= 0x1efff)
}

// shownInDiff returns a string so that nothing in it looks like the marks of a difference.
func shownInDiff(s string) string {
	return strings.NewReplacer("[-", `\u{005B}-`, "-]", `-\u{005D}`, "{+", `\u{007B}+`, "+}", `+\u{007D}`).
		Replace(shown(s))
}

// shownURL returns a URL with its host in ASCII: letters of other scripts look like ours. A name before the host, which
// looks like one, is left out.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ascii(address)
	}
	if host, err := idna.ToASCII(u.Hostname()); err == nil {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		u.Host = host
	}
	u.User = nil
	return ascii(u.String())
}

// ascii escapes all that is not ASCII.
func ascii(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case i > 2*maxShown:
			return b.String() + "..."
		case r > ' ' && r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		}
	}
	return b.String()
}
