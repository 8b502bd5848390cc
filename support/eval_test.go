package support

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// TestEval measures the default checker on human judgements, and fails if a measure fell below its floor: `make eval`
// prints the table.
//
// For each set it prints the result of a model fitted to the other sets only; of one fitted to other documents,
// including this set's; and of the checker itself on the fifth of the documents that no choice was based on. On another
// part of the data it prints only the checker's result.
func TestEval(t *testing.T) {
	all := examples(t)
	if *evalPart != "dev" {
		for i := range all {
			all[i].untouched = true
		}
	}
	data := chosen(all)
	left, crossed := crossValidated(data, bySet), crossValidated(data, byFold)
	fresh := slices.DeleteFunc(slices.Clone(all), func(e example) bool { return !e.untouched })
	scores := scoresOf(t, fresh)
	t.Logf("%-24s %9s %9s %9s %6s", "AUROC", "set out", "fold out", "fresh", "pairs")
	for _, row := range []struct {
		name                string
		set, subset         string
		left, crossed, last float64 // floors
	}{
		{"AttributionBench", "attribench", "", .84, .845, .83},
		{"  Stanford-GenSearch", "attribench", "Stanford-GenSearch", 0, 0, 0},
		{"  ExpertQA", "attribench", "ExpertQA", 0, 0, 0},
		{"  AttributedQA", "attribench", "AttributedQA", 0, 0, 0},
		{"  LFQA", "attribench", "LFQA", 0, 0, 0},
		{"  HAGRID", "attribench", "HAGRID", 0, 0, 0},
		{"  BEGIN", "attribench", "BEGIN", 0, 0, 0},
		{"  AttrScore-GenSearch", "attribench", "AttrScore-GenSearch", 0, 0, 0},
		{"WiCE, oracle passages", "wice_oracle", "", .815, .83, .78},
		{"WiCE, whole page", "wice", "", .805, .82, .76},
		{"FEVER symmetric", "fever_symmetric", "", .675, .675, 0},
		{"Climate-FEVER", "climate_fever", "", .60, .60, 0},
		{"HealthVer", "healthver", "", .52, .53, 0},
	} {
		in := func(e *example) bool {
			return e.set.name == row.set && (row.subset == "" || e.row.Subset == row.subset)
		}
		a, _ := rankOf(data, left, in)
		b, _ := rankOf(data, crossed, in)
		c, n := rankOf(fresh, scores, in)
		t.Logf("%-24s %9.3f %9.3f %9.3f %6d", row.name, a, b, c, n)
		if a < row.left || b < row.crossed || *evalPart == "dev" && c < row.last {
			t.Errorf("%s is worse than it was: at least %g, %g and %g", row.name, row.left, row.crossed, row.last)
		}
	}
	e := evaluation{t}
	e.decisions(fresh, scores)
	e.evidence()
}

// rankOf returns the AUROC of the examples that in accepts, and their number; NaN if there are none.
func rankOf(data []example, scores []float64, in func(*example) bool) (float64, int) {
	var s []float64
	var positive []bool
	for i := range data {
		if in(&data[i]) {
			s, positive = append(s, scores[i]), append(positive, data[i].positive)
		}
	}
	if len(s) == 0 {
		return math.NaN(), 0
	}
	return auroc(s, positive), len(s)
}

func verdictsOf(tb testing.TB, data []example) []Verdict {
	tb.Helper()
	pairs := make([]Pair, len(data))
	for i := range data {
		pairs[i] = data[i].row.pair()
	}
	return testenv.Must(new(Lexical).Check(tb.Context(), pairs))(tb)
}

// scoresOf returns the checker's scores, with zero for pairs that it cannot compare.
func scoresOf(tb testing.TB, data []example) []float64 {
	tb.Helper()
	scores := make([]float64, len(data))
	for i, v := range verdictsOf(tb, data) {
		if v.Closeness != nil {
			scores[i] = *v.Closeness
		}
	}
	return scores
}

type evaluation struct{ t *testing.T }

// row prints a number and checks it against its floor.
func (e *evaluation) row(name string, got, least float64) {
	e.t.Helper()
	e.t.Logf("%-58s %8.4f", name, got)
	if *evalPart == "dev" && got < least {
		e.t.Errorf("%s is %.4f, want at least %g", name, got, least)
	}
}

// decisions measures what the checker's scores and words are worth on the claims it is made for.
func (e *evaluation) decisions(data []example, scores []float64) {
	for _, name := range []string{"attribench", "wice_oracle"} {
		var some []example
		var own []float64
		var positive []bool
		for i := range data {
			if data[i].set.name == name {
				some, own, positive = append(some, data[i]), append(own, scores[i]), append(positive, data[i].positive)
			}
		}
		e.row(name+": balanced accuracy at 0.5, %", balanced(own, positive, .5), 70)
		e.row(name+": calibration error, ten bins", calibrationError(own, positive), 0)
		count, people := map[string]int{}, map[string]int{}
		for i, v := range verdictsOf(e.t, some) {
			words := []string{v.Word()}
			for _, word := range words {
				count[word]++
				if positive[i] {
					people[word]++
				}
			}
		}
		for _, word := range slices.Sorted(maps.Keys(count)) {
			e.t.Logf("%-58s %8.4f   of %d", name+", people say supported: "+word, float64(people[word])/float64(count[word]), count[word])
		}
	}
}

// evidence measures how often the best sentence of a whole page is right.
func (e *evaluation) evidence() {
	var s scorer
	hits, all := 0, 0
	rows := evalRows(e.t, "wice")
	for i := range rows {
		row := &rows[i]
		gold := slices.Concat(row.Gold...)
		if len(gold) == 0 || !s.compare(englishClaim(row.Claim), row.indexes()) {
			continue
		}
		all++
		best := s.lengths[0].best().at
		if span := s.spans(nil, window{best, best + 1}); slices.Contains(gold, span[0].Passage) {
			hits++
		}
	}
	e.row(fmt.Sprintf("evidence: best sentence of the page is right, of %d claims", all), float64(hits)/float64(all), .839)
}
