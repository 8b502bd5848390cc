package ibid

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// annotated returns the answer that text describes: «words» is a claim, ‹words› a link, ˄ a point, each citing the next
// source of a, b, c, a, …; a circled digit (1 to 3) before the opening mark selects the source instead: ①«words».
func annotated(text string) *Answer {
	a := &Answer{Sources: []Source{
		{ID: "a", Kind: Web, Title: "Alpha", URL: "https://a.example/x"},
		{ID: "b", Kind: Web, Title: "Beta", URL: "https://b.example/y"},
		{ID: "c", Kind: File, Filename: "c.pdf"},
	}}
	var b strings.Builder
	type open struct{ start, source int }
	var opened []open
	next, named := 0, -1
	source := func() int {
		if named >= 0 {
			return named
		}
		next++
		return (next - 1) % len(a.Sources)
	}
	cite := func(s Span, covers Covers, source int) {
		a.Citations = append(a.Citations, Citation{Span: s, Covers: covers, Anchor: AnchorExact, Refs: []Ref{{Source: a.Sources[source].ID}}})
	}
	for _, r := range text {
		switch r {
		case '①', '②', '③':
			named = int(r - '①')
			continue
		case '«', '‹':
			opened = append(opened, open{b.Len(), source()})
		case '»', '›':
			o := opened[len(opened)-1]
			opened = opened[:len(opened)-1]
			cite(Span{o.start, b.Len()}, map[rune]Covers{'»': CoversClaim, '›': CoversLink}[r], o.source)
		case '˄':
			cite(Span{b.Len(), b.Len()}, CoversPoint, source())
		default:
			b.WriteRune(r)
		}
		named = -1
	}
	a.Text = b.String()
	return a
}

// eachCase runs check for the cases in one part of testdata/render.txt, which describes them.
func eachCase(t *testing.T, part string, check func(t *testing.T, text, want string)) {
	t.Helper()
	data, err := os.ReadFile("testdata/render.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, cases, ok := strings.Cut(string(data), "\n# "+part+": ")
	if !ok {
		t.Fatalf("no cases of %s", part)
	}
	cases, _, _ = strings.Cut(cases, "\n# ")
	unquote := func(s string) string {
		s, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range strings.Split(strings.TrimSuffix(cases, "\n"), "\n\n")[1:] {
		fields := strings.Split(strings.TrimSuffix(c, "\n"), "\n\t")
		if len(fields) != 3 {
			t.Fatalf("not a name, a text and a result: %q", c)
		}
		t.Run(fields[0], func(t *testing.T) { check(t, unquote(fields[1]), unquote(fields[2])) })
	}
}

func TestRender(t *testing.T) {
	for _, part := range []struct {
		name  string
		style Style
		end   string // suffix of each output
		check func(t *testing.T, out string)
	}{
		{"places", StylePlain, "", nil},
		{"links", StylePlain, "", nil},
		{"groups", StylePlain, "", nil},
		{"markdown", StyleMarkdown, "", nil},
		{"footnotes", StyleFootnotes, "", nil},
		{"html", StyleHTML, "\n", checkHTML},
		{"latex", StyleLaTeX, "\n", checkLaTeX},
	} {
		t.Run(part.name, func(t *testing.T) {
			eachCase(t, part.name, func(t *testing.T, text, want string) {
				t.Helper()
				got := annotated(text).Render(&RenderOptions{Style: part.style})
				if diff := cmp.Diff(want+part.end, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if part.check != nil {
					part.check(t, got)
				}
			})
		})
	}
}

func TestRenderMarkdownURL(t *testing.T) {
	tests := []struct{ url, want string }{
		{"https://a.example/b c", "[1](https://a.example/b%20c)"},
		{"https://a.example/(b)", "[1](https://a.example/%28b%29)"},
		{"https://a.example/>b<", "[1](https://a.example/%3Eb%3C)"},
		{"https://a.example/a\n\nb", "[1](https://a.example/a%0A%0Ab)"},
		{"https://a.example/a|b`c`\\", "[1](https://a.example/a%7Cb%60c%60%5C)"},
		{"https://a.example/?a=1&copy;=2", "[1](https://a.example/?a=1&amp;copy;=2)"},
		{"https://a.example/\u202Efdp", "[1](https://a.example/%E2%80%AEfdp)"},
		{"HTTPS://a.example/ü", "[1](HTTPS://a.example/ü)"},
		{"mailto:a@b.example", "[1](mailto:a@b.example)"},
		{"javascript:alert(1)", "[1]"},
		{" javascript:alert(1)", "[1]"},
		{"data:text/html,x", "[1]"},
		{"sandbox:/mnt/data/a", "[1]"},
		{"gs://bucket/a", "[1]"},
		{"//a.example", "[1]"},
		{"https:", "[1]"},
	}
	for _, tt := range tests {
		a := annotated("It «rained» today")
		a.Sources[0].URL = tt.url
		if diff := cmp.Diff("It rained"+tt.want+" today", a.Render(nil)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.url, diff)
		}
	}
}

func TestRenderMessages(t *testing.T) {
	parts := func(texts ...string) *Answer {
		a := &Answer{Sources: []Source{{ID: "a"}, {ID: "b"}}}
		for i, s := range texts {
			a.Parts = append(a.Parts, Part{Span: Span{len(a.Text), len(a.Text) + len(s)}, Kind: AnswerPart, Message: i})
			a.Text += s
			cite := Citation{Span: Span{len(a.Text) - len(s), len(a.Text)}, Anchor: AnchorExact, Refs: []Ref{{Source: a.Sources[i%2].ID}}}
			a.Citations = append(a.Citations, cite)
		}
		return a
	}
	tests := []struct {
		texts []string
		want  string
	}{
		{[]string{"Looking.", "# Found"}, "Looking.[1]\n\n# Found[2]"},
		{[]string{"Looking.\n", "Found"}, "Looking.[1]\n\nFound[2]"},
		{[]string{"Looking.\n\n", "Found"}, "Looking.[1]\n\nFound[2]"},
		{[]string{"Looking.", "\n\nFound"}, "Looking.[1]\n\nFound[2]"},
		{[]string{"- a", "- b", "- c"}, "- a[1]\n\n- b[2]\n\n- c[1]"},
	}
	for _, tt := range tests {
		got := parts(tt.texts...).Render(&RenderOptions{Style: StylePlain})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.texts, diff)
		}
	}
	one := parts("Looking. ", "Found.")
	one.Parts[1].Message = 0
	if diff := cmp.Diff("Looking.[1] Found.[2]", one.Render(&RenderOptions{Style: StylePlain})); diff != "" {
		t.Errorf("parts of one message (-want +got):\n%s", diff)
	}
}

func TestRenderOptions(t *testing.T) {
	a := annotated("«It» ③«rained» «hard».")
	var numbering Numbering
	numbering.Number("another source")
	tests := []struct {
		name string
		opts *RenderOptions
		want string
	}{
		{"by id", &RenderOptions{ByID: true, Style: StylePlain}, "It[a] rained[c] hard.[b]"},
		{"numbering", &RenderOptions{Numbering: &numbering, Style: StylePlain}, "It[2] rained[3] hard.[4]"},
		{"numbering again", &RenderOptions{Numbering: &numbering, Style: StylePlain}, "It[2] rained[3] hard.[4]"},
		{"marker", &RenderOptions{Marker: func(m Marker) string {
			return fmt.Sprintf("{%d:%s}", m.At, m.Items[0].Source.ID)
		}}, "It{2:a} rained{9:c} hard.{15:b}"},
		{"no marker", &RenderOptions{Marker: func(Marker) string { return "" }}, "It rained hard."},
		{"unknown style", &RenderOptions{Style: "rtf"}, "It[1](https://a.example/x) rained[2] hard.[3](https://b.example/y)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, a.Render(tt.opts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderByIDEscapes(t *testing.T) {
	a := annotated("③«It» rained")
	for id, want := range map[string]string{
		"doc:0": "It[doc:0] rained", "a_b": "It[a_b] rained", "x](y": `It[x\]\(y] rained`, "^1": `It[\^1] rained`,
		"a|b": `It[a\|b] rained`, "\u202Eab\n": "It[ab] rained",
	} {
		a.Sources[2].ID, a.Citations[0].Refs[0].Source = id, id
		if diff := cmp.Diff(want, a.Render(&RenderOptions{ByID: true})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", id, diff)
		}
	}
}

func TestRenderOddAnswers(t *testing.T) {
	a := annotated("«It» rained")
	a.Citations[0].Refs = []Ref{{Source: "nobody"}}
	if got := a.Render(nil); got != a.Text {
		t.Errorf("unknown source: %q", got)
	}
	a.Citations[0].Refs = nil
	if got := a.Render(nil); got != a.Text {
		t.Errorf("no source: %q", got)
	}
	a.Citations[0] = Citation{Span: Span{-5, 900}, Anchor: AnchorExact, Refs: []Ref{{Source: "c"}}}
	if got := a.Render(nil); got != "It rained[1]" {
		t.Errorf("span out of range: %q", got)
	}
	a.Citations[0] = Citation{Span: Span{900, 901}, Covers: CoversLink, Anchor: AnchorExact, Refs: []Ref{{Source: "c"}}}
	if got := a.Render(nil); got != "It rained[1]" {
		t.Errorf("link out of range: %q", got)
	}
	a.Citations[0] = Citation{Anchor: AnchorNone, Refs: []Ref{{Source: "c"}}}
	if got := a.Render(nil); got != a.Text {
		t.Errorf("no place: %q", got)
	}
	a.Parts = []Part{{Span: Span{5, 2}}, {Span: Span{99, 120}, Message: 3}, {Span: Span{-1, 0}, Message: 7}}
	if got := a.Render(nil); got != a.Text {
		t.Errorf("odd parts: %q", got)
	}
}

// TestRenderTree checks that markers do not change the rest of the tree in markdown typical of chat models.
func TestRenderTree(t *testing.T) {
	for seed := range uint64(1500) {
		next := rand.New(rand.NewPCG(seed, 7))
		text := chatText(next)
		spans := make([]byte, 3*(1+next.IntN(6)))
		for i := range spans {
			spans[i] = byte(next.IntN(256))
		}
		a := fuzzAnswer(text, spans, false)
		checkTree(t, a)
		checkText(t, a)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// chatText returns a random text of blocks and closed inline constructs.
func chatText(next *rand.Rand) string {
	pick := func(all []string) string { return all[next.IntN(len(all))] }
	inline := func() string {
		var b strings.Builder
		for range 1 + next.IntN(6) {
			if b.Len() > 0 {
				b.WriteString(pick([]string{" ", " ", " ", ", ", ". ", "! ", "\n", "  \n"}))
			}
			b.WriteString(pick([]string{
				"rain", "the river rose", "**high water**", "*late*", "***both***", "~~old~~", "`code[0]`", "``a ` b``", "[a link](https://l.example/a_(b))",
				"![a picture](https://i.example/p.png)", "<https://auto.example/x>", "https://bare.example/x?a=b_c", "www.bare.example", "me@mail.example", "$a_1 + b$",
				`\(x*y\)`, "**bold `code` text**", "**It rose. It fell.**", "[r]", "[text][r]", "[^1]", "&amp;", `\*`, "50%", "state-of-the-art", "don't",
				"下雨了。", "naïve", "👩‍👩‍👧", "“quoted.”", "(in parentheses)", "x < y", "snake_case_name", "2 * 3", "U.S. law", "<b>tag</b>", "<code>c d</code>", "e.g. this",
			}))
		}
		return strings.TrimRight(b.String(), " \n") + pick([]string{".", "", "!", "?", ":"})
	}
	line := func() string { return strings.Join(strings.Fields(inline()), " ") }
	var b strings.Builder
	for range 1 + next.IntN(5) {
		switch next.IntN(9) {
		case 0:
			b.WriteString(pick([]string{"# ", "### "}) + line() + pick([]string{"", " ##"}))
		case 1:
			b.WriteString("- " + line() + "\n- " + line() + "\n  - " + line() + "\n- " + line())
		case 2:
			b.WriteString("1. " + line() + "\n2. " + line() + "\n\n   " + line() + "\n3. " + line())
		case 3:
			cell := strings.NewReplacer("|", "", "\n", " ")
			b.WriteString("| a | b |\n|---|:-:|\n| " + cell.Replace(line()) + " | " + cell.Replace(line()) + " |\n| c |  |")
		case 4:
			b.WriteString(pick([]string{"```go\nx := a[0] // **\n```", "    indented code", "~~~\n\ncode\n~~~", "<div>\nraw *html*\n</div>", "$$\na^2\n$$", "- item\n  ```\n  code\n  ```\n- item"}))
		case 5:
			b.WriteString("> " + line() + "\n> " + line())
		case 6:
			b.WriteString(pick([]string{"---", "- [ ] " + line() + "\n- [x] " + line(), line() + "\n==="}))
		default:
			b.WriteString(inline())
		}
		b.WriteString("\n\n")
	}
	return b.String() + "[r]: https://r.example 'R'\n"
}

func TestRenderHTMLHostileSource(t *testing.T) {
	a := annotated("«It» rained.")
	a.Sources[0].Title = `"><script>alert(1)</script>`
	a.Sources[0].URL = `https://a.example/"onmouseover="x`
	a.Sources[0].Site = "\u202Eevil"
	want := `<p>It<sup class="ibid"><a href="https://a.example/%22onmouseover=%22x" title="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt; — evil" rel="noopener noreferrer nofollow">1</a></sup> rained.</p>` + "\n"
	if diff := cmp.Diff(want, a.Render(&RenderOptions{Style: StyleHTML})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenderHTMLDeepNesting(t *testing.T) {
	const deepest = 64
	a := &Answer{Text: strings.Repeat(">", 100_000)}
	got := a.Render(&RenderOptions{Style: StyleHTML})
	if n := strings.Count(got, "<blockquote>"); n != deepest {
		t.Errorf("%d quotes, want %d", n, deepest)
	}
	if n := strings.Count(got, "&gt;"); n != 100_000-deepest {
		t.Errorf("%d marks as text, want %d", n, 100_000-deepest)
	}
}

func TestRenderLaTeXKeys(t *testing.T) {
	a := annotated("③«It» rained.")
	a.Sources[2].ID, a.Citations[0].Refs[0].Source = "doc:0}{x", "doc:0}{x"
	want := "It\\cite{m-doc:0--x} rained.\n\n\\begin{thebibliography}{1}\n\\bibitem[{doc:0\\}\\{x}]{m-doc:0--x} c.pdf\n\\end{thebibliography}\n"
	if diff := cmp.Diff(want, a.Render(&RenderOptions{Style: StyleLaTeX, ByID: true, List: true, IDPrefix: "m-"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
