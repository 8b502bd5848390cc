package otel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Patterns are found wherever strings.Index finds them.
func TestPatterns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab\x00\xff"[rng.IntN(4)]
		}
		return string(b)
	}
	for range 300 {
		known := map[string]bool{}
		for range 1 + rng.IntN(40) {
			known[word(1+rng.IntN(40))] = true
		}
		texts := slices.Sorted(maps.Keys(known))
		s := word(rng.IntN(200))
		for range rng.IntN(5) {
			s += texts[rng.IntN(len(texts))] + word(rng.IntN(3))
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, text := range texts {
			for at := 0; at < len(s); at++ {
				if strings.HasPrefix(s[at:], text) {
					want[fmt.Sprint(at, text)] = true
				}
			}
		}
		left := newPatterns(texts).in(s, 1<<30, func(text string, at int) { got[fmt.Sprint(at, text)] = true })
		if diff := cmp.Diff(want, got); diff != "" || left < 0 {
			t.Fatalf("%q in %q:\n%s", texts, s, diff)
		}
	}
}

// What may be searched is bounded.
func TestPatternsBounded(t *testing.T) {
	var texts []string
	for i := range 1000 {
		texts = append(texts, strings.Repeat("a", 30)+fmt.Sprint(i))
	}
	found := 0
	left := newPatterns(texts).in(strings.Repeat("a", 10_000)+"7", 1<<20, func(string, int) { found++ })
	if left >= 0 || found > 0 {
		t.Errorf("%d left, %d found", left, found)
	}
}
