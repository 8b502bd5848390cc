package ibid

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/prose"
)

// Markers in a run of hundreds of kilobytes cost about what they do in prose: nothing walks over the run for each of them.
func TestPlacesInLongRuns(t *testing.T) {
	const size, apart = 300_000, 20
	place := func(unit string) time.Duration {
		places := newSafePlaces("x" + strings.Repeat(unit, size/len(unit)) + "x")
		start := time.Now()
		for at := 0; at <= size; at += apart {
			places.after(at)
		}
		return max(time.Since(start), time.Millisecond)
	}
	prose := place("Herons (two) *nest* in old mills, it's said. ")
	for _, unit := range []string{"a", `\`, " ", "\n"} {
		if took := place(unit); took > 20*prose {
			t.Errorf("%q: %v, in prose %v", unit, took, prose)
		}
	}
}

// Runs are found whole, and what is asked of them is what walking over them finds.
func TestRuns(t *testing.T) {
	for _, size := range []int{1, longRun - 1, longRun, longRun + 1, 500} {
		for _, c := range []string{"a", "7", `\`, " ", "\n", "*", "`"} {
			text := "é" + strings.Repeat(c, size) + "é(" + strings.Repeat(c, size)
			p := safePlaces{&tree{text: text}, longRuns(text)}
			for _, want := range []Span{{2, 2 + size}, {5 + size, 5 + 2*size}} {
				for at := want.Start; at < want.End; at++ {
					if got := p.run(at); got != want {
						t.Fatalf("%d times %q: the run at %d is %v, want %v", size, c, at, got, want)
					}
					if got, want := p.isEscaped(want.Start, at), c == `\` && (at-want.Start)%2 == 1; got != want {
						t.Fatalf("%d times %q: escaped at %d: %t", size, c, at, got)
					}
				}
			}
		}
	}
}

// Where bytes alone say that a word ends, it does.
func TestPlainBreak(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab1.,:;_'\"-&*\\ \t\r\n(é日\u0301\u200d🎉")
	for range 20_000 {
		text := make([]rune, 2+r.IntN(8))
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		s := string(text)
		for at := 1; at < len(s); at++ {
			if isPlainBreak(s[at-1], s[at]) && prose.WordEnd(s, at) != at {
				t.Fatalf("%q: a word goes on at %d", s, at)
			}
		}
	}
}
