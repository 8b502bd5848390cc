package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
)

// The goals for doubtful claims, on data whose claims were written from the passages that they cite.
const (
	mostFalseAlarms = .02 // of the claims that people call supported
	leastQuiet      = .75 // of answers with 20 such claims, those without a doubtful one
)

// The rate of false alarms that each rule alone may cause: with both, three of four answers of 20 claims have none.
const (
	mostByScore      = .005
	mostByDifference = .009
)

// doubts records which thresholds make a claim doubtful.
type doubts struct {
	supported bool    // according to people
	score     float64 // the least threshold at which the score makes it doubtful; above 1 if none does
	share     float64 // the largest shownShare at which a difference does; negative if none does
}

func (d *doubts) doubtful() bool { return d.score <= doubtfulScore || d.share >= shownShare }

// judged is a claim with passages, labelled by people.
type judged struct {
	Claim, Label, Question string
	Passages               []string
}

func readJudged(t *testing.T, name string) []judged {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Shared(t), "eval", name+".dev.jsonl"))
	if err != nil {
		t.Skipf("the evaluation data are not here: %v", err)
	}
	var rows []judged
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r judged
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// readDoubts runs the default checker on a set of pairs that people judged, and on their claims with the passages of
// another claim.
func readDoubts(t *testing.T, name string) (own, others []doubts) {
	t.Helper()
	rows := readJudged(t, name)
	const apart = 97 // adjacent rows may be about the same topic
	ask := func(shift int) []doubts {
		pairs := make([]support.Pair, len(rows))
		for i := range rows {
			pairs[i].Claim = rows[i].Claim
			for _, text := range rows[(i+shift)%len(rows)].Passages {
				pairs[i].Passages = append(pairs[i].Passages, support.Passage{Text: text})
			}
		}
		verdicts, err := (&support.Lexical{}).Check(t.Context(), pairs)
		if err != nil {
			t.Fatal(err)
		}
		list := make([]doubts, len(rows))
		for i := range list {
			d, v := &list[i], &verdicts[i]
			d.supported, d.score, d.share = rows[i].Label == "supported", 2, -1
			if v.Label == support.Supported {
				continue // setVerdict looks at nothing else
			}
			if saysNothing(&pairs[i], v, 2, doubtfulShare) {
				d.score = math.Nextafter(*v.Score, 1)
			}
			for _, least := range shareSteps {
				if len(differences(&pairs[i], v, least)) > 0 {
					d.share = least
				}
			}
		}
		return list
	}
	return ask(0), ask(apart)
}

var (
	scoreSteps = []float64{.04, .08, .12, .16, .2} // beyond it other sets have too many false alarms
	shareSteps = []float64{.4, .5, .55, .6, .65, .7, .75, .8, .85, .9, 1}
)

// rate returns the share for which is holds among those for which only holds.
func rate(list []doubts, only, is func(*doubts) bool) float64 {
	n, all := 0, 0
	for i := range list {
		if only(&list[i]) {
			if all++; is(&list[i]) {
				n++
			}
		}
	}
	return float64(n) / float64(max(all, 1))
}

// TestEvalDoubtful measures how many claims that people call supported by their passages are doubtful (false alarms),
// how many of the others, and how many with the passages of another claim. It prints the thresholds that follow from
// the permitted false alarms, and fails if others are in use. `make eval` prints its output.
func TestEvalDoubtful(t *testing.T) {
	supported := func(d *doubts) bool { return d.supported }
	other := func(d *doubts) bool { return !d.supported }
	anyOf := func(*doubts) bool { return true }
	var cited []doubts
	for _, set := range []struct {
		name  string
		cites bool // its claims were written from these passages
	}{{"attribench", true}, {"wice_oracle", true}, {"fever_symmetric", false}, {"healthver", false}, {"climate_fever", false}} {
		own, others := readDoubts(t, set.name)
		t.Logf("%-16s doubtful: %.4f of the supported claims, %.3f of the others, %.3f over other passages", set.name,
			rate(own, supported, (*doubts).doubtful), rate(own, other, (*doubts).doubtful), rate(others, anyOf, (*doubts).doubtful))
		if set.cites {
			cited = append(cited, own...)
		}
	}
	alarms := rate(cited, supported, (*doubts).doubtful)
	quiet := func(n float64) float64 { return math.Pow(1-alarms, n) }
	t.Logf("claims written from what they cite: false alarms in %.4f; answers without one: %.3f of 5 claims, %.3f of 20",
		alarms, quiet(5), quiet(20))
	score, share := 0., 2.
	for _, x := range scoreSteps {
		if rate(cited, supported, func(d *doubts) bool { return d.score <= x }) <= mostByScore {
			score = x
		}
	}
	for _, x := range shareSteps {
		if rate(cited, supported, func(d *doubts) bool { return d.share >= x }) <= mostByDifference {
			share = min(share, x)
		}
	}
	t.Logf("thresholds that follow: doubtfulScore = %v, shownShare = %v", score, share)
	if got, want := fmt.Sprint(doubtfulScore, shownShare), fmt.Sprint(score, share); got != want {
		t.Errorf("doubtfulScore and shownShare are %s, and %s follow from the data", got, want)
	}
	if alarms > mostFalseAlarms || quiet(20) < leastQuiet {
		t.Errorf("false alarms: %.4f, want at most %v; %.3f of answers of 20 have none, want %v",
			alarms, mostFalseAlarms, quiet(20), leastQuiet)
	}
}

// TestEvalDoubtfulSource measures how many claims get a wrong source, if the other passages are those of all claims
// about the same question: of the claims that people call supported by their own passages, and of the others.
func TestEvalDoubtfulSource(t *testing.T) {
	rows := readJudged(t, "attribench")
	others := map[string][]support.Passage{} // by question
	for i := range rows {
		for _, text := range rows[i].Passages {
			others[rows[i].Question] = append(others[rows[i].Question], support.Passage{Text: text})
		}
	}
	var all, wrong [2]int // not supported, supported
	for i := range rows {
		r := &rows[i]
		p := support.Pair{Claim: r.Claim, Others: others[r.Question]}
		if len(p.Others) == len(r.Passages) {
			continue
		}
		for _, text := range r.Passages {
			p.Passages = append(p.Passages, support.Passage{Text: text})
		}
		verdicts, err := support.RightSource(&support.Lexical{}).Check(t.Context(), []support.Pair{p})
		if err != nil {
			t.Fatal(err)
		}
		e := evidence{ClaimReport: &ClaimReport{Text: r.Claim}}
		e.setVerdict(&p, &verdicts[0], false)
		supported := 0
		if r.Label == "supported" {
			supported = 1
		}
		all[supported]++
		if e.WrongSource != nil {
			wrong[supported]++
		}
	}
	t.Logf("attribench: another claim's source says it: %d of %d supported claims (false alarms), %d of %d others",
		wrong[1], all[1], wrong[0], all[0])
	if rate := float64(wrong[1]) / float64(all[1]); rate > mostByScore {
		t.Errorf("false alarms: %.4f, want at most %v", rate, mostByScore)
	}
}
