package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

// experimentFlags are the flags of ibid experiment.
type experimentFlags struct {
	live, json bool
	runs       int
	tenant     string
}

// defaultExperimentRuns is how many stored runs are looked at unless told otherwise.
const defaultExperimentRuns = 500

func newExperiment(w world) *cobra.Command {
	c := server.Defaults()
	f := &experimentFlags{}
	cmd := &cobra.Command{
		Use:   "experiment [STRATEGY STRATEGY]",
		Short: "Compare two attribution strategies on stored runs",
		Long: `Attributes the final answers of the latest stored runs once by each of two
strategies, and compares them: how many sentences rest on a source, how many of
those their sources support, how many citations held when their source was
fetched again, and how many people called right. Each share has its 95 %
confidence interval; sentences of one run do not count as independent.

With --live nothing is attributed again: it compares the runs that each strategy
was given while they ran, by ibid serve --experiment.

Both sides have the same judge of what is supported, the built-in checker. What
nobody measured is shown as a dash. People's words count with --live only, for
they judged what they saw.

Without strategies it lists those that there are. More can stand under
strategies in the file of --config.`,
		Example: `  ibid experiment
  ibid experiment provider balanced
  ibid experiment balanced strict --live --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return &usageError{
					fmt.Errorf("an experiment has two strategies, not %d", len(args)),
					"ibid experiment lists them",
				}
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return strategyIDs(experiment.Builtin()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.runs < 1 {
				return &usageError{fmt.Errorf("--runs %d: there must be at least one", f.runs), ""}
			}
			if len(args) == 0 {
				return listStrategies(cmd, c, f, w)
			}
			if err := c.ResolveStore(cmd.Flags(), w.env); err != nil { // it reads the strategies of the file, too
				return err
			}
			e := &experimenting{experimentFlags: f, world: w}
			e.Live = f.live
			if err := e.choose(c, args); err != nil { // before a database is missed
				return err
			}
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				return e.run(ctx, s)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "compare runs as they were attributed while they ran")
	flags.IntVar(&f.runs, "runs", defaultExperimentRuns, "look at the latest `N` runs")
	addTenantFlag(flags, &f.tenant)
	flags.BoolVar(&f.json, "json", false, "print the report, or the strategies, as JSON")
	addStoreFlags(cmd, c)
	return cmd
}

func strategyIDs(list []experiment.Strategy) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID()
	}
	return ids
}

// listStrategies shows which strategies there are.
func listStrategies(cmd *cobra.Command, c *server.Config, f *experimentFlags, w world) error {
	if err := c.ResolveStore(cmd.Flags(), w.env); err != nil {
		return err
	}
	list := c.AllStrategies()
	if f.json {
		return json.NewEncoder(w.out).Encode(list)
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STRATEGY\tPOST HOC\tTHRESHOLD\tPER SENTENCE\tSCORER\tCHECKER")
	for i := range list {
		s := &list[i]
		if !s.PostHoc {
			fmt.Fprintf(t, "%s\tno\n", s.ID())
			continue
		}
		fmt.Fprintf(
			t, "%s\tyes\t%v\t%d\t%s\t%s\n", s.ID(), s.Threshold, cmp.Or(s.PerSentence, support.DefaultPerSentence),
			s.Scorer, s.Checker,
		)
	}
	return t.Flush()
}

// experimenting is one call of ibid experiment.
type experimenting struct {
	*experimentFlags
	api.Comparison

	world world
}

// choose finds the two strategies.
func (e *experimenting) choose(c *server.Config, names []string) error {
	for i, name := range names {
		var err error
		if e.Sides[i], err = experiment.Find(c.AllStrategies(), name); err != nil {
			return &usageError{err, server.StrategyHint}
		}
		if e.live {
			continue // nothing is attributed again
		}
		if e.Checkers[i], err = c.StrategyChecker(&e.Sides[i], e.world.env); err != nil {
			return err
		}
	}
	if e.Sides[0].ID() == e.Sides[1].ID() {
		return &usageError{fmt.Errorf("both strategies are %s", e.Sides[0].ID()), "ibid experiment lists others"}
	}
	return nil
}

func (e *experimenting) run(ctx context.Context, s *store.Store) error {
	bar := countProgress(e.runs, "runs", e.world)
	err := e.AddRuns(ctx, s, e.tenant, e.runs, bar.step)
	bar.end()
	if err != nil {
		return err
	}
	if e.Bad > 0 {
		say(e.world.err, "%s could not be read", plural(e.Bad, "run"))
	}
	if e.Elsewhere > 0 {
		say(e.world.err, "%s left out: their final answers were not captured", plural(e.Elsewhere, "run"))
	}
	report := e.Report()
	if report == nil {
		return e.nothing()
	}
	if e.json {
		return json.NewEncoder(e.world.out).Encode(report)
	}
	return e.show(report)
}

// nothing says why there is nothing to compare.
func (e *experimenting) nothing() error {
	if e.live {
		return &usageError{
			fmt.Errorf(
				"none of the latest %s was attributed by %s or %s", plural(e.Seen, "run"), e.Sides[0].ID(),
				e.Sides[1].ID(),
			),
			"ibid serve --experiment NAME=A,B divides the runs between two strategies; --runs N looks further back",
		}
	}
	return &usageError{
		fmt.Errorf("none of the latest %s has a final answer", plural(e.Seen, "run")),
		"calls with Ibid-Run, or POST /v1/runs, make some",
	}
}

// show prints a report for people.
func (e *experimenting) show(r *experiment.Report) error {
	runs := fmt.Sprintf("%d and %d runs", r.A.Runs, r.B.Runs)
	if r.Paired {
		runs = plural(r.A.Runs, "run") + ", the same for both"
	}
	fmt.Fprintf(e.world.out, "%s; in brackets the 95 %% interval\n\n", runs)
	t := tabwriter.NewWriter(e.world.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "\t%s\t%s\tdifference\t\n", r.A.Strategy, r.B.Strategy)
	for _, row := range r.Rows() {
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%s\t%s\n", row.Name, share(row.A), share(row.B), change(row.Difference),
			row.Difference.Verdict(),
		)
	}
	return t.Flush()
}

// share writes an estimate: 62 % [55, 68] of 120.
func share(e *experiment.Estimate) string {
	if e.Value == nil {
		return "–"
	}
	text := fmt.Sprintf("%.0f %%", 100**e.Value)
	if e.Low != nil {
		text += fmt.Sprintf(" [%.0f, %.0f]", 100**e.Low, 100**e.High)
	}
	return text + fmt.Sprintf(" of %d", e.Of)
}

// change writes a difference in percentage points: +6 [−1, +13].
func change(e *experiment.Estimate) string {
	if e.Value == nil {
		return "–"
	}
	text := experiment.Points(*e.Value)
	if e.Low != nil {
		text += " [" + experiment.Points(*e.Low) + ", " + experiment.Points(*e.High) + "]"
	}
	return text
}
