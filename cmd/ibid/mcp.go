package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// mcpFlags are the flags of ibid mcp.
type mcpFlags struct {
	tenant string
	trust  []string
	allow  server.Networks // networks that may be connected to besides the public ones
	judge  judgeFlags
}

func newMCP(w world) *cobra.Command {
	c := server.Defaults()
	f := &mcpFlags{}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer ibid to agents as tools, over the Model Context Protocol",
		Long: `Serves the Model Context Protocol on standard input and output, for a program that
starts it: Claude Desktop, Claude Code, Cursor, VS Code or your own agent. Its tools
are cite, attribute, check and verify and, if --data, --db or --config names the
database of ibid serve, run_sources and find_answers.

Most programs are configured like this, in a file such as
claude_desktop_config.json, .mcp.json or .cursor/mcp.json:

  {
    "mcpServers": {
      "ibid": {"command": "ibid", "args": ["mcp", "--db", "/path/to/ibid.db"]}
    }
  }

For Claude Code:

  claude mcp add ibid -- ibid mcp --db /path/to/ibid.db

docs/mcp.md covers other programs, HTTP (/mcp of ibid serve), and the arguments of
the tools. verify only connects to public addresses, at ports 80 and 443, unless
--allow-net names another network.

Exit codes: 0 when standard input has ended; 2 if it or the database could not be
read.`,
		Example: `  ibid mcp
  ibid mcp --db ibid.db --tenant default --trust agent.example`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTrust(f.trust); err != nil {
				return err
			}
			judge, done, err := f.judge.build(c.File, w)
			if err != nil {
				return err
			}
			defer done()
			return withNamedStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				return f.serve(ctx, s, judge, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addTenantFlag(flags, &f.tenant)
	flags.StringSliceVar(&f.trust, "trust", nil,
		"whose signatures verify trusts: a host or a key id, as `WHO`; repeatable")
	server.AddNetFlag(flags, &f.allow)
	f.judge.add(flags, &c.File)
	c.AddStoreFlags(cmd.Flags())
	flags.Lookup("data").Usage = "offer the answers and runs in the database in this `directory`; there are none " +
		"without it, --db or --config"
	return cmd
}

// serve serves MCP until standard input ends.
func (f *mcpFlags) serve(ctx context.Context, s *store.Store, judge support.Checker, w world) error {
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: f.allow})
	defer func() { _ = fetcher.Close() }() // only reads
	texts, memory := &snapshot.Texts{}, verify.Memory(&verify.MemoryMap{})
	var copies snapshot.Copies
	if s != nil {
		memory, copies = s.Memory(f.tenant), s.Copies(f.tenant)
	}
	log := newLogger(w.err, true)
	server := mcp.New(&mcp.Options{
		Store: s, Checker: judge, Version: readBuild().Version, Logger: log,
		Verify: func(ctx context.Context, tenant string, what *api.Verification) (*verify.Report, error) {
			report, err := api.Report(ctx, &verify.Verifier{
				Fetcher: fetcher,
				Texts:   texts,
				Memory:  memory,
				Copies:  copies,
				Judge:   judge,
				Trust:   f.trust,
				Version: readBuild().Version,
			}, what)
			if err == nil && s != nil {
				recordFailures(ctx, s, tenant, report, log)
			}
			return report, err
		},
	})
	if isTerminal(w.in) {
		say(w.err, "waiting for an MCP client on standard input; ibid mcp --help shows how to configure one")
	}
	if err := server.Serve(ctx, w.in, w.out, f.tenant); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// recordFailures records the failures of a report, as other ways to verify do. The report is valid without it.
func recordFailures(ctx context.Context, s *store.Store, tenant string, report *verify.Report, log *slog.Logger) {
	const (
		most   = 1000 // failures recorded
		within = 20 * time.Second
	)
	incidents := verify.Incidents(report)
	if len(incidents) == 0 {
		return
	}
	// record them even if the caller has left
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	_, err := s.AddIncidents(ctx, tenant, incidents[:min(len(incidents), most)])
	if err != nil && !errors.Is(err, store.ErrLimit) {
		log.LogAttrs(ctx, slog.LevelWarn, "failures of a report were not recorded", slog.Any("error", err))
	}
}
