package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid/internal/testenv"
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

// The profile ibid-text/1, rule by rule, and common mistakes in pages.
func TestHTML(t *testing.T) {
	for _, name := range []string{"html", "html_sloppy"} {
		for _, row := range testenv.Cases(t, "testdata/"+name+".txt", 3) {
			testenv.Equal(t, fmt.Sprintf("%s: %s", name, row[0]), row[2], extract(t, row[1], "text/html; charset=utf-8").Content)
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
	for _, test := range append([][]string{
		{"UTF-16", utf16le("<p>café"), "text/html", "café", "utf-16le"},
		{"meta too late", strings.Repeat(" ", 1100) + "<meta charset=utf-8><p>\xe9", "text/html", "é", "windows-1252"},
	}, testenv.Cases(t, "testdata/charset.txt", 5)...) {
		text := extract(t, test[1], test[2])
		if text.Content != test[3] || text.Charset != test[4] {
			t.Errorf("%s: %q as %s, want %q as %s", test[0], text.Content, text.Charset, test[3], test[4])
		}
	}
}

// blocksOf returns blocks in readable form.
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
	for _, row := range testenv.Cases(t, "testdata/blocks.txt", 3) {
		testenv.Equal(t, row[0], row[2:], blocksOf(extract(t, row[1], row[0])))
	}
}

func TestFacts(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/facts.txtar")
	if err != nil || len(ar.Files) != 10 {
		t.Fatalf("facts.txtar has not five documents: %v", err)
	}
	for f := range slices.Chunk(ar.Files, 2) {
		var want snapshot.Text
		testenv.OK(t, json.Unmarshal(f[1].Data, &want))
		mediaType := "text/html; charset=utf-8"
		if strings.HasSuffix(f[0].Name, ".md") {
			mediaType = "text/markdown"
		}
		got := extract(t, string(f[0].Data), mediaType)
		facts := snapshot.Text{
			Title: got.Title, Authors: got.Authors, PublishedAt: got.PublishedAt, Language: got.Language, Site: got.Site, License: got.License, URL: got.URL,
		}
		testenv.Equal(t, f[0].Name, want, facts)
	}
}

func TestRecognise(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/recognise.txt", 4) {
		got, err := snapshot.Extract([]byte(row[0]), &snapshot.TextOptions{MediaType: row[1], Name: row[2]})
		if err != nil || got.MediaType != row[3] {
			t.Errorf("Extract(%q) = %v, %v", row, got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	wants := map[string]error{
		"ErrEmpty": snapshot.ErrEmpty, "ErrUnsupported": snapshot.ErrUnsupported, "ErrTooDeep": snapshot.ErrTooDeep,
		"ErrTooLarge": snapshot.ErrTooLarge,
	}
	for _, test := range append([][]string{
		{"control characters", strings.Repeat("\x01\x02\x03a", 10), "", "ErrUnsupported", "it looks like binary data"},
		{"deep", strings.Repeat("<div>", 600), "text/html", "ErrTooDeep", "512"},
		{"too large", strings.Repeat("a", 101), "", "ErrTooLarge", "it has 101 bytes, the limit is 100"},
	}, testenv.Cases(t, "testdata/refused.txt", 5)...) {
		o := &snapshot.TextOptions{MediaType: test[2]}
		if test[3] == "ErrTooLarge" {
			o.Bytes = 100
		}
		_, err := snapshot.Extract([]byte(test[1]), o)
		if !errors.Is(err, wants[test[3]]) || err == nil || !strings.Contains(err.Error(), test[4]) {
			t.Errorf("%s: %v, want %s, %q", test[0], err, test[3], test[4])
		}
	}
	if got := extract(t, "<svg xmlns='x'><text>a</text></svg>", "image/svg+xml").MediaType; got != "image/svg+xml" {
		t.Errorf("SVG was read as %s", got)
	}
}

// Pages whose tree would be many times their size: from 64 KiB a parser would make gigabytes.
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
	// Ordinary mistakes pass.
	extract(t, strings.Repeat("<p><b>x<i>y</b>", 2000), "text/html")
}

func TestNormalize(t *testing.T) {
	if got, want := snapshot.Normalize("  a\u0301\u200b\n b\ufffd "), "á b"; got != want {
		t.Errorf("Normalize = %q, want %q", got, want)
	}
}

// Every character is kept, is white space, or is dropped.
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

// The example of the attribution specification: a page, its text, and a manifest with the hashes and the place of an
// excerpt.
func TestGolden(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "spec", "golden")
	read := func(name string) []byte {
		t.Helper()
		return testenv.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	}
	page := testenv.Must(snapshot.Extract(read("source.html"), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}))(t)
	testenv.Equal(t, "text", string(read("source.text")), page.Content)
	var manifest struct {
		Sources []struct {
			TextHash   string `json:"text_hash"`
			TextLength int    `json:"text_length"`
		}
		Claims []struct {
			Sources []struct {
				ExcerptOffset [2]int `json:"excerpt_offset"`
				Excerpt       struct{ Exact, Prefix, Suffix string }
			}
		}
	}
	testenv.OK(t, json.Unmarshal(read("manifest.json"), &manifest))
	sum := sha256.Sum256([]byte(page.Content))
	if got, want := "sha256:"+hex.EncodeToString(sum[:]), manifest.Sources[0].TextHash; got != want {
		t.Errorf("text_hash = %s, want %s", got, want)
	}
	if got, want := utf8.RuneCountInString(page.Content), manifest.Sources[0].TextLength; got != want {
		t.Errorf("text_length = %d, want %d", got, want)
	}
	cited := manifest.Claims[0].Sources[0]
	runes := []rune(page.Content)
	if got := string(runes[cited.ExcerptOffset[0]:cited.ExcerptOffset[1]]); got != cited.Excerpt.Exact {
		t.Errorf("excerpt = %q, want %q", got, cited.Excerpt.Exact)
	}
}
