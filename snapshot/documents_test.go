package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// row is what a test looks at of a document.
type row struct{ ID, Title, URL, Text string }

func rows(docs []snapshot.Document) []row {
	var all []row
	for _, d := range docs {
		all = append(all, row{d.ID, d.Title, d.URL, d.Text.Content})
	}
	return all
}

func TestReadDocuments(t *testing.T) {
	for _, test := range testenv.Cases(t, "testdata/documents.txt", 6) {
		docs, err := snapshot.ReadDocuments(test[0], []byte(test[1]), nil)
		if err != nil {
			t.Errorf("ReadDocuments(%s): %v", test[0], err)
			continue
		}
		var want []row // four columns each
		for d := range slices.Chunk(test[2:], 4) {
			want = append(want, row{d[0], d[1], d[2], d[3]})
		}
		testenv.Equal(t, fmt.Sprintf("%s %s", test[0], test[1]), want, rows(docs))
	}
}

// An unreadable line does not affect others.
func TestReadDocumentsDamaged(t *testing.T) {
	docs := testenv.Must(snapshot.ReadDocuments("a.jsonl", []byte("{\"text\":\"x\"}\n{broken\n{\"title\":\"no text\"}\n{\"text\":\"y\"}\n"), nil))(t)
	testenv.Equal(t, "", []row{{"a.jsonl#1", "", "", "x"}, {"a.jsonl#4", "", "", "y"}}, rows(docs))
	if issues := docs[0].Text.Issues; len(issues) != 2 || issues[0].Code != snapshot.IssueLineUnreadable || !strings.Contains(issues[1].Detail, "line 3") {
		t.Errorf("issues: %v", issues)
	}
	if _, err := snapshot.ReadDocuments("a.jsonl", []byte("{broken\n"), nil); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("no line is a document: %v", err)
	}
	o := &snapshot.TextOptions{Limits: snapshot.Limits{Documents: 2}}
	if _, err := snapshot.ReadDocuments("a.jsonl", []byte(strings.Repeat("\"x\"\n", 3)), o); !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("three documents, limit two: %v", err)
	}
}

// JSON in an encoding other than UTF-8 loses characters, which is reported. Other text is decoded.
func TestReadDocumentsInvalidUTF8(t *testing.T) {
	for _, test := range []struct{ name, bytes, issue string }{
		{"a.jsonl", "\"x\"\n{\"text\":\"caf\xe9\"}\n\"\xe9\"\n", "bytes that are not UTF-8 are lost, the first in line 2"},
		{"a.json", "[{\"text\":\"x\",\n\"title\":\"caf\xe9\"}]", "bytes that are not UTF-8 are lost, the first in line 2"},
		{"a.jsonl", "\"café\"\n", ""},
		{"a.txt", "caf\xe9", ""},
	} {
		var want []ibid.Issue
		if test.issue != "" {
			want = []ibid.Issue{{Code: snapshot.IssueInvalidUTF8, Detail: test.issue}}
		}
		docs := testenv.Must(snapshot.ReadDocuments(test.name, []byte(test.bytes), nil))(t)
		testenv.Equal(t, test.name, want, docs[0].Text.Issues)
	}
}

// The error has the limit, as the size of a file that was read up to it is unknown.
func TestReadDocumentsTooLarge(t *testing.T) {
	o := &snapshot.TextOptions{Limits: snapshot.Limits{Bytes: 100}}
	_, err := snapshot.ReadDocuments("a.txt", bytes.Repeat([]byte("a"), 101), o)
	if !errors.Is(err, snapshot.ErrTooLarge) || err.Error() != "a.txt: it is too large: it has more than 100 bytes" {
		t.Errorf("101 bytes, limit 100: %v", err)
	}
}

// Many unreadable lines take no more memory than few, because only some are reported.
func TestReadDocumentsManyDamaged(t *testing.T) {
	file := []byte("\"x\"\n" + strings.Repeat("x\n", 1<<18))
	var docs []snapshot.Document
	var err error
	peak := peakOf(func() { docs, err = snapshot.ReadDocuments("a.jsonl", file, nil) })
	if err != nil || len(docs) != 1 || len(docs[0].Text.Issues) != 100 || peak > 32<<20 {
		t.Errorf("%d documents, %v, %d MB", len(docs), err, peak>>20)
	}
}

// A document is a source that can be cited; one without an address is the same source wherever its file is.
func TestDocumentSource(t *testing.T) {
	read := func(name, text string) ibid.Source {
		t.Helper()
		docs := testenv.Must(snapshot.ReadDocuments(name, []byte(text), nil))(t)
		return docs[0].Source
	}
	a, b, c := read("x/a.txt", "words"), read("y/b.txt", "words\n"), read("a.txt", "other words")
	if a.Key() != b.Key() || a.Key() == c.Key() {
		t.Errorf("keys: %s %s %s", a.Key(), b.Key(), c.Key())
	}
	page := read("p.html", `<link rel=canonical href="https://x.example/p"><title>P</title>x`)
	want := ibid.Source{ID: "p.html", Kind: ibid.File, Title: "P", URL: "https://x.example/p", Filename: "p.html"}
	testenv.Equal(t, "", want, page)
}

func TestPassages(t *testing.T) {
	text := extract(t, `<h1>A</h1><p>`+strings.Repeat("One two three. ", 10)+`</p><p>short</p><h2>B</h2><p>x</p><h2>C</h2>`, "text/html")
	passages := text.Passages(&snapshot.PassageOptions{Size: 60})
	at := 0
	for i, p := range passages {
		if p.Index != i || p.Span.Len() > 60 || p.Span.Len() == 0 || strings.Trim(text.Content[at:p.Span.Start], " ") != "" {
			t.Errorf("passage %d: %+v after %d", i, p, at)
		}
		at = p.Span.End
	}
	if at != len(text.Content) {
		t.Errorf("passages end at %d of %d", at, len(text.Content))
	}
	first, last := passages[0], passages[len(passages)-2]
	if got := text.Content[first.Span.Start:first.Span.End]; !strings.HasPrefix(got, "A One two three.") || first.Heading != "A" || first.Breaks[0] != 2 {
		t.Errorf("first passage: %+v %q", first, got)
	}
	if got := text.Content[last.Span.Start:last.Span.End]; got != "B x" || last.Heading != "B" {
		t.Errorf("passage before the last: %+v %q", last, got)
	}
}

// A heading may be as long as its document: passages have the beginning of it.
func TestPassagesLongHeading(t *testing.T) {
	for name, heading := range map[string]string{"words": strings.Repeat("word ", 400) + "end", "no words": strings.Repeat("日本語", 400)} {
		for _, p := range snapshot.Passages("# "+heading+"\n\none\n\ntwo\n", nil) {
			if n := len(p.Heading); n > snapshot.MaxHeading || n < snapshot.MaxHeading-6 || !strings.HasPrefix(heading, p.Heading) || !utf8.ValidString(p.Heading) {
				t.Errorf("%s: heading of %d bytes: %q", name, n, p.Heading)
			}
		}
	}
}

// Passages are adjacent, not longer than the size, and lose no words, whatever the text and the size.
func TestPassagesOfText(t *testing.T) {
	for _, text := range []string{
		"", " ", "a", "# H\n\na\n\n\nb", strings.Repeat("x", 100), strings.Repeat("日本語", 30), strings.Repeat("a b. ", 50), "🧭🧭",
	} {
		for size := 1; size < 40; size++ {
			passages := snapshot.Passages(text, &snapshot.PassageOptions{Size: size})
			at := 0
			for _, p := range passages {
				if p.Span.Start < at || strings.TrimSpace(text[at:p.Span.Start]) != "" || p.Span.Len() > max(size, 4) {
					t.Fatalf("%q by %d: %v after %d", text, size, p.Span, at)
				}
				at = p.Span.End
			}
			if strings.TrimSpace(text[at:]) != "" {
				t.Fatalf("%q by %d: nothing has %q", text, size, text[at:])
			}
		}
	}
}

func ExampleText_Passages() {
	text, err := snapshot.Extract([]byte("# Tower\nIt was built in 1889.\n\n# Paint\nIt is painted often."), &snapshot.TextOptions{Name: "tower.md"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range text.Passages(nil) {
		fmt.Printf("%s: %s\n", p.Heading, text.Content[p.Span.Start:p.Span.End])
	}
	// Output:
	// Tower: # Tower It was built in 1889.
	// Paint: # Paint It is painted often.
}

// Apart separates the blocks of a passage, and Place maps evidence in it to the text.
func TestPassageApart(t *testing.T) {
	text := extract(t, `<h1>Sea 🦦 otters</h1><p>They hold hands.</p><ul><li>Urchins</li><li>Clams, é</li></ul>`, "text/html; charset=utf-8")
	p := &text.Passages(nil)[0]
	apart := p.Apart(text.Content)
	testenv.Equal(t, "", "Sea 🦦 otters\n\nThey hold hands.\n\nUrchins\n\nClams, é", apart)
	for words, want := range map[string]string{
		"They hold hands.": "They hold hands.", "\n\nClams, é": "Clams, é", "Urchins\n\nClams": "Urchins Clams", "Sea 🦦": "Sea 🦦",
		"Sea 🦦 otters\n\nThey hold": "They hold", "é": "é", "\xa9": "",
	} {
		start := strings.Index(apart, words)
		place := p.Place(text.Content, ibid.Span{Start: start, End: start + len(words)})
		if got := text.Content[place.Start:place.End]; got != want {
			t.Errorf("%q is found as %q, want %q", words, got, want)
		}
	}
	for _, s := range []ibid.Span{{}, {Start: -9, End: -3}, {Start: 5, End: 2}, {Start: 900, End: 950}} {
		if got := p.Place(text.Content, s); got.Len() != 0 {
			t.Errorf("%v is found at %v", s, got)
		}
	}
	plain := snapshot.Passages("a\n\nb", nil)[0]
	if got := plain.Apart("a\n\nb"); got != "a\n\nb" {
		t.Errorf("a text with its own breaks becomes %q", got)
	}
}
