package biblio

import (
	"fmt"
	"html"
	"strings"
	"unicode"
)

// text is a finished entry of a style, before markup.
type text []run

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

func (t *text) add(l look, s string) { *t = append(*t, run{l, s}) }

// stop ends a sentence, unless it has ended.
func (t *text) stop() {
	if n := len(*t); n > 0 && !ended((*t)[n-1].s) {
		t.add(upright, ".")
	}
}

// list adds the runs with commas between them, and ends the sentence.
func (t *text) list(runs []run) {
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

// quoted returns the title in quotation marks, its own marks turned into single ones, and the mark that follows it
// inside, as American typography has it. Where the title ends like a sentence the mark is left out.
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

func (t text) append(out []byte, m Markup, number int) ([]byte, error) {
	if number != 0 {
		t = append(text{{upright, fmt.Sprintf("[%d] ", number)}}, t...)
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

func (t text) appendPlain(out []byte) []byte {
	for _, r := range t {
		out = append(out, r.s...)
	}
	return append(out, '\n')
}

func (t text) appendMarkdown(out []byte) []byte {
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

func (t text) appendHTML(out []byte) []byte {
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

// escapeMarkdown returns s as text of CommonMark and its common extensions, in which nothing is a link.
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

// escapeLineStart keeps s from beginning a heading, a list or a rule.
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
