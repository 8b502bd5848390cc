package main

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/server"
)

func newServe(w world) *cobra.Command {
	c := server.Defaults()
	var check bool
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Proxy calls to providers and store their answers with citations",
		Long: `Runs the gateway. Change a client's base URL from the provider's to /NAME, and its
answers are stored with their citations:

  https://api.openai.com/v1     http://127.0.0.1:8080/openai/v1
  https://api.anthropic.com     http://127.0.0.1:8080/anthropic

Requests and responses pass through unchanged, with the client's own key. GET /v1
lists the API, and / is a page for people; see docs/serve.md.

The file of --config has the names of the flags, and in addition
  upstreams:
    NAME: {url: …, provider: …, key_env: …, retention: 30d, backfill: {…}}
  retention: {default: forever, PROVIDER: 30d}
and settings that few people need, which can also be set by variables.

Without access tokens ibid only serves this machine. Before you expose it, run
ibid token new --name me --scope all; in containers, set IBID_BOOTSTRAP_TOKEN.

SIGINT, SIGTERM and SIGHUP end it once the calls in progress have ended, within 30
seconds (drain); a second signal ends it at once.`,
		Example: `  ibid serve
  curl http://127.0.0.1:8080/openai/v1/responses -H "Authorization: Bearer $OPENAI_API_KEY" \
    -H 'Content-Type: application/json' -d '{"model":"gpt-5","input":"Hello"}'
  ibid serve --config /etc/ibid.yaml --check`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setFromEnv(c.Settings(), w.env, func(f *pflag.Flag) string {
				return "it sets " + f.Name + " of ibid serve"
			}); err != nil {
				return err
			}
			if err := c.Resolve(cmd.Flags(), w.env); err != nil {
				return err
			}
			if check {
				return server.Check(cmd.Context(), c, &server.CheckOptions{
					Out:   w.out,
					Env:   w.env,
					Error: func(err error) { sayProblem(w.err, "error", err) },
					Warn:  func(err error) { sayProblem(w.err, "warning", err) },
					Hint:  func(advice string) { hint(w.err, advice) },
				})
			}
			ctx, stop := stopSignals(cmd.Context())
			defer stop()
			return serve(ctx, c, &server.Options{}, nil, w)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "check the configuration, report what it would do, and exit")
	return cmd
}

// sayProblem writes what a check found, and what to do about it.
func sayProblem(w io.Writer, severity string, err error) {
	say(w, "%s: %v", severity, err)
	hint(w, explain(err).hint)
}

// whereText shows a person at a terminal where everything is.
const whereText = `  page      %[1]s/
  base URL  %[1]s/openai/v1 in place of https://api.openai.com/v1
  data      %[2]s
`

// serve runs a server until ctx ends. It calls ready, unless it is nil, before it reports that it is listening.
func serve(
	ctx context.Context, c *server.Config, o *server.Options, ready func(*server.Server, string) error, w world,
) error {
	// net/http logs the first bytes that an upstream sends unasked, which may be an answer.
	stdlog.SetOutput(io.Discard)
	terminal := isTerminal(w.err)
	w.err = &locked{w: w.err}
	o.Logger, o.Env, o.Version = newLogger(w.err, c.Quiet), w.env, readBuild().Version
	if procs, raised := raiseProcs(w.env); raised {
		o.Logger.LogAttrs(
			ctx, slog.LevelInfo, "GOMAXPROCS raised, so that calls continue while others are written to disk",
			slog.Int("gomaxprocs", procs),
		)
	}
	s, err := server.Open(ctx, c, o)
	if err != nil {
		return err
	}
	return s.Run(ctx, func(_ context.Context, url string) error {
		if ready != nil {
			if err := ready(s, url); err != nil {
				return err
			}
		}
		if terminal || c.Quiet {
			fmt.Fprintln(w.err, "ibid: listening on "+url)
		}
		switch {
		case c.Quiet: // the demo has printed more
		case terminal:
			fmt.Fprintf(w.err, whereText, url, c.Data)
		default:
			o.Logger.LogAttrs(
				ctx, slog.LevelInfo, "listening", slog.String("url", url), slog.String("page", url+"/"),
				slog.String("base_url", url+"/NAME"), slog.String("data", c.Data),
			)
		}
		if c.AddressFile == "" {
			return nil
		}
		if err := file.Replace(c.AddressFile, []byte(url+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", c.AddressFile, err)
		}
		return nil
	})
}

// minProcs is how many processors Go is to use at least. SQLite runs in this process, and a goroutine in its fsync
// occupies a processor of Go's until it returns: with only one, every call waits for every commit. See
// docs/performance.md.
const minProcs = 3

// raiseProcs makes Go use minProcs, unless it uses more already or the environment says how many.
func raiseProcs(env server.Env) (procs int, raised bool) {
	if set, _ := env("GOMAXPROCS"); set != "" || runtime.GOMAXPROCS(0) >= minProcs {
		return runtime.GOMAXPROCS(0), false
	}
	runtime.GOMAXPROCS(minProcs)
	return minProcs, true
}

// stopSignals returns a context that ends with the first signal to stop. A second signal ends the program.
func stopSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as by nohup, which listening would undo
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
