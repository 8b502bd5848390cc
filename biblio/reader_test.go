package biblio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/text"
)

// nasty returns sources that would break the formats of a careless writer.
func nasty() []Entry {
	titles := []string{
		`Plain`,
		`100% {braced} #1 & _under_ $5 ~tilde ^hat \foo`,
		`one } two { three`,
		`{{{`,
		`}}`,
		`nested {a {b} c} }`,
		`quotes "d" 'e' ` + "`f` “g” «h»",
		"lines\nTY  - JOUR\nER  - \r\n\r\nTY  - BOOK",
		`dashes -- --- commas ,, angles << >> marks '' | pipes`,
		`日本語 العربية עברית Ünïcode 𝒳 👩‍💻`,
		`@article{x, title = {y}}`,
		`ends in a backslash \`,
		`\input{/etc/passwd} \write18{rm} \end{document}`,
		`$x^2$ and $$y$$ a % comment`,
		`AT&T: the {B}ib{T}eX of NASA and iPhone?`,
		"invisible \u202eesrever\u202c \u200bzero\x00 \x1b[31mred",
		`&amp; &lt;b&gt; \n \t %0A`,
		`ends in a colon:`,
		`TY  - `,
		`others and others`,
		`www.evil.example http://evil.example x@evil.example [x](http://evil.example) *b* __i__ ~~s~~ :smile: <script>alert(1)</script>`,
		`# not a heading`,
	}
	authors := [][]string{
		{"Ada Lovelace"},
		{"Ada van der Berg", "World Health Organization"},
		{"ACME and Sons, Inc.", "others"},
		{"李明", "Jean d'Alembert"},
		{"José Ortega y Gasset", "Le Guin, Ursula K."},
		{"A {brace}", "B } C", "D \\ E", "F\nAU  - G", "H and I"},
		{"Martin King Jr.", "Sinéad O’Connor"},
		nil,
	}
	urls := []string{
		"https://a.example/b_c?x=1&y=%7B2%7D#f~",
		"https://a.example/{x}/\\y/ z\nUR  - http://evil.example",
		"https://a.example/$100%25/^#_",
		"https://bücher.example/ü?q=日本",
		"https://doi.org/10.1000/abc_(d)-e",
		"",
	}
	dates := []string{"2024-03-05", "2024-03", "2024", "2024-03-05T10:00:00Z", "soon", ""}
	entries := make([]Entry, len(titles))
	for i, title := range titles {
		kinds := []ibid.SourceKind{ibid.Web, ibid.File, ibid.DocumentKind, ibid.Tool}
		entries[i] = Entry{Accessed: day, Source: ibid.Source{
			Kind: kinds[i%len(kinds)], Title: title, Authors: authors[i%len(authors)], URL: urls[i%len(urls)], PublishedAt: dates[i%len(dates)],
			Site: titles[(i+7)%len(titles)],
		}}
	}
	return entries
}

// read is an entry as another program understood it.
type read struct {
	ID, Title, URL, DOI, Issued, Accessed, Site string
	Authors                                     []string
}

// expected returns what should be understood of the entries.
func expected(entries []Entry) []read {
	var all []read
	for _, it := range newItems(entries) {
		r := read{it.key, it.title, it.url, it.doi, it.issued.iso(), it.accessed.iso(), it.site, nil}
		for _, n := range it.names {
			r.Authors = append(r.Authors, n.inverted())
		}
		all = append(all, r)
	}
	return all
}

// output feeds a program and returns what it prints.
func output(t *testing.T, in string, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, &stderr)
	}
	return out
}

// pandocReads returns the entries that pandoc reads from a bibliography.
func pandocReads(t *testing.T, pandoc, format, in string) []read {
	t.Helper()
	var items []struct {
		ID        string
		Title     string
		URL       string
		DOI       string
		Issued    cslDate
		Accessed  cslDate
		Container string `json:"container-title"`
		Publisher string
		Author    []struct {
			cslName
			Dropping string `json:"dropping-particle"`
		}
	}
	out := output(t, in, pandoc, "-f", format, "-t", "csljson")
	if err := json.Unmarshal(out, &items); err != nil {
		t.Fatalf("reading pandoc's CSL-JSON: %v\n%s", err, out)
	}
	iso := func(d cslDate) string {
		if len(d.Parts) == 0 {
			return ""
		}
		words := []string{}
		for _, n := range d.Parts[0] {
			words = append(words, fmt.Sprintf("%02d", n))
		}
		return strings.Join(words, "-")
	}
	all := make([]read, len(items))
	for i, it := range items {
		all[i] = read{it.ID, it.Title, it.URL, it.DOI, iso(it.Issued), iso(it.Accessed), it.Container + it.Publisher, nil}
		for _, a := range it.Author {
			particle := a.Dropping + a.Particle
			if strings.HasSuffix(particle, "’") {
				a.Family, particle = particle+a.Family, ""
			}
			all[i].Authors = append(all[i].Authors, joinNonEmpty(", ", joinNonEmpty(" ", particle, a.Family), a.Given, a.Suffix)+a.Literal)
		}
	}
	return all
}

// straight undoes pandoc's typography, which changes quotation marks.
func straight(s string) string {
	return strings.NewReplacer("’", "'", "‘", "'", "“", "'", "”", "'", `"`, "'", "…", "...").Replace(s)
}

// withoutLoneBraces drops the braces that BibTeX cannot represent as such: TeX prints the commands written for them,
// but pandoc does not know these.
func withoutLoneBraces(s string) string {
	paired := pairedBraces(s)
	var b strings.Builder
	for i, r := range s {
		if r != '{' && r != '}' || paired[i] {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (r read) mapped(f func(string) string) read {
	r.Title, r.Site = f(r.Title), f(r.Site)
	var authors []string
	for _, a := range r.Authors {
		authors = append(authors, f(a))
	}
	r.Authors = authors
	return r
}

func TestPandocReadsWhatWeWrite(t *testing.T) {
	pandoc := testenv.Tool(t, "pandoc")
	entries := nasty()
	for _, test := range []struct {
		reader string
		format Format
		lost   func(string) string // what the reader is known to lose
	}{
		{"biblatex", BibTeX, withoutLoneBraces},
		{"bibtex", BibTeX, withoutLoneBraces},
		{"csljson", CSLJSON, func(s string) string { return s }},
	} {
		t.Run(test.reader, func(t *testing.T) {
			got := pandocReads(t, pandoc, test.reader, write(t, test.format, Plain, entries...))
			want := expected(entries)
			if len(got) != len(want) {
				t.Fatalf("pandoc reads %d entries, want %d", len(got), len(want))
			}
			byID := map[string]read{}
			for _, r := range got {
				byID[r.ID] = r.mapped(func(s string) string { return text.Line(straight(s), 0) })
			}
			for _, w := range want {
				w = w.mapped(func(s string) string { return text.Line(straight(test.lost(s)), 0) })
				testenv.Equal(t, "", w, byID[w.ID])
			}
		})
	}
}

// TestRISReadsBack reads our RIS like reference managers do: a tag, two spaces, a hyphen and a space begin a field,
// lines of another form are not fields, and a comma marks a person's name. (Debian's pandoc cannot read RIS.)
func TestRISReadsBack(t *testing.T) {
	entries := nasty()
	var got []read
	var r read
	tag := regexp.MustCompile(`^([A-Z][A-Z0-9])  - ?(.*)$`)
	iso := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "/", "-"), "-") }
	for line := range strings.SplitSeq(write(t, RIS, Plain, entries...), "\n") {
		m := tag.FindStringSubmatch(line)
		if m == nil {
			if line != "" {
				t.Errorf("not a field: %q", line)
			}
			continue
		}
		switch value := m[2]; m[1] {
		case "TY":
			r = read{}
		case "ID":
			r.ID = value
		case "TI":
			r.Title = value
		case "T2", "PB":
			r.Site = value
		case "UR":
			r.URL = value
		case "DO":
			r.DOI = value
		case "PY", "DA": // the more precise one comes last
			r.Issued = iso(value)
		case "Y2":
			r.Accessed = iso(value)
		case "AU":
			r.Authors = append(r.Authors, value)
		case "ER":
			got = append(got, r)
		}
	}
	want := expected(entries)
	for i, it := range newItems(entries) {
		for j, n := range it.names {
			if n.whole != "" {
				want[i].Authors[j] = strings.ReplaceAll(n.whole, ",", "")
			}
		}
	}
	testenv.Equal(t, "", want, got)
}

// TestMarkdownReadsBack renders our Markdown with all of GitHub's extensions: the words must be those of our HTML, and
// all elements must be ours.
func TestMarkdownReadsBack(t *testing.T) {
	pandoc := testenv.Tool(t, "pandoc")
	entries := nasty()
	for i := range entries {
		entries[i].Number = i + 1
	}
	words := func(s string) []string {
		return strings.Split(strings.TrimSpace(html.UnescapeString(anyTag.ReplaceAllString(s, ""))), "\n")
	}
	for _, f := range []Format{APA, MLA, Chicago} {
		out := string(output(t, write(t, f, Markdown, entries...), pandoc, "-f", "gfm", "-t", "html", "--wrap=none"))
		if diff := cmp.Diff(words(write(t, f, HTML, entries...)), words(out)); diff != "" {
			t.Errorf("%s (-HTML +Markdown):\n%s", f, diff)
		}
		for _, tag := range anyTag.FindAllString(out, -1) {
			if !rendered.MatchString(tag) {
				t.Errorf("%s has an element that is not ours: %s", f, tag)
			}
		}
	}
}

var (
	anyTag   = regexp.MustCompile(`<[^>]*>`)
	rendered = regexp.MustCompile(`^(?:</?p>|</?em>|<a href="https://(?:a\.example|b%C3%BCcher\.example|bücher\.example|doi\.org)/[^"]*"(?: class="uri")?>|</a>)$`)
)

// styleDir is where Debian's package of CSL styles puts them. The styles are not ours to copy.
const styleDir = "/usr/share/citation-style-language/styles"

var (
	cslEntry = regexp.MustCompile(`(?s)<div id="ref-([^"]*)"[^>]*>(.*?)</div>`)
	cslMarks = regexp.MustCompile(`</?(?:a|span|p|div)\b[^>]*>`)
)

// TestStylesAgreeWithCSL compares our entries, including italics, with those of citeproc and the published style
// definitions. Titles are in title case and sources differ from one another, because CSL recases titles and replaces
// repeated names by dashes, which we do not.
func TestStylesAgreeWithCSL(t *testing.T) {
	pandoc := testenv.Tool(t, "pandoc")
	sources := []ibid.Source{
		page, undate, pdf,
		{Kind: ibid.Web, Title: "Only a Title", URL: "https://a.example/1"},
		{Kind: ibid.Web, Title: "A Dated Title", URL: "https://a.example/2", PublishedAt: "2021"},
		{Kind: ibid.Web, Title: "A Seen Title", URL: "https://a.example/3", RetrievedAt: day},
		{Kind: ibid.Web, Title: "Sails & “Masts”", Site: "Yard!", URL: "https://a.example/4", Authors: []string{"Martin King Jr.", "Ann-Mary J. Poe", "Crew"}},
		{Kind: ibid.Web, Title: "Rigging Inc.", Site: "Yard", URL: "https://a.example/5", Authors: []string{"Poe, Edgar", "Roe, Richard"}},
		{Kind: ibid.Web, Title: "Knots!", URL: "https://a.example/6", PublishedAt: "2020-06-01", Authors: []string{"Knot Society"}},
		{Kind: ibid.File, Title: "The Harbour Plan", Site: "Harbour Office", PublishedAt: "2019", Authors: []string{"Zeno Quay"}},
		{Kind: ibid.File, Title: "Gauge Levels.csv", Site: "Gauge Board", PublishedAt: "2022-02-01", Authors: []string{"Gauge Staff"}},
		{Kind: ibid.File, Title: "Nobody’s File"},
	}
	entries := make([]Entry, len(sources))
	for i, s := range sources {
		entries[i] = Entry{Source: s}
	}
	for f, style := range map[Format]string{APA: "apa", MLA: "modern-language-association", Chicago: "chicago-note-bibliography"} {
		t.Run(string(f), func(t *testing.T) {
			file := filepath.Join(testenv.Tool(t, styleDir), style+".csl")
			out := output(t, write(t, CSLJSON, Plain, entries...), pandoc, "-f", "csljson", "--citeproc", "--csl", file, "-t", "html", "--wrap=none")
			theirs := map[string]string{}
			for _, match := range cslEntry.FindAllStringSubmatch(string(out), -1) {
				s := strings.NewReplacer("<em>", "<i>", "</em>", "</i>").Replace(cslMarks.ReplaceAllString(match[2], ""))
				theirs[match[1]] = strings.TrimSpace(s)
			}
			for i, it := range newItems(entries) {
				ours := write(t, f, HTML, entries[i])
				ours = strings.TrimSpace(cslMarks.ReplaceAllString(ours, ""))
				if diff := cmp.Diff(theirs[it.key], ours); diff != "" {
					t.Errorf("(-CSL +ours):\n%s", diff)
				}
			}
		})
	}
}
