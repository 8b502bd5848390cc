package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// ClaimResult is what was found about one claim.
type ClaimResult struct {
	Status  Status           `json:"status"`
	Counts  Counts           `json:"counts"`
	By      string           `json:"by,omitempty"` // the checker that said it, as ID@Version; empty: none was asked
	Note    string           `json:"note,omitempty"`
	Verdict *support.Verdict `json:"-"` // nil: none was asked
}

// Evidence is a claim with what was found about its sources.
type Evidence struct {
	Claim   string
	Context string         // what stands before it in the answer, which it may refer to; never evidence
	Results []SourceResult // of the sources that are to support it, not of those that contradict it or give context
}

// excerpts returns what the sources that passed say.
func (e *Evidence) excerpts() []support.Passage {
	var list []support.Passage
	for i := range e.Results {
		r := &e.Results[i]
		known := func(p support.Passage) bool { return p.Text == r.Excerpt }
		if r.Counts.Passes() && !r.cut() && r.Excerpt != "" && !slices.ContainsFunc(list, known) {
			list = append(list, support.Passage{ID: r.FinalURL, Text: r.Excerpt})
		}
	}
	return list
}

// Support says of claims whether the excerpts of their sources that passed support them, together: one result per
// claim, in order, as the attribution specification has it in §6 C. An error means that there are none: the context has
// ended, or the checker could say nothing at all.
//
// The checker, nil for [support.Lexical], says supported-verbatim, supported-lexical (supported-NAME, if it is
// another), support- suspect or support-unchecked: it knows words only, so it may not say that an excerpt does not
// support a claim. A judge may, if there is one: it is asked about all claims that do not stand in an excerpt as they
// are, and its word counts. A claim whose sources all were read and none of which passed is unsupported, too.
func Support(ctx context.Context, claims []Evidence, checker, judge support.Checker) ([]ClaimResult, error) {
	if checker == nil {
		checker = &support.Lexical{}
	}
	results := make([]ClaimResult, len(claims))
	var asked []int
	var pairs []support.Pair
	for i := range claims {
		results[i] = unasked(&claims[i])
		if passages := claims[i].excerpts(); len(passages) > 0 {
			asked = append(asked, i)
			pairs = append(pairs, support.Pair{Claim: claims[i].Claim, Context: claims[i].Context, Passages: passages})
		}
	}
	verdicts, err := check(ctx, checker, pairs)
	if err != nil {
		return nil, fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	var open []int // indexes in asked
	for n, i := range asked {
		results[i] = word(&claims[i], &verdicts[n], false)
		if judge != nil && results[i].Status != SupportedVerbatim {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return results, nil
	}
	left := make([]support.Pair, len(open))
	for k, n := range open {
		left[k] = pairs[n]
	}
	if verdicts, err = check(ctx, judge, left); err != nil {
		return nil, fmt.Errorf("judging %d claims: %w", len(left), err)
	}
	for k, n := range open {
		if v := &verdicts[k]; v.Err == nil && v.Label != support.Unverified && v.Label != "" {
			results[asked[n]] = word(&claims[asked[n]], v, true)
		}
	}
	return results, nil
}

// check asks a checker, which may be anybody's, and looks whether it answered.
func check(ctx context.Context, c support.Checker, pairs []support.Pair) ([]support.Verdict, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	verdicts, err := c.Check(ctx, pairs)
	if err != nil {
		return nil, err
	}
	if len(verdicts) != len(pairs) {
		return nil, fmt.Errorf("%s gave %d verdicts for %d pairs", c.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, nil
}

// cut reports whether what was found is a part of a number or word, which supports nothing.
func (r *SourceResult) cut() bool { return r.Match != nil && r.Match.Cut }

// unasked says of a claim what can be said without its excerpts.
func unasked(e *Evidence) ClaimResult {
	passed, cut, unread := 0, 0, 0
	for i := range e.Results {
		switch r := &e.Results[i]; {
		case r.Counts.Passes() && r.cut():
			cut++
		case r.Counts.Passes():
			passed++
		case r.Counts == CountUnverifiable:
			unread++
		}
	}
	switch {
	case cut > 0:
		return ClaimResult{
			Status: SupportSuspect,
			Counts: CountWarning,
			Note:   "The claim rests on a part of a number or word of its source.",
		}
	case passed > 0:
		return ClaimResult{
			Status: SupportUnchecked,
			Counts: CountInfo,
			Note:   "No excerpt was recorded that the claim could be compared with.",
		}
	case unread > 0 || len(e.Results) == 0:
		return ClaimResult{
			Status: SupportUnchecked,
			Counts: CountUnverifiable,
			Note:   "No source of the claim could be verified.",
		}
	default:
		return ClaimResult{
			Status: UnsupportedClaim,
			Counts: CountFailure,
			Note:   "No source of the claim says what is quoted from it.",
		}
	}
}

// word turns a verdict into a status. Only a judge may say that what is there does not support the claim.
func word(e *Evidence, v *support.Verdict, judge bool) ClaimResult {
	r := ClaimResult{By: v.By, Verdict: v}
	switch s := Status(v.Word()); {
	case v.Err != nil:
		r.Status, r.Counts, r.Note = SupportUnchecked, CountInfo, "The claim could not be checked."
	case s == SupportSuspect:
		r.Status, r.Counts, r.Note = s, CountWarning, different(v)
	case s == UnsupportedClaim && judge:
		r.Status, r.Counts, r.Note = s, CountFailure, "The excerpts are there and do not support the claim, says "+v.By+"."
	case s == SupportUnchecked, s == UnsupportedClaim:
		r.Status, r.Counts, r.Note = SupportUnchecked, CountInfo, "The excerpts are there; whether they support the claim was not found out."
	case contained(e):
		r.Status, r.Counts = SupportedVerbatim, CountPass
	default:
		r.Status, r.Counts = s, CountPass
	}
	return r
}

// contained reports whether an excerpt has the claim's words as they are.
func contained(e *Evidence) bool {
	return slices.ContainsFunc(e.excerpts(), func(p support.Passage) bool { return support.Verbatim(e.Claim, p.Text) })
}

// different says what the claim says and the excerpts do not.
func different(v *support.Verdict) string {
	var list []string
	for _, t := range v.Missing {
		if t.Kind != support.TermWord {
			list = append(list, t.Text)
		}
	}
	if len(list) == 0 {
		return "A part of the claim is not in the excerpts, or differs from them."
	}
	return "The excerpts do not say: " + strings.Join(list[:min(len(list), 8)], ", ") + "."
}
