package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"
)

// endMark measures what strict capture adds to the end of an answer with many writers: the time of a call in strict
// mode compared with relaxed mode, which waits for nothing.
func endMark(ctx context.Context, args []string, out io.Writer) error {
	set := flags("sync")
	rounds := set.Int("rounds", 15, "rounds")
	duration := set.Duration("duration", 3*time.Second, "of each measurement")
	if err := set.Parse(args); err != nil {
		return err
	}
	stage, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer stage.remove()
	modes := []string{"relaxed", "strict"}
	proxies := make(map[string]*process)
	for _, mode := range modes {
		t := target{
			name: mode,
			args: []string{"_gateway", "-index=false", "-capture", mode, "-data", filepath.Join(stage.dir, mode)},
		}
		if proxies[mode], err = startProxy(ctx, stage.up.addr, t); err != nil {
			return err
		}
		defer proxies[mode].stop()
	}
	// Paced, so that neither core is busy and waiting dominates: 32 streams of 100 ms.
	s := scenario{query: "chunks=10&delay=10ms&size=40&citations=4", conns: 32, stream: true}
	middle, tail := map[string][]float64{}, map[string][]float64{}
	for range *rounds {
		for _, i := range rand.Perm(len(modes)) {
			r, err := loadOnce(ctx, proxies[modes[i]], s, 0, *duration)
			if err != nil {
				return err
			}
			middle[modes[i]] = append(middle[modes[i]], r.Total.P50/1e3)
			tail[modes[i]] = append(tail[modes[i]], r.Total.P99/1e3)
		}
	}
	fmt.Fprintf(out, "\n### What strict capture adds to a stream of 100 ms (32 writers, %d rounds)\n\n", *rounds)
	fmt.Fprintf(out, "| | relaxed, ms | strict, ms | more, ms (95 %%) |\n| --- | --- | --- | --- |\n")
	for _, row := range []struct {
		name string
		v    map[string][]float64
	}{{"p50", middle}, {"p99", tail}} {
		fmt.Fprintf(out, "| %s | %.2f | %.2f | %v |\n", row.name, medianOf(row.v["relaxed"]), medianOf(row.v["strict"]),
			estimateOf(differences(row.v["strict"], row.v["relaxed"])))
	}
	return nil
}
