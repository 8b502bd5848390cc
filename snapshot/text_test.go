package snapshot_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid/snapshot"
)

func ExampleExtract() {
	page := `<!doctype html><title>Towers</title><nav>Home</nav>
		<h1>Iron tower</h1><p>It was built in&nbsp;1889.<p hidden>draft<script>track()</script>`
	text, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text.Content)
	fmt.Println(text.Title)
	// Output:
	// Home Iron tower It was built in 1889.
	// Towers
}

func extract(t *testing.T, b, mediaType string) *snapshot.Text {
	t.Helper()
	text, err := snapshot.Extract([]byte(b), &snapshot.TextOptions{MediaType: mediaType})
	if err != nil {
		t.Fatalf("Extract(%.60q): %v", b, err)
	}
	return text
}

// The profile ibid-text/1, rule by rule.
func TestHTML(t *testing.T) {
	for _, test := range []struct{ name, html, want string }{
		{"inline elements join", `a<b>b</b>c <i>d</i>`, "abc d"},
		{"block elements part", `<p>a</p><p>b</p><div>c<br>d</div>`, "a b c d"},
		{"cells part", `<table><tr><td>1</td><td>2</td></tr></table>`, "1 2"},
		{"entities", `&lt;p&gt; &amp; &eacute; &#x1F9ED;`, "<p> & é 🧭"},
		{"white space", "a\u00a0\u2003\t\r\n b\u2028c\u3000d", "a b c d"},
		{"no-break inside words stays out", "zero\u200bwidth so\u00adft \u202ebidi\u202c \ufeffmark", "zerowidth soft bidi mark"},
		{"what is no character", "a\ufffdb", "ab"},
		{"composed", "cafe\u0301", "café"},
		{"composed within a block only", "<p>e</p><p>\u0301x</p>", "e \u0301x"},
		{"left out", `<script>1</script><style>2</style><template>3</template><noscript>4</noscript><iframe>5</iframe>` +
			`<object>6</object><svg><text>7</text></svg><select><option>8</select><textarea>9</textarea>x`, "x"},
		{"option without select", `a<option>b</option>`, "a b"},
		{"hidden", `a<div hidden>b<p>c</p></div><span hidden="until-found">d</span>e`, "ae"},
		{"not by style", `<p style="display:none">a</p>`, "a"},
		{"no attributes", `<img alt="a"><input value="b"><a title="c">d</a>`, "d"},
		{"the head is not visible", `<head><title>t</title></head><body>b`, "b"},
		{"details and dialogs", `<details><summary>s</summary>d</details><dialog>x</dialog>`, "s d x"},
		{"math is text", `<math><mi>x</mi><mo>=</mo><mn>1</mn></math>`, "x=1"},
		{"comments", `a<!-- b -->c<![CDATA[d]]>`, "ac"},
		{"broken", `<p>a<b>b<p>c</b>d</table></div>e`, "ab cde"},
		{"pre", "<pre>a\n  b</pre>", "a b"},
		{"nothing", `<html><body></body></html>`, ""},
	} {
		if diff := cmp.Diff(test.want, extract(t, test.html, "text/html; charset=utf-8").Content); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestCharset(t *testing.T) {
	utf16le := func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	for _, test := range []struct{ name, bytes, mediaType, want, charset string }{
		{"said", "caf\xe9", "text/html; charset=iso-8859-1", "café", "windows-1252"},
		{"mark wins", "\xef\xbb\xbfcafé", "text/html; charset=iso-8859-1", "café", "utf-8"},
		{"UTF-16", utf16le("<p>café"), "text/html", "café", "utf-16le"},
		{"meta", "<meta charset=koi8-r><p>\xc4\xc1", "text/html", "да", "koi8-r"},
		{"pragma", `<meta http-equiv="Content-Type" content="text/html; charset=utf-8"><p>é`, "text/html", "é", "utf-8"},
		{"pragma without its name", `<meta content="text/html; charset=utf-8"><p>é`, "text/html", "Ã©", "windows-1252"},
		{"meta cannot say UTF-16", "<meta charset=utf-16><p>é", "text/html", "é", "utf-8"},
		{"meta too late", strings.Repeat(" ", 1100) + "<meta charset=utf-8><p>é", "text/html", "Ã©", "windows-1252"},
		{"a server that does not say", "<p>é", "text/html", "Ã©", "windows-1252"},
		{"a file of which nobody says", "<p>é", "", "é", "utf-8"},
		{"unknown", "<p>\xe9", "text/html; charset=klingon", "é", "windows-1252"},
		{"text is UTF-8", "é", "text/plain", "é", "utf-8"},
		{"text that is not", "\xe9", "text/plain", "é", "windows-1252"},
		{"XML", "<?xml version='1.0' encoding='iso-8859-15'?><a>\xa4</a>", "text/xml", "<?xml version='1.0' encoding='iso-8859-15'?><a>€</a>", "iso-8859-15"},
		{"XHTML", "<?xml version='1.0' encoding='utf-8'?><html><body>é</body></html>", "application/xhtml+xml", "é", "utf-8"},
	} {
		text := extract(t, test.bytes, test.mediaType)
		if text.Content != test.want || text.Charset != test.charset {
			t.Errorf("%s: %q as %s, want %q as %s", test.name, text.Content, text.Charset, test.want, test.charset)
		}
	}
}

// blocksOf lists blocks as people read them.
func blocksOf(text *snapshot.Text) []string {
	var all []string
	for _, b := range text.Blocks {
		kind := string(b.Kind)
		if b.Level > 0 {
			kind += fmt.Sprint(b.Level)
		}
		all = append(all, kind+": "+text.Content[b.Span.Start:b.Span.End])
	}
	return all
}

func TestBlocks(t *testing.T) {
	for _, test := range []struct {
		mediaType, text string
		want            []string
	}{
		{"text/html; charset=utf-8", `<h1>A</h1>free<ul><li><p>one</p><li>two</ul><table><tr><th>x<td>y</table><pre>z</pre><h3>B<br>C</h3>`, []string{
			"heading1: A", "paragraph: free", "item: one", "item: two", "cell: x", "cell: y", "code: z", "heading3: B", "heading3: C",
		}},
		{"text/markdown", "# A\ntext\nmore\n\n- one\n  two\n- three\n\n1. four\n\n| a | b |\n|---|---|\n\n```go\n# no heading\n\nx\n```\nafter\n\nB\n===\n\nC\n-----\n#no\n", []string{
			"heading1: # A", "paragraph: text more", "item: - one two", "item: - three", "item: 1. four", "cell: | a | b |", "cell: |---|---|",
			"code: ```go # no heading x ```", "paragraph: after", "heading1: B ===", "heading2: C -----", "paragraph: #no",
		}},
		{"text/plain", "# not\na heading\n\n\n- b\n", []string{"paragraph: # not a heading", "paragraph: - b"}},
		{"text/csv", "a,b\nc,d\n", []string{"cell: a,b", "cell: c,d"}},
		{"application/json", `{"a": 1}`, []string{`code: {"a": 1}`}},
	} {
		if diff := cmp.Diff(test.want, blocksOf(extract(t, test.text, test.mediaType))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.mediaType, diff)
		}
	}
}

func TestFacts(t *testing.T) {
	for _, test := range []struct {
		name, mediaType, text string
		want                  snapshot.Text
	}{
		{
			"page", "text/html; charset=utf-8", `<!doctype html><html lang="en-GB"><head><title>The <b>title</title>
			<meta name="author" content="Ada L."><meta name=author content="Ada L."><meta property="article:author" content="https://x.example/ada">
			<meta property="article:published_time" content="2026-04-28T10:00:00Z"><meta property="og:site_name" content="Towers">
			<link rel="license" href="https://license.example/by"><link rel="canonical" href="https://x.example/a"></head><body>x`,
			snapshot.Text{
				Title: "The <b>title", Authors: []string{"Ada L."}, PublishedAt: "2026-04-28T10:00:00Z", Language: "en-GB", Site: "Towers",
				License: "https://license.example/by", URL: "https://x.example/a",
			},
		},
		{
			"JSON-LD", "text/html; charset=utf-8", `<body><script type="application/ld+json">{"@graph":[{"@type":"WebPage"},{"headline":"H","author":[{"name":"A"},{"name":"B"}],
			"datePublished":"2026-04-28","publisher":{"name":"P"}}]}</script>x`,
			snapshot.Text{Title: "H", Authors: []string{"A", "B"}, PublishedAt: "2026-04-28", Site: "P"},
		},
		{"a date that is none", "text/html; charset=utf-8", `<meta name=date content="3 days ago"><body>x`, snapshot.Text{}},
		{
			"front matter", "text/markdown", "---\ntitle: \"T\"\nauthors:\n  - A\n  - B\ndate: 2026-04-28\nlicense: CC0\n---\n# H\n",
			snapshot.Text{Title: "T", Authors: []string{"A", "B"}, PublishedAt: "2026-04-28", License: "CC0"},
		},
		{"first heading", "text/markdown", "\n# The *H*\ntext", snapshot.Text{Title: "The *H*"}},
	} {
		got := extract(t, test.text, test.mediaType)
		facts := snapshot.Text{
			Title: got.Title, Authors: got.Authors, PublishedAt: got.PublishedAt, Language: got.Language, Site: got.Site, License: got.License, URL: got.URL,
		}
		if diff := cmp.Diff(test.want, facts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestRecognise(t *testing.T) {
	for _, test := range []struct{ bytes, said, name, want string }{
		{"<!DOCTYPE html><p>x", "", "", "text/html"},
		{"<p>x", "", "a.md", "text/markdown"},
		{"x", "application/octet-stream", "a.HTML", "text/html"},
		{`{"a":1}`, "", "", "application/json"},
		{"# A\n\nb", "", "", "text/markdown"},
		{"a, b", "", "", "text/plain"},
		{"<?xml version='1.0'?><html xmlns='x'/>", "", "", "application/xhtml+xml"},
		{"<?xml version='1.0'?><rss/>", "", "", "application/xml"},
		{"<p>x", "text/plain; charset=utf-8", "a.html", "text/plain"},
		{"x", "TEXT/HTML;bad;;", "", "text/html"},
		{"package main", "", "main.go", "text/plain"},
	} {
		got, err := snapshot.Extract([]byte(test.bytes), &snapshot.TextOptions{MediaType: test.said, Name: test.name})
		if err != nil || got.MediaType != test.want {
			t.Errorf("Extract(%q, %q, %q) = %v, %v, want %s", test.bytes, test.said, test.name, got, err, test.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, bytes, mediaType string
		want                   error
		words                  string
	}{
		{"empty", " \n", "", snapshot.ErrEmpty, "it is empty"},
		{"PNG", "\x89PNG\r\n\x1a\n\x00", "text/html", snapshot.ErrUnsupported, "it looks like a PNG image"},
		{"Word", "PK\x03\x04....word/document.xml", "", snapshot.ErrUnsupported, "it looks like a Word document (.docx)"},
		{"ZIP", "PK\x03\x04....", "", snapshot.ErrUnsupported, "it looks like a ZIP archive"},
		{"RTF", "{\\rtf1\\ansi x}", "", snapshot.ErrUnsupported, "it looks like an RTF document"},
		{"RTF without its head", "{\\pard \\ql x\\par}", "", snapshot.ErrUnsupported, "it looks like an RTF document"},
		{"zeros", "abc\x00\x01\x02def", "", snapshot.ErrUnsupported, "it looks like binary data"},
		{"control characters", strings.Repeat("\x01\x02\x03a", 10), "", snapshot.ErrUnsupported, "it looks like binary data"},
		{"an image, said", "abc", "image/png", snapshot.ErrUnsupported, `its type is "image/png"`},
		{"deep", strings.Repeat("<div>", 600), "text/html", snapshot.ErrTooDeep, "512"},
		{"too large", strings.Repeat("a", 101), "", snapshot.ErrTooLarge, "it has 101 bytes, the limit is 100"},
	} {
		o := &snapshot.TextOptions{MediaType: test.mediaType}
		if errors.Is(test.want, snapshot.ErrTooLarge) {
			o.Bytes = 100
		}
		_, err := snapshot.Extract([]byte(test.bytes), o)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", test.name, err, test.words)
		}
	}
	if got := extract(t, "<svg xmlns='x'><text>a</text></svg>", "image/svg+xml").MediaType; got != "image/svg+xml" {
		t.Errorf("SVG was read as %s", got)
	}
}

// Pages whose tree would be many times as large as they are: of 64 KiB each, a parser would make gigabytes.
func TestHostileHTML(t *testing.T) {
	attributes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " a%d", i)
		}
		return b.String()
	}
	var formats strings.Builder
	for i := range 400 {
		fmt.Fprintf(&formats, "<b id=%d>", i)
	}
	for name, page := range map[string]string{
		"elements opened again":       formats.String() + strings.Repeat("<p>x", 12_000),
		"attributes copied":           "<b" + attributes(4000) + ">" + strings.Repeat("<p>x", 10_000),
		"attributes merged":           strings.Repeat("<html"+attributes(20)+">", 2000),
		"hidden in what looks raw":    "<svg><title>" + formats.String() + strings.Repeat("<p>x", 12_000),
		"hidden in a foreign script":  "<svg><style>" + formats.String() + strings.Repeat("<p>x", 12_000),
		"hidden in a foreign textbox": "<math><mtext><textarea></textarea>" + formats.String() + strings.Repeat("<p>x", 12_000),
	} {
		_, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{MediaType: "text/html"})
		if !errors.Is(err, snapshot.ErrTooLarge) && !errors.Is(err, snapshot.ErrTooDeep) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	// Ordinary sloppiness passes.
	extract(t, strings.Repeat("<p><b>x<i>y</b>", 2000), "text/html")
}

func TestNormalize(t *testing.T) {
	if got, want := snapshot.Normalize("  a\u0301\u200b\n b\ufffd "), "á b"; got != want {
		t.Errorf("Normalize = %q, want %q", got, want)
	}
}

// Of every character: it stays, is white space, or is dropped.
func TestNormalizeEach(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue
		}
		want := "a" + string(r) + "b"
		switch {
		case unicode.IsSpace(r):
			want = "a b"
		case r == utf8.RuneError, unicode.Is(unicode.Cf, r):
			want = "ab"
		default:
			want = norm.NFC.String(want)
		}
		if got := snapshot.Normalize("a" + string(r) + "b"); got != want {
			t.Errorf("Normalize of %U = %q, want %q", r, got, want)
		}
	}
}
