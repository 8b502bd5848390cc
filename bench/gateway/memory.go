package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// memory measures the cost of an open stream, and of an idle gateway.
func memory(ctx context.Context, args []string, out io.Writer) error {
	set := flags("memory")
	streams := set.Int("streams", 5000, "open streams")
	every := set.Duration("every", 500*time.Millisecond, "how far apart the chunks of a stream are")
	rest := set.Duration("rest", time.Minute, "how long after its start the idle gateway is looked at")
	if err := set.Parse(args); err != nil {
		return err
	}
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.remove()
	fmt.Fprintf(out, "\n### Memory (%d open streams over HTTP/1.1, a chunk each %v)\n\n", *streams, *every)
	fmt.Fprintf(
		out, "| | request | idle after %v, MB | with streams, MB | KB a stream |\n| --- | --- | --- | --- | --- |\n",
		*rest,
	)
	for i, size := range []int{2 << 10, 100 << 10} {
		for _, t := range targets(filepath.Join(s.dir, strconv.Itoa(i))) {
			if err := hold(ctx, out, s.up, t, holdPlan{*streams, size, *every, *rest}); err != nil {
				return err
			}
		}
	}
	return nil
}

type holdPlan struct {
	streams int
	size    int // of a request's question, in bytes
	every   time.Duration
	rest    time.Duration
}

func hold(ctx context.Context, out io.Writer, up *process, t target, plan holdPlan) error {
	proxy, err := startProxy(ctx, up.addr, t)
	if err != nil {
		return err
	}
	defer proxy.stop()
	select {
	case <-time.After(plan.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	var r holdResult
	err = ask(ctx, 1, &r, "_hold", "-url",
		fmt.Sprintf("http://%s/mock/v1/chat/completions?chunks=%d&delay=%v&size=40&citations=1", proxy.addr,
			time.Minute/plan.every, plan.every),
		"-streams", strconv.Itoa(plan.streams), "-size", strconv.Itoa(plan.size), "-pid", strconv.Itoa(proxy.pid()))
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	const mb = 1 << 20
	fmt.Fprintf(
		out, "| %s | %d KB | %.1f | %.1f | %.1f |\n", t.name, plan.size>>10, float64(r.Idle)/mb, float64(r.Held)/mb,
		float64(r.Held-r.Idle)/float64(max(1, r.Streams))/1024,
	)
	return nil
}

type holdResult struct {
	Idle, Held int64 // resident bytes
	Streams    int
}

// runHold opens streams and reads the proxy's memory once all of them have begun.
func runHold(ctx context.Context, args []string, out io.Writer) error {
	set := flags("_hold")
	target := set.String("url", "", "what to call")
	streams := set.Int("streams", 1000, "open streams")
	size := set.Int("size", 2<<10, "bytes of question")
	pid := set.Int("pid", 0, "the proxy's process")
	if err := set.Parse(args); err != nil {
		return err
	}
	host, request, err := requestBytes(*target, "", true, *size)
	if err != nil {
		return err
	}
	r := holdResult{Idle: resident(*pid)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	begun := make(chan error, *streams)
	slots := make(chan struct{}, 64) // limits how many begin at the same time
	for range *streams {
		group.Go(func() {
			body, err := beginOne(ctx, host, request, slots)
			begun <- err
			if err == nil {
				// ends with the connection, which ends with ctx
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 512))
				_ = body.Close()
			}
		})
	}
	for range *streams {
		if err := <-begun; err == nil {
			r.Streams++
		}
	}
	err = pause(ctx, 2*time.Second) // some chunks on each
	r.Held = resident(*pid)
	stop()
	group.Wait()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// beginOne begins a stream, whose connection ends with ctx.
func beginOne(ctx context.Context, host string, request []byte, slots chan struct{}) (io.ReadCloser, error) {
	slots <- struct{}{}
	defer func() { <-slots }()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	if _, err := response.Body.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return response.Body, nil
}
