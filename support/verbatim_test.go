package support

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What an index says is what the text says: for a claim, and for each stretch of the text.
func FuzzVerbatim(f *testing.F) {
	long := strings.Repeat("the US army and the UK's navy didn't pay $5 million [1] in 2,019 ", 12)
	for _, text := range []string{
		"The tower is 333 m high. It was built in 1889, by 300 workers.", long, long + ". " + long, "He said: “No.” [1, 2] Then he left. U.S. troops, 5-10 of them.",
		"東京タワーは高さ333メートルです。", "５００ people paid +5 % – or −3 €", "a b a b a c a b a b a d", "Dr. Who? Mr. No. 5",
	} {
		f.Add("It was built in 1889", text, uint(3), uint(20))
		f.Add("the US army", text, uint(0), uint(400))
	}
	f.Fuzz(func(t *testing.T, claim, text string, from, length uint) {
		x := indexPassage(text)
		from %= uint(len(text)) + 1
		length %= uint(len(text)) - from + 1
		for _, claim := range []string{claim, text[from : from+length], text[from:]} {
			if got, want := x.verbatim(newRawClaim(claim)), Verbatim(claim, x.text); got != want {
				t.Errorf("%q in %q: %t by its index, %t", claim, text, got, want)
			}
		}
	})
}

// The same of texts made of what is read in an odd way, with claims cut from them.
func TestVerbatimByIndex(t *testing.T) {
	pieces := []string{
		"the", "US", "us", "UK's", "didn't", "he'll", "U.S.", "e.g.", "5", "2,019", "5th", "$", "%", "-", "[1]", "[2, 3]", "５", "Straße", "東京", "a", "b", "c",
		"no", "not", "Dr.", "tower", "towers", "USA", "“No.”", "x\u0301", "\xff", "333", "twelve", "12",
	}
	ends := []string{" ", " ", " ", " ", "", ". ", "! ", "\n\n", ", ", "-", "’"}
	r := rand.New(rand.NewPCG(1, 2))
	stands := 0
	for range 4000 {
		var b strings.Builder
		for range 1 + r.IntN(150) {
			b.WriteString(pieces[r.IntN(len(pieces))] + ends[r.IntN(len(ends))])
		}
		text := b.String()
		x := indexPassage(text)
		for range 8 {
			from := r.IntN(len(text))
			claim := text[from : from+r.IntN(min(60, len(text)-from)+1)]
			if r.IntN(3) == 0 {
				claim = pieces[r.IntN(len(pieces))] + " " + claim
			}
			want := Verbatim(claim, text)
			if want {
				stands++
			}
			if got := x.verbatim(newRawClaim(claim)); got != want {
				t.Fatalf("%q in %q: %t by its index, %t", claim, text, got, want)
			}
		}
	}
	if stands < 5000 {
		t.Errorf("only %d claims stand in their text", stands)
	}
}
