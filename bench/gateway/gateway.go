package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/journal"
	"github.com/ibidhq/ibid/store"
)

// serveGateway is the gateway as ibid serve makes it, but for one thing: without -index the journal is written and not read,
// so that the cost of relaying, decoding and keeping can be told from that of indexing.
func serveGateway(ctx context.Context, args []string, _ io.Writer) error {
	set := flags("_gateway")
	addr := set.String("addr", "127.0.0.1:0", "where to listen")
	up := set.String("upstream", "", "where to send calls")
	dir := set.String("data", "", "the data directory")
	index := set.Bool("index", true, "move the journal into the store")
	capture := set.String("capture", string(gateway.Strict), "strict, store or relaxed")
	profile := set.String("profile", "", "file for a CPU profile")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	to, err := url.Parse(*up)
	if err != nil {
		return err
	}
	j, err := journal.Open(filepath.Join(*dir, "journal"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	s, err := store.Open(ctx, filepath.Join(*dir, "ibid.db"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	b, err := bus.Open(ctx, bus.Embedded, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	g, err := gateway.New(&gateway.Options{
		Upstreams: []gateway.Upstream{{Name: "mock", URL: to, Provider: "openai"}},
		Store:     s, Bus: b, Journal: j, Capture: gateway.Mode(*capture), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	if *index {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _ = g.Run(ctx) }()
		go func() { _ = b.Relay(ctx, s) }()
	}
	return listen(ctx, *addr, gateway.NewServer(*addr, g, nil))
}
