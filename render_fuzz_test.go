package ibid

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"github.com/ibidhq/ibid/internal/markdown"
)

// FuzzRender renders any text with any spans and checks the result: see checkRender.
func FuzzRender(f *testing.F) {
	for _, s := range renderSeeds {
		for _, spans := range []string{"\x00\xff\x00", "\x00\x10\x00\x10\x80\x01\x40\x60\x05\x90\xf0\x02", "\x20\x30\x04\x50\x70\x08\x80\x90\x0c\xa0\xff\x01"} {
			f.Add(s, []byte(spans))
		}
	}
	f.Fuzz(func(t *testing.T, text string, spans []byte) {
		if len(text) > 2000 || len(spans) > 60 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\v\f\u0085") {
			t.Skip()
		}
		checkRender(t, text, spans)
	})
}

var renderSeeds = []string{
	"Rivers rise in spring. They fall in **late summer**, see `flow()` and [the gauge](https://gauge.example/a).",
	"# Head #\n\n- one *two*\n- three\n  - four `x`\n\n1. a\n2. b\n\n> quote\n> more\n",
	"| a | b |\n|---|:-:|\n| c *d* | `e\\|f` |\n\nafter",
	"```go\nx := a[0]\n```\n\ntext\n\n    indented\n",
	"Inline $a_b$ and $$c$$ and \\(d\\) and \\[e\\].\n\n$$\nf\n- g\n$$\n",
	"<div>\nraw\n</div>\n\nsome <b>bold</b> <code>x y</code> &amp; \\* end\\\nnext  \nlast",
	"[^1] and [a][b] and [b]\n\n[b]: https://b.example 'T'\n[^1]: note\n",
	"他赢了。真的！好 สวัสดี e\u0301e\u0301 👩‍👩‍👧 U.S. Dr. Who",
	"Wow! See https://x.example/a. Or www.y.example, me@z.example!",
	"fact ([a](https://s0.example/p)). Fact [1][2]. [T](https://s1.example/p) says so",
	"***a** b* ~~c~~ __d__ _e_f *g\n* h* i",
	"- [ ] task\n- [x] done\n\n---\n\nTitle\n===\n\n<!-- open",
}

// fuzzAnswer returns an answer with a citation for every three bytes of spans: start and end as shares of the text, and
// kind.
func fuzzAnswer(text string, spans []byte, links bool) *Answer {
	return spanAnswer(text, spans, 3, "src%d", links)
}

// spanAnswer is fuzzAnswer with spans of size bytes, of which it uses three, and a format for the ids of sources.
func spanAnswer(text string, spans []byte, size int, id string, links bool) *Answer {
	a := &Answer{Text: text}
	for i := range 4 {
		a.Sources = append(a.Sources, Source{
			ID: fmt.Sprintf(id, i), Kind: Web, Title: "T", URL: fmt.Sprintf("https://s%d.example/p", i),
		})
	}
	at := func(share byte) int {
		i := int(share) * len(text) / 255
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
		return i
	}
	for ; len(spans) >= size; spans = spans[size:] {
		s := Span{at(min(spans[0], spans[1])), at(max(spans[0], spans[1]))}
		c := Citation{Span: s, Covers: CoversClaim, Anchor: AnchorExact, Refs: []Ref{{Source: a.Sources[spans[2]&3].ID}}}
		if links && spans[2]&4 != 0 {
			c.Covers = CoversLink
		}
		a.Citations = append(a.Citations, c)
	}
	return a
}

// checkRender checks the output in every style.
func checkRender(t *testing.T, text string, spans []byte) {
	t.Helper()
	plain := &Answer{Text: text}
	for _, style := range []Style{StyleMarkdown, StylePlain, StyleFootnotes} {
		if got := plain.Render(&RenderOptions{Style: style}); got != text {
			t.Errorf("%s without citations changed the text: %q", style, got)
		}
	}
	for _, list := range []bool{false, true} {
		for _, style := range []Style{StyleMarkdown, StylePlain, StyleHTML, StyleFootnotes, StyleLaTeX} {
			out := fuzzAnswer(text, spans, true).Render(&RenderOptions{Style: style, List: list, Uncited: true, Quotes: true})
			if style == StyleHTML {
				checkHTML(t, out)
			}
			if style == StyleLaTeX {
				checkLaTeX(t, out)
			}
		}
	}
	a := fuzzAnswer(text, spans, false)
	checkOnlyMarkers(t, a)
	checkLinks(t, a)
}

// checkOnlyMarkers checks that the output is the text with markers inserted, none of them in a word.
func checkOnlyMarkers(t *testing.T, a *Answer) {
	t.Helper()
	const token = "\x00"
	out := a.Render(&RenderOptions{Style: StylePlain, Marker: func(Marker) string { return token }})
	rest := a.Text
	for i := 0; i < len(out); i++ {
		isSpace := out[i] == ' ' || out[i] == '\n'
		switch {
		case out[i:i+1] == token:
			if i > 0 && i+1 < len(out) && isASCIIAlnum(rune(out[i-1])) && isASCIIAlnum(rune(out[i+1])) {
				t.Errorf("marker in a word: %q", out)
			}
		case rest != "" && rest[0] == out[i]:
			rest = rest[1:]
		case isSpace && strings.HasPrefix(strings.TrimLeft(out[i:], " \n"), token),
			isSpace && strings.HasSuffix(strings.TrimRight(out[:i], " \n"), token):
		default:
			t.Fatalf("byte %d of %q is not in the text %q", i, out, a.Text)
		}
	}
	if rest != "" {
		t.Errorf("text lost: %q", rest)
	}
}

// markerAddress is the suffix of marker URLs in tests of trees.
const markerAddress = ".example/marker"

// withMarkers returns a as markdown with markers that are distinguishable from links in the text.
func withMarkers(a *Answer) string {
	for i := range a.Sources {
		a.Sources[i].URL = fmt.Sprintf("https://s%d%s", i, markerAddress)
	}
	return a.Render(nil)
}

// checkLinks checks that each marker is parsed as a link, and so is in no code and no other link.
func checkLinks(t *testing.T, a *Answer) {
	t.Helper()
	out := withMarkers(a)
	got, _ := outline(out)
	want := 0
	for _, m := range newRendering(a, nil).markers {
		want += len(m.Items)
	}
	if got != want {
		t.Errorf("%d of %d markers are links in %q", got, want, out)
	}
}

// checkTree checks that markers do not change the rest of the markdown's tree.
func checkTree(t *testing.T, a *Answer) {
	t.Helper()
	_, want := outline(a.Text)
	out := withMarkers(a)
	if _, got := outline(out); !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
		t.Errorf("links changed the tree of %q to %q (-want +got):\n%s", a.Text, out, cmp.Diff(want, got))
	}
	for i := range a.Sources {
		a.Sources[i].URL = ""
	}
	out = a.Render(&RenderOptions{ByID: true})
	if _, got := outline(out); !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
		t.Errorf("labels changed the tree of %q to %q (-want +got):\n%s", a.Text, out, cmp.Diff(want, got))
	}
}

// checkText checks that HTML has the same text with and without markers.
func checkText(t *testing.T, a *Answer) {
	t.Helper()
	with, markers := htmlText(t, a.Render(&RenderOptions{Style: StyleHTML}))
	without, _ := htmlText(t, (&Answer{Text: a.Text}).Render(&RenderOptions{Style: StyleHTML}))
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("HTML text of %q differs (-want +got):\n%s", a.Text, diff)
	}
	if stops := len(newRendering(a, nil).markers); markers != stops {
		t.Errorf("HTML of %q has %d markers, want %d", a.Text, markers, stops)
	}
}

// outline returns the number of markers of withMarkers in a markdown text, and its tree without markers and white
// space.
func outline(src string) (int, []string) {
	source := []byte(src)
	md := goldmark.New(goldmark.WithExtensions(extension.GFM))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext()))
	o := outliner{source: source}
	o.children(doc, "")
	return o.markers, o.lines
}

type outliner struct {
	source  []byte
	markers int
	lines   []string
	text    strings.Builder
}

func (o *outliner) children(n ast.Node, path string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		o.node(c, path)
	}
}

func (o *outliner) node(n ast.Node, path string) {
	switch n := n.(type) {
	case *ast.Text:
		o.text.Write(n.Segment.Value(o.source))
		return
	case *ast.Link:
		if strings.HasSuffix(string(n.Destination), markerAddress) {
			o.markers++
			return
		}
		o.flush(path)
		o.add(path, "link "+string(n.Destination))
		o.children(n, path+"l")
		o.flush(path + "l")
		return
	case *ast.AutoLink:
		o.flush(path)
		o.add(path, "auto "+string(n.URL(o.source)))
		return
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			o.text.Write(s.Value(o.source))
		}
		return
	}
	o.flush(path)
	at := len(o.lines)
	what := n.Kind().String()
	switch n := n.(type) {
	case *ast.Heading:
		what += fmt.Sprint(n.Level)
	case *ast.Emphasis:
		what += fmt.Sprint(n.Level)
	case *ast.List:
		what += fmt.Sprint(n.IsTight, n.Start)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		for i := range n.Lines().Len() {
			s := n.Lines().At(i)
			o.text.Write(s.Value(o.source))
		}
	case *east.TaskCheckBox:
		what += fmt.Sprint(n.IsChecked)
	}
	o.add(path, what)
	o.children(n, path+" ")
	o.flush(path + " ")
	if n.Kind() == ast.KindParagraph && len(o.lines) == at+1 {
		o.lines = o.lines[:at] // a paragraph of only markers
	}
}

func (o *outliner) add(path, what string) { o.lines = append(o.lines, path+what) }

func (o *outliner) flush(path string) {
	s := strings.Join(strings.Fields(o.text.String()), "")
	for i := range 4 {
		s = strings.ReplaceAll(s, fmt.Sprintf("[src%d]", i), "")
		s = strings.ReplaceAll(s, fmt.Sprintf(`\[src%d\]`, i), "")
	}
	o.text.Reset()
	if s != "" {
		o.add(path, "text "+s)
	}
}

// htmlText returns the text of an HTML fragment without white space and markers, and the number of markers.
func htmlText(t *testing.T, fragment string) (string, int) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(fragment))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	markers := 0
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if n.Type == html.ElementNode && n.Data == "sup" && len(n.Attr) > 0 && n.Attr[0].Val == "ibid" {
			markers++
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	return strings.Join(strings.Fields(b.String()), ""), markers
}

// checkHTML checks that out has only elements, attributes and URLs that ibid writes.
func checkHTML(t *testing.T, out string) {
	t.Helper()
	allowed := strings.Fields("html head body p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a span sup section hr br table thead tbody tr th td input bdi div")
	z := html.NewTokenizer(strings.NewReader(out))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken, html.EndTagToken:
		case html.CommentToken, html.DoctypeToken:
			t.Errorf("HTML has %q", z.Raw())
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			if !slices.Contains(allowed, tok.Data) {
				t.Errorf("HTML has <%s>", tok.Data)
			}
			for _, at := range tok.Attr {
				switch at.Key {
				case "href":
					if markdown.SafeURL(at.Val) == "" && !strings.HasPrefix(at.Val, "#") {
						t.Errorf("HTML links to %q", at.Val)
					}
				case "title", "rel", "class", "id", "value", "start", "align", "type", "checked", "disabled", "role":
				default:
					t.Errorf("HTML has attribute %s in <%s>", at.Key, tok.Data)
				}
			}
		}
	}
}

// checkLaTeX checks that braces and environments are closed.
func checkLaTeX(t *testing.T, out string) {
	t.Helper()
	var open []string
	depth := 0
	for i := 0; i < len(out); i++ {
		rest := out[i:]
		switch {
		case strings.HasPrefix(rest, `\begin{verbatim}`):
			end := strings.Index(rest, `\end{verbatim}`)
			if end < 0 {
				t.Fatalf("verbatim does not end: %q", out)
			}
			i += end + len(`\end{verbatim}`) - 1
		case strings.HasPrefix(rest, `\begin{`):
			name := rest[len(`\begin{`):strings.IndexByte(rest, '}')]
			open = append(open, name)
			i += len(`\begin{}`) + len(name) - 1
		case strings.HasPrefix(rest, `\end{`):
			name := rest[len(`\end{`):strings.IndexByte(rest, '}')]
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("environment %s is not open: %q", name, out)
			}
			open = open[:len(open)-1]
			i += len(`\end{}`) + len(name) - 1
		case rest[0] == '\\':
			i++
		case rest[0] == '{':
			depth++
		case rest[0] == '}':
			if depth--; depth < 0 {
				t.Fatalf("brace closes nothing: %q", out)
			}
		case rest[0] == '#', rest[0] == '%':
			t.Fatalf("%c is not escaped: %q", rest[0], out)
		}
	}
	if depth != 0 || len(open) > 0 {
		t.Fatalf("%d braces and %v are open: %q", depth, open, out)
	}
}
