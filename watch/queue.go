package watch

import (
	"context"
	"sync"
	"sync/atomic"
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
