package page

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// experimentsBody is the content of the page of experiments.
type experimentsBody struct {
	Strategies []strategyView
	A, B       string
	Live       bool
	Runs       int
	RunChoices []int
	Wrong      string
	Report     *experiment.Report // nil if nothing was compared, or there was nothing to compare
	Said       string             // what was compared, in a sentence; else empty
	Notes      []string           // what was left out
}

// strategyView is a strategy with the feedback on its answers.
type strategyView struct {
	experiment.Strategy

	Here     bool // it can be compared here, because its checker is the built-in one
	Verdicts []verdictCount
	Judged   int
	Right    string // the share of the judged citations, in words
}

// verdictCount is the number of times a verdict was given.
type verdictCount struct {
	Word  string
	Count int
}

// experiments compares two strategies.
func (p *Page) experiments(_ context.Context, r *httpx.Request) (*view, error) {
	body := &experimentsBody{
		A: asked(r, "a"), B: asked(r, "b"), Live: asked(r, "live") != "", Runs: maxCompare,
		RunChoices: []int{10, 25, maxCompare},
	}
	if n := number(r, "runs"); n > 0 && n < maxCompare {
		body.Runs = n
	}
	ctx, cancel := context.WithTimeout(r.Context(), compareFor+askStore)
	defer cancel()
	err := p.addStrategies(ctx, r.Who.Tenant, body) //nolint:contextcheck // it may take longer than r.Context
	if err != nil {
		return nil, err
	}
	v := &view{Name: "experiments", Title: "Experiments", Body: body}
	if body.A+body.B == "" {
		return v, nil
	}
	if body.Wrong = body.check(); body.Wrong != "" {
		v.Status = statusRejected
		return v, nil
	}
	return v, p.compareStrategies(ctx, r.Who.Tenant, body) //nolint:contextcheck // it may take longer than ctx
}

// shortVerdicts are the short words for verdicts, used with counts.
var shortVerdicts = map[string]string{
	store.VerdictRight: "right", store.VerdictWrongSource: "wrong source", store.VerdictNotSaid: "not said",
	store.VerdictOther: "something else",
}

// addStrategies adds the strategies with the feedback on their results.
func (p *Page) addStrategies(ctx context.Context, tenant string, body *experimentsBody) error {
	for i := range p.o.Strategies {
		s := &p.o.Strategies[i]
		counts, err := p.o.Store.FeedbackCounts(ctx, tenant, &store.FeedbackQuery{Strategy: s.ID()})
		if err != nil {
			return err
		}
		v := strategyView{Strategy: *s, Here: s.Checker == experiment.CheckerLexical, Judged: counts.Citations}
		for _, verdict := range store.Verdicts() {
			if n := counts.Verdicts[verdict]; n > 0 {
				v.Verdicts = append(v.Verdicts, verdictCount{shortVerdicts[verdict], n})
			}
		}
		if counts.Citations > 0 {
			share := float64(counts.Right) / float64(counts.Citations)
			v.Right = percent(share) + " of " + strconv.Itoa(counts.Citations)
		}
		body.Strategies = append(body.Strategies, v)
	}
	return nil
}

// check returns what is wrong with the choice; empty if it is valid.
func (b *experimentsBody) check() string {
	find := func(id string) int {
		return slices.IndexFunc(b.Strategies, func(s strategyView) bool { return s.ID() == id })
	}
	one, other := find(b.A), find(b.B)
	switch {
	case one < 0 || other < 0:
		return "Choose two of the listed strategies."
	case one == other:
		return "Both strategies are " + b.A + ". Choose two."
	case !b.Live && (!b.Strategies[one].Here || !b.Strategies[other].Here):
		return "A strategy with a checker of its own is compared by `ibid experiment`: " +
			"it may ask a model, which costs money."
	}
	return ""
}

// compareStrategies compares on the latest stored runs. A run that cannot be read is counted and left out.
func (p *Page) compareStrategies(ctx context.Context, tenant string, body *experimentsBody) error {
	release, ok := p.bounds.comparing.Take(tenant)
	if !ok {
		return busy("Other comparisons are running at the moment.")
	}
	defer release()
	trial := &api.Comparison{Trial: experiment.Trial{Live: body.Live}}
	for i, name := range []string{body.A, body.B} {
		var err error
		if trial.Sides[i], err = experiment.Find(p.o.Strategies, name); err != nil {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	err := trial.AddRuns(within, p.o.Store, tenant, body.Runs, nil)
	late := within.Err() != nil && ctx.Err() == nil
	if err != nil && !late {
		return err
	}
	if trial.Bad > 0 {
		body.Notes = append(body.Notes, counted(trial.Bad, "run", "runs")+" could not be read.")
	}
	if n := trial.Elsewhere; n > 0 {
		body.Notes = append(
			body.Notes, counted(n, "run", "runs")+" left out: their final answers were not captured.",
		)
	}
	if late {
		body.Notes = append(
			body.Notes, "Time ran out before all runs were read. `ibid experiment` has no time limit.",
		)
	}
	body.Report = trial.Report()
	switch r := body.Report; {
	case r == nil && body.Live:
		body.Said = "None of the last " + counted(trial.Seen, "run", "runs") +
			" was attributed by one of these strategies while it ran."
	case r == nil:
		body.Said = "None of the last " + counted(trial.Seen, "run", "runs") + " has a final answer."
	case r.Paired:
		body.Said = counted(r.A.Runs, "run", "runs") + ", the same for both."
	default:
		body.Said = strconv.Itoa(r.A.Runs) + " and " + counted(r.B.Runs, "run", "runs") + "."
	}
	return nil
}

// intervalView is a share with its interval, as numbers and as the dimensions of a bar that is 100 wide.
type intervalView struct {
	Text         string // 62 % of 120
	Range        string // 55–68 %; empty if there is none
	Value        float64
	From, Length float64
}

// intervalOf lays out an estimate; nil if nothing was counted.
func intervalOf(e *experiment.Estimate) *intervalView {
	if e.Value == nil {
		return nil
	}
	v := &intervalView{Text: percent(*e.Value) + " of " + strconv.Itoa(e.Of), Value: round(100 * *e.Value)}
	if e.Low != nil && e.High != nil {
		v.Range = fmt.Sprintf("%.0f–%.0f %%", 100**e.Low, 100**e.High)
		v.From, v.Length = round(100**e.Low), round(100*(*e.High-*e.Low))
	}
	return v
}

// differenceWords formats a difference in percentage points; empty if it was not measured.
func differenceWords(e *experiment.Estimate) string {
	if e.Value == nil {
		return ""
	}
	words := experiment.Points(*e.Value)
	if e.Low != nil && e.High != nil {
		words += " (" + experiment.Points(*e.Low) + " to " + experiment.Points(*e.High) + ")"
	}
	return words + " points"
}
