package snapshot_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// What changes a number, a word or a question is not set in another way: it is another text.
func TestFindReformatted(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/find_reformatted.txt", 3) {
		m, ok := snapshot.Find(snapshot.Normalize(row[0]), &snapshot.Quote{Exact: row[1]})
		if strconv.FormatBool(ok) != row[2] {
			t.Errorf("%q in %q: %+v, %v", row[1], row[0], m, ok)
		}
	}
}

// A quote that begins or ends inside a number says something else, also where it stands in its place.
func TestFindCut(t *testing.T) {
	const text = "The trial cured 15 percent of all, –5 more (7) than 1/2 of the unable; it was 10.5 of them."
	for _, test := range testenv.Cases(t, "testdata/find_cut.txt", 2) {
		quote, cut := test[0], test[1] == "true"
		start := len([]rune(text[:strings.Index(text, quote)]))
		q := snapshot.Quote{Exact: quote, Start: start, End: start + len([]rune(quote))}
		m, ok := snapshot.Find(text, &q)
		if !ok || m.How != snapshot.MatchExact || m.Cut != cut || snapshot.IsCut(text, q.Start, q.End) != cut {
			t.Errorf("%q in place: %+v, %v", quote, m, ok)
		}
		q = snapshot.QuoteAt(text, q.Start, q.End)
		q.Start, q.End = 0, 0
		if m, ok := snapshot.Find(text, &q); !ok || m.Cut != cut {
			t.Errorf("%q by what stands around it: %+v, %v", quote, m, ok)
		}
		if m, ok := snapshot.Find(text, &snapshot.Quote{Exact: quote}); ok == cut {
			t.Errorf("%q anywhere: %+v, %v", quote, m, ok)
		}
	}
	if snapshot.IsCut(text, 5, 4) || snapshot.IsCut(text, 9000, 9001) {
		t.Error("a place that is none is cut")
	}
}

// Runs of points cost no more than other texts.
func TestFindPoints(t *testing.T) {
	start := time.Now()
	for _, run := range []string{".", ",", ".,", "-", "("} {
		snapshot.Find(strings.Repeat(run, 400_000), &snapshot.Quote{Exact: run})
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Of a copy without its octets nobody knows the text.
func TestTextsWithoutOctets(t *testing.T) {
	hash := snapshot.Hash([]byte("Some page."))
	texts := &snapshot.Texts{}
	if _, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash}); err == nil {
		t.Error("the text of nothing was read")
	}
	text, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash, Octets: []byte("Some page.")})
	if err != nil || text.Content != "Some page." {
		t.Errorf("%v, %v", text, err)
	}
}
