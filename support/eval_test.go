package support

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// evalWays is in how many ways the data are cut into five folds: numbers are means over all of them.
const evalWays = 5

// TestEval evalNumbers the default checker on human judgements, and holds what was reached: `make eval` prints the table.
//
// On the half that it was fitted to, scores come from models that have not seen the claim's question (five folds) or, for
// leave one subset out, its data set. On another half they are those of the checker as it is.
func TestEval(t *testing.T) {
	e := evaluation{t: t, dev: *evalPart == "dev"}
	e.bench, e.benchRows = e.read(fitBench)
	e.wice, e.wiceRows = e.read(fitWice)
	if e.dev {
		e.fitted()
	} else {
		e.shipped()
	}
	e.evidence()
	e.words()
}

type evaluation struct {
	t                   *testing.T
	dev                 bool
	bench, wice         []example
	benchRows, wiceRows []evalRow
}

func (e *evaluation) read(name string) ([]example, []evalRow) {
	rows := evalRows(e.t, name)
	return examples(rows), rows
}

// evalNumbers are the numbers of one way to cut the data.
type evalNumbers struct {
	bench, subsets, wice, balanced, calibration, share, supported, unsupported float64
}

func (e *evaluation) measure(bench, wice []float64) evalNumbers {
	positive := labels(e.bench)
	m := evalNumbers{
		bench: auroc(bench, positive), subsets: macro(e.bench, bench), wice: auroc(wice, labels(e.wice)),
		balanced: balanced(bench, positive, .5), calibration: calibrationError(bench, positive),
	}
	m.share, m.supported, m.unsupported = decidedShare(e.bench, bench, .88)
	return m
}

func (e *evaluation) fitted() {
	var sum evalNumbers
	for way := range evalWays {
		bench, wice := crossed(e.bench, e.wice, fiveFold(way), uint64(way))
		m := e.measure(calibrated(e.bench, bench), wice)
		sum.bench += m.bench / evalWays
		sum.subsets += m.subsets / evalWays
		sum.wice += m.wice / evalWays
		sum.balanced += m.balanced / evalWays
		sum.calibration += m.calibration / evalWays
		sum.share += m.share / evalWays
		sum.supported += m.supported / evalWays
		sum.unsupported += m.unsupported / evalWays
	}
	e.print(&sum)
	left, _ := crossed(e.bench, e.wice, bySubset, 1)
	e.row("AttributionBench, leave one subset out, AUROC", macro(e.bench, left), .84, .848)
}

func (e *evaluation) shipped() {
	m := e.measure(e.scores(e.benchRows), e.scores(e.wiceRows))
	e.print(&m)
}

func (e *evaluation) print(m *evalNumbers) {
	e.row("AttributionBench, AUROC", m.bench, .855, .848)
	e.row("AttributionBench, balanced accuracy, %", m.balanced, 77, 77.2)
	e.row("AttributionBench, AUROC, mean of its subsets", m.subsets, .84, .846)
	e.row("WiCE, evidence and sentences around it, AUROC", m.wice, .80, .837)
	e.row("calibration error, ten bins", m.calibration, .04, .04)
	e.row("cascade: share decided", m.share, .6, .535)
	e.row("cascade: precision of what is supported", m.supported, .88, .865)
	e.row("cascade: precision of what is unsupported", m.unsupported, .88, .878)
}

// row prints a number and holds its floor, or its ceiling where the goal is one.
func (e *evaluation) row(name string, got, goal, limit float64) {
	e.t.Helper()
	e.t.Logf("%-58s %8.4f   goal %g", name, got, goal)
	if less := name == "calibration error, ten bins"; e.dev && (got < limit) != less && got != limit {
		e.t.Errorf("%s is %.4f, and was %g", name, got, limit)
	}
}

// scores are those of the checker as it is.
func (e *evaluation) scores(rows []evalRow) []float64 {
	scores := make([]float64, len(rows))
	for i, v := range e.verdicts(rows) {
		if v.Score != nil {
			scores[i] = *v.Score
		}
	}
	return scores
}

func (e *evaluation) verdicts(rows []evalRow) []Verdict {
	pairs := make([]Pair, len(rows))
	for i := range rows {
		pairs[i] = rows[i].pair()
	}
	verdicts, err := new(Lexical).Check(e.t.Context(), pairs)
	if err != nil {
		e.t.Fatal(err)
	}
	return verdicts
}

// evidence asks for one sentence of the whole page.
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
		if span := s.spans(nil, window{s.sentence, s.sentence + 1}); slices.Contains(gold, span[0].Passage) {
			hits++
		}
	}
	e.row(fmt.Sprintf("evidence: best sentence of the page is right, of %d claims", all), float64(hits)/float64(all), .88, .839)
}

// words prints how often people agree with each label, and holds that what is called supported mostly is.
func (e *evaluation) words() {
	for name, rows := range map[string][]evalRow{fitBench: e.benchRows, fitWice: e.wiceRows} {
		count, people := map[string]int{}, map[string]int{}
		for i, v := range e.verdicts(rows) {
			word := v.Word()
			count[word]++
			if rows[i].supported() {
				people[word]++
			}
		}
		for _, word := range slices.Sorted(maps.Keys(count)) {
			e.t.Logf("%-58s %8.4f   of %d", name+", supported for people: "+word, float64(people[word])/float64(count[word]), count[word])
		}
	}
}

// calibrated turns margins into scores, each by a line fitted to the other folds.
func calibrated(data []example, margins []float64) []float64 {
	fold := fiveFold(2)
	scores := make([]float64, len(data))
	for n := range 5 {
		name := fmt.Sprint(n)
		var in, out []int
		for i := range data {
			if fold(&data[i]) == name {
				in = append(in, i)
			} else {
				out = append(out, i)
			}
		}
		var m model
		m.calibrate(picked(margins, out), picked(labels(data), out))
		for _, i := range in {
			scores[i] = 1 / (1 + math.Exp(-(m.slope*margins[i] + m.offset)))
		}
	}
	return scores
}

// decidedShare returns the share of pairs that thresholds decide, and how often they are right, with the thresholds for one half
// of the data found on the other.
func decidedShare(data []example, scores []float64, precision float64) (share, supported, unsupported float64) {
	half := func(n int) (in, out []int) {
		for i := range data {
			if int(hashString("half "+data[i].group)/2%2) == n {
				in = append(in, i)
			} else {
				out = append(out, i)
			}
		}
		return in, out
	}
	positive := labels(data)
	var counts, right [2]float64
	for n := range 2 {
		in, out := half(n)
		low, high := thresholds(picked(scores, out), picked(positive, out), precision)
		for _, i := range in {
			switch {
			case scores[i] >= high:
				counts[1]++
				if positive[i] {
					right[1]++
				}
			case scores[i] <= low:
				counts[0]++
				if !positive[i] {
					right[0]++
				}
			}
		}
	}
	return (counts[0] + counts[1]) / float64(len(data)), right[1] / max(counts[1], 1), right[0] / max(counts[0], 1)
}

// thresholds returns the highest score up to which, and the lowest from which, a decision has the precision.
func thresholds(scores []float64, positive []bool, precision float64) (low, high float64) {
	sorted := slices.Clone(scores)
	slices.Sort(sorted)
	low, high = -1, 2
	for _, at := range sorted {
		below, wrong, above, right := 0.0, 0.0, 0.0, 0.0
		for i, s := range scores {
			if s <= at {
				below++
				if positive[i] {
					wrong++
				}
			}
			if s >= at {
				above++
				if positive[i] {
					right++
				}
			}
		}
		if (below-wrong)/below >= precision {
			low = at
		}
		if high == 2 && right/above >= precision {
			high = at
		}
	}
	return low, max(high, low)
}

func picked[T any](from []T, at []int) []T {
	list := make([]T, len(at))
	for i, n := range at {
		list[i] = from[n]
	}
	return list
}
