package httpx

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Flights deduplicates concurrent work: callers with the same key share one result. Work goes on as long as one of them
// waits for it. The zero value is ready to use.
type Flights struct {
	mu sync.Mutex
	of map[string]*flight // running work by key
}

// flight is one piece of work.
type flight struct {
	waiting int // callers waiting for the result; guarded by Flights.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when value, err and panic are set
	value   any
	err     error
	panic   any
}

// Shared returns the result of work, which has [WorkTime] and runs once for all concurrent callers with the same key.
// It ends early only when all of them have left.
func Shared[T any](
	ctx context.Context, f *Flights, key string, work func(context.Context) (T, error),
) (result T, err error) {
	v, err := f.do(ctx, key, func(ctx context.Context) (any, error) { return work(ctx) })
	if err != nil {
		return result, err
	}
	return v.(T), nil //nolint:forcetypeassert // it is what work returns; no two sorts of it have the same key
}

// do returns the result of work, or the error of ctx if that ends first. The last caller to leave cancels the work and
// waits for it to end. A panic in the work is raised in every waiting caller.
func (f *Flights) do(ctx context.Context, key string, work func(context.Context) (any, error)) (any, error) {
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

// join starts the work unless it is running.
func (f *Flights) join(ctx context.Context, key string, work func(context.Context) (any, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of[key]
	if one == nil {
		one = &flight{done: make(chan struct{})}
		// later callers may still wait for it after the first has left
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

func (f *Flights) run(ctx context.Context, key string, one *flight, work func(context.Context) (any, error)) {
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
	ctx, release := WithWorkTime(ctx)
	defer release()
	if one.value, one.err = work(ctx); ctx.Err() != nil {
		one.value, one.err = nil, WorkError(ctx, one.err)
	}
}

// leave removes a waiting caller and reports whether it was the last, in which case it cancels the work.
func (f *Flights) leave(key string, one *flight) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return false
	}
	f.forget(key, one)
	one.cancel()
	return true
}

// forget makes later callers start the work again.
func (f *Flights) forget(key string, one *flight) {
	if f.of[key] == one {
		delete(f.of, key)
	}
}
