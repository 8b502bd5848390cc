package support

import (
	"cmp"
	"context"
	"slices"
)

const (
	// MaxTogether is how many passages are checked as one text at most, where none supports a sentence alone.
	MaxTogether = 3
	// maxTogetherParts is how many parts of such a sentence are checked alone.
	maxTogetherParts = 6
	// togetherShare is what a passage adds at least, of the weight of a sentence's words, to be checked with others.
	// TestEvalTogether measured it.
	togetherShare = 0.08
)

// Together is what a checker says of a sentence and several of its candidates, read as one text.
type Together struct {
	Candidates []int   // those that support it, by their index in SentenceSupport.Candidates: two or more
	Verdict    Verdict // without evidence: the candidates' own says where they do
}

// attempt is a sentence that no passage supports alone, and those that may together.
type attempt struct {
	sentence *SentenceSupport
	claim    string
	chosen   []int // in its candidates
	passages []Passage
	verdict  Verdict
	parts    []string
}

// together looks for passages that support a sentence only together. Words that stand somewhere in several passages say
// little: the sentence must have parts, of which a passage supports one, each passage must be the best for a part, and
// no part may differ from its best.
func (a *attributor) together(ctx context.Context, todo []*SentenceSupport) error {
	tries := a.attempts(todo)
	pairs := make([]Pair, len(tries))
	for i := range tries {
		pairs[i] = a.pair(&tries[i], tries[i].claim, tries[i].passages)
	}
	verdicts, err := a.ask(ctx, pairs)
	if err != nil {
		return err
	}
	pairs = pairs[:0]
	for i := range tries {
		t := &tries[i]
		if t.verdict = verdicts[i]; t.verdict.Label != Supported {
			t.parts = nil
		}
		for _, part := range t.parts {
			for k := range t.passages {
				pairs = append(pairs, a.pair(t, part, t.passages[k:k+1]))
			}
		}
	}
	if verdicts, err = a.ask(ctx, pairs); err != nil {
		return err
	}
	for i := range tries {
		t := &tries[i]
		n := len(t.parts) * len(t.passages)
		t.settle(verdicts[:n])
		verdicts = verdicts[n:]
	}
	return nil
}

func (a *attributor) pair(t *attempt, claim string, passages []Passage) Pair {
	return Pair{Claim: claim, Context: before(a.out.Answer.Text, t.sentence.Span.Start), Passages: passages}
}

// attempts returns the sentences of several parts that no passage supports alone, each with the passages that together
// have most of its words.
func (a *attributor) attempts(todo []*SentenceSupport) []attempt {
	var tries []attempt
	for _, s := range todo {
		if slices.ContainsFunc(
			s.Candidates,
			func(c Candidate) bool { return c.Verdict.Label == Supported && a.holds(&c.Verdict) },
		) {
			continue
		}
		t := attempt{sentence: s, claim: a.out.Answer.Text[s.Claim.Start:s.Claim.End]}
		for _, part := range Split(t.claim) {
			t.parts = append(t.parts, t.claim[part.Start:part.End])
		}
		if len(t.parts) < 2 || len(t.parts) > maxTogetherParts {
			continue
		}
		t.chosen = a.complement(t.claim, s.Candidates)
		for _, i := range t.chosen {
			t.passages = append(t.passages, a.passages[a.at(&s.Candidates[i])])
		}
		if len(t.chosen) > 1 {
			tries = append(tries, t)
		}
	}
	return tries
}

// at returns the place of a candidate's passage in the corpus.
func (a *attributor) at(c *Candidate) int {
	at, _ := slices.BinarySearchFunc(a.places, place{c.Document, c.Passage}, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.document, y.document), cmp.Compare(x.passage, y.passage))
	})
	return at
}

// complement returns the candidates that together have most of a claim's words: again and again the one that adds most,
// as long as that is togetherShare.
func (a *attributor) complement(claim string, candidates []Candidate) []int {
	left := map[uint32]float64{}
	total := 0.0
	for _, key := range appendKeys(nil, claim) {
		if _, again := left[key]; !again {
			left[key] = a.search.weight(key)
			total += left[key]
		}
	}
	var chosen []int
	for len(chosen) < min(a.options.PerSentence, MaxTogether) {
		best, gain := -1, togetherShare*total
		for i := range candidates {
			if sum := a.weighs(left, &candidates[i]); sum > gain {
				best, gain = i, sum
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
		for _, key := range a.search.corpus.passage(a.at(&candidates[best])) {
			delete(left, key)
		}
	}
	return chosen
}

// weighs returns the weight of the words that a candidate has.
func (a *attributor) weighs(left map[uint32]float64, c *Candidate) float64 {
	sum := 0.0
	seen := make(map[uint32]bool, len(left))
	for _, key := range a.search.corpus.passage(a.at(c)) {
		if w, ok := left[key]; ok && !seen[key] {
			seen[key] = true
			sum += w
		}
	}
	return sum
}

// settle decides which passages the sentence rests on. Verdicts are those about each part and each passage.
func (t *attempt) settle(verdicts []Verdict) {
	rests := make([]bool, len(t.chosen))
	alone := false
	for range t.parts {
		best := 0
		for k := range t.chosen {
			if verdicts[k].strength() > verdicts[best].strength() {
				best = k
			}
		}
		if v := &verdicts[best]; v.Changed || v.Label == Contradicted {
			return
		}
		alone = alone || verdicts[best].Label == Supported
		rests[best] = rests[best] || verdicts[best].strength() > 0
		verdicts = verdicts[len(t.chosen):]
	}
	together := &Together{Verdict: t.verdict}
	together.Verdict.Evidence, together.Verdict.Conflicts = nil, nil
	for k, rests := range rests {
		if rests {
			together.Candidates = append(together.Candidates, t.chosen[k])
		}
	}
	if alone && len(together.Candidates) > 1 {
		t.sentence.Together = together
	}
}

// strength orders verdicts about one claim: by score, or where there is none by label.
func (v *Verdict) strength() float64 {
	switch score := v.known(); {
	case score != nil:
		return *score
	case v.Label == Supported:
		return 1
	case v.Label == Partial:
		return 0.5
	default:
		return 0
	}
}
