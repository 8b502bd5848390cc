package support

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// evalRow is a labelled pair of the evaluation data, which are not part of the module: $IBID_SHARED/eval.
type evalRow struct {
	ID       string   `json:"id"`
	Subset   string   `json:"src"`
	Question string   `json:"question"`
	Claim    string   `json:"claim"`
	Passages []string `json:"passages"`
	Label    string   `json:"label"`
	Gold     [][]int  `json:"gold"`
	Group    string   `json:"group"`
}

func (r *evalRow) supported() bool { return r.Label == "supported" }
func (r *evalRow) text() string    { return strings.Join(r.Passages, "\n\n") }

func (r *evalRow) indexes() []*indexedPassage {
	list := make([]*indexedPassage, len(r.Passages))
	for i := range list {
		list[i] = indexPassage(r.Passages[i])
	}
	return list
}

func (r *evalRow) pair() Pair {
	return Pair{Claim: r.Claim, Context: r.Question, Passages: passages(r.Passages...)}
}

// evalPart is the half of the data that is read: everything was tuned on dev. There are no floors for another.
var evalPart = flag.String("part", "dev", "the part of the evaluation data: NAME.`PART`.jsonl")

// evalRows reads one file of the evaluation data, or skips the test if the data are not there.
func evalRows(tb testing.TB, name string) []evalRow {
	tb.Helper()
	var rows []evalRow
	for d := json.NewDecoder(bytes.NewReader(evalFile(tb, name))); d.More(); {
		var row evalRow
		if err := d.Decode(&row); err != nil {
			tb.Fatalf("reading %s: %v", name, err)
		}
		rows = append(rows, row)
	}
	return rows
}

func evalFile(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Shared(tb), "eval", name+"."+*evalPart+".jsonl"))
	if err != nil {
		tb.Skipf("the evaluation data are not here: %v", err)
	}
	return b
}

// auroc returns the probability that a positive case scores above a negative one.
func auroc(scores []float64, positive []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var ranks, pos float64
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && scores[order[j]] == scores[order[i]] {
			j++
		}
		for _, n := range order[i:j] {
			if positive[n] {
				ranks += float64(i+j+1) / 2
				pos++
			}
		}
		i = j
	}
	neg := float64(len(scores)) - pos
	return (ranks - pos*(pos+1)/2) / (pos * neg)
}

// balanced returns the mean of the accuracies on positive and negative cases at a threshold, in percent.
func balanced(scores []float64, positive []bool, threshold float64) float64 {
	var right, all [2]float64
	for i, s := range scores {
		n := 0
		if positive[i] {
			n = 1
		}
		all[n]++
		if (s >= threshold) == positive[i] {
			right[n]++
		}
	}
	return 50 * (right[0]/max(all[0], 1) + right[1]/max(all[1], 1))
}

// calibrationError returns the expected calibration error over ten bins of equal width.
func calibrationError(scores []float64, positive []bool) float64 {
	var sum, hits, count [10]float64
	for i, s := range scores {
		b := min(int(s*10), 9)
		sum[b] += s
		count[b]++
		if positive[i] {
			hits[b]++
		}
	}
	e := 0.0
	for b := range sum {
		e += math.Abs(sum[b]-hits[b]) / float64(len(scores))
	}
	return e
}

// readCases reads a file of testdata: blocks of lines, separated by blank lines, with comments after "# ".
func readCases(tb testing.TB, name string) [][]string {
	tb.Helper()
	b := testenv.Must(os.ReadFile(filepath.Join("testdata", name)))(tb)
	var cases [][]string
	for block := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(line string) bool { return strings.HasPrefix(line, "# ") })
		if len(lines) > 0 {
			cases = append(cases, lines)
		}
	}
	return cases
}
