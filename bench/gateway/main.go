package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// command is one thing this program does. Names with a leading underscore are the parts it starts itself.
type command struct {
	name string
	run  func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"compare", compare},
		{"split", split},
		{"memory", memory},
		{"sync", endMark},
		{"intact", intact},
		{"crash", crash},
		{"outage", outage},
		{"soak", soak},
		{"growth", growth},
		{"bulk", bulk},
		{"_upstream", serveUpstream},
		{"_load", runLoad},
		{"_hold", runHold},
		{"_reverse", serveReverse},
		{"_gateway", serveGateway},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, c := range commands() {
		if len(args) > 0 && c.name == args[0] {
			return c.run(ctx, args[1:], out)
		}
		if !strings.HasPrefix(c.name, "_") {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("usage: go -C bench/gateway run . %s", strings.Join(names, "|"))
}

// flags returns an empty set of flags for one command.
func flags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ContinueOnError) }
