package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// MeasureOptions configures [Measure] and [Observe]. Nil and the zero value mean the defaults.
type MeasureOptions struct {
	Checker support.Checker // that the strategy names; nil means support.Lexical
	// Judge decides, for both strategies, whether a cited sentence is supported. It is not asked about sentences whose
	// citations it inferred itself, since it would always agree with itself. Nil means support.Lexical.
	Judge support.Checker
}

// Measure attributes the final answer of a run by a strategy, and counts the result. It does not count feedback, since
// people judged what they were shown, which may differ from what this strategy shows.
//
// It sets Step.Fed of t as [trail.Trail.Link] does, and must not run concurrently with readers of t.
func Measure(ctx context.Context, t *trail.Trail, s *Strategy, o *MeasureOptions) (*Outcome, error) {
	if o == nil {
		o = &MeasureOptions{}
	}
	run := *t
	if run.Final != nil {
		run.Final = asSent(run.Final)
	}
	out, err := measure(ctx, &run, o, o.Checker, s.Link())
	if err != nil {
		return nil, fmt.Errorf("measuring %s on run %q: %w", s.ID(), t.ID, err)
	}
	out.Strategy = s.ID()
	return out, nil
}

// Feedback is how many citations of a run people judged, and how many of these they found right.
type Feedback struct{ Judged, Right int }

// ErrElsewhere means that the final answer of a run was not captured, but written by the agent itself, so that it was
// not attributed while the run was live.
var ErrElsewhere = errors.New("the final answer was not captured")

// Observe counts the result of a run that was attributed by the strategy it names, without attributing it again. If the
// final answer was not captured, the error is [ErrElsewhere]. Judge is the only option that counts.
func Observe(ctx context.Context, t *trail.Trail, f Feedback, o *MeasureOptions) (*Outcome, error) {
	if o == nil {
		o = &MeasureOptions{}
	}
	if t.Final == nil {
		return nil, fmt.Errorf("observing run %q: %w", t.ID, ErrElsewhere)
	}
	out, err := measure(ctx, t, o, nil, &trail.LinkOptions{NoInference: true})
	if err != nil {
		return nil, fmt.Errorf("observing run %q: %w", t.ID, err)
	}
	out.Strategy = t.Strategy
	out.Judged, out.Right = f.Judged, f.Right
	return out, nil
}

func measure(
	ctx context.Context, t *trail.Trail, o *MeasureOptions, c support.Checker, link *trail.LinkOptions,
) (*Outcome, error) {
	links, err := t.Link(ctx, c, link)
	if err != nil {
		return nil, err
	}
	judge := o.Judge
	if judge == nil {
		judge = &support.Lexical{}
	}
	own := func(r trail.Link) bool { // inferred by the judge, or by an unknown checker
		return r.Reason == trail.ReasonInferred && (r.By == "" || r.By == judge.Info().By())
	}
	out := &Outcome{Run: t.ID}
	var pairs []support.Pair
	for i := range links.Sentences {
		s := &links.Sentences[i]
		switch {
		case s.Differs() != "" && s.Passages[0].Reason == trail.ReasonInferred: // found, not cited
			out.Sentences++
		case len(s.Passages) > 0:
			out.Sentences++
			out.Cited++
			if p := pair(s); len(p.Passages) > 0 && !slices.ContainsFunc(s.Passages, own) {
				pairs = append(pairs, p)
			}
		case s.NoSources():
			out.Sentences++
		}
	}
	out.count(t.Final)
	verdicts, err := judge.Check(ctx, pairs)
	if err != nil {
		return nil, fmt.Errorf("judging: %w", err)
	}
	for i := range verdicts {
		if label := verdicts[i].Label; label != support.Unchecked && verdicts[i].Err == nil {
			out.Checked++
			if label == support.Supported {
				out.Supported++
			}
		}
	}
	return out, nil
}

// pair returns a sentence with the passages that are cited for it, as far as their words are known.
func pair(s *trail.Sentence) support.Pair {
	p := support.Pair{Claim: s.Text}
	for i := range s.Passages {
		if text := s.Passages[i].Text(); text != "" {
			p.Passages = append(p.Passages, support.Passage{ID: s.Passages[i].DocumentID, Text: text})
		}
	}
	return p
}

// asSent returns an answer with the citations that its provider sent, and those from marks in its text.
func asSent(a *ibid.Answer) *ibid.Answer {
	sent := *a
	sent.Citations = nil
	for i := range a.Citations {
		if a.Citations[i].Origin != ibid.OriginInferred {
			sent.Citations = append(sent.Citations, a.Citations[i])
		}
	}
	return &sent
}

// count counts the citations whose source was fetched again and read. One that could not be read counts as neither.
func (o *Outcome) count(a *ibid.Answer) {
	if a == nil {
		return
	}
	for i := range a.Citations {
		v := a.Citations[i].Verification
		if v == nil {
			continue
		}
		switch v.Status {
		case "verified", "verified-hash-only", "verified-from-archive", "offset-wrong", "source-drifted-text-intact",
			"source-drifted-excerpt-intact", "excerpt-found", "excerpt-reformatted", "excerpt-cut":
			o.Fetched++
			o.Verified++ // the passing statuses of attribution v1
		case "excerpt-mismatch", "excerpt-altered", "excerpt-missing":
			o.Fetched++
		}
	}
}
