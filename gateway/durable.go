package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// Keep stores what [watch.Backfill] found for a captured answer: c replaces the stored call with its AnswerID, or is
// dropped if that was deleted in the meantime. The call must not have been encoded, and belongs to the gateway from
// then on. CaptureWait limits how long Keep takes, not ctx.
//
//nolint:contextcheck // see above
func (g *Gateway) Keep(_ context.Context, c *store.Call) error {
	c.Of, c.AnswerID = c.AnswerID, NewAnswerID() // a later id means a later state: the journal may be read twice
	c.Duration = time.Since(c.Started)           // its event is sent now
	return g.makeDurable(c)
}

// makeDurable makes an answer as durable as the mode of capture requires. It returns within CaptureWait. An error means
// that the answer is lost or may be.
func (g *Gateway) makeDurable(c *store.Call) error {
	record, err := c.Encode()
	if err != nil {
		g.metrics.failed(failedEncode)
		return err
	}
	key := tailKey{c.Tenant, c.AnswerID}
	if !c.Refetch && c.Of == "" {
		g.tail.add(key, c, int64(len(record)))
	}
	p, err := g.options.Journal.Append(record)
	if err != nil {
		g.tail.remove(key)
		if errors.Is(err, journal.ErrTooLarge) {
			g.metrics.failed(failedSize)
		} else {
			g.metrics.failed(failedAppend)
		}
		return err
	}
	g.tail.place(key, p)
	g.appended(p)
	if q := g.quotas[c.Tenant]; q != nil {
		q.used.Add(int64(len(record)))
	}
	if g.options.Capture == Relaxed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.options.CaptureWait)
	defer cancel()
	err = g.options.Journal.Sync(ctx, p)
	if err == nil && g.options.Capture == Stored {
		err = g.indexed.wait(ctx, p)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it will still become durable
		g.metrics.late.Inc()
		return nil
	}
	if err != nil {
		g.metrics.failed(failedSync)
	}
	return err
}

// appended records that the journal has a record at p.
func (g *Gateway) appended(p journal.Position) {
	for {
		last := g.last.Load()
		if uint64(p) <= last || g.last.CompareAndSwap(last, uint64(p)) {
			return
		}
	}
}

// progress is the progress of the indexer.
type progress struct {
	mu      sync.Mutex
	passed  journal.Position
	current bool          // records left by earlier processes are in the store
	moved   chan struct{} // closed when passed or current changes; nil if there are no waiters
	wanted  chan struct{} // capacity 1: the indexer is to store what it has
}

// want makes the indexer gather no longer.
func (p *progress) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// advance records that everything up to to is in the store. If current is true, that includes the records left by
// earlier processes.
func (p *progress) advance(to journal.Position, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = max(p.passed, to)
	p.current = p.current || current
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// state returns how far the indexer is, and whether the records of earlier processes are stored.
func (p *progress) state() (passed journal.Position, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed, p.current
}

// wait waits until everything up to to, and what earlier processes left, is in the store. The error is ctx's.
func (p *progress) wait(ctx context.Context, to journal.Position) error {
	for {
		p.mu.Lock()
		if p.current && p.passed >= to {
			p.mu.Unlock()
			return nil
		}
		if p.moved == nil {
			p.moved = make(chan struct{})
		}
		moved := p.moved
		p.mu.Unlock()
		p.want()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tail holds captured answers that are not yet in the store, up to its limit; those beyond it are only in the journal
// until they are stored.
type tail struct {
	limit int64

	mu    sync.Mutex
	calls map[tailKey]*tailCall
	at    map[journal.Position]tailKey
	bytes int64
}

type tailKey struct{ tenant, answerID string }

type tailCall struct {
	call  *store.Call
	bytes int64
	at    journal.Position // 0 if not known yet
}

// add adds a call. It must come before the append to the journal, or the indexer could be done with it first.
func (t *tail) add(key tailKey, c *store.Call, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes+bytes > t.limit {
		return
	}
	if t.calls == nil {
		t.calls, t.at = map[tailKey]*tailCall{}, map[journal.Position]tailKey{}
	}
	t.calls[key] = &tailCall{call: c, bytes: bytes}
	t.bytes += bytes
}

// place sets a call's position in the journal.
func (t *tail) place(key tailKey, p journal.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[key]; c != nil {
		c.at = p
		t.at[p] = key
	}
}

func (t *tail) find(key tailKey) (*store.Call, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[key]; c != nil {
		return c.call, true
	}
	return nil, false
}

// findAt returns the call at p, so that the indexer need not decode it.
func (t *tail) findAt(p journal.Position) *store.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[t.at[p]]; c != nil {
		return c.call
	}
	return nil
}

// between returns the calls between two positions, exclusively, in order.
func (t *tail) between(after, before journal.Position) []indexItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	var items []indexItem
	for at, key := range t.at {
		if at <= after || at >= before {
			continue
		}
		c := t.calls[key].call
		if record, err := c.Encode(); err == nil { // it was encoded before, so it can be again
			items = append(items, indexItem{at: at, record: record, call: c, own: true})
		}
	}
	slices.SortFunc(items, func(x, y indexItem) int { return cmp.Compare(x.at, y.at) })
	return items
}

// remove removes a call that is stored or lost.
func (t *tail) remove(key tailKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[key]
	if c == nil {
		return
	}
	delete(t.calls, key)
	delete(t.at, c.at)
	t.bytes -= c.bytes
}
