package snapshot

import (
	"cmp"
	"container/list"
	"context"
	"sync"
)

// Copies keeps what was read, so that it need not be read again while it holds. It is safe for concurrent use.
type Copies interface {
	// Latest returns the version of a document that was read last, by the address it was asked for, in the form of
	// [CleanURL]. It may have no octets any more, and is then of no use to a Fetcher. Nil without an error: there is
	// none. Its FinalURL is where ETag and LastModified count.
	Latest(ctx context.Context, url string) (*Snapshot, error)
	// Keep keeps what was read, and does not change it. One that says NotModified is a further sighting of the version
	// that was there.
	Keep(ctx context.Context, s *Snapshot) error
}

// MemoryCopies keeps copies in memory, of each address the latest, and forgets those that were not used for longest.
// The zero value is ready.
type MemoryCopies struct {
	Limit int64 // of octets and what belongs to them, in bytes; 0: 64 MiB

	kept lru[*Snapshot]
}

// Latest returns the version that was read last.
func (c *MemoryCopies) Latest(_ context.Context, url string) (*Snapshot, error) {
	s, _ := c.kept.get(url)
	return s, nil
}

// Keep keeps what was read, unless it alone is more than the limit.
func (c *MemoryCopies) Keep(_ context.Context, s *Snapshot) error {
	const around = 1 << 10 // addresses, some fields
	size := int64(len(s.Octets)) + around
	for name, values := range s.Header {
		for _, v := range values {
			size += int64(len(name) + len(v))
		}
	}
	c.kept.put(s.URL, s, size, cmp.Or(c.Limit, 64<<20))
	return nil
}

// lru holds what was used last. The zero value is ready. It is safe for concurrent use.
type lru[V any] struct {
	mu    sync.Mutex
	size  int64
	items map[string]*list.Element
	order list.List // of *lruItem[V], the last used in front
}

type lruItem[V any] struct {
	key   string
	value V
	size  int64
}

func (l *lru[V]) get(key string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.items[key]
	if at == nil {
		return v, false
	}
	l.order.MoveToFront(at)
	item, ok := at.Value.(*lruItem[V])
	if !ok {
		return v, false
	}
	return item.value, true
}

// put adds a value in the place of the one that was there, and drops others until all together have no more than limit.
func (l *lru[V]) put(key string, v V, size, limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.items[key])
	if size > limit {
		return
	}
	for l.size+size > limit {
		l.drop(l.order.Back())
	}
	if l.items == nil {
		l.items = map[string]*list.Element{}
	}
	l.items[key] = l.order.PushFront(&lruItem[V]{key, v, size})
	l.size += size
}

// drop forgets one. The caller holds the lock.
func (l *lru[V]) drop(at *list.Element) {
	if at == nil {
		return
	}
	if item, ok := l.order.Remove(at).(*lruItem[V]); ok {
		delete(l.items, item.key)
		l.size -= item.size
	}
}
