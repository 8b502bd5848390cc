package gateway

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// tail holds the answers that were captured and are not yet in the store, as far as its limit allows: what is over it
// is in the journal and will be in the store.
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
	at    journal.Position // 0: not known yet
}

// add takes a call before it is appended to the journal: else the indexer could be done with it first.
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

// place says where in the journal a call is.
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

// findAt returns the call at p, which saves the indexer from decoding it.
func (t *tail) findAt(p journal.Position) *store.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[t.at[p]]; c != nil {
		return c.call
	}
	return nil
}

// between returns the calls after one position and before another, in their order.
func (t *tail) between(after, before journal.Position) []indexItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	var items []indexItem
	for at, key := range t.at {
		if at <= after || at >= before {
			continue
		}
		c := t.calls[key].call
		if record, err := c.Encode(); err == nil { // it was encoded before
			items = append(items, indexItem{at: at, record: record, call: c, own: true})
		}
	}
	slices.SortFunc(items, func(x, y indexItem) int { return cmp.Compare(x.at, y.at) })
	return items
}

// remove forgets a call: it is in the store, or lost.
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
