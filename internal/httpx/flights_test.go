package httpx

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Callers leave when they like: others keep waiting, and the last one to leave ends the work.
func TestFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flights
		begun, ended := 0, time.Duration(0)
		start := time.Now()
		work := func(ctx context.Context) (any, error) {
			begun++
			defer func() { ended = time.Since(start) }()
			select {
			case <-time.After(10 * time.Second):
				return "done", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		ask := func(wait time.Duration) (any, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			return f.do(ctx, "key", work)
		}
		var group sync.WaitGroup
		for _, wait := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
			group.Go(func() {
				v, err := ask(wait)
				if took := min(wait, 10*time.Second); time.Since(start) != took {
					t.Errorf("a caller that waits %v returned after %v", wait, time.Since(start))
				}
				if patient := wait > 10*time.Second; patient && (v != "done" || err != nil) || !patient && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("who waits %v: %v, %v", wait, v, err)
				}
			})
		}
		group.Wait()
		if begun != 1 {
			t.Errorf("the same was done %d times", begun)
		}
		start = time.Now()
		if _, err := ask(time.Second); !errors.Is(err, context.DeadlineExceeded) || ended != time.Second || len(f.of) > 0 {
			t.Errorf("%v; it ended after %v; %d are left", err, ended, len(f.of))
		}
	})
}

// A panic is raised in the callers, where it is recovered, and never crashes the program.
func TestFlightPanics(t *testing.T) {
	var f Flights
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "out of herons") || len(f.of) > 0 {
			t.Errorf("%q; %d are left", p, len(f.of))
		}
	}()
	_, _ = f.do(t.Context(), "key", func(context.Context) (any, error) { panic("out of herons") })
}
