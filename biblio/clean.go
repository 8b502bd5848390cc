package biblio

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes one line of visible text of s: white space of any kind becomes single spaces, invisible characters go,
// and bytes that are not UTF-8 become U+FFFD. What changes the look of its neighbours legitimately (joiners, variation
// selectors) stays.
func clean(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case hidden(r):
			return -1
		}
		return r
	}, s)), " ")
	if strings.Trim(s, joiners+" ") == "" {
		return ""
	}
	return s
}

// joiners are format characters without which Persian words and many emoji are misspelt.
const joiners = "\u200c\u200d"

// hidden reports whether r cannot be seen, or can only change how others are seen or ordered.
func hidden(r rune) bool {
	if strings.ContainsRune(joiners, r) {
		return false
	}
	switch r {
	case '\u00ad', '\u034f', '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Co) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// cleanURL returns s with everything percent-encoded that cannot stand in an address, and nothing for an address that
// is not one of a place. Letters beyond ASCII stay: encoding them would break a host name.
func cleanURL(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if !safeScheme(s) {
		return ""
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n <= 1 || r <= ' ' || strings.ContainsRune("\"<>\\^`{|}", r) ||
			r > unicode.MaxASCII && (unicode.IsSpace(r) || !unicode.IsGraphic(r) || hidden(r))
		for _, c := range []byte(s[i : i+n]) {
			if bad {
				b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			} else {
				b.WriteByte(c)
			}
		}
		i += n
	}
	return b.String()
}

// safeScheme reports whether the scheme of the address s names a place where something is kept, or s has none.
func safeScheme(s string) bool {
	scheme, _, found := strings.Cut(s, ":")
	if !found || strings.ContainsAny(scheme, "/?#") {
		return true
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ftp", "gs", "s3":
		return true
	}
	return false
}

// linkable reports whether readers may be offered the cleaned address as a link.
func linkable(address string) bool {
	scheme, rest, _ := strings.Cut(address, "://")
	scheme = strings.ToLower(scheme)
	return (scheme == "http" || scheme == "https") && rest != ""
}

// doi returns the DOI that an address of the DOI system resolves, or nothing. A DOI with unusual characters is left to
// its address, where they are safe.
func doi(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if host != "doi.org" && host != "dx.doi.org" || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	name := strings.TrimPrefix(u.Path, "/")
	prefix, suffix, _ := strings.Cut(name, "/")
	registrant, isDOI := strings.CutPrefix(prefix, "10.")
	if !isDOI || len(registrant) < 4 || strings.Trim(registrant, "0123456789.") != "" || suffix == "" {
		return ""
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-._;()/:", r)
	}
	if strings.ContainsFunc(suffix, func(r rune) bool { return !plain(r) }) {
		return ""
	}
	return name
}
