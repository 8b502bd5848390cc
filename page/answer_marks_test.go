package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A quote that several claims rest on says of each word which of them share it: a card shows only those of its own claim.
func TestQuoteMarks(t *testing.T) {
	words := newClaimWords("Birds: 118 species.")
	q := words.mark("118 species of birds, 14 of dragonflies.")
	all := "a"
	for id, claim := range map[string]string{"b": "Dragonflies have 14 species."} {
		words.set(claim)
		q.also(words, id, all)
		all += " " + id
	}
	words.set("118 species of birds and dragonflies")
	q.also(words, "c", all)
	var b strings.Builder
	q.write(&b)
	want := `<mark data-of="a c">118 </mark><mark>species</mark> of <mark data-of="a c">birds</mark>, <mark data-of="b">14</mark> of <mark data-of="b c">dragonflies</mark>.`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However the claims overlap, the words are all there, once, and no mark is empty or reaches into another.
func FuzzQuoteMarks(f *testing.F) {
	f.Add("118 species of birds, 14 of dragonflies", "118 birds", "species of birds", "14 dragonflies birds")
	f.Fuzz(func(t *testing.T, quote, one, two, three string) {
		words := newClaimWords(one)
		q := words.mark(quote)
		words.set(two)
		q.also(words, "b", "a")
		words.set(three)
		q.also(words, "c", "a b")
		at := 0
		for _, h := range q.hits {
			if h.start < at || h.end <= h.start || h.end > len(q.text) {
				t.Fatalf("%v in %q", q.hits, q.text)
			}
			at = h.end
		}
	})
}
