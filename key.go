package ibid

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Key names the source in any answer, where [Source.ID] names it only in its own. It is the first of these that the
// source has:
//
//   - its kind, a colon and its URL in a normal form: scheme and host in lower case, without user, default port,
//     fragment
//     and the parameters that only track readers (utm_source, gclid, …);
//   - "#" and the provider's global id;
//   - "sha256:" and 32 hexadecimal digits of the SHA-256 of its content, or of its title and file name if it has none.
//
// An id that counts places in one response, such as doc:0, is never part of a key. Sources about which nothing is known
// have the same key.
func (s *Source) Key() string {
	if s.URL != "" {
		b := append(append(make([]byte, 0, 256), s.Kind...), ':')
		if key := appendNormalURL(b, s.URL); len(key) > len(b) {
			return string(key)
		}
	}
	if s.GlobalID != "" {
		return globalKey + s.GlobalID
	}
	content := s.Content
	if content == "" {
		content = s.Title + "\x00" + s.Filename
	}
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// numberKeys returns the key under which each source of a has its number. That is its Key, but where two sources share
// one the later has a key of its own: sources about which nothing is known are still not the same source.
func numberKeys(a *Answer) []string {
	keys := make([]string, len(a.Sources))
	taken := make(map[string]bool, len(a.Sources))
	for i := range a.Sources {
		keys[i] = a.Sources[i].Key()
		if taken[keys[i]] {
			keys[i] += "#" + a.Sources[i].ID
		}
		taken[keys[i]] = true
	}
	return keys
}

// globalKey begins the keys that are made of a global id.
const globalKey = "#"

// appendNormalURL appends a form of raw that is the same for addresses of the same page. It takes anything, also what
// is no URL, and of its own results it changes nothing.
func appendNormalURL(b []byte, raw string) []byte {
	rest := strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	scheme, rest := cutScheme(rest)
	b = append(b, scheme...)
	if strings.HasPrefix(rest, "//") {
		authority, path := rest[2:], ""
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			authority, path = authority[:i], authority[i:]
		}
		b = append(b, "//"...)
		b = append(b, normalizeHost(authority, scheme)...)
		if path == "" {
			path = "/"
		}
		rest = path
	}
	b = appendEscaped(b, rest)
	separator := byte('?')
	for param := range strings.SplitSeq(query, "&") {
		if param == "" || isTracking(param) {
			continue
		}
		b = appendEscaped(append(b, separator), param)
		separator = '&'
	}
	return b
}

// cutScheme splits off the scheme of url, in lower case and with its colon; it is empty if url has none.
func cutScheme(url string) (scheme, rest string) {
	for i := range len(url) {
		c := url[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return lowerASCII(url[:i+1]), url[i+1:]
		default:
			return "", url
		}
	}
	return "", url
}

// normalizeHost returns the host of authority and, unless it is the default of scheme, its port.
func normalizeHost(authority, scheme string) string {
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	bracket := strings.LastIndexByte(host, ']') + 1 // the colons of an IPv6 address are before it
	switch name, port, _ := strings.Cut(host[bracket:], ":"); {
	case port == "", port == "80" && scheme == "http:", port == "443" && scheme == "https:":
		host = host[:bracket] + name
	}
	return lowerASCII(host)
}

// lowerASCII lets letters beyond ASCII be: whether they are equal in an internationalised name is not for us to say.
func lowerASCII(s string) string {
	same := true
	for i := range len(s) {
		same = same && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z')
	}
	if same { // as nearly all are
		return s
	}
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// appendEscaped appends s with everything escaped that may not stand in a URL, and unescaped what need not be escaped.
func appendEscaped(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		from := i
		for i < len(s) && s[i] > ' ' && s[i] < 0x7f && s[i] != '%' {
			i++
		}
		b = append(b, s[from:i]...)
		if i == len(s) {
			break
		}
		c, escape := s[i], true
		if c == '%' { // one that escapes nothing stands for itself
			if i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
				c = unhex(s[i+1])<<4 | unhex(s[i+2])
				escape = !isUnreserved(c)
				i += 2
			}
		}
		if !escape {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}

// isUnreserved reports whether c means the same escaped and not escaped (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// isTracking reports whether the query parameter tells the site who sent the reader, and nothing of which page is
// meant.
func isTracking(param string) bool {
	name, _, _ := strings.Cut(param, "=")
	if len(name) >= 4 && strings.EqualFold(name[:4], "utm_") {
		return true
	}
	switch lowerASCII(name) {
	case "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl", // Google
		"fbclid", "igshid", "igsh", // Meta
		// Microsoft, Yandex, TikTok, X, LinkedIn, Pinterest
		"msclkid", "yclid", "ttclid", "twclid", "li_fat_id", "epik",
		"ref_src", "ref_url", // X
		"mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id": // newsletters
		return true
	}
	return false
}

// openAITag is the parameter that OpenAI adds to the addresses it cites.
const openAITag = "utm_source=openai"

// cleanURL returns raw without the parameter that OpenAI adds, and unchanged otherwise: the form of an address for
// readers.
func cleanURL(raw string) string {
	for from := 0; ; {
		i := strings.Index(raw[from:], openAITag)
		if i < 0 {
			return raw
		}
		i += from
		end := i + len(openAITag)
		before := i > 0 && (raw[i-1] == '?' || raw[i-1] == '&')
		switch {
		case before && (end == len(raw) || raw[end] == '#'), before && raw[end] == '&' && raw[i-1] == '&':
			raw, from = raw[:i-1]+raw[end:], i-1
		case before && raw[end] == '&':
			raw, from = raw[:i]+raw[end+1:], i
		default:
			from = end
		}
	}
}
