package biblio

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

var (
	risLine = regexp.MustCompile(`^(?:[A-Z][A-Z0-9]  - .*)?$`)               // every line of an RIS file
	ourTags = regexp.MustCompile(`(?i)</?[pi]>|<a href="http[^"<>]*">|</a>`) // all markup of a style
)

// checkAll writes the entries in every format and reports violations of its grammar.
func checkAll(t *testing.T, entries []Entry) {
	t.Helper()
	checkBibTeX(t, write(t, BibTeX, Plain, entries...), len(entries))
	checkRIS(t, write(t, RIS, Plain, entries...), len(entries))

	var items []map[string]any
	if err := json.Unmarshal([]byte(write(t, CSLJSON, Plain, entries...)), &items); err != nil || len(items) != len(entries) {
		t.Errorf("CSL-JSON has %d items, want %d: %v", len(items), len(entries), err)
	}
	for _, f := range []Format{APA, MLA, Chicago} {
		plain := write(t, f, Plain, entries...)
		if strings.Count(plain, "\n") != len(entries) || strings.ContainsFunc(strings.ReplaceAll(plain, "\n", ""), text.Hidden) || !utf8.ValidString(plain) {
			t.Errorf("%s is not one visible line an entry: %q", f, plain)
		}
		paragraphs := write(t, f, HTML, entries...)
		if n := strings.Count(paragraphs, "<p>"); n != len(entries) {
			t.Errorf("%s has %d paragraphs, want %d: %q", f, n, len(entries), paragraphs)
		}
		if rest := ourTags.ReplaceAllString(paragraphs, ""); strings.ContainsAny(rest, "<>\"") {
			t.Errorf("%s has markup that is not ours: %q", f, paragraphs)
		}
		if marked := write(t, f, Markdown, entries...); strings.Count(marked, "\n") != max(2*len(entries)-1, 0) {
			t.Errorf("%s is not one paragraph an entry: %q", f, marked)
		}
	}
}

// checkBibTeX reads entries like BibTeX, which counts every brace whether escaped or not.
func checkBibTeX(t *testing.T, out string, entries int) {
	t.Helper()
	depth, found := 0, 0
	keys := map[string]bool{}
	for i, r := range out {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == '@' && depth == 0:
			found++
			_, rest, _ := strings.Cut(out[i:], "{")
			key, _, _ := strings.Cut(rest, ",")
			if keys[key] || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
				t.Errorf("BibTeX has a bad key %q", key)
			}
			keys[key] = true
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 || found != entries {
		t.Errorf("BibTeX has %d entries and ends at depth %d, want %d, 0:\n%s", found, depth, entries, out)
	}
}

func checkRIS(t *testing.T, out string, entries int) {
	t.Helper()
	begun, ended := 0, 0
	for line := range strings.SplitSeq(out, "\n") {
		if !risLine.MatchString(line) {
			t.Errorf("RIS has a line %q", line)
		}
		switch {
		case strings.HasPrefix(line, "TY  - "):
			begun++
		case line == "ER  - ":
			ended++
		}
		if begun < ended || begun > ended+1 {
			t.Errorf("RIS has an entry inside another:\n%s", out)
		}
	}
	if begun != entries || ended != entries {
		t.Errorf("RIS begins %d entries and ends %d, want %d", begun, ended, entries)
	}
}

func TestNasty(t *testing.T) { checkAll(t, nasty()) }

func FuzzWrite(f *testing.F) {
	for _, e := range nasty() {
		f.Add(string(e.Source.Kind), e.Source.Title, strings.Join(e.Source.Authors, "\n"), e.Source.URL, e.Source.Site, e.Source.PublishedAt)
	}
	f.Fuzz(func(t *testing.T, kind, title, authors, address, site, date string) {
		s := ibid.Source{Kind: ibid.SourceKind(kind), Title: title, Authors: strings.Split(authors, "\n"), URL: address, Site: site, PublishedAt: date}
		other := s
		other.Filename, other.Title = title, ""
		checkAll(t, []Entry{{Source: s, Accessed: day}, {Source: other}, {Source: s}})
	})
}

func FuzzParseName(f *testing.F) {
	for _, e := range nasty() {
		for _, a := range e.Source.Authors {
			f.Add(a)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = text.Line(s, 0)
		n := parseName(s)
		if n.whole == "" && s != "" && (n.family == "" || n.given == "") {
			t.Fatalf("%q has lost its family or given name: %+v", s, n)
		}
		// Splitting may move words, but neither adds nor loses any.
		words := func(s string) (sum int) {
			for w := range strings.FieldsSeq(strings.ReplaceAll(s, ",", " ")) {
				sum += len(w)
			}
			return sum
		}
		if words(s) != words(n.natural()) {
			t.Fatalf("%q has become %q", s, n.natural())
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	entries := nasty()
	for _, f := range Formats() {
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				write(b, f, Plain, entries...)
			}
		})
	}
}
