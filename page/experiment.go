package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

const (
	// maxCompare is on how many stored runs, the last ones, the page compares strategies. `ibid experiment` takes more.
	maxCompare = 50
	// compareFor bounds how long that may take. What was not looked at by then is left out, and the page says so.
	compareFor = 20 * time.Second
)

// experimentsBody is what the page of experiments shows.
type experimentsBody struct {
	Strategies []strategyView
	A, B       string
	Live       bool
	Runs       int
	RunChoices []talkFilter
	Wrong      string
	Report     *comparisonView // nil: nothing was compared
}

// strategyView is a strategy with what people said of its answers.
type strategyView struct {
	experiment.Strategy

	Here     bool // it can be compared here: its checker is the built-in one
	Verdicts []verdictView
	Judged   int
	Right    *intervalView // of the citations that were judged; nil: none was
}

// verdictView is how often something was said.
type verdictView struct {
	Word  string
	Count int
}

// comparisonView is a report as the page shows it.
type comparisonView struct {
	A, B  string
	Said  string   // what was compared, in a sentence
	Notes []string // what was left out
	Rows  []comparisonRow
}

// comparisonRow compares the two sides by one share.
type comparisonRow struct {
	Name, Of   string
	A, B       *intervalView // nil: nobody measured it
	Difference string        // in percentage points; empty: likewise
	Verdict    string        // whether it can be told from none
}

// intervalView is a share with its interval, as numbers and as the measures of a bar that is 100 wide.
type intervalView struct {
	Text         string // 62 % of 120
	Range        string // 55–68 %; empty: there is none
	Value        float64
	From, Length float64
}

// experiments compares two strategies.
func (p *Page) experiments(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	body := &experimentsBody{A: clean(q.Get("a")), B: clean(q.Get("b")), Live: q.Get("live") != "", Runs: maxCompare}
	if n, err := strconv.Atoi(q.Get("runs")); err == nil && n > 0 && n < maxCompare {
		body.Runs = n
	}
	for _, n := range []int{10, 25, maxCompare} {
		body.RunChoices = append(
			body.RunChoices,
			talkFilter{Value: strconv.Itoa(n), Word: strconv.Itoa(n), Chosen: n == body.Runs},
		)
	}
	ctx, cancel := context.WithTimeout(r.Context(), compareFor+askStore)
	defer cancel()
	if err := p.addStrategies(ctx, r.who.Tenant, body); err != nil {
		return err
	}
	status := http.StatusOK
	if body.A+body.B != "" {
		if body.Wrong = body.check(); body.Wrong != "" {
			status = http.StatusUnprocessableEntity
		} else if err := p.compareStrategies(ctx, r.who.Tenant, body); err != nil {
			return err
		}
	}
	v := &view{Title: "Experiments", Section: "experiments", Body: body}
	return p.show(w, r, &shown{name: "experiments", status: status, view: v})
}

// addStrategies adds the strategies there are, with what people said of what came of them.
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
				v.Verdicts = append(v.Verdicts, verdictView{verdictWords(verdict), n})
			}
		}
		if counts.Citations > 0 {
			share := float64(counts.Right) / float64(counts.Citations)
			v.Right = &intervalView{
				Text:  percent(share) + " of " + strconv.Itoa(counts.Citations),
				Value: round(100 * share),
			}
		}
		body.Strategies = append(body.Strategies, v)
	}
	return nil
}

func verdictWords(verdict string) string {
	switch verdict {
	case store.VerdictRight:
		return "right"
	case store.VerdictWrongSource:
		return "wrong source"
	case store.VerdictNotSaid:
		return "not said"
	}
	return "something else"
}

// check says what is wrong with what was chosen; empty: nothing.
func (b *experimentsBody) check() string {
	find := func(id string) *strategyView {
		i := slices.IndexFunc(b.Strategies, func(s strategyView) bool { return s.ID() == id })
		if i < 0 {
			return nil
		}
		return &b.Strategies[i]
	}
	one, other := find(b.A), find(b.B)
	switch {
	case one == nil || other == nil:
		return "Choose two of the strategies there are."
	case b.A == b.B:
		return "Both strategies are " + b.A + ". Choose two."
	case !b.Live && (!one.Here || !other.Here):
		return "A strategy with a checker of its own is compared by `ibid experiment`: it may ask a model, which costs money."
	}
	return ""
}

// trial is one comparison.
type trial struct {
	page     *Page
	tenant   string
	live     bool
	sides    [2]experiment.Strategy
	outcomes [2][]experiment.Outcome
	seen     int // runs that were looked at
	other    int // runs whose final answer nobody captured
	bad      int // runs that cannot be read
	late     bool
}

// compareStrategies compares on the last stored runs.
func (p *Page) compareStrategies(ctx context.Context, tenant string, body *experimentsBody) error {
	release, ok := p.bounds.comparing.take(tenant, maxComparing)
	if !ok {
		return busy("Others compare strategies at the moment.")
	}
	defer release()
	t := &trial{page: p, tenant: tenant, live: body.Live}
	for i, name := range []string{body.A, body.B} {
		var err error
		if t.sides[i], err = experiment.Find(p.o.Strategies, name); err != nil {
			return err
		}
	}
	runs, err := p.o.Store.Runs(ctx, tenant, &store.Query{Limit: body.Runs})
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	for i := range runs.Items {
		if err := t.run(within, runs.Items[i].ID); err != nil {
			if within.Err() == nil || ctx.Err() != nil {
				return err
			}
			t.late = true
			break
		}
	}
	body.Report = t.view()
	return nil
}

// run adds a run. One that cannot be read is counted and left out.
func (t *trial) run(ctx context.Context, id string) error {
	run, err := t.page.o.Store.Trail(ctx, t.tenant, id)
	if err != nil {
		if ctx.Err() != nil || store.IsTemporary(err) {
			return err
		}
		if !errors.Is(err, store.ErrNotFound) { // else it was deleted meanwhile
			t.bad++
		}
		return nil
	}
	t.seen++
	if strings.TrimSpace(run.Answer) == "" && (run.Final == nil || strings.TrimSpace(run.Final.Text) == "") {
		return nil
	}
	if t.live {
		return t.observe(ctx, run)
	}
	var both [2]*experiment.Outcome
	for i := range t.sides {
		if both[i], err = experiment.Measure(ctx, run, &t.sides[i], nil); err != nil {
			return fmt.Errorf("measuring a run: %w", err)
		}
	}
	for i := range both { // none of a run that only one side was measured on
		t.outcomes[i] = append(t.outcomes[i], *both[i])
	}
	return nil
}

// observe adds a run to the side that it was on while it ran.
func (t *trial) observe(ctx context.Context, run *trail.Trail) error {
	for i := range t.sides {
		if run.Strategy != t.sides[i].ID() {
			continue
		}
		var said experiment.Feedback
		if id := run.FinalID(); id != "" {
			counts, err := t.page.o.Store.FeedbackCounts(ctx, t.tenant, &store.FeedbackQuery{AnswerID: id})
			if err != nil {
				return err
			}
			said.Judged, said.Right = counts.Citations, counts.Right
		}
		out, err := experiment.Observe(ctx, run, said, nil)
		if errors.Is(err, experiment.ErrElsewhere) {
			t.other++
			continue
		}
		if err != nil {
			return fmt.Errorf("measuring a run: %w", err)
		}
		t.outcomes[i] = append(t.outcomes[i], *out)
	}
	return nil
}

// view lays out what came of it.
func (t *trial) view() *comparisonView {
	v := &comparisonView{A: t.sides[0].ID(), B: t.sides[1].ID()}
	if t.bad > 0 {
		v.Notes = append(v.Notes, counted(t.bad, "run", "runs")+" could not be read.")
	}
	if t.other > 0 {
		v.Notes = append(v.Notes, counted(t.other, "run", "runs")+" left out: their final answers were not captured.")
	}
	if t.late {
		v.Notes = append(
			v.Notes, "Time was up before all runs were looked at. `ibid experiment` takes as long as it needs.",
		)
	}
	r := experiment.Compare(t.outcomes[0], t.outcomes[1])
	switch {
	case r.A.Runs+r.B.Runs == 0 && t.live:
		v.Said = "None of the last " + counted(
			t.seen, "run", "runs",
		) + " was attributed by one of these strategies while it ran."
		return v
	case r.A.Runs+r.B.Runs == 0:
		v.Said = "None of the last " + counted(t.seen, "run", "runs") + " has a final answer."
		return v
	case r.Paired:
		v.Said = counted(r.A.Runs, "run", "runs") + ", the same for both."
	default:
		v.Said = strconv.Itoa(r.A.Runs) + " and " + counted(r.B.Runs, "run", "runs") + "."
	}
	for _, row := range []struct {
		name, of string
		a, b, d  *experiment.Estimate
	}{
		{"Coverage", "sentences that rest on a source, of those that claim something", &r.A.Coverage, &r.B.Coverage, &r.Difference.Coverage},
		{"Supported", "cited sentences that their sources support, of those that could be checked", &r.A.Supported, &r.B.Supported, &r.Difference.Supported},
		{"Verified", "citations whose source still says it, of those that were read again", &r.A.Verified, &r.B.Verified, &r.Difference.Verified},
		{"Feedback", "citations that people called right, of those they judged", &r.A.Feedback, &r.B.Feedback, &r.Difference.Feedback},
	} {
		v.Rows = append(v.Rows, comparisonRow{
			Name:       row.name,
			Of:         row.of,
			A:          intervalOf(row.a),
			B:          intervalOf(row.b),
			Difference: differenceOf(row.d),
			Verdict:    tellApart(row.d),
		})
	}
	return v
}

// intervalOf lays an estimate out; nil: there was nothing to count.
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

func differenceOf(e *experiment.Estimate) string {
	if e.Value == nil {
		return ""
	}
	text := points(*e.Value)
	if e.Low != nil && e.High != nil {
		text += " (" + points(*e.Low) + " to " + points(*e.High) + ")"
	}
	return text + " points"
}

func points(x float64) string {
	text := fmt.Sprintf("%+.0f", 100*x)
	if text == "-0" {
		text = "+0"
	}
	return strings.Replace(text, "-", "−", 1)
}

// tellApart says whether a difference can be told from none; empty: nobody can say.
func tellApart(e *experiment.Estimate) string {
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
