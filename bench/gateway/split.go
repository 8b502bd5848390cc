package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// part is a part of the gateway's work, identified by the functions on the stack of a CPU sample.
type part struct {
	name      string
	functions []string // prefixes; package paths are relative to this module's
}

// parts are all parts except relaying. A sample belongs to the first one that matches: earlier parts are called by
// later ones.
var parts = []part{
	{"journal", []string{"/store/journal.", "/store.(*Call).Encode", "/gateway.(*Gateway).makeDurable"}},
	{"search", []string{"/store.(*transaction).index", "/store.termText"}},
	{"store", []string{"/store.", "/gateway.(*indexer)"}},
	{"live events", []string{"/gateway.(*live)", "/bus.", "github.com/nats-io/"}},
	{"decode", []string{"/tee.(*decoding)", "/gateway.(*exchange).done"}},
	{"collector", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
}

const restName = "relay"

// split shows where the gateway's CPU time goes.
func split(ctx context.Context, args []string, out io.Writer) error {
	set := flags("split")
	duration := set.Duration("duration", 10*time.Second, "of each measurement")
	if err := set.Parse(args); err != nil {
		return err
	}
	for _, s := range scenarios()[:2] {
		if err := splitOne(ctx, out, s, *duration); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func splitOne(ctx context.Context, out io.Writer, s scenario, duration time.Duration) error {
	stage, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer stage.remove()
	file := filepath.Join(stage.dir, "cpu.pprof")
	list := targets(stage.dir)
	reverse, whole := list[0], list[len(list)-1]
	whole.args = append(whole.args, "-profile", file)
	rate := 0.0
	cpu := map[string]float64{}
	for _, t := range []target{whole, reverse} { // the first one determines the rate for 80 %
		proxy, err := startProxy(ctx, stage.up.addr, t)
		if err != nil {
			return err
		}
		if s.share > 0 && rate == 0 {
			full, err := loadOnce(ctx, proxy, s, 0, warmUp)
			if err != nil {
				proxy.stop()
				return err
			}
			rate = s.share * full.Rate
		}
		r, err := loadOnce(ctx, proxy, s, rate, duration)
		proxy.stop() // writes the profile
		if err != nil {
			return err
		}
		if cpu[t.name] = r.CPUCall; s.stream {
			cpu[t.name] = r.CPUChunk
		}
	}
	shares, err := sharesOf(file)
	if err != nil {
		return err
	}
	unit := "call"
	if s.stream {
		unit = "chunk"
	}
	fmt.Fprintf(out, "\n### %s: CPU per %s\n\n| | µs | of %s's %.1f µs |\n| --- | --- | --- |\n", s.name, unit, reverse.name,
		cpu[reverse.name])
	line := func(name string, micros float64) {
		fmt.Fprintf(out, "| %s | %.1f | %.2f |\n", name, micros, micros/cpu[reverse.name])
	}
	line(restName, shares[restName]*cpu[whole.name])
	for _, p := range parts {
		line(p.name, shares[p.name]*cpu[whole.name])
	}
	line("all", cpu[whole.name])
	return nil
}

// sharesOf returns the share of each part in a CPU profile.
func sharesOf(file string) (map[string]float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, err
	}
	shares, all := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		took := float64(s.Value[len(s.Value)-1]) // nanoseconds
		shares[partOf(s)] += took
		all += took
	}
	for name := range shares {
		shares[name] /= all
	}
	return shares, nil
}

func partOf(s *profile.Sample) string {
	const module = "github.com/ibidhq/ibid"
	for _, p := range parts {
		for _, at := range s.Location {
			for _, l := range at.Line {
				for _, prefix := range p.functions {
					if strings.HasPrefix(l.Function.Name, prefix) || strings.HasPrefix(l.Function.Name, module+prefix) {
						return p.name
					}
				}
			}
		}
	}
	return restName
}
