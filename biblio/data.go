package biblio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
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
		out = fmt.Appendf(out, "@%s{%s,\n", classes[it.class].bibtex, it.key)
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
		field(classes[it.class].site, verbatimTeX(it.site))
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

// bibtex returns the name as one element of an author list. Braces protect whole names, and parts that the syntax of
// names would split.
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

// hasParticle reports whether one of several words is in lower case, which would be read as the end of the particles.
func hasParticle(family string) bool {
	for word := range strings.FieldsSeq(family) {
		if first, _ := utf8.DecodeRuneInString(word); unicode.IsLower(first) {
			return true
		}
	}
	return false
}

// verbatimTeX returns s in braces of its own, which keep titles from being recased, and names and sites from being
// split at an "and". An empty s stays empty.
func verbatimTeX(s string) string {
	if s == "" {
		return ""
	}
	return "{" + escapeTeX(s) + "}"
}

// escapeTeX returns s as TeX text. Braces stay balanced, since BibTeX counts escaped ones too: an unpaired brace
// becomes a command.
func escapeTeX(s string) string {
	paired := pairedBraces(s)
	var b strings.Builder
	var before rune
	for i, r := range s {
		if before == r && strings.ContainsRune("-',", r) {
			b.WriteString("{}") // no ligature: -- is not a dash here
		}
		before = r
		switch escape := texEscapes[r]; {
		case r == '{':
			b.WriteString(pick(paired[i], `\{`, `\textbraceleft{}`))
		case r == '}':
			b.WriteString(pick(paired[i], `\}`, `\textbraceright{}`))
		case escape != "":
			b.WriteString(escape)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

var texEscapes = map[rune]string{
	'\\': `\textbackslash{}`, '~': `\textasciitilde{}`, '^': `\textasciicircum{}`, '`': "\\`{}", '<': `\textless{}`,
	'>': `\textgreater{}`, '%': `\%`, '$': `\$`, '#': `\#`, '_': `\_`, '&': `\&`,
}

// pairedBraces returns the positions of the braces of s that are paired.
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

func appendRIS(out []byte, items []item) []byte {
	for i := range items {
		it := &items[i]
		tag := func(name, value string) {
			if value != "" {
				out = fmt.Appendf(out, "%s  - %s\n", name, value)
			}
		}
		tag("TY", classes[it.class].ris)
		tag("ID", it.key)
		for _, n := range it.names {
			tag("AU", n.ris())
		}
		tag("TI", it.title)
		tag(pick(it.class == webpage, "T2", "PB"), it.site)
		tag("M3", it.genre)
		if it.issued.known() {
			tag("PY", it.issued.format("2006", "2006", "2006"))
		}
		if it.issued.month != 0 {
			tag("DA", it.issued.ris())
		}
		if it.pages != nil {
			tag("SP", strconv.Itoa(it.pages[0]))
			tag("EP", strconv.Itoa(it.pages[1]))
		}
		tag("DO", it.doi)
		tag("UR", it.url)
		tag("Y2", it.accessed.ris())
		out = append(out, "ER  - \n\n"...)
	}
	return out
}

// ris returns the date as year, month and day, each but the last followed by a slash.
func (d date) ris() string { return d.format("2006/00//", "2006/01//", "2006/01/02") }

// ris returns the name as "Family, Given, Suffix". In RIS a comma marks a person, so whole names lose theirs.
func (n name) ris() string {
	if n.whole != "" {
		return strings.ReplaceAll(n.whole, ",", "")
	}
	s := strings.TrimSpace(n.particle+" "+n.family) + ", " + n.given
	if n.suffix != "" {
		s += ", " + n.suffix
	}
	return s
}

// cslItem is an item of the CSL 1.0.2 data schema, with the fields that sources can fill.
type cslItem struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Title     string    `json:"title,omitempty"`
	Author    []cslName `json:"author,omitempty"`
	Container string    `json:"container-title,omitempty"`
	Publisher string    `json:"publisher,omitempty"`
	Genre     string    `json:"genre,omitempty"`
	Issued    *cslDate  `json:"issued,omitempty"`
	Page      string    `json:"page,omitempty"`
	DOI       string    `json:"DOI,omitempty"`
	URL       string    `json:"URL,omitempty"`
	Accessed  *cslDate  `json:"accessed,omitempty"`
}

type cslName struct {
	Family   string `json:"family,omitempty"`
	Given    string `json:"given,omitempty"`
	Particle string `json:"non-dropping-particle,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
	Literal  string `json:"literal,omitempty"`
}

type cslDate struct {
	Parts [][]int `json:"date-parts"`
}

func marshalCSL(items []item) ([]byte, error) {
	all := make([]cslItem, len(items))
	for i := range items {
		all[i] = items[i].csl()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // addresses stay legible
	enc.SetIndent("", "  ")
	err := enc.Encode(all)
	return out.Bytes(), err
}

func (it *item) csl() cslItem {
	c := cslItem{
		ID:       it.key,
		Type:     classes[it.class].csl,
		Title:    it.title,
		Genre:    it.genre,
		Issued:   it.issued.csl(),
		DOI:      it.doi,
		URL:      it.url,
		Accessed: it.accessed.csl(),
	}
	if it.class == webpage {
		c.Container = it.site
	} else {
		c.Publisher = it.site
	}
	if it.pages != nil {
		c.Page = fmt.Sprintf("%d-%d", it.pages[0], it.pages[1])
	}
	for _, n := range it.names {
		c.Author = append(c.Author, cslName{n.family, n.given, n.particle, n.suffix, n.whole})
	}
	return c
}

func (d date) csl() *cslDate {
	if !d.known() {
		return nil
	}
	return &cslDate{Parts: [][]int{d.parts()}}
}
