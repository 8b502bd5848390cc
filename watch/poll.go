package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// poll does what the store says is due, several at a time. One that takes long keeps none of the others waiting.
type poll[T any] struct {
	every  time.Duration // how often due is asked while it has nothing
	atOnce int
	due    func(ctx context.Context, limit int) ([]T, error)
	do     func(ctx context.Context, job *T)
	log    *slog.Logger
	what   string // is done: for the log, which is told once that due cannot answer, and not each time
}

// run does what is due until ctx ends; then it waits for what is under way.
func (p *poll[T]) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	done := make(chan struct{}, p.atOnce)
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	failing := false
	for free := p.atOnce; ctx.Err() == nil; {
		list, err := p.due(ctx, free)
		if err != nil && ctx.Err() == nil && !failing {
			p.log.WarnContext(
				ctx, "the store cannot be asked what is due", slog.String("work", p.what), slog.Any("error", err),
			)
		}
		failing = err != nil
		free -= len(list)
		for i := range list {
			all.Go(func() {
				defer func() { done <- struct{}{} }()
				p.do(ctx, &list[i])
			})
		}
		free += p.wait(ctx, tick, done, failing, free)
	}
}

// wait returns when due is worth asking, and how many were done meanwhile: what was done may have made more due.
func (p *poll[T]) wait(ctx context.Context, tick *time.Ticker, done <-chan struct{}, failing bool, free int) int {
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
			if free+n > 0 {
				return n
			}
		case <-done:
			for n++; len(done) > 0; n++ {
				<-done
			}
			if !failing {
				return n
			}
		}
	}
}
