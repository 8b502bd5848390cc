package ibid

import (
	"strings"
	"testing"
	"time"
)

// Markers in a run of hundreds of kilobytes cost about what they do in prose: nothing walks over the run for each of them.
func TestPlacesInLongRuns(t *testing.T) {
	const size, apart = 300_000, 20
	place := func(unit string) time.Duration {
		places := newPlaces("x" + strings.Repeat(unit, size/len(unit)) + "x")
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
