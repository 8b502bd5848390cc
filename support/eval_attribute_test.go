package support

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// distractorPassages is how many passages besides its own each claim is tried on.
const distractorPassages = 19

// attributionCase is a claim with its own passage, which is first, and the most similar passages of other claims.
type attributionCase struct {
	claim     string
	supported bool // by its own passage
	passages  []Passage
	relevance []float64
	scores    []float64 // of support
}

// attributionCases returns the cases of AttributionBench's rows with one passage. The other passages are those of the
// whole file that plain BM25 ranks highest, so that the ranking under test does not choose its own test data.
func attributionCases(tb testing.TB) []attributionCase {
	tb.Helper()
	rows := evalRows(tb, "attribench")
	var pool []Passage
	index := map[string]int{}
	for i := range rows {
		for _, text := range rows[i].Passages {
			if _, known := index[text]; !known {
				index[text] = len(pool)
				pool = append(pool, Passage{Text: text})
			}
		}
	}
	corpus, plain := NewCorpus(pool), NewCorpus(pool)
	for key, p := range plain.terms {
		n := float64(p.to - p.from)
		p.weight = float32(math.Log(1 + (float64(len(pool))-n+.5)/(n+.5)))
		plain.terms[key] = p
	}
	indexes := make([]*indexedPassage, len(pool))
	for i := range pool {
		indexes[i] = indexPassage(pool[i].Text)
	}
	var scorer scorer
	var cases []attributionCase
	for i := range rows {
		row := &rows[i]
		if len(row.Passages) != 1 {
			continue
		}
		own := index[row.Passages[0]]
		c := attributionCase{claim: row.Claim, supported: row.supported()}
		chosen := []int{own}
		for _, hit := range plain.Search(row.Claim, distractorPassages+1) {
			if hit.Passage != own && len(chosen) <= distractorPassages {
				chosen = append(chosen, hit.Passage)
			}
		}
		relevance := make([]float64, len(pool))
		for _, hit := range corpus.Search(row.Claim, 200) { // lower ones are not the best of twenty
			relevance[hit.Passage] = hit.Relevance
		}
		claim := englishClaim(row.Claim)
		for _, k := range chosen {
			c.passages = append(c.passages, pool[k])
			c.relevance = append(c.relevance, relevance[k])
			c.scores = append(c.scores, scorer.Score(claim, indexes[k]).Score)
		}
		cases = append(cases, c)
	}
	return cases
}

// best returns the passage that is ranked first. Ties count against the right one.
func (c *attributionCase) best(share float64) int {
	best, at := math.Inf(-1), 0
	for i := range c.passages {
		if x := c.scores[i] + share*c.relevance[i]; x >= best {
			best, at = x, i
		}
	}
	return at
}

// Which passage is cited, if any: AttributionBench, 20 passages per claim.
func TestEvalAttribute(t *testing.T) {
	cases := attributionCases(t)
	accuracy, f1 := pickAccuracy(cases, relevanceShare), citeF1(cases, relevanceShare, Balanced)
	t.Logf("%-58s %8.4f   of %d", "attribution: the claim's own passage is ranked first", accuracy, distractorPassages+1)
	t.Logf("%-58s %8.4f", "attribution: … or one with nearly all of its words", nearAccuracy(cases, relevanceShare))
	t.Logf("%-58s %8.4f", "attribution: F1 of what is cited, balanced", f1)
	t.Logf("%-58s %8.4f", "attribution: F1 of what is cited, strict", citeF1(cases, relevanceShare, Strict))
	if accuracy < floorPick {
		t.Errorf("acc@1 = %.4f, floor %v", accuracy, floorPick)
	}
	if f1 < floorCite {
		t.Errorf("F1 = %.4f, floor %v", f1, floorCite)
	}
}

// Floors, so that quality cannot get worse unnoticed.
const (
	floorPick     = 0.89
	floorCite     = 0.64
	floorEvidence = 0.84
)

// pickAccuracy returns how often the claim's own passage is ranked first, among the claims that it supports.
func pickAccuracy(cases []attributionCase, share float64) float64 {
	right, all := 0.0, 0.0
	for i := range cases {
		if !cases[i].supported {
			continue
		}
		all++
		if cases[i].best(share) == 0 {
			right++
		}
	}
	return right / all
}

// nearAccuracy is pickAccuracy with near-duplicates counted as right: the pool repeats some plots and search results.
func nearAccuracy(cases []attributionCase, share float64) float64 {
	const near = 0.8
	right, all := 0.0, 0.0
	for i := range cases {
		c := &cases[i]
		if !c.supported {
			continue
		}
		all++
		picked := appendKeys(nil, c.passages[c.best(share)].Text)
		own := appendKeys(nil, c.passages[0].Text)
		both := 0.0
		for _, key := range own {
			if slices.Contains(picked, key) {
				both++
			}
		}
		if both >= near*float64(len(own)) {
			right++
		}
	}
	return right / all
}

// citeF1 returns the F1 of citing the passage that is ranked first if its score reaches a threshold. Claims that their
// own passage does not support should cite nothing.
func citeF1(cases []attributionCase, share, threshold float64) float64 {
	var cited, right, supported float64
	for i := range cases {
		c := &cases[i]
		if c.supported {
			supported++
		}
		if k := c.best(share); c.scores[k] >= threshold {
			cited++
			if k == 0 && c.supported {
				right++
			}
		}
	}
	return 2 * right / max(1, cited+supported)
}

// Which sentence of a page a claim rests on: WiCE.
func TestEvalEvidence(t *testing.T) {
	rows := evalRows(t, "wice")
	hits, all := 0.0, 0.0
	var scorer scorer
	for i := range rows {
		row := &rows[i]
		gold := slices.Concat(row.Gold...)
		if len(gold) == 0 {
			continue
		}
		all++
		c := attributionCase{claim: row.Claim}
		claim := englishClaim(row.Claim)
		for _, text := range row.Passages {
			c.passages = append(c.passages, Passage{Text: text})
			c.scores = append(c.scores, scorer.Score(claim, indexPassage(strings.ToValidUTF8(text, ""))).Score)
		}
		c.relevance = NewCorpus(c.passages).Relevance(row.Claim)
		if slices.Contains(gold, c.best(relevanceShare)) {
			hits++
		}
	}
	t.Logf("%-58s %8.4f   of %.0f", "attribution: the sentence ranked first is right", hits/all, all)
	if hits/all < floorEvidence {
		t.Errorf("P@1 = %.4f, floor %v", hits/all, floorEvidence)
	}
}
