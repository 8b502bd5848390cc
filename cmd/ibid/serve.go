package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func newServe(w world) *cobra.Command {
	c := newConfig()
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

Without an access token ibid listens on loopback addresses only. The variable
IBID_BOOTSTRAP_TOKEN holds one for containers; ibid token new makes others.

SIGINT, SIGTERM and SIGHUP end it when the calls under way have ended, within --drain;
a second one ends it at once.`,
		Example: `  ibid serve
  curl http://127.0.0.1:8080/openai/v1/responses -H "Authorization: Bearer $OPENAI_API_KEY" \
    -H 'Content-Type: application/json' -d '{"model":"gpt-5","input":"Hello"}'
  ibid serve --config /etc/ibid.yaml --check`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.resolve(cmd.Flags(), w); err != nil {
				return err
			}
			if check {
				return checkServe(cmd.Context(), c, w)
			}
			return serve(cmd.Context(), c, w)
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "say what it would do and whether it can, and end")
	return cmd
}

// serve runs a gateway until it is told to stop.
func serve(ctx context.Context, c *config, w world) error {
	w.err = &locked{w: w.err}
	ctx, stop := stopSignals(ctx)
	defer stop()
	d, err := newDaemon(ctx, c, w)
	if err != nil {
		return err
	}
	return d.run(ctx, nil)
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

// listen opens the address, unless everybody could reach a gateway that needs no token.
func (d *daemon) listen(ctx context.Context) (net.Listener, error) {
	if err := d.checkExposure(ctx); err != nil || d.listener != nil {
		return d.listener, err
	}
	return openListener(ctx, d.config.listen)
}

// openListener opens an address.
func openListener(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &usageError{
			fmt.Errorf("listening on %s: another program does so", address), "--listen 127.0.0.1:0 takes a free port",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}

// checkExposure refuses an address that others can reach while there are no tokens.
func (d *daemon) checkExposure(ctx context.Context) error {
	local, err := isLocal(d.config.listen)
	if err != nil || local || d.config.bootstrap != "" {
		return err
	}
	tokens, err := d.store.Tokens(ctx)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	if len(tokens) == 0 {
		return exposedError(d.config.listen)
	}
	return nil
}

// isLocal reports whether only this machine can reach an address.
func isLocal(listen string) (bool, error) {
	address, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return false, &usageError{
			fmt.Errorf("listen address %q: %w", listen, addressError(err)),
			"an address is HOST:PORT, such as 127.0.0.1:8080",
		}
	}
	return address.IP.IsLoopback(), nil
}

func exposedError(listen string) error {
	return &usageError{
		fmt.Errorf("%s can be reached from elsewhere, and there is no access token", listen),
		"ibid token new --name FIRST makes one; containers are given theirs in IBID_BOOTSTRAP_TOKEN",
	}
}

// announce says where the gateway listens.
func (d *daemon) announce(url string) error {
	fmt.Fprintln(d.world.err, "ibid: listening on "+url)
	if d.config.addressFile == "" {
		return nil
	}
	return writeWhole(d.config.addressFile, url+"\n")
}

// writeWhole writes a file so that who waits for it finds it whole.
func writeWhole(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".ibid-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may be there no more
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// url returns where a listener is reached.
func (d *daemon) url(l net.Listener) string {
	scheme := "http"
	if d.config.tlsCert != "" {
		scheme = "https"
	}
	return scheme + "://" + strings.Replace(l.Addr().String(), "[::]", "0.0.0.0", 1)
}
