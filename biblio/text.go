package biblio

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/text"
)

// entryText is a finished entry of a style, before markup.
type entryText []run

type run struct {
	look look
	s    string
}

type look uint8

const (
	upright look = iota
	italic
	link
)

func (t *entryText) add(l look, s string) { *t = append(*t, run{l, s}) }

// stop ends a sentence, unless it has ended.
func (t *entryText) stop() {
	if n := len(*t); n > 0 && !ended((*t)[n-1].s) {
		t.add(upright, ".")
	}
}

// list adds the runs with commas between them, and ends the sentence.
func (t *entryText) list(runs []run) {
	for i, r := range runs {
		t.add(upright, pick(i == 0, " ", ", "))
		t.add(r.look, r.s)
	}
	if n := len(runs); n > 0 && runs[n-1].look == link {
		t.add(upright, ".") // whatever the address ends with
	} else if n > 0 {
		t.stop()
	}
}

// ended reports whether s ends with the end of a sentence, be it inside quotes.
func ended(s string) bool {
	s = strings.TrimRight(s, "”’\"'")
	return strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!")
}

// quoted returns the title in quotation marks, with its own marks as single ones, and the following mark inside, as in
// American typography. If the title ends like a sentence the mark is left out.
func quoted(title, mark string) string {
	var b strings.Builder
	before := ' '
	for _, r := range title {
		switch {
		case r == '“' || r == '"' && (unicode.IsSpace(before) || unicode.Is(unicode.Ps, before)):
			b.WriteRune('‘')
		case r == '”' || r == '"':
			b.WriteRune('’')
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return "“" + b.String() + pick(ended(title), "", mark) + "”"
}

func (t entryText) append(out []byte, m Markup, number int) ([]byte, error) {
	if number != 0 {
		t = append(entryText{{upright, fmt.Sprintf("[%d] ", number)}}, t...)
	}
	switch m {
	case Plain:
		return t.appendPlain(out), nil
	case Markdown:
		return t.appendMarkdown(out), nil
	case HTML:
		return t.appendHTML(out), nil
	}
	return nil, fmt.Errorf("there is no markup %q", m)
}

func (t entryText) appendPlain(out []byte) []byte {
	for _, r := range t {
		out = append(out, r.s...)
	}
	return append(out, '\n')
}

func (t entryText) appendMarkdown(out []byte) []byte {
	if len(out) > 0 {
		out = append(out, '\n')
	}
	for i, r := range t {
		s := escapeMarkdown(r.s)
		switch {
		case r.look == italic:
			s = "*" + s + "*"
		case r.look == link && linkable(r.s):
			s = "<" + r.s + ">"
		case i == 0:
			s = escapeLineStart(s)
		}
		out = append(out, s...)
	}
	return append(out, '\n')
}

func (t entryText) appendHTML(out []byte) []byte {
	out = append(out, "<p>"...)
	for _, r := range t {
		s := html.EscapeString(r.s)
		switch {
		case r.look == italic:
			s = "<i>" + s + "</i>"
		case r.look == link && linkable(r.s):
			s = `<a href="` + s + `">` + s + "</a>"
		}
		out = append(out, s...)
	}
	return append(out, "</p>\n"...)
}

// escapeMarkdown returns s as text for CommonMark and its common extensions, without any links.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune("\\`*_[]<>~|$^@", r),
			r == '&' && startsEntity(s[i+1:]),
			r == ':' && i+1 < len(s) && s[i+1] != ' ', // http://, :smile:
			r == '.' && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// startsEntity reports whether an ampersand before s may begin a character reference.
func startsEntity(s string) bool {
	return s != "" && (s[0] == '#' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

// escapeLineStart keeps s from starting a heading, a list or a rule.
func escapeLineStart(s string) string {
	if s != "" && strings.ContainsRune("#+-=", rune(s[0])) {
		return `\` + s
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if rest := s[digits:]; digits > 0 && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ")")) {
		return s[:digits] + `\` + rest
	}
	return s
}

func pick(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// cleanURL returns s with every character percent-encoded that is not allowed in an address; empty if the address does
// not name a place. Letters beyond ASCII stay: encoding them would break a host name.
func cleanURL(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if !safeScheme(s) {
		return ""
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n <= 1 || r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) ||
			r > unicode.MaxASCII && (unicode.IsSpace(r) || !unicode.IsGraphic(r) || text.Hidden(r))
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

// safeScheme reports whether the scheme of the address s names a place, or s has none.
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

// linkable reports whether the cleaned address may be shown as a link.
func linkable(address string) bool {
	scheme, rest, _ := strings.Cut(address, "://")
	scheme = strings.ToLower(scheme)
	return (scheme == "http" || scheme == "https") && rest != ""
}

// doi returns the DOI that an address of the DOI system resolves; empty if it is no such address. A DOI with unusual
// characters is left in the address, where they are safe.
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
