package ibid

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed returns an answer with every kind of entry in its list.
func listed() *Answer {
	page := func(l Locator) *Locator { return &l }
	return &Answer{
		Text: "It rained. The river rose. It fell again.",
		Sources: []Source{
			{ID: "a", Kind: Web, Title: "Rain, 2024", URL: "https://www.rain.example/2024", Site: "Rain Office"},
			{ID: "b", Kind: File, Filename: "gauge.pdf"},
			{ID: "c", Kind: Web, URL: "https://river.example/x"},
			{ID: "d", Kind: Web, Title: "Not used", URL: "https://other.example/"},
		},
		Citations: []Citation{
			{Span: Span{0, 10}, Anchor: AnchorExact, Refs: []Ref{{Source: "a", Quote: "40 mm\nfell"}}},
			{Span: Span{11, 26}, Anchor: AnchorExact, Refs: []Ref{{Source: "b", Locator: page(Locator{Page: 9})}, {Source: "b", Locator: page(Locator{Pages: []int{3, 5}})}}},
			{Anchor: AnchorNone, Refs: []Ref{{Source: "c"}}},
		},
	}
}

func TestRenderList(t *testing.T) {
	tests := []struct {
		name string
		opts RenderOptions
		want []string // lines after the text
	}{
		{"markdown", RenderOptions{}, []string{
			"Sources:", "",
			"1. [Rain, 2024](https://www.rain.example/2024) — Rain Office",
			"2. gauge.pdf — pp. 3–5, 9",
			"3. [river.example](https://river.example/x)",
		}},
		{"uncited", RenderOptions{Uncited: true}, []string{
			"Sources:", "",
			"1. [Rain, 2024](https://www.rain.example/2024) — Rain Office",
			"2. gauge.pdf — pp. 3–5, 9",
			"3. [river.example](https://river.example/x)", "",
			"Not cited:", "",
			"4. [Not used](https://other.example/) — other.example",
		}},
		{"quotes", RenderOptions{Quotes: true}, []string{
			"Sources:", "",
			"1. [Rain, 2024](https://www.rain.example/2024) — Rain Office", "",
			"   > 40 mm fell", "",
			"2. gauge.pdf — pp. 3–5, 9",
			"3. [river.example](https://river.example/x)",
		}},
		{"numbers with a gap", RenderOptions{Numbering: &Numbering{"file:x": 3, "#": 5, "web:https://rain.example/2024": 2}}, []string{
			"Sources:", "",
			`2\. [Rain, 2024](https://www.rain.example/2024) — Rain Office`, "",
			`6\. gauge.pdf — pp. 3–5, 9`, "",
			`7\. [river.example](https://river.example/x)`,
		}},
		{"plain", RenderOptions{Style: StylePlain, Quotes: true}, []string{
			"Sources:", "",
			"[1] Rain, 2024 — Rain Office — https://www.rain.example/2024",
			"    “40 mm fell”",
			"[2] gauge.pdf — pp. 3–5, 9",
			"[3] river.example — https://river.example/x",
		}},
		{"footnotes", RenderOptions{Style: StyleFootnotes, IDPrefix: "m2-"}, []string{
			"[^m2-1]: Rain, 2024 — Rain Office <https://www.rain.example/2024>",
			"[^m2-2]: gauge.pdf — pp. 3–5, 9",
			"[^m2-3]: river.example <https://river.example/x>",
		}},
		{"HTML", RenderOptions{Style: StyleHTML, IDPrefix: "m2-"}, []string{
			`<section class="ibid-sources">`, "<h2>Sources</h2>", "<ol>",
			`<li value="1" id="m2-source-1"><a href="https://www.rain.example/2024" rel="noopener noreferrer nofollow"><bdi>Rain, 2024</bdi></a> — <bdi>Rain Office</bdi></li>`,
			`<li value="2" id="m2-source-2"><bdi>gauge.pdf</bdi> — <bdi>pp. 3–5, 9</bdi></li>`,
			`<li value="3" id="m2-source-3"><a href="https://river.example/x" rel="noopener noreferrer nofollow"><bdi>river.example</bdi></a></li>`,
			"</ol>", "</section>",
		}},
		{"LaTeX", RenderOptions{Style: StyleLaTeX}, []string{
			`\begin{thebibliography}{3}`,
			`\bibitem[1]{source-1} \href{https://www.rain.example/2024}{Rain, 2024} --- Rain Office`,
			`\bibitem[2]{source-2} gauge.pdf --- pp. 3–5, 9`,
			`\bibitem[3]{source-3} \href{https://river.example/x}{river.example}`,
			`\end{thebibliography}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := listed()
			want := strings.Join(tt.want, "\n") + "\n"
			if diff := cmp.Diff(want, a.SourceList(&tt.opts)); diff != "" {
				t.Errorf("SourceList (-want +got):\n%s", diff)
			}
			tt.opts.List = true
			got := a.Render(&tt.opts)
			if !strings.HasSuffix(got, "\n"+want) {
				t.Errorf("Render does not end with the list: %q", got)
			}
			if s := tt.opts.Style; (s == "" || s == StylePlain) && !strings.HasSuffix(got, "again.\n\n"+want) {
				t.Errorf("no blank line before the list: %q", got)
			}
		})
	}
}

func TestRenderListOfNothing(t *testing.T) {
	a := &Answer{Text: "I do not know."}
	for style, want := range map[Style]string{
		StyleMarkdown:  "I do not know.\n\nNo sources.\n",
		StylePlain:     "I do not know.\n\nNo sources.\n",
		StyleFootnotes: "I do not know.\n\nNo sources.\n",
		StyleHTML:      "<p>I do not know.</p>\n<section class=\"ibid-sources\">\n<p>No sources.</p>\n</section>\n",
		StyleLaTeX:     "I do not know.\n\nNo sources.\n",
	} {
		if diff := cmp.Diff(want, a.Render(&RenderOptions{Style: style, List: true})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", style, diff)
		}
	}
	given := &Answer{Text: "I do not know.", Sources: []Source{{ID: "a", Title: "Given"}}}
	if diff := cmp.Diff("I do not know.\n\nNo sources cited.\n", given.Render(&RenderOptions{List: true})); diff != "" {
		t.Errorf("only uncited sources (-want +got):\n%s", diff)
	}
}

// TestRenderListHostile renders names that try to escape their context.
func TestRenderListHostile(t *testing.T) {
	tests := []struct{ name, title, url, want string }{
		{"brackets", "a](https://evil.example) [b", "https://a.example/", `1. [a\](https\://evil.example) \[b](https://a.example/) — a.example`},
		{"backticks", "a `b", "https://a.example/", "1. [a \\`b](https://a.example/) — a.example"},
		{"newlines", "a\n\n# b\r\n", "https://a.example/", `1. [a \# b](https://a.example/) — a.example`},
		{"direction", "a\u202Egpj.exe\u2066", "https://a.example/", "1. [agpj.exe](https://a.example/) — a.example"},
		{"HTML", "<script>alert(1)</script>", "https://a.example/", `1. [\<script\>alert(1)\</script\>](https://a.example/) — a.example`},
		{"script address", "a", "javascript:alert(1)", `1. a — javascript:alert(1)`},
		{"address as name", "https://evil.example", "", `1. https\://evil.example`},
		{"list in list", "- a", "", `1. \- a`},
		{"number in list", "1984. A novel", "", `1. 1984\. A novel`},
		{"only spaces", " \n ", "", "1. a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := annotated("«It» rained.")
			a.Sources[0].Title, a.Sources[0].URL = tt.title, tt.url
			if diff := cmp.Diff("Sources:\n\n"+tt.want+"\n", a.SourceList(nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkHTML(t, a.Render(&RenderOptions{Style: StyleHTML, List: true}))
			checkLaTeX(t, a.Render(&RenderOptions{Style: StyleLaTeX, List: true}))
		})
	}
	long := annotated("«It» rained.")
	long.Sources[0].Title = strings.Repeat("long ", 1000)
	if n := len(long.SourceList(nil)); n > 400 {
		t.Errorf("the list with a long title has %d bytes", n)
	}
}

func TestNumbering(t *testing.T) {
	var n Numbering
	for _, tt := range []struct {
		key  string
		want int
	}{{"a", 1}, {"b", 2}, {"a", 1}, {"c", 3}} {
		if got := n.Number(tt.key); got != tt.want {
			t.Errorf("Number(%q) = %d, want %d", tt.key, got, tt.want)
		}
	}
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"a":1,"b":2,"c":3}`, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	edited := Numbering{"x": 7}
	if got := edited.Number("y"); got != 8 {
		t.Errorf("after an edit: %d, want 8", got)
	}
}
