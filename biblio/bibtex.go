package biblio

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func appendBibTeX(out []byte, items []item) []byte {
	for i := range items {
		it := &items[i]
		if i > 0 {
			out = append(out, '\n')
		}
		out = fmt.Appendf(out, "@%s{%s,\n", it.bibtexType(), it.key)
		field := func(name, value string) {
			if value != "" {
				out = fmt.Appendf(out, "  %-12s = {%s},\n", name, value)
			}
		}
		authors := make([]string, len(it.names))
		for j, n := range it.names {
			authors[j] = n.bibtex()
		}
		field("author", strings.Join(authors, " and "))
		field("title", verbatimTeX(it.title))
		field(it.bibtexSite(), verbatimTeX(it.site))
		field("type", escapeTeX(it.genre))
		field("date", it.issued.iso())
		if it.pages != nil {
			field("pages", fmt.Sprintf("%d--%d", it.pages[0], it.pages[1]))
		}
		field("doi", it.doi)
		field("url", it.url)
		field("urldate", it.accessed.iso())
		out = append(out, "}\n"...)
	}
	return out
}

func (it *item) bibtexType() string {
	switch it.class {
	case webpage:
		return "online"
	case dataset:
		return "dataset"
	case document:
	}
	return "misc"
}

// bibtexSite returns the field for the site: what biblatex's data model has for the type.
func (it *item) bibtexSite() string {
	if it.class == dataset {
		return "publisher"
	}
	return "organization"
}

// bibtex returns the name as one element of an author list. Braces keep names that are whole, and parts that the syntax
// of names would cut, in one piece.
func (n name) bibtex() string {
	if n.whole != "" {
		return verbatimTeX(n.whole)
	}
	family := escapeTeX(n.family)
	if first, _ := utf8.DecodeRuneInString(n.family); !unicode.IsUpper(first) || hasParticle(n.family) {
		family = "{" + family + "}"
	}
	if n.particle != "" {
		family = escapeTeX(n.particle) + " " + family
	}
	if n.suffix != "" {
		family += ", " + escapeTeX(n.suffix)
	}
	return family + ", " + escapeTeX(n.given)
}

// hasParticle reports whether one of several words is in lower case, which would end the particles.
func hasParticle(family string) bool {
	for word := range strings.FieldsSeq(family) {
		if first, _ := utf8.DecodeRuneInString(word); unicode.IsLower(first) {
			return true
		}
	}
	return false
}

// verbatimTeX returns s in braces of its own, which keep titles from being recased and names and sites from being cut
// at an "and". Empty stays empty.
func verbatimTeX(s string) string {
	if s == "" {
		return ""
	}
	return "{" + escapeTeX(s) + "}"
}

// escapeTeX returns s as text of TeX. Braces stay balanced, since BibTeX counts escaped ones too: a brace without its
// partner becomes a command.
func escapeTeX(s string) string {
	paired := pairedBraces(s)
	var b strings.Builder
	var before rune
	for i, r := range s {
		if before == r && strings.ContainsRune("-',", r) {
			b.WriteString("{}") // no ligature: -- is not a dash here
		}
		before = r
		switch r {
		case '\\':
			b.WriteString(`\textbackslash{}`)
		case '{':
			b.WriteString(pick(paired[i], `\{`, `\textbraceleft{}`))
		case '}':
			b.WriteString(pick(paired[i], `\}`, `\textbraceright{}`))
		case '%', '$', '#', '_', '&':
			b.WriteRune('\\')
			b.WriteRune(r)
		case '~':
			b.WriteString(`\textasciitilde{}`)
		case '^':
			b.WriteString(`\textasciicircum{}`)
		case '`':
			b.WriteString("\\`{}")
		case '<':
			b.WriteString(`\textless{}`)
		case '>':
			b.WriteString(`\textgreater{}`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func pick(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// pairedBraces returns where the braces of s stand that have a partner.
func pairedBraces(s string) map[int]bool {
	if !strings.ContainsAny(s, "{}") {
		return nil
	}
	paired := make(map[int]bool)
	var open []int
	for i, r := range s {
		switch {
		case r == '{':
			open = append(open, i)
		case r == '}' && len(open) > 0:
			last := len(open) - 1
			paired[open[last]], paired[i] = true, true
			open = open[:last]
		}
	}
	return paired
}
