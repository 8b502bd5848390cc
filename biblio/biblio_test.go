package biblio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

var day = time.Date(2025, time.January, 2, 23, 30, 0, 0, time.UTC)

// write returns the output of Write.
func write(tb testing.TB, f Format, m Markup, entries ...Entry) string {
	tb.Helper()
	var out bytes.Buffer
	testenv.OK(tb, Write(&out, f, entries, &Options{Markup: m}))
	return out.String()
}

// The sources of the golden tables: one of each kind.
var (
	page = ibid.Source{
		Kind: ibid.Web, Title: "Tides of the North Sea", Site: "Coast Watch", URL: "https://coast.example/tides?p=1&q=2",
		Authors: []string{"Ada van der Berg", "Institute of Shores, Inc."}, PublishedAt: "2024-03-05T23:59:00+02:00", RetrievedAt: day,
	}
	bare   = ibid.Source{Kind: ibid.Web, URL: "https://www.coast.example/"}
	undate = ibid.Source{Kind: ibid.Web, Title: "Is Sand Rock?", Site: "Coast Watch", URL: "https://coast.example/sand", RetrievedAt: day}
	pdf    = ibid.Source{
		Kind: ibid.Web, Title: "The Wadden Sea", Site: "Shore Office", URL: "https://coast.example/wadden.pdf", PublishedAt: "2023-11",
	}
	upload = ibid.Source{
		Kind: ibid.File, Filename: "harbour plan.pdf", Authors: []string{"Poe, Edgar"}, PublishedAt: "2019",
		Chunks: []ibid.Chunk{{Locator: &ibid.Locator{Pages: []int{3, 7}}}},
	}
	table = ibid.Source{Kind: ibid.File, Title: "Gauge levels", Filename: "levels.csv", Site: "Gauge Board", PublishedAt: "2022-02-01"}
	notes = ibid.Source{Kind: ibid.DocumentKind, Title: "Meeting Notes", RetrievedAt: day}
	tool  = ibid.Source{Kind: ibid.Tool, Title: "get_tide", Authors: []string{"李明"}}
)

func TestBibTeX(t *testing.T) {
	want := string(testenv.Must(os.ReadFile("testdata/bibtex.bib"))(t))
	got := write(t, BibTeX, Plain, Entry{Number: 1, Source: page}, Entry{Source: bare}, Entry{Source: upload}, Entry{Source: table}, Entry{Source: notes})
	testenv.Equal(t, "BibTeX", want, got)
}

func TestRIS(t *testing.T) {
	want := string(testenv.Must(os.ReadFile("testdata/ris.ris"))(t))
	got := write(t, RIS, Plain, Entry{Source: page}, Entry{Source: pdf}, Entry{Source: upload}, Entry{Source: table}, Entry{Source: tool})
	testenv.Equal(t, "RIS", want, got)
}

func TestCSLJSON(t *testing.T) {
	want := string(testenv.Must(os.ReadFile("testdata/csl.json"))(t))
	seen := time.Date(2024, time.December, 24, 0, 0, 0, 0, time.UTC)
	got := write(t, CSLJSON, Plain, Entry{Source: page, Accessed: seen}, Entry{Source: tool}, Entry{Source: upload})
	testenv.Equal(t, "CSL-JSON", want, got)
	if got, want := write(t, CSLJSON, Plain), "[]\n"; got != want {
		t.Errorf("no entries: %q, want %q", got, want)
	}
}

func TestStyles(t *testing.T) {
	cases := strings.Split(strings.TrimSpace(string(testenv.Must(os.ReadFile("testdata/styles.txt"))(t))), "\n\n")
	for _, test := range cases[1:] {
		lines := strings.Split(test, "\n")
		t.Run(lines[0], func(t *testing.T) {
			var source ibid.Source
			testenv.OK(t, json.Unmarshal([]byte(lines[1]), &source))
			var got []string
			for _, f := range []Format{APA, MLA, Chicago} {
				got = append(got, strings.TrimSuffix(write(t, f, Markdown, Entry{Source: source}), "\n"))
			}
			testenv.Equal(t, "", lines[2:], got)
		})
	}
}

func TestManyAuthors(t *testing.T) {
	authors := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = "Xi " + strings.ToUpper(string(rune('a'+i))) + "o"
		}
		return all
	}
	for _, test := range []struct {
		f    Format
		n    int
		want string
	}{
		{APA, 20, "Ao, X., Bo, X., Co, X., Do, X., Eo, X., Fo, X., Go, X., Ho, X., Io, X., Jo, X., Ko, X., Lo, X., Mo, X., No, X., Oo, X., Po, X., Qo, X., Ro, X., So, X., & To, X. (n.d.). T."},
		{APA, 21, "Ao, X., Bo, X., Co, X., Do, X., Eo, X., Fo, X., Go, X., Ho, X., Io, X., Jo, X., Ko, X., Lo, X., Mo, X., No, X., Oo, X., Po, X., Qo, X., Ro, X., So, X., . . . Uo, X. (n.d.). T."},
		{MLA, 3, "Ao, Xi, et al. T."},
		{Chicago, 10, "Ao, Xi, Xi Bo, Xi Co, Xi Do, Xi Eo, Xi Fo, Xi Go, Xi Ho, Xi Io, and Xi Jo. “T,” n.d."},
		{Chicago, 11, "Ao, Xi, Xi Bo, Xi Co, Xi Do, Xi Eo, Xi Fo, Xi Go, et al. “T,” n.d."},
	} {
		got := write(t, test.f, Plain, Entry{Source: ibid.Source{Kind: ibid.File, Title: "T", Authors: authors(test.n)}})
		testenv.Equal(t, fmt.Sprintf("%s, %d authors", test.f, test.n), test.want+"\n", got)
	}
}

func TestOrder(t *testing.T) {
	source := func(author, title, date string) ibid.Source {
		s := ibid.Source{Kind: ibid.Web, Title: title, PublishedAt: date}
		if author != "" {
			s.Authors = []string{author}
		}
		return s
	}
	entries := []Entry{
		{Source: source("Zoe Zander", "A", "")},
		{Source: source("Ann Ørsted", "Second", "2024")},
		{Source: source("Ann Ørsted", "First", "2024")},
		{Source: source("Ann Ørsted", "Old", "2001")},
		{Source: source("", "The Middle", "2020")},
		{Source: source("", "“Élan”", "2020")},
		{Source: source("Zoe Zander", "An Apple", "")},
	}
	want := "*“Élan”*. (2020).\n\n*The Middle*. (2020).\n\nØrsted, A. (2001). *Old*.\n\nØrsted, A. (2024a). *First*.\n\nØrsted, A. (2024b). *Second*.\n\n" +
		"Zander, Z. (n.d.-a). *A*.\n\nZander, Z. (n.d.-b). *An Apple*.\n"
	testenv.Equal(t, "APA without numbers", want, write(t, APA, Markdown, entries...))

	want = "*“Élan”*. 2020.\n\n*The Middle*. 2020.\n\nØrsted, Ann. *First*. 2024.\n\nØrsted, Ann. *Old*. 2001.\n\nØrsted, Ann. *Second*. 2024.\n\n" +
		"Zander, Zoe. *A*.\n\nZander, Zoe. *An Apple*.\n"
	testenv.Equal(t, "MLA without numbers", want, write(t, MLA, Markdown, entries...))

	entries[1].Number, entries[2].Number = 1, 2
	want = "Zander, Z. (n.d.). A.\n[1] Ørsted, A. (2024). Second.\n[2] Ørsted, A. (2024). First.\n"
	testenv.Equal(t, "APA with numbers", want, write(t, APA, Plain, entries[:3]...))
}

func TestMarkup(t *testing.T) {
	evil := ibid.Source{
		Kind: ibid.Web, Title: "<b>1</b> [x](http://evil.example) *www.evil.example* a@b.example &amp;", Site: "#1 & co",
		URL: "https://a.example/?a=<b>&c=\"d\"",
	}
	for _, test := range []struct {
		about  string
		f      Format
		m      Markup
		source ibid.Source
		want   string
	}{
		{"plain", Chicago, Plain, evil, "#1 & co. “<b>1</b> [x](http://evil.example) *www.evil.example* a@b.example &amp;,” n.d. https://a.example/?a=%3Cb%3E&c=%22d%22."},
		{"markdown", Chicago, Markdown, evil, `\#1 & co. “\<b\>1\</b\> \[x\](http\://evil.example) \*www\.evil.example\* a\@b.example \&amp;,” n.d. <https://a.example/?a=%3Cb%3E&c=%22d%22>.`},
		{
			"html", MLA, HTML, evil,
			`<p>“&lt;b&gt;1&lt;/b&gt; [x](http://evil.example) *www.evil.example* a@b.example &amp;amp;.” <i>#1 &amp; co</i>, ` +
				`<a href="https://a.example/?a=%3Cb%3E&amp;c=%22d%22">https://a.example/?a=%3Cb%3E&amp;c=%22d%22</a>.</p>`,
		},
		{"not a heading, not a list", Chicago, Markdown, ibid.Source{Site: "2024. Year", Title: "T"}, `2024\. Year. “T,” n.d.`},
		{"a script is no address", APA, HTML, ibid.Source{Title: "T", URL: "JavaScript:alert(1)"}, "<p><i>T</i>. (n.d.).</p>"},
		{"no link to a bucket", APA, Markdown, ibid.Source{Title: "T", URL: "gs://b/a_b"}, `*T*. (n.d.). gs\://b/a\_b`},
	} {
		t.Run(test.about, func(t *testing.T) {
			testenv.Equal(t, "", test.want+"\n", write(t, test.f, test.m, Entry{Source: test.source}))
		})
	}
}

// failing is a writer that always fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("full")

func TestWriteErrors(t *testing.T) {
	entries := []Entry{{Source: page}}
	if err := Write(failing{}, BibTeX, entries, nil); !errors.Is(err, errFull) || err.Error() != "writing a bibliography: full" {
		t.Errorf("a writer's error: %v", err)
	}
	if err := Write(&bytes.Buffer{}, "turabian", nil, nil); err == nil || err.Error() != `writing a bibliography: there is no format "turabian"` {
		t.Errorf("an unknown format: %v", err)
	}
	if err := Write(&bytes.Buffer{}, APA, entries, &Options{Markup: "rtf"}); err == nil || err.Error() != `writing a bibliography: there is no markup "rtf"` {
		t.Errorf("an unknown markup: %v", err)
	}
}

func TestFormats(t *testing.T) {
	for _, f := range Formats() {
		if f.MediaType() == "" {
			t.Errorf("%s has no media type", f)
		}
		if out := write(t, f, Plain, Entry{Source: page}); !strings.Contains(out, page.Title) || !strings.Contains(out, page.URL) {
			t.Errorf("%s lacks title or address:\n%s", f, out)
		}
	}
	if got := Format("x").MediaType(); got != "" {
		t.Errorf("an unknown format has the media type %q", got)
	}
}
