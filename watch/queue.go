package watch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// MaxJobs limits the answers waiting for one kind of work. Any more are refused.
	MaxJobs = 256
	// MaxJobBytes limits their requests and encoded calls in bytes. Any more are refused as well.
	MaxJobBytes = 64 << 20
)

// queue holds the answers waiting for one kind of work.
type queue struct {
	jobs  chan *Job
	bytes atomic.Int64 // of the jobs
}

func newQueue() *queue { return &queue{jobs: make(chan *Job, MaxJobs)} }

// offer adds a job and reports whether there was room. It never blocks.
func (q *queue) offer(j *Job) bool {
	size := j.size()
	if q.bytes.Add(size) <= MaxJobBytes {
		select {
		case q.jobs <- j:
			return true
		default:
		}
	}
	q.bytes.Add(-size)
	return false
}

// run does the jobs, several at a time, until ctx ends. It then waits for those in progress and discards the rest.
func (q *queue) run(ctx context.Context, workers int, do func(context.Context, *Job)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, workers)
	for {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		select {
		case <-ctx.Done():
			return
		case j := <-q.jobs:
			q.bytes.Add(-j.size())
			wg.Go(func() {
				do(ctx, j)
				<-slots
			})
		}
	}
}

// poll does the work that the store reports as due, several items at a time. A slow item does not delay the others.
type poll[T any] struct {
	every  time.Duration // how often due is called while there is no work
	atOnce int
	due    func(ctx context.Context, limit int) ([]T, error)
	do     func(ctx context.Context, job *T)
	log    *slog.Logger
	what   string // the name of the work, for the log; a failing store is logged once, not each time
}

// run works until ctx ends; then it waits for the items in progress.
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
				ctx, "the store cannot be asked for due work", slog.String("work", p.what), slog.Any("error", err),
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

// wait returns when due is worth calling, with the number of items done in the meantime, which may have made more due.
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

// newCounter returns a counter with labels, registered with r unless that is nil.
func newCounter(r prometheus.Registerer, name, help string, labels ...string) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	if r != nil {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering its counter: %w", err)
		}
	}
	return c, nil
}

// recovered calls do and returns its error. A panic, which is a bug, is logged with its stack and returned as an error;
// attr identifies the item.
func recovered(ctx context.Context, log *slog.Logger, doing string, attr slog.Attr, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &ownFault{fmt.Errorf("%s: panic: %v", doing, v)}
			log.LogAttrs(
				ctx, slog.LevelError, "a panic was caught", attr, slog.String("stack", string(debug.Stack())),
			)
		}
	}()
	return do()
}
