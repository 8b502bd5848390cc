package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// pruned is the output of ibid prune --json. Its members must not be renamed.
type pruned struct {
	Answers       int  `json:"answers"`
	Conversations int  `json:"conversations"`
	Runs          int  `json:"runs"`
	Events        int  `json:"events"`
	Steps         int  `json:"steps"`
	Manifests     int  `json:"manifests"`
	Copies        int  `json:"copies"`
	Versions      int  `json:"versions"`
	DryRun        bool `json:"dry_run"`
}

func newPrune(w world) *cobra.Command {
	c := server.Defaults()
	said := server.Retention{ByProvider: server.Ages{}}
	var dryRun, asJSON, reindex bool
	cmd := &cobra.Command{
		Use:   "prune [--older-than TIME] [--provider NAME=TIME…]",
		Short: "Remove answers past their retention",
		Long: `Removes old answers from the database, the conversations and runs that have no
others, and equally old recordings of runs. Without a time it applies the
retention of the configuration, as ibid serve does by itself. It also works while
a server is running.

With --reindex it removes no answers, but rebuilds the search index of an SQLite
database from the stored answers. This repairs a damaged index and removes the
words of deleted answers from it.`,
		Example: `  ibid prune --older-than 90d --provider gemini=720h --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				if reindex && store.IsPostgres(c.DB) {
					return usagef(
						"PostgreSQL rebuilds its own indexes with REINDEX DATABASE", "--reindex is for SQLite",
					)
				}
				if reindex {
					err := s.Reindex(ctx)
					if err == nil {
						say(w.err, "rebuilt the search index")
					}
					return err
				}
				keep, isSaid := c.Retention, false
				for _, name := range []string{"older-than", "provider", "copies", "manifests"} {
					isSaid = isSaid || cmd.Flags().Changed(name) // zero, forever, also counts
				}
				if isSaid {
					keep = said
				} else if !keep.Any() {
					return usagef(
						"use --older-than 90d, or retention in the file of --config",
						"no retention is configured",
					)
				}
				r := keep.Rules()
				r.DryRun = dryRun
				return prune(ctx, s, &r, asJSON, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&said.Default, "older-than", "remove what is older than this `time`: 720h, 90d")
	flags.Var(&said.Copies, "copies", "remove copies of sources fetched longer ago than this `time`")
	flags.Var(&said.Manifests, "manifests",
		"remove manifests published longer ago than this `time`, even if their answers are kept")
	flags.Var(said.ByProvider, "provider",
		"a different time for one provider's answers: `NAME=TIME`; repeatable")
	flags.BoolVar(&dryRun, "dry-run", false, "report what would be removed, but remove nothing")
	flags.BoolVar(&asJSON, "json", false, "print the counts as JSON")
	flags.BoolVar(&reindex, "reindex", false, "only rebuild the search index of an SQLite database")
	for _, other := range []string{"older-than", "copies", "manifests", "provider", "dry-run", "json"} {
		cmd.MarkFlagsMutuallyExclusive("reindex", other)
	}
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// prune removes old answers and reports how many.
func prune(ctx context.Context, s *store.Store, r *store.Retention, asJSON bool, w world) error {
	r.Now = time.Now()
	if _, ok := w.err.(*cleaner); ok && !r.DryRun { // a progress bar is visible
		count := *r
		count.DryRun = true
		all, err := s.Prune(ctx, &count)
		if err != nil {
			return err
		}
		bar := countProgress(all.Answers, "answers", w)
		defer bar.end()
		r.Progress = func(report store.PruneReport) { bar.set(report.Answers) }
	}
	report, err := s.Prune(ctx, r)
	if asJSON {
		return errors.Join(err, json.NewEncoder(w.out).Encode(pruned{
			report.Answers, report.Conversations, report.Runs, report.Events, report.Steps, report.Manifests,
			report.Copies, report.Versions, r.DryRun,
		}))
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	say(
		w.err, "%s %s, %s, %s, %s", verb, plural(report.Answers, "answer"),
		plural(report.Conversations, "conversation"), plural(report.Runs, "run"), plural(report.Steps, "recorded step"),
	)
	if report.Manifests+report.Copies+report.Versions > 0 {
		say(
			w.err, "%s %s, and of sources %s and %s", verb, plural(report.Manifests, "manifest"),
			plural(report.Copies, "document"), plural(report.Versions, "version"),
		)
	}
	return err
}
