package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// plain returns the text of pieces.
func plain(list []piece) string {
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.Text)
	}
	return b.String()
}

func TestQuoteMarks(t *testing.T) {
	q := newQuote("118 species of birds, 14 of dragonflies.", maxShownQuote)
	q.compare("a", "Birds: 118 species.")
	q.compare("b", "Dragonflies have 14 species.")
	q.compare("c", "118 species of birds and dragonflies")
	want := `<mark data-of="a c">118 </mark><mark>species</mark> of <mark data-of="a c">birds</mark>, ` +
		`<mark data-of="b">14</mark> of <mark data-of="b c">dragonflies</mark>.`
	if diff := cmp.Diff(want, string(piecesHTML(q.pieces(len(q.text))))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is marked, the words stay the same.
func FuzzQuoteMarks(f *testing.F) {
	f.Add("118 species of birds, 14 of dragonflies", "118 birds", "species of birds", "14 dragonflies birds")
	f.Fuzz(func(t *testing.T, words, one, two, three string) {
		q := newQuote(words, maxShownQuote)
		for i, claim := range []string{one, two, three} {
			q.compare(string(rune('a'+i)), claim)
		}
		for _, end := range []int{len(q.text), len(q.text) / 2} {
			if got := plain(q.pieces(end)); got != q.text[:end] {
				t.Fatalf("%q became %q", q.text[:end], got)
			}
		}
	})
}

func TestExcerptMarks(t *testing.T) {
	long := strings.Repeat("Herons nest in trees. ", 40)
	for _, row := range testenv.Cases(t, "testdata/excerpts.txt", 4) {
		testenv.Equal(t, row[0], row[3], string(piecesHTML(newFinder(row[1]).excerpt(row[2]))))
	}
	got := string(piecesHTML(newFinder("owl").excerpt(long + "An owl calls. " + long)))
	if !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") ||
		!strings.Contains(got, "An <mark>owl</mark> calls.") || len(got) > 500 {
		t.Errorf("far in: %q", got)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("bees da", "Bees <b>dance</b>\xff 東京 \u202e x")
	f.Add("a", strings.Repeat("\u0301a ", 300))
	f.Fuzz(func(t *testing.T, query, text string) {
		body := string(piecesHTML(newFinder(query).excerpt(text)))
		for _, mark := range []string{"<mark>", "</mark>"} {
			body = strings.ReplaceAll(body, mark, "")
		}
		if strings.ContainsAny(body, "<>") {
			t.Fatalf("%q has a tag of its own", body)
		}
	})
}

func TestCompareWords(t *testing.T) {
	shown := func(list []piece) string {
		var b strings.Builder
		for _, p := range list {
			if p.Marked {
				p.Text = "[" + p.Text + "]"
			}
			b.WriteString(p.Text)
		}
		return b.String()
	}
	long, other := strings.Repeat("x ", maxTokens), strings.Repeat("y ", maxTokens)
	for _, test := range []struct{ x, y, wantX, wantY string }{
		{"", "", "", ""},
		{"a b", "", "a b", ""},
		{"closed in 1987.", "closed in 1989.", "closed in [1987].", "closed in [1989]."},
		{"for 1260 days", "for 1250 days", "for [1260] days", "for [1250] days"},
		{"a b c", "a c", "a [b ]c", "a c"},
		{"a c", "a b c", "a c", "a [b ]c"},
		{"a " + long + "c", "a " + other + "c", "a [" + long[:len(long)-1] + "] c", "a [" + other[:len(other)-1] + "] c"},
	} {
		x, y := compareWords(test.x, test.y)
		if diff := cmp.Diff([]string{test.wantX, test.wantY}, []string{shown(x), shown(y)}); diff != "" {
			t.Errorf("%.20q and %.20q: %s", test.x, test.y, diff)
		}
	}
}

// Whatever the difference, both sides stay the same.
func FuzzDiffWords(f *testing.F) {
	f.Add("for 126 days", "for 125 long days")
	f.Fuzz(func(t *testing.T, x, y string) {
		was, is := "", ""
		for _, e := range diffWords(x, y) {
			if e.Kind != snapshot.EditText {
				was += e.Text
			}
			if e.Kind != snapshot.EditQuote {
				is += e.Text
			}
		}
		if was != x || is != y {
			t.Errorf("%q and %q became %q and %q", x, y, was, is)
		}
	})
}
