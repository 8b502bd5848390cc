package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// flights is work whose result all get who ask for the same at the same time. It goes on as long as one of them waits
// for it. The zero value is ready.
type flights struct {
	mu sync.Mutex
	of map[string]*flight // what is being done
}

// flight is one of them.
type flight struct {
	waiting int // how many want its result; guarded by flights.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when the rest is there
	value   any
	err     error
	panic   any
}

// do returns what work returns, or why ctx has ended if it does before. Who leaves last ends the work and waits for
// that. A panic of the work is one of all who wait.
func (f *flights) do(ctx context.Context, key string, work func(context.Context) (any, error)) (any, error) {
	one := f.join(ctx, key, work)
	select {
	case <-one.done:
		if one.panic != nil {
			panic(one.panic)
		}
		return one.value, one.err
	case <-ctx.Done():
		if f.leave(key, one) {
			<-one.done
		}
		return nil, ctx.Err()
	}
}

// join begins the work, if nobody has.
func (f *flights) join(ctx context.Context, key string, work func(context.Context) (any, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of[key]
	if one == nil {
		one = &flight{done: make(chan struct{})}
		// others may wait for it when whoever asked first has left
		ctx, one.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if f.of == nil {
			f.of = map[string]*flight{}
		}
		f.of[key] = one
		go f.run(ctx, key, one, work)
	}
	one.waiting++
	return one
}

func (f *flights) run(ctx context.Context, key string, one *flight, work func(context.Context) (any, error)) {
	defer close(one.done)
	defer one.cancel()
	defer func() {
		if p := recover(); p != nil {
			one.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.forget(key, one)
	}()
	one.value, one.err = work(ctx)
}

// leave says that somebody does not wait any more. The last one ends the work.
func (f *flights) leave(key string, one *flight) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return false
	}
	f.forget(key, one)
	one.cancel()
	return true
}

// forget lets whoever asks from now on begin anew.
func (f *flights) forget(key string, one *flight) {
	if f.of[key] == one {
		delete(f.of, key)
	}
}
