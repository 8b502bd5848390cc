package httpx

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/halt"
)

// WorkTime is the CPU time that one request may take to decode and render answers.
const WorkTime = halt.WorkTime

// ErrWorkTime is the cause with which the context of work ends that took too long.
var ErrWorkTime = errors.New("the request took too much CPU time")

// maxThreads is how many pieces of work have a thread for themselves. While there are more, the time of the others is
// the time that passes: requests that wait for slow clients must not use up the threads of the process.
const maxThreads = 1024

var threads = semaphore.NewWeighted(maxThreads)

// bounded returns a handler with a limit of CPU time. The context of the request ends when the limit is reached;
// decoding and rendering then end too, and so does the handler if it begins a response from what they left: the client
// gets a problem.
func bounded(h Handler, limit time.Duration) Handler {
	return func(w *Reply, r *Request) (err error) {
		ctx, release := withWorkTime(r.Context(), limit)
		defer release()
		work := *r
		work.Request = r.WithContext(ctx)
		w.work = ctx
		defer func() {
			w.work = nil // what has failed is still reported
			if w.late {
				w.late = false
				_ = recover()
				err = ctx.Err()
			}
			if ctx.Err() != nil && (err != nil || w.status == 0) {
				err = WorkError(ctx, err)
			}
		}()
		return h(w, &work)
	}
}

// WithWorkTime returns a context that ends when the calling goroutine has used [WorkTime]. The goroutine must call
// release, and do the work itself.
func WithWorkTime(ctx context.Context) (work context.Context, release func()) {
	return withWorkTime(ctx, WorkTime)
}

// withWorkTime measures the CPU time of the goroutine's thread, which it has for itself, so that other work on a busy
// machine does not count. Where the system does not tell, or beyond [maxThreads], it is the time that has passed.
func withWorkTime(ctx context.Context, limit time.Duration) (work context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	used, unlock := halt.TimePassed(), func() {}
	if threads.TryAcquire(1) {
		runtime.LockOSThread()
		used, unlock = halt.ThreadTime(), func() {
			runtime.UnlockOSThread()
			threads.Release(1)
		}
	}
	ended := make(chan struct{})
	go func() {
		timer := time.NewTimer(limit) // it cannot be reached sooner
		defer timer.Stop()
		for {
			select {
			case <-ended:
				return
			case <-timer.C:
			}
			left := limit - used()
			if left <= 0 {
				cancel(ErrWorkTime)
				return
			}
			timer.Reset(max(left, time.Millisecond))
		}
	}()
	return ctx, func() {
		close(ended)
		cancel(nil)
		unlock()
	}
}

// WorkError returns the error of work with a context that has ended: a problem for the client if it took too long.
func WorkError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrWorkTime):
		p := gateway.NewProblem(
			gateway.CodeUnavailable, fmt.Sprintf("the request was ended after %v of CPU time", WorkTime),
			"an answer in it is very long, or its text is made to be slow; ask for fewer answers, or for as=json")
		return fmt.Errorf("%w: %w", p, cause)
	case err == nil:
		return cause
	}
	return err
}
