package ibid

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/prose"

	"github.com/ibidhq/ibid/internal/markdown"
)

// What isPlainBreak considers the end of a word without context is one in the whole text.
func TestPlainBreak(t *testing.T) {
	next := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab1.,:;_'\"-&*\\ \t\r\n(é日\u0301\u200d🎉")
	for range 20_000 {
		runes := make([]rune, 2+next.IntN(8))
		for i := range runes {
			runes[i] = alphabet[next.IntN(len(alphabet))]
		}
		text := string(runes)
		for at := 1; at < len(text); at++ {
			if isPlainBreak(text[at-1], text[at:]) && prose.WordEnd(text, at) != at {
				t.Fatalf("%q: a word continues at %d", text, at)
			}
		}
	}
}

// Markers in a run of hundreds of kilobytes cost about the same as in prose: nothing scans the run for each of them,
// which would take thousands of times as long. With the race detector some runs take 30 times as long as prose.
func TestPlacesInLongRuns(t *testing.T) {
	const size, apart = 300_000, 20
	place := func(unit string) time.Duration {
		places := places{markdown.Parse("x" + strings.Repeat(unit, size/len(unit)) + "x")}
		start := time.Now()
		for at := 0; at <= size; at += apart {
			places.after(at)
		}
		return max(time.Since(start), time.Millisecond)
	}
	prose := place("Herons (two) *nest* in old mills, it's said. ")
	for _, unit := range []string{"a", `\`, " ", "\n"} {
		if took := place(unit); took > 200*prose {
			t.Errorf("%q: %v, in prose %v", unit, took, prose)
		}
	}
}
