package ibid

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// annotated returns the answer that text describes: «words» is a claim, ‹words› a link, ˄ a point, each citing the next
// source of a, b, c, a, …; a digit before the opening mark (1 to 3) names the source instead: ①«words».
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

func TestRenderPlaces(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"end of a sentence", "«It rained.» It stopped.", "It rained.[1] It stopped."},
		{"before the full stop", "«It rained». It stopped.", "It rained.[1] It stopped."},
		{"before a comma", "«It rained», then «it stopped».", "It rained,[1] then it stopped.[2]"},
		{"before a closing quote", "He said “«it rained».” Yes.", "He said “it rained.”[1] Yes."},
		{"mid-sentence", "«Rain» fell.", "Rain[1] fell."},
		{"inside a word", "The «gro»und.", "The ground.[1]"},
		{"inside a compound", "A «state-of»-the-art dam.", "A state-of-the-art[1] dam."},
		{"inside an apostrophe", "It do«n'»t.", "It don't.[1]"},
		{"before a unit", "Up «50»% now.", "Up 50%[1] now."},
		{"before a plural", "The «river»(s) rose.", "The river(s)[1] rose."},
		{"inside a grapheme", "e«e»\u0301e now", "ee\u0301e[1] now"},
		{"trailing space in the claim", "«It rained. »It stopped.", "It rained.[1] It stopped."},
		{"point after a cut-out mark", "It rained ˄. Yes.", "It rained .[1] Yes."},
		{"point at the start", "˄It rained.\nYes.\n", "It rained.[1]\nYes.\n"},
		{"Chinese", "«下雨了»。«真的。»好", "下雨了。[1]真的。[2]好"},
		{"Thai", "«ฝนตก» ที่นี่", "ฝนตก[1] ที่นี่"},
		{"Arabic", "«هطل المطر». نعم", "هطل المطر.[1] نعم"},

		{"end of bold", "It **«rained»** a lot.", "It **rained**[1] a lot."},
		{"inside bold", "It **«rained» hard** today.", "It **rained hard**[1] today."},
		{"sentence inside bold", "**«It rained.» It stopped.**", "**It rained.[1] It stopped.**"},
		{"full stop after bold", "It **«rained»**. Yes.", "It **rained**.[1] Yes."},
		{"full stop inside bold", "It **«rained».** Yes.", "It **rained.**[1] Yes."},
		{"nested emphasis", "***«a»** b* c", "***a** b*[1] c"},
		{"word half bold", "A **«b»**c d", "A **b**c[1] d"},
		{"strikethrough", "~~«old»~~ new", "~~old~~[1] new"},
		{"literal star", "2 «*» 3 = 6", "2 * 3[1] = 6"},
		{"list mark from a star", "It\n*«»", "It[1]\n*"},

		{"code span", "Use `a[«0»]` now.", "Use `a[0]`[1] now."},
		{"link text", "See [the «gauge»](https://g.example) now.", "See [the gauge](https://g.example)[1] now."},
		{"link destination", "See [g](https://«g».example) now.", "See [g](https://g.example)[1] now."},
		{"reference link", "See [g«a»uge][g] now.\n\n[g]: https://g.example\n", "See [gauge][g][1] now.\n\n[g]: https://g.example\n"},
		{"image", "![al«t»](https://i.example/a.png) now", "![alt](https://i.example/a.png)[1] now"},
		{"autolink", "See <https://«g».example> now.", "See <https://g.example>[1] now."},
		{"bare address", "See https://«g».example/a now.", "See https://g.example/a [1] now."},
		{"bare address and full stop", "«See https://g.example/a». Now", "See https://g.example/a. [1] Now"},
		{"address without a domain", "See http://loc«al»host:80/a now.", "See http://localhost:80/a [1] now."},
		{"mail address", "Ask me@«g».example now.", "Ask me@g.example [1] now."},
		{"HTML tag", "It <span title=\"«x»\">rained</span>.", "It <span title=\"x\">rained</span>.[1]"},
		{"HTML code", "Use <code>a «b» c</code> now.", "Use <code>a b c</code>[1] now."},
		{"entity", "Rain &a«m»p; wind", "Rain &amp;[1] wind"},
		{"escape", "Rain \\«*» wind", "Rain \\*[1] wind"},
		{"dollar math", "As $E = «m»c^2$ shows.", "As $E = mc^2$[1] shows."},
		{"prices are no math", "It costs $5 or «$6» now.", "It costs $5 or $6[1] now."},
		{"paren math", `As \(E = «m»c^2\) shows.`, `As \(E = mc^2\)[1] shows.`},
		{"display math", "So\n\n$$\na\n- «b»\n$$\n\nok", "So\n\n$$\na\n- b\n$$[1]\n\nok"},
		{"bracket math", "So\n\n\\[\na «b»\n\\]\n", "So\n\n\\[\na b\n\\][1]\n"},
		{"footnote mark", "It rained[^«1»] here.\n\n[^1]: a gauge", "It rained[^1][1] here.\n\n[^1]: a gauge"},
		{"footnote definition", "Yes[^1].\n\n[^«1»]: a gauge here", "Yes[^1].[1]\n\n[^1]: a gauge here"},

		{"heading", "# «Rain» #\n", "# Rain[1] #\n"},
		{"setext heading", "Rain\n«==»==\n", "Rain[1]\n====\n"},
		{"thematic break", "Rain\n\n-«--»\n\nwind", "Rain[1]\n\n---\n\nwind"},
		{"hard break by spaces", "«Rain»  \nwind", "Rain[1]  \nwind"},
		{"hard break by backslash", "«Rain»\\\nwind", "Rain[1]\\\nwind"},
		{"trailing backslash", "Rain «a\\»", "Rain a[1]\\"},
		{"start of a line", "Rain\n- «»wind", "Rain[1]\n- wind"},
		{"list mark", "- rain\n«- »wind\n", "- rain[1]\n- wind\n"},
		{"task", "- [«x] r»ain\n", "- [x] rain[1]\n"},
		{"quote", "> «rain»\n> wind\n", "> rain[1]\n> wind\n"},
		{"table cell", "| a | b |\n|---|---|\n| «c» | d«e» |\n", "| a | b |\n|---|---|\n| c[1] | de[2] |\n"},
		{"table rule", "| a | b |\n|-«--»|---|\n| c | d |\n", "| a | b[1] |\n|---|---|\n| c | d |\n"},
		{"definition", "Rain [r].\n\n[r]: https://«r».example\n", "Rain [r].[1]\n\n[r]: https://r.example\n"},

		{"fence", "Run\n\n```go\n«x()»\n```\n\nthen", "Run\n\n```go\nx()\n```\n\n[1]\n\nthen"},
		{"fence before text", "```go\n«x()»\n```\nthen", "```go\nx()\n```\n\n[1]\n\nthen"},
		{"fence at the end", "```go\n«x()»\n```\n", "```go\nx()\n```\n\n[1]\n"},
		{"indented code", "Run\n\n    «x()»\n\nthen", "Run\n\n    x()\n\n[1]\n\nthen"},
		{"HTML block", "<div>\n«rain»\n</div>\n\nthen", "<div>\nrain\n</div>\n\n[1]\n\nthen"},
		{"unfinished fence", "Run this:\n\n```\n«x()»", "Run this:[1]\n\n```\nx()"},
		{"unfinished fence alone", "```\n«x()»", "[1]\n\n```\nx()"},
		{"unfinished comment", "Rain <b>x</b>\n\n<!-- «open»", "Rain <b>x</b>[1]\n\n<!-- open"},
		{"code in a list", "- run\n  ```\n  «x()»\n  ```\n- then\n", "- run[1]\n  ```\n  x()\n  ```\n- then\n"},
		{"code first in a list", "- ```\n  «x()»\n  ```\n- then\n", "- ```\n  x()\n  ```\n- then\n\n[1]\n"},
		{"whole answer", "«# Rain\n\nIt **rained**.\n\n- a\n- b\n»", "# Rain\n\nIt **rained**.\n\n- a\n- b[1]\n"},
		{"CRLF", "«Rain»\r\n\r\n- «wind»\r\n", "Rain[1]\r\n\r\n- wind[2]\r\n"},
		{"empty", "«»", "[1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StylePlain})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderLinks(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"parenthesised before the full stop", "It rained ‹([a.example](https://a.example/x))›. Yes.", "It rained.[1] Yes."},
		{"parenthesised after the full stop", "It rained. ‹([a.example](https://a.example/x))› Yes.", "It rained.[1] Yes."},
		{"between two full stops", "It rained. ‹([a.example](https://a.example/x))›.", "It rained.[1]"},
		{"mid-sentence", "It rained ‹([a.example](https://a.example/x))› and stopped.", "It rained[1] and stopped."},
		{"title link at the end", "It rained ‹[Alpha](https://a.example/x)›.", "It rained.[1]"},
		{"title link after the sentence", "It rained. ‹[A report](https://a.example/x)› Yes.", "It rained.[1] Yes."},
		{"double brackets", "It rained.‹[[1]](https://a.example/x)› Yes.", "It rained.[1] Yes."},
		{"several double brackets", "It rained.‹[[1]](https://a.example/x)›‹[[2]](https://b.example/y)›", "It rained.[1][2]"},
		{"number", "It rained‹[4]›.", "It rained.[1]"},
		{"numbers", "It rained ‹[4]›‹[7]›. Yes", "It rained.[1][2] Yes"},
		{"document mark", "It rained ‹[doc3]›‹[doc1]›.", "It rained.[1][2]"},
		{"lenticular mark", "下雨了‹【4:0†a】›。", "下雨了。[1]"},
		{"two in one pair of parentheses", "It rained (‹[a](https://a.example/x)›, ‹[b](https://b.example/y)›). Yes", "It rained.[1][2] Yes"},
		{"claim and link together", "«It rained» ‹([a](https://a.example/x))›. Yes.", "It rained.[1][2] Yes."},
		{"same source by claim and link", "①«It rained» ①‹([a](https://a.example/x))›.", "It rained.[1]"},
		{"in bold", "**It rained ‹([a](https://a.example/x))›.** Yes.", "**It rained.**[1] Yes."},
		{"alone in bold", "It **‹[1]›** ok", "It **[1]** ok"},
		{"in a cell", "| a |\n|---|\n| rain ‹([a](https://a.example/x))› |\n", "| a |\n|---|\n| rain[1] |\n"},
		{"alone on its line", "It rained.\n\n‹([a](https://a.example/x))›\n", "It rained.\n\n[1]\n"},
		{"alone in a list item", "- ‹[2]›\n- wind\n", "- [1]\n- wind\n"},
		{"inside a link", "Get [the table](‹sandbox:/mnt/data/a.csv›) now.", "Get [the table](sandbox:/mnt/data/a.csv)[1] now."},
		{"words of the sentence", "According to ‹[Reuters](https://a.example/x)›, it rained.", "According to [Reuters](https://a.example/x),[1] it rained."},
		{"list of titles", "- ‹[Rain](https://a.example/x)›\n- ‹[Wind](https://b.example/y)›\n", "- [Rain](https://a.example/x)[1]\n- [Wind](https://b.example/y)[2]\n"},
		{"no mark at all", "‹It rained›. Yes", "It rained.[1] Yes"},
		{"in code", "Use `a‹[1]›` now", "Use `a[1]`[1] now"},
		{"in a fence", "```\na‹[1]›\n```\n", "```\na[1]\n```\n\n[1]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StylePlain})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderGroups(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"one place, two sources", "①«②«It rained».»", "It rained.[1][2]"},
		{"one place, one source twice", "①«①«It» rained»", "It[1] rained[1]"},
		{"nested, equal ends", "③«It ①«rained»».", "It rained.[1][2]"},
		{"overlapping", "«It «rained» hard».", "It rained[1] hard.[2]"},
		{"numbers by first use", "③«It» ①«rained» ③«hard».", "It[1] rained[2] hard.[1]"},
		{"numbers ascend in a group", "③«It» ①«rained» ①«③«hard»».", "It[1] rained[2] hard.[1][2]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StylePlain})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderMarkdown(t *testing.T) {
	const a, b = "(https://a.example/x)", "(https://b.example/y)"
	tests := []struct{ name, text, want string }{
		{"link", "«It rained».", "It rained.[1]" + a},
		{"two links", "②«①«It rained».»", "It rained.[1]" + a + " [2]" + b},
		{"no URL", "③«It rained». Yes", "It rained.[1] Yes"},
		{"no URL before a parenthesis", "③«It», ③«rained»(s) ③«下»(x)", "It,[1] rained(s)[1] 下\\[1\\](x)"},
		{"no URL before a bracket", "It `③«x»`[y]", "It `x`\\[1\\][y]"},
		{"no URL where the text defines the label", "③«It rained».\n\n[1]: https://evil.example\n", "It rained.\\[1\\]\n\n[1]: https://evil.example\n"},
		{"no URL on its own line", "```\n③«x»\n```\n", "```\nx\n```\n\n\\[1\\]\n"},
		{"after an exclamation mark", "«It rained»! Yes", "It rained! [1]" + a + " Yes"},
		{"after a bracket", "«It [rained]» Yes", "It [rained] [1]" + a + " Yes"},
		{"after a reference", "«It [r]» Yes\n\n[r]: /r", "It [r] [1]" + a + " Yes\n\n[r]: /r"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
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

func TestRenderFootnotes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"definitions", "«It» ③«rained».", "It[^1] rained.[^2]\n\n[^1]: Alpha — a.example <https://a.example/x>\n[^2]: c.pdf\n"},
		{"label taken", "«It» rained[^1].\n\n[^1]: a gauge", "It[^s1] rained[^1].\n\n[^1]: a gauge\n\n[^s1]: Alpha — a.example <https://a.example/x>\n"},
		{"not cited", "It rained.", "It rained."},
		{"unfinished fence", "③«It»\n\n```\nx", "It[^1]\n\n```\nx\n```\n\n[^1]: c.pdf\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StyleFootnotes})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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

// TestRenderTree checks that markers leave the rest of the tree alone in markdown as chat models write it.
func TestRenderTree(t *testing.T) {
	for seed := range uint64(1500) {
		next := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same texts in each run
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

// chatText makes up a text of blocks and inline constructs that close.
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
