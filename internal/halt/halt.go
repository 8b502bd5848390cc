package halt

import (
	"context"
	"sync/atomic"
)

// Halt tells work whether to end. A nil Halt never does.
type Halt struct {
	asked  atomic.Bool
	halted bool
}

// Do calls work and returns nil, or the cause of ctx if ctx ended first. Work then ends in the next Check, in the
// goroutine that called Do; what it was making must not be used.
func Do(ctx context.Context, work func(*Halt)) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h := &Halt{}
	defer context.AfterFunc(ctx, func() { h.asked.Store(true) })()
	defer func() {
		if h.halted && recover() != nil {
			err = context.Cause(ctx)
		}
	}()
	work(h)
	return nil
}

// Check returns if the work goes on. It is cheap enough for inner loops.
func (h *Halt) Check() {
	if h != nil && h.asked.Load() {
		h.halted = true
		panic(h) // up to Do
	}
}
