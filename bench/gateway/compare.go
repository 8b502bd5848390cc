package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// scenario is one kind of load.
type scenario struct {
	name   string
	query  string // the mock upstream's shape
	conns  int
	stream bool
	share  float64 // of the calls that the whole gateway can serve
	rate   float64 // calls a second; if this and share are 0, as many as possible
}

// The shapes of the mock upstream's answers.
const (
	shortAnswer = "body=1000&citations=4"
	pacedStream = "chunks=40&delay=10ms&size=40&citations=4"
)

func scenarios() []scenario {
	return []scenario{
		{name: "JSON, 32 connections, 80 % load", query: shortAnswer, conns: 32, share: .8},
		{name: "SSE, 100 streams, a chunk each 10 ms", query: pacedStream, conns: 100, stream: true},
		{name: "JSON, 32 connections, full load", query: shortAnswer, conns: 32},
		{name: "JSON, 400 calls a second", query: shortAnswer, conns: 32, rate: 400},
		{name: "JSON, 20 calls a second", query: shortAnswer, conns: 32, rate: 20},
		{name: "JSON, 1 connection", query: shortAnswer, conns: 1},
		{name: "SSE, 1 connection, a chunk each 10 ms", query: pacedStream, conns: 1, stream: true},
	}
}

// target is a proxy to compare: a part of this program or a third-party one. The first is the one that the others are
// divided by.
type target struct {
	name  string
	args  []string // of the part, starting with its name
	other *other   // nil for a part of this program
}

// warmUp is how long each target is loaded before it is measured.
const warmUp = 5 * time.Second

// The names of the baselines, and of the gateway with everything it does.
const (
	reverseName = "ReverseProxy"
	wholeName   = "all: index, search, events"
)

func targets(dir string) []target {
	return []target{
		{name: reverseName, args: []string{"_reverse"}},
		{
			name: "relay, decode, journal",
			args: []string{"_gateway", "-index=false", "-data", filepath.Join(dir, "journal")},
		},
		{name: wholeName, args: []string{"_gateway", "-data", filepath.Join(dir, "all")}},
	}
}

// compare measures CPU and delay of the gateway and of ReverseProxy.
func compare(ctx context.Context, args []string, out io.Writer) error {
	set := flags("compare")
	rounds := set.Int("rounds", 15, "rounds of each scenario")
	duration := set.Duration("duration", 3*time.Second, "of each measurement")
	only := set.Int("only", -1, "one scenario, by its number from 0")
	beside := set.Bool("others", false, "nginx, HAProxy, Portkey and LiteLLM too, as far as they are installed")
	chart := set.String("chart", "", "draw the CPU of the first two scenarios into this SVG file")
	if err := set.Parse(args); err != nil {
		return err
	}
	var more []target
	if *beside {
		more = others()
	}
	var panels []panel
	for i, s := range scenarios() {
		if *only >= 0 && i != *only {
			continue
		}
		results, err := measure(ctx, s, more, *rounds, *duration)
		if err != nil {
			return err
		}
		panels = append(panels, report(out, s, append(targets(""), more...), results))
	}
	if *chart == "" {
		return nil
	}
	return os.WriteFile(*chart, drawn(panels[:min(2, len(panels))]), 0o644) //nolint:gosec // a public picture
}

// measure returns the results of each target, round by round.
func measure(
	ctx context.Context, s scenario, more []target, rounds int, duration time.Duration,
) (map[string][]loadResult, error) {
	stage, err := newStage(ctx)
	if err != nil {
		return nil, err
	}
	defer stage.remove()
	proxies := make(map[string]*process)
	list := append(targets(stage.dir), more...)
	for _, t := range list {
		proxy, err := stage.start(ctx, s, t)
		if err != nil {
			return nil, err
		}
		defer proxy.stop()
		proxies[t.name] = proxy
		if _, err := loadOnce(ctx, proxy, s, 0, warmUp); err != nil { // caches fill, and just-in-time compilers run
			return nil, fmt.Errorf("%s, %s: %w", s.name, t.name, err)
		}
	}
	rate := s.rate
	if s.share > 0 {
		full, err := loadOnce(ctx, proxies[wholeName], s, 0, warmUp)
		if err != nil {
			return nil, fmt.Errorf("%s: measuring what %s can serve: %w", s.name, wholeName, err)
		}
		rate = s.share * full.Rate
	}
	results := make(map[string][]loadResult)
	for round := range rounds {
		for _, i := range rand.Perm(len(list)) {
			name := list[i].name
			r, err := loadOnce(ctx, proxies[name], s, rate, duration)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.name, name, err)
			}
			results[name] = append(results[name], r)
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", s.name, round+1, rounds)
	}
	return results, nil
}

// stage is the environment of every measurement: its own directory, and the mock upstream.
type stage struct {
	dir string
	up  *process
}

func newStage(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "ibid-bench-*")
	if err != nil {
		return nil, err
	}
	up, err := startUpstream(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &stage{dir, up}, nil
}

func (s *stage) remove() {
	s.up.stop()
	_ = os.RemoveAll(s.dir)
}

func startUpstream(ctx context.Context) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	up, err := self(ctx, 1, "_upstream", "-addr", addr)
	if err != nil {
		return nil, err
	}
	return up, up.listening(ctx, addr)
}

// start starts a target. Third-party ones do not forward the query, so their upstream's URL contains the shape.
func (s *stage) start(ctx context.Context, load scenario, t target) (*process, error) {
	if t.other == nil {
		return startProxy(ctx, s.up.addr, t)
	}
	return startOther(ctx, s.dir, "http://"+s.up.addr+shapePath+load.query+"/v1", t)
}

func startProxy(ctx context.Context, upstream string, t target) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	args := append(append([]string{}, t.args[1:]...), "-addr", addr, "-upstream", "http://"+upstream)
	proxy, err := self(ctx, 0, t.args[0], args...)
	if err != nil {
		return nil, err
	}
	return proxy, proxy.listening(ctx, addr)
}

func loadOnce(
	ctx context.Context, proxy *process, s scenario, rate float64, duration time.Duration,
) (loadResult, error) {
	url, header := "http://"+proxy.addr+"/mock/v1/chat/completions?"+s.query, ""
	if proxy.other != nil {
		url, header = "http://"+proxy.addr+"/v1/chat/completions", proxy.other.header
	}
	args := []string{
		"-url", url, "-header", header, "-conns", strconv.Itoa(s.conns),
		"-rate", strconv.FormatFloat(rate, 'f', 1, 64), "-duration", duration.String(), "-pid", strconv.Itoa(proxy.pid()), "-stream=" + strconv.FormatBool(s.stream),
	}
	var r loadResult
	if err := ask(ctx, 1, &r, "_load", args...); err != nil {
		return r, err
	}
	// ReverseProxy truncates some fast streams (golang/go#40747): this is counted, not hidden.
	if r.Errors > 0 && proxy.name != "_reverse" && proxy.other == nil {
		return r, fmt.Errorf("%d of %d calls failed: %s", r.Errors, r.Calls, r.FirstError)
	}
	return r, nil
}

// report prints the scenario as a table, and returns the part to draw.
func report(out io.Writer, s scenario, list []target, results map[string][]loadResult) panel {
	column := func(name string, value func(loadResult) float64) []float64 {
		var v []float64
		for _, r := range results[name] {
			v = append(v, value(r))
		}
		return v
	}
	unit, cpu := "call", func(r loadResult) float64 { return r.CPUCall }
	last, delay := "last byte", func(r loadResult) quantiles { return r.Total }
	if s.stream {
		unit, cpu = "chunk", func(r loadResult) float64 { return r.CPUChunk }
		last, delay = "chunk", func(r loadResult) quantiles { return r.Transit }
	}
	delays := []struct {
		name string
		of   func(loadResult) float64
	}{
		{"p50 of " + last, func(r loadResult) float64 { return delay(r).P50 }},
		{"p99 of " + last, func(r loadResult) float64 { return delay(r).P99 }},
		{"p50 of first byte", func(r loadResult) float64 { return r.FirstByte.P50 }},
	}
	if !s.stream {
		delays = delays[:2] // its bytes arrive at once
	}
	fmt.Fprintf(out, "\n### %s (%d rounds; times in µs, intervals of 95 %%)\n\n| | calls/s | CPU per %s | ratio |", s.name,
		len(results[reverseName]), unit)
	for _, d := range delays {
		fmt.Fprintf(out, " %s | more than %s |", d.name, reverseName)
	}
	fmt.Fprintln(out, "\n|"+strings.Repeat(" --- |", 4+2*len(delays)))
	p := panel{title: s.name + ": CPU per " + unit}
	for _, t := range list {
		ratio := estimateOf(ratios(column(t.name, cpu), column(reverseName, cpu)))
		micros := medianOf(column(t.name, cpu))
		p.bars = append(p.bars, bar{t.name, ratio.median, micros, t.other != nil})
		rate := medianOf(column(t.name, func(r loadResult) float64 { return r.Rate }))
		fmt.Fprintf(out, "| %s | %.0f | %.1f | %v |", t.name, rate, micros, ratio)
		for _, d := range delays {
			of := column(t.name, d.of)
			fmt.Fprintf(out, " %.0f | %v |", medianOf(of), estimateOf(differences(of, column(reverseName, d.of))))
		}
		fmt.Fprintln(out)
	}
	for _, t := range list {
		failed := 0.0
		for _, n := range column(t.name, func(r loadResult) float64 { return float64(r.Errors) }) {
			failed += n
		}
		if failed > 0 {
			fmt.Fprintf(out, "\n%.0f calls failed through %s.\n", failed, t.name)
		}
	}
	return p
}
