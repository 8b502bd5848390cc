package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// serveGateway is the gateway as created by ibid serve, with one difference: without -index the journal is written but
// not read, which separates the cost of relaying, decoding and storing from that of indexing.
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
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(3, runtime.GOMAXPROCS(0))) // as ibid serve does
	}
	to, err := url.Parse(*up)
	if err != nil {
		return err
	}
	o := &gateway.Options{
		Upstreams: []gateway.Upstream{{Name: "mock", URL: to, Provider: "openai"}},
		Capture:   gateway.Mode(*capture), Metrics: prometheus.NewRegistry(),
	}
	return withGateway(ctx, o, *dir, *index, func(g *gateway.Gateway) error {
		return listen(ctx, *addr, gateway.NewServer(*addr, g, nil))
	})
}

// withGateway creates a gateway with everything it needs in a directory, for as long as f runs.
func withGateway(
	ctx context.Context, o *gateway.Options, dir string, index bool, f func(*gateway.Gateway) error,
) error {
	j, err := journal.Open(filepath.Join(dir, "journal"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	b, err := bus.Open(ctx, "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() //nolint:contextcheck // it lives as long as the program
	s, err := store.Open(ctx, filepath.Join(dir, "ibid.db"), &store.Options{Committed: b.Committed()})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	o.Journal, o.Store, o.Bus = j, s, b
	g, err := gateway.New(o)
	if err != nil {
		return err
	}
	if index {
		ctx, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() { _ = g.Run(ctx) })
		group.Go(func() { _ = b.Relay(ctx, s) })
	}
	return f(g)
}

// startProfile writes a CPU profile until stop is called.
func startProfile(name string) (stop func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
