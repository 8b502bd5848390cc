package support

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibidhq/ibid"
)

// Stand is what one source does to one claim.
type Stand string

// The stands.
const (
	Supports Stand = "supports"
	Refutes  Stand = "refutes" // said by a configured judge, never by rules
	Neither  Stand = "neither" // it says less than the claim, something else, or nobody could find out
)

// Stance is one cell of a [Matrix].
type Stance struct {
	Stand Stand
	// Support is the verdict's score, Refute its [SignalContradiction], both in [0, 1]; nil: the checker has none. One
	// below the threshold is kept, and the stand is Neither.
	Support, Refute *float64
	Verdict         Verdict // what the checker said
}

// Matrix is claims by sources.
type Matrix struct {
	Cells    [][]Stance // Cells[claim][passage]
	Disputed []bool     // for each claim: one source supports it and another refutes it, both by the threshold
	By       string     // the checker
	Refuting bool       // whether the checker can say Refutes; if not, nothing is ever disputed
	Issues   []ibid.Issue
}

// SignalContradiction is the signal of a verdict with the probability that the checker gave to [Contradicted] itself.
// It is not what is left of the score: the rest may be [Partial] or [Unsupported].
const SignalContradiction = "contradiction"

// DefaultStanceThreshold is the least score with which a source supports or refutes a claim.
const DefaultStanceThreshold = .7

// MaxStances is the number of pairs of a claim and a passage that one call of [Stances] checks. What is beyond stays
// without a stand, and an issue says so.
const MaxStances = 10_000

// stanceBatch is how many pairs a checker is given at once: the rest is not begun when the context ends.
const stanceBatch = 256

// IssueStancesTruncated is the code of the issue that says that [MaxStances] was reached.
const IssueStancesTruncated = "stances-truncated"

// Stances asks a checker about every claim and every passage alone. A nil checker is [Lexical], which compares words
// and so never refutes: only a checker that says [Contradicted] itself, such as a judge, makes a source refute a claim.
//
// Where a checker has no score for the side of its label, the label counts. What cannot be checked is Neither, with the
// reason in its Verdict.
func Stances(ctx context.Context, claims []string, passages []Passage, c Checker) (*Matrix, error) {
	rules := false
	if c == nil {
		c = &Lexical{}
	}
	if _, ok := c.(*Lexical); ok {
		rules = true
	}
	m := &Matrix{
		Cells:    make([][]Stance, len(claims)),
		Disputed: make([]bool, len(claims)),
		By:       c.Info().By(),
		Refuting: !rules,
	}
	var pairs []Pair
	for i := range claims {
		m.Cells[i] = make([]Stance, len(passages))
		for j := range passages {
			m.Cells[i][j].Stand = Neither
			if len(pairs) < MaxStances {
				pairs = append(pairs, Pair{Claim: claims[i], Passages: passages[j : j+1 : j+1]})
			}
		}
	}
	if len(pairs) < len(claims)*len(passages) {
		m.Issues = append(
			m.Issues,
			ibid.Issue{
				Code:   IssueStancesTruncated,
				Detail: fmt.Sprintf("only %d of %d pairs were checked", len(pairs), len(claims)*len(passages)),
			},
		)
	}
	for from := 0; from < len(pairs); from += stanceBatch {
		to := min(from+stanceBatch, len(pairs))
		verdicts, err := c.Check(ctx, pairs[from:to])
		if err == nil && len(verdicts) != to-from {
			err = errors.New("the checker returned another number of verdicts")
		}
		if err != nil {
			return nil, fmt.Errorf("checking what %d passages say of %d claims: %w", len(passages), len(claims), err)
		}
		for i, v := range verdicts {
			m.Cells[(from+i)/len(passages)][(from+i)%len(passages)] = stanceOf(v, rules)
		}
	}
	for i := range m.Cells {
		m.Disputed[i] = disputed(m.Cells[i])
	}
	return m, nil
}

// stanceOf reads a verdict.
func stanceOf(v Verdict, rules bool) Stance {
	s := Stance{Stand: Neither, Verdict: v}
	if v.Err != nil {
		return s
	}
	if v.Label == Contradicted && !rules {
		if refute, ok := v.Signals[SignalContradiction]; ok {
			s.Refute = &refute
		}
		if s.Refute == nil || *s.Refute >= DefaultStanceThreshold {
			s.Stand = Refutes
		}
		return s
	}
	s.Support = v.Score
	if v.Label == Supported && (v.Score == nil || *v.Score >= min(DefaultStanceThreshold, thresholdOf(&v))) {
		s.Stand = Supports
	}
	return s
}

// thresholdOf is the checker's own threshold, where it has one: what it calls supported supports.
func thresholdOf(v *Verdict) float64 {
	if v.Threshold > 0 {
		return v.Threshold
	}
	return DefaultStanceThreshold
}

func disputed(row []Stance) bool {
	supports, refutes := false, false
	for i := range row {
		supports = supports || row[i].Stand == Supports
		refutes = refutes || row[i].Stand == Refutes
	}
	return supports && refutes
}
