package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

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

func newExperiment(w world) *cobra.Command {
	c := server.Defaults()
	f := &experimentFlags{}
	cmd := &cobra.Command{
		Use:   "experiment [STRATEGY STRATEGY]",
		Short: "Compare two attribution strategies on stored runs",
		Long: `Attributes the final answers of the latest stored runs with each of two strategies
and compares them: how many sentences rest on a source, how many of these the
sources support, how many citations still held when their source was fetched again,
and how many people rated right. Each share has a 95 % confidence interval;
sentences of one run do not count as independent.

With --live nothing is attributed again: it compares the runs that ibid serve
--experiment assigned to each strategy.

Support is judged for both by the built-in checker. Values that were not measured
are shown as a dash. People's ratings count with --live only, since they apply to
the citations that were shown.

Without strategies it lists those available. Define your own under strategies in
the file of --config.`,
		Example: `  ibid experiment
  ibid experiment provider balanced
  ibid experiment balanced strict --live --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return usagef("ibid experiment lists them", "an experiment has two strategies, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var ids []string
			for _, s := range experiment.Builtin() {
				ids = append(ids, s.ID())
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.runs < 1 {
				return usagef("", "--runs %d: must be at least 1", f.runs)
			}
			if err := c.ResolveStore(cmd.Flags(), w.env); err != nil { // this also reads the strategies of the file
				return err
			}
			if len(args) == 0 {
				return writeStrategies(w, c.AllStrategies(), f.json)
			}
			e := &experimenting{experimentFlags: f, world: w}
			e.Live = f.live
			for i, name := range args { // report unknown names before a missing database
				var err error
				if e.Sides[i], err = experiment.Find(c.AllStrategies(), name); err != nil {
					return usagef(server.StrategyHint, "%w", err)
				}
				if f.live {
					continue // nothing is attributed again
				}
				if e.Checkers[i], err = c.StrategyChecker(&e.Sides[i], w.env); err != nil {
					return err
				}
			}
			if e.Sides[0].ID() == e.Sides[1].ID() {
				return usagef("ibid experiment lists others", "both strategies are %s", e.Sides[0].ID())
			}
			return withStore(cmd, c, w, false, e.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "compare runs as attributed when they ran")
	flags.IntVar(&f.runs, "runs", 500, "look at the latest `N` runs")
	addTenantFlag(flags, &f.tenant)
	flags.BoolVar(&f.json, "json", false, "print the report, or the strategies, as JSON")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

func writeStrategies(w world, list []experiment.Strategy, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w.out).Encode(list)
	}
	rows := [][]string{{"STRATEGY", "POST HOC", "THRESHOLD", "PER SENTENCE", "SCORER", "CHECKER"}}
	for i := range list {
		s := &list[i]
		row := []string{s.ID(), "no"}
		if s.PostHoc {
			perSentence := strconv.Itoa(cmp.Or(s.PerSentence, support.DefaultPerSentence))
			row = []string{s.ID(), "yes", fmt.Sprint(s.Threshold), perSentence, s.Scorer, s.Checker}
		}
		rows = append(rows, row)
	}
	return writeTable(w.out, 2, rows)
}

// experimenting is one call of ibid experiment.
type experimenting struct {
	*experimentFlags
	api.Comparison

	world world
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
	switch {
	case report == nil && e.live:
		return usagef(
			"use ibid serve --experiment NAME=A,B to divide runs between strategies, or --runs N to look further back",
			"none of the latest %s was attributed by %s or %s", plural(e.Seen, "run"), e.Sides[0].ID(), e.Sides[1].ID(),
		)
	case report == nil:
		return usagef(
			"record runs with Ibid-Run, or POST /v1/runs",
			"none of the latest %s has a final answer", plural(e.Seen, "run"),
		)
	case e.json:
		return json.NewEncoder(e.world.out).Encode(report)
	}
	runs := fmt.Sprintf("%d and %d runs", report.A.Runs, report.B.Runs)
	if report.Paired {
		runs = plural(report.A.Runs, "run") + ", the same for both"
	}
	fmt.Fprintf(e.world.out, "%s; 95 %% intervals in brackets\n\n", runs)
	rows := [][]string{{"", report.A.Strategy, report.B.Strategy, "difference", ""}}
	for _, row := range report.Rows() {
		rows = append(rows, []string{
			row.Name, share(row.A), share(row.B), change(row.Difference), row.Difference.Verdict(),
		})
	}
	return writeTable(e.world.out, 3, rows)
}

// share formats an estimate: 62 % [55, 68] of 120.
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

// change formats a difference in percentage points: +6 [−1, +13].
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
