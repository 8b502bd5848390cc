package snapshot

import (
	"context"
	"runtime"
)

// WaitWaiters waits until so many callers wait for flights, and reports whether they do before the context ends.
func WaitWaiters(ctx context.Context, f *Fetcher, want int) bool {
	for ctx.Err() == nil {
		f.mu.Lock()
		n := 0
		for _, one := range f.flights {
			n += one.waiters
		}
		f.mu.Unlock()
		if n >= want {
			return true
		}
		runtime.Gosched()
	}
	return false
}
