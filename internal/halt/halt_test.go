package halt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestDo(t *testing.T) {
	because := errors.New("because")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := 0
		if err := Do(ctx, func(h *Halt) { h.Check(); done++ }); err != nil || done != 1 {
			t.Errorf("got %v after %d", err, done)
		}
		err := Do(ctx, func(h *Halt) {
			cancel(because)
			synctest.Wait()
			h.Check()
			done++
		})
		if !errors.Is(err, because) || done != 1 {
			t.Errorf("ended: got %v after %d", err, done)
		}
		if err := Do(ctx, func(*Halt) { done++ }); !errors.Is(err, because) || done != 1 {
			t.Errorf("begun after the end: got %v after %d", err, done)
		}
	})
	(*Halt)(nil).Check()
}

// A panic of the work is not ours to hide.
func TestDoPanic(t *testing.T) {
	defer func() {
		if got := recover(); got != "oops" {
			t.Errorf("got %v", got)
		}
	}()
	_ = Do(t.Context(), func(*Halt) { panic("oops") })
}
