package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// Trial compares two strategies run by run: add runs with [Trial.Add], then call [Trial.Report]. It is not safe for
// concurrent use.
type Trial struct {
	Sides    [2]Strategy
	Checkers [2]support.Checker // that the strategies name; nil means support.Lexical
	// Live means that runs are not attributed again: each counts for the strategy that it was attributed by.
	Live bool
	// Feedback returns how people judged an answer, for live runs.
	Feedback func(ctx context.Context, answerID string) (Feedback, error)

	Elsewhere int // how many live runs were left out because of ErrElsewhere

	outcomes [2][]Outcome
}

// Add measures a run. A run without a final answer is left out.
func (t *Trial) Add(ctx context.Context, run *trail.Trail) error {
	if strings.TrimSpace(run.Answer) == "" && (run.Final == nil || strings.TrimSpace(run.Final.Text) == "") {
		return nil
	}
	var both [2]*Outcome
	for i := range t.Sides {
		var err error
		switch {
		case !t.Live:
			both[i], err = Measure(ctx, run, &t.Sides[i], &MeasureOptions{Checker: t.Checkers[i]})
		case run.Strategy == t.Sides[i].ID():
			both[i], err = t.observe(ctx, run)
		}
		if errors.Is(err, ErrElsewhere) {
			t.Elsewhere++
			continue
		}
		if err != nil {
			return err
		}
	}
	for i, out := range both { // a live run has at most one
		if out != nil {
			t.outcomes[i] = append(t.outcomes[i], *out)
		}
	}
	return nil
}

func (t *Trial) observe(ctx context.Context, run *trail.Trail) (*Outcome, error) {
	var f Feedback
	if id := run.FinalID(); id != "" && t.Feedback != nil {
		var err error
		if f, err = t.Feedback(ctx, id); err != nil {
			return nil, err
		}
	}
	return Observe(ctx, run, f, nil)
}

// Report compares the runs that were added, or returns nil if none counts.
func (t *Trial) Report() *Report {
	if len(t.outcomes[0])+len(t.outcomes[1]) == 0 {
		return nil
	}
	r := Compare(t.outcomes[0], t.outcomes[1])
	r.A.Strategy, r.B.Strategy = t.Sides[0].ID(), t.Sides[1].ID()
	return r
}

// Row is one share of a report.
type Row struct {
	Name             string // coverage, supported, verified, feedback
	A, B, Difference *Estimate
}

// Rows returns the shares of a report in order.
func (r *Report) Rows() []Row {
	return []Row{
		{"coverage", &r.A.Coverage, &r.B.Coverage, &r.Difference.Coverage},
		{"supported", &r.A.Supported, &r.B.Supported, &r.Difference.Supported},
		{"verified", &r.A.Verified, &r.B.Verified, &r.Difference.Verified},
		{"feedback", &r.A.Feedback, &r.B.Feedback, &r.Difference.Feedback},
	}
}

// Verdict returns whether a difference is significant: "more", "less" or "cannot be told apart"; "" if that is unknown.
func (e *Estimate) Verdict() string {
	switch {
	case e.Low == nil || e.High == nil:
		return ""
	case *e.Low > 0:
		return "more"
	case *e.High < 0:
		return "less"
	}
	return "cannot be told apart"
}

// Points formats a difference of shares in percentage points, with its sign: +6, −1.
func Points(difference float64) string {
	points := fmt.Sprintf("%+.0f", 100*difference)
	if points == "-0" {
		points = "+0"
	}
	return strings.Replace(points, "-", "−", 1)
}
