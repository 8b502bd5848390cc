package main

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
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
		Short: "Pass calls to providers through and keep their answers with citations",
		Long: `Runs the gateway. A client's base URL changes from the provider's to
/NAME, and from then on its answers are kept with their citations:

  https://api.openai.com/v1     http://127.0.0.1:8080/openai/v1
  https://api.anthropic.com     http://127.0.0.1:8080/anthropic

Requests and responses pass unchanged, with the client's own key. GET /v1 lists
what the API has, and / is a page for people; docs/serve.md says more.

The file of --config has the names of the flags, and besides
  upstreams:
    NAME: {url: …, provider: …, key_env: …, retention: 30d, backfill: {…}}
  retention: {default: forever, PROVIDER: 30d}
and settings that few people need, which have no flag but a variable.

Without an access token ibid answers this machine only. Before others may reach it:
ibid token new --name me --scope all; in containers, IBID_BOOTSTRAP_TOKEN.

SIGINT, SIGTERM and SIGHUP end it when the calls under way have ended, within 30
seconds (drain); a second one ends it at once.`,
		Example: `  ibid serve
  curl http://127.0.0.1:8080/openai/v1/responses -H "Authorization: Bearer $OPENAI_API_KEY" \
    -H 'Content-Type: application/json' -d '{"model":"gpt-5","input":"Hello"}'
  ibid serve --config /etc/ibid.yaml --check`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setFromEnv(c.Settings(), w.env, func(f *pflag.Flag) string {
				return "it is the setting " + f.Name + " of ibid serve"
			}); err != nil {
				return err
			}
			if err := c.Resolve(cmd.Flags(), w.env); err != nil {
				return err
			}
			if check {
				return server.Check(cmd.Context(), c, &server.CheckOptions{
					Out: w.out,
					Env: w.env,
					Warn: func(err error) {
						say(w.err, "%v", err)
						hint(w.err, explain(err).hint)
					},
					Hint: func(advice string) { hint(w.err, advice) },
				})
			}
			ctx, stop := stopSignals(cmd.Context())
			defer stop()
			return serve(ctx, c, &server.Options{}, nil, w)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "say what it would do and whether it can, and end")
	return cmd
}

// whereText tells somebody at a terminal where everything is.
const whereText = `  page      %[1]s/
  base URL  %[1]s/openai/v1 in place of https://api.openai.com/v1
  data      %[2]s
`

// serve runs a server until ctx ends. It calls ready, if there is one, before it says that it listens.
func serve(
	ctx context.Context, c *server.Config, o *server.Options, ready func(*server.Server, string) error, w world,
) error {
	// There net/http shows the first bytes of what an upstream sends unasked: an answer, perhaps.
	stdlog.SetOutput(io.Discard)
	terminal := isTerminal(w.err)
	w.err = &locked{w: w.err}
	o.Logger, o.Env, o.Version = newLogger(w.err, c.Quiet), w.env, readBuild().Version
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
		case c.Quiet: // the demo has said more
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

// stopSignals returns a context that ends with the first signal to stop. The second one ends the program.
func stopSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does, and to listen to it would undo that
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
