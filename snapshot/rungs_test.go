package snapshot_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// How pages write what others quote: a page, a quote, and how the page has it; empty if it says something else.
func TestRungs(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/rungs.txt", 4) {
		text := extract(t, row[1], "text/html; charset=utf-8")
		m, ok := text.Searcher().Find(&snapshot.Quote{Exact: row[2]})
		if string(m.How) != row[3] || ok != (row[3] != "") {
			t.Errorf("%s: %q in %q: %+v, want %q", row[0], row[2], text.Content, m, row[3])
		}
	}
}

// What pages say that stand in the place of a source: an obstacle, or nothing, and a page.
func TestObstacle(t *testing.T) {
	article := "<p>" + strings.Repeat("The keeper wrote down every ship that came in with the tide. ", 20)
	for _, row := range testenv.Cases(t, "testdata/obstacles.txt", 2) {
		text := extract(t, strings.ReplaceAll(row[1], "ARTICLE", article), "text/html; charset=utf-8")
		if string(text.Obstacle) != row[0] {
			t.Errorf("%q: %q, want %q", row[1], text.Obstacle, row[0])
		}
	}
}

// Formats that are read for their values.
func TestData(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/data.txt", 3) {
		testenv.Equal(t, row[1], row[2], extract(t, row[1], row[0]).Content)
	}
}

// The passage around a place in a text goes on after a quote that was cut, and not beyond a heading.
func TestAround(t *testing.T) {
	page := "<h2>A</h2><p>One.<p>Two.<p>Three.<h2>B</h2><p>Four."
	text := extract(t, page, "text/html")
	at := strings.Index(text.Content, "Two")
	got := text.Around(ibid.Span{Start: at, End: at + 3})
	testenv.Equal(t, "passage", "A One. Two. Three.", got)
	long := extract(t, "<p>"+strings.Repeat("ä b ", 5000), "text/html")
	if got := long.Around(ibid.Span{Start: 9000, End: 9004}); len(got) > 3100 || !strings.Contains(got, "ä b ä") {
		t.Errorf("%d bytes around a place in a long block", len(got))
	}
}

// Quotes full of what is searched for take linear time.
func TestRungsBounded(t *testing.T) {
	words := strings.Repeat("a b … ", 40_000)
	for _, quote := range []string{words, strings.Repeat("[a](b) ", 20_000), strings.Repeat("&amp;", 40_000), strings.Repeat("1,000 ", 40_000)} {
		text := extract(t, "<p>"+strings.Repeat("a b … 1 000 &amp;amp;amp; [x] ", 40_000), "text/html")
		text.Searcher().Find(&snapshot.Quote{Exact: quote})
	}
}

// No page, no quote and no data makes the search panic, and what it finds is in the text.
func FuzzRungs(f *testing.F) {
	for _, row := range testenv.Cases(f, "testdata/rungs.txt", 4) {
		f.Add(row[1], row[2], "text/html")
	}
	f.Add(`{"a":["<b>1</b>",{"c":true}]}`, "c: true", "application/json")
	f.Add(`<rss><item><title>a &amp; b</title><d>&lt;p&gt;c</d></item></rss>`, "a & b c", "text/xml")
	f.Fuzz(func(t *testing.T, page, quote, media string) {
		text, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{MediaType: media})
		if err != nil {
			return
		}
		checkText(t, text)
		m, ok := text.Searcher().Find(&snapshot.Quote{Exact: quote})
		if !ok {
			return
		}
		if _, in := snapshot.Slice(text.Content, m.Start, m.End); !in || m.End <= m.Start || m.Text == "" {
			t.Fatalf("%q in %q: %+v", quote, text.Content, m)
		}
	})
}
