package ibid

import (
	"fmt"
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// ending is a context that a test ends at a point of the work.
type ending struct {
	context.Context
	done chan struct{}
	end  func()
}

func (e *ending) Done() <-chan struct{} { return e.done }

func (e *ending) AfterFunc(f func()) func() bool {
	e.end = f
	return func() bool { return true }
}

func (e *ending) Err() error {
	select {
	case <-e.done:
		return context.Canceled
	default:
		return nil
	}
}

// threadClock returns a function that returns the CPU time of the calling thread. Any thread may call it.
func threadClock() func() time.Duration {
	clock := ^uintptr(syscall.Gettid())<<3 | 1<<2 | 2
	return func() time.Duration {
		var ts syscall.Timespec
		syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
		return time.Duration(ts.Nano())
	}
}

func TestContextEndsSoon(t *testing.T) {
	const size = 500_000
	defer withMemory()()
	for name, shape := range shapes {
		a, _ := boundsAnswer(shape(size), "T", "https://s.example/p")
		for form, do := range map[string]func(ctx context.Context){
			"html":      func(ctx context.Context) { a.Render(&RenderOptions{Style: StyleHTML, List: true, Context: ctx, Cited: func([]int) (string, string) { return "<b>", "</b>" }}) },
			"latex":     func(ctx context.Context) { a.Render(&RenderOptions{Style: StyleLaTeX, List: true, Context: ctx}) },
			"footnotes": func(ctx context.Context) { a.Render(&RenderOptions{Style: StyleFootnotes, List: true, Context: ctx}) },
			"document":  func(ctx context.Context) { a.Document(&DocumentOptions{Style: StyleHTML, Unit: UTF16, Context: ctx}) },
		} {
			all := cpuOf(t, func() { do(context.Background()) })
			var worst time.Duration
			at := 0.0
			for k := range 4 {
				share := (float64(k) + .5) / 4
				after := cpuAfter(do, time.Duration(share*float64(all)))
				if after > worst {
					worst, at = after, share
				}
			}
			fmt.Printf("%8.2f of %v at %v: %s %s\n", float64(worst)/1e6, all, at, name, form)
		}
	}
}

// cpuAfter returns the CPU time that do takes after its context has ended, which it does after it took some.
func cpuAfter(do func(ctx context.Context), some time.Duration) time.Duration {
	ctx := &ending{Context: context.Background(), done: make(chan struct{})}
	clocks, result := make(chan func() time.Duration), make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock := threadClock()
		clocks <- clock
		do(ctx)
		result <- clock()
	}()
	clock := <-clocks
	for begin := clock(); clock()-begin < some; {
		select {
		case <-result:
			return 0
		default:
		}
	}
	close(ctx.done)
	if ctx.end == nil {
		<-result
		return 0
	}
	ctx.end()
	runtime.Gosched()
	ended := clock()
	return <-result - ended
}
