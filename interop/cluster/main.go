package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == natsCommand: // this program starts itself as each server of NATS
		return serveNATS(ctx, args[1:])
	case len(args) > 0:
		return errors.New("usage: cluster")
	}
	return up(ctx, out)
}

// up runs a cluster until ctx ends.
func up(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprintln(out, "cluster: building ibid and starting three gateways, three servers of NATS and PostgreSQL")
	c, err := newCluster(ctx, options{})
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer func() { err = errors.Join(err, c.close()) }()
	fmt.Fprintln(out)
	for _, n := range c.nodes {
		fmt.Fprintf(out, "  gateway  http://%s/\n", n.addr)
	}
	fmt.Fprintf(out, "  NATS     %s\n  database %s\n  data     %s\n\n", c.natsURLs(), c.pg.DSN, c.dir)
	fmt.Fprintf(out, "A provider that needs no key is /%s on each:\n\n  curl --no-buffer http://%s%s -d '%s'\n\n",
		mockName, c.nodes[0].addr, callPath, question("hello"))
	fmt.Fprintln(out, "Ctrl-C stops everything and removes its data.")
	<-ctx.Done()
	return nil
}
