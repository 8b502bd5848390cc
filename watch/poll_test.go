package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Due items start at once, as far as there is room; a slow one does not delay the others.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked, done atomic.Int32
		waiting := 10
		p := poll[int]{
			every: time.Second, atOnce: 2, log: slog.New(slog.DiscardHandler),
			due: func(_ context.Context, limit int) ([]int, error) {
				asked.Add(1)
				n := min(limit, waiting)
				waiting -= n
				list := make([]int, n)
				for i := range list {
					list[i] = waiting + n - i // 10 is first
				}
				return list, nil
			},
			do: func(ctx context.Context, job *int) {
				if *job == 10 {
					<-ctx.Done()
					return
				}
				time.Sleep(10 * time.Millisecond)
				done.Add(1)
			},
		}
		ended := make(chan struct{})
		go func() { p.run(ctx); close(ended) }()
		time.Sleep(200 * time.Millisecond)
		if done.Load() != 9 {
			t.Errorf("%d were done beside a slow one", done.Load())
		}
		before := asked.Load()
		time.Sleep(10 * time.Second)
		if n := asked.Load() - before; n != 10 {
			t.Errorf("asked %d times in 10 s", n)
		}
		cancel()
		<-ended // including the slow one
	})
}

// An unavailable store is asked each time, but logged once.
func TestPollAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		asked := 0
		p := poll[int]{
			every: time.Second, atOnce: 2, log: slog.New(slog.NewTextHandler(&log, nil)), what: "manifests",
			due: func(context.Context, int) ([]int, error) {
				if asked++; asked == 8 {
					return []int{1}, nil
				}
				return nil, errors.New("no")
			},
			do: func(context.Context, *int) {},
		}
		ended := make(chan struct{})
		go func() { p.run(ctx); close(ended) }()
		time.Sleep(9500 * time.Millisecond)
		cancel()
		<-ended
		if n := strings.Count(log.String(), "the store cannot be asked"); n != 2 || asked != 11 {
			t.Errorf("asked %d times, complained %d times", asked, n)
		}
	})
}
