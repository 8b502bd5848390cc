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
	// MaxJobs is how many answers may wait for the same kind of work. One more gets none.
	MaxJobs = 256
	// MaxJobBytes is how many bytes of requests and encoded calls they may hold together. What exceeds it gets none
	// either.
	MaxJobBytes = 64 << 20
)

// queue holds the answers that wait for one kind of work.
type queue struct {
	jobs  chan *Job
	bytes atomic.Int64 // of the jobs
}

func newQueue() *queue { return &queue{jobs: make(chan *Job, MaxJobs)} }

// offer adds a job, and reports whether there was room. It never blocks.
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

// run does the jobs, several at a time, until ctx ends. Then it waits for those under way and forgets the rest.
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

// newCounter returns a counter by labels, registered with r unless that is nil.
func newCounter(r prometheus.Registerer, name, help string, labels ...string) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	if r != nil {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering its counter: %w", err)
		}
	}
	return c, nil
}

// recovered calls do and returns its error. A panic, which is a mistake of ours, is logged with its stack and returned
// as an error; attr says what was being worked on.
func recovered(ctx context.Context, log *slog.Logger, doing string, attr slog.Attr, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &ownFault{fmt.Errorf("%s: a mistake of ours: %v", doing, v)}
			log.LogAttrs(
				ctx, slog.LevelError, "a mistake of ours was caught", attr, slog.String("stack", string(debug.Stack())),
			)
		}
	}()
	return do()
}
