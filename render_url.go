package ibid

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// safeURL returns raw as an address that may be linked and that can stand in a markdown destination, an HTML attribute
// and a LaTeX argument without ending it; empty if it is none. Only http, https and mailto addresses are.
func safeURL(raw string) string {
	raw = strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || rest == "" {
		return ""
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		if !strings.HasPrefix(rest, "//") || len(rest) == 2 {
			return ""
		}
	case "mailto":
	default:
		return ""
	}
	if strings.IndexFunc(raw, isUnsafeInURL) < 0 && !strings.Contains(raw, "&") {
		return raw
	}
	var b strings.Builder
	for i, r := range raw {
		_, n := utf8.DecodeRuneInString(raw[i:])
		switch {
		case r == utf8.RuneError && n == 1, isUnsafeInURL(r):
			for _, c := range []byte(raw[i : i+n]) {
				b.WriteByte('%')
				b.WriteByte("0123456789ABCDEF"[c>>4])
				b.WriteByte("0123456789ABCDEF"[c&15])
			}
		default:
			b.WriteString(raw[i : i+n])
		}
	}
	return b.String()
}

// isUnsafeInURL reports whether r could end the place an address stands in, or change how it is shown.
func isUnsafeInURL(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7F || strings.ContainsRune("()<>\"'`\\{}|^*~$", r)
	}
	return r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r) || isFullwidth(r)
}

// isFullwidth reports whether r is punctuation after which readers of addresses stop.
func isFullwidth(r rune) bool {
	return 0x3000 <= r && r < 0x3040 || 0xFF00 <= r && r < 0xFFEF && unicode.IsPunct(r)
}

// hostOf returns the host of a URL, without www; empty if it has none.
func hostOf(raw string) string {
	_, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	return strings.TrimPrefix(rest, "www.")
}

// markdownURL returns a safe URL as a markdown destination: CommonMark reads entities in it.
func markdownURL(url string) string {
	if !strings.Contains(url, ";") {
		return url
	}
	return strings.ReplaceAll(url, "&", "&amp;")
}
