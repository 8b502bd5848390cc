package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ibidhq/ibid/verify"
)

// Inputs are verified several at a time, and each as if those before it had been verified already: whether a response
// is called a replay may depend on one of them. So each looks at what is remembered through a draft. In the order of
// the inputs, drafts are kept; an input that has read what has changed since is verified once more.

// memoryKey names a value that is remembered.
type memoryKey struct{ kind, key string }

// turns is what the inputs remember together.
type turns struct {
	verify.Memory

	kept    atomic.Int64        // drafts so far
	changed map[memoryKey]int64 // by which draft last
}

func newTurns(m verify.Memory) *turns { return &turns{Memory: m, changed: map[memoryKey]int64{}} }

// draft returns what one input sees.
func (t *turns) draft() *draft {
	return &draft{turns: t, since: t.kept.Load(), own: map[memoryKey]*drafted{}, read: map[memoryKey]bool{}}
}

// outdated reports whether a draft was read from what is no longer so.
func (t *turns) outdated(d *draft) bool {
	for at := range d.read {
		if t.changed[at] > d.since {
			return true
		}
	}
	return false
}

// keep keeps what a draft has.
func (t *turns) keep(ctx context.Context, d *draft) error {
	turn := t.kept.Load() + 1
	for _, at := range d.order {
		keep := t.Replace
		if one := d.own[at]; one.first {
			keep = func(ctx context.Context, kind, key string, value []byte) error {
				_, err := t.Remember(ctx, kind, key, value)
				return err
			}
		}
		if err := keep(ctx, at.kind, at.key, d.own[at].value); err != nil {
			return err
		}
		t.changed[at] = turn
	}
	t.kept.Store(turn)
	return nil
}

// draft is a [verify.Memory] whose values nobody else sees until it is kept.
type draft struct {
	turns *turns
	since int64 // drafts that were kept when it was begun

	mu    sync.Mutex
	own   map[memoryKey]*drafted
	order []memoryKey // of own
	read  map[memoryKey]bool
}

// drafted is a value to be remembered.
type drafted struct {
	value []byte
	first bool // unless there is another one
}

// Recall implements [verify.Memory].
func (d *draft) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.recall(ctx, memoryKey{kind, key})
}

func (d *draft) recall(ctx context.Context, at memoryKey) ([]byte, error) {
	if one := d.own[at]; one != nil {
		return slices.Clone(one.value), nil
	}
	d.read[at] = true
	return d.turns.Recall(ctx, at.kind, at.key)
}

// Remember implements [verify.Memory].
func (d *draft) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := memoryKey{kind, key}
	if there, err := d.recall(ctx, at); err != nil || there != nil {
		return there, err
	}
	d.write(at, value, true)
	return slices.Clone(value), nil
}

// Replace implements [verify.Memory].
func (d *draft) Replace(_ context.Context, kind, key string, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write(memoryKey{kind, key}, value, false)
	return nil
}

func (d *draft) write(at memoryKey, value []byte, first bool) {
	if d.own[at] == nil {
		d.order = append(d.order, at)
	}
	d.own[at] = &drafted{append([]byte{}, value...), first} // never nil: an empty value is one
}
