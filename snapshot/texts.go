package snapshot

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
)

// Texts remembers the texts of documents by the hash of their octets and their media type: reading a page is most of
// what a verification costs. The zero value is ready, a nil *Texts remembers nothing; both can be used concurrently.
type Texts struct {
	Limit int64 // bytes of the texts that are remembered, about, and again of what stands beside them; 0: maxTexts

	texts  lru[textKey, *textEntry]
	beside lru[*Text, *beside]
}

// maxTexts is how many bytes [Texts] holds by default.
const maxTexts = 64 << 20

// errNoOctets says that of a snapshot only the hash is left.
var errNoOctets = errors.New("its octets are not kept any more")

// Whole reports whether a snapshot has its octets. The one of an empty document has.
func (s *Snapshot) Whole() bool {
	return len(s.Octets) > 0 || s.Hash == "" || s.Hash == Hash(nil)
}

// textKey is what a text depends on.
type textKey struct{ hash, mediaType, extension string }

// textEntry is a text, or why there is none. It is complete once done is closed.
type textEntry struct {
	done chan struct{}
	text *Text
	hash string
	err  error
}

// beside is what somebody made of a text.
type beside struct {
	once  sync.Once
	value any
}

// Of returns the text of a document with the hash of its Content. A text that is being read is waited for.
// The text is shared: nobody may change it. A Hash that is there is believed, so whoever makes a snapshot of what came
// from elsewhere must compare it; one without its octets (see [Copies]) is an error.
func (t *Texts) Of(s *Snapshot) (*Text, string, error) {
	if !s.Whole() {
		return nil, "", fmt.Errorf("reading the text of %s: %w", s.URL, errNoOctets)
	}
	hash := s.Hash
	if hash == "" {
		hash = Hash(s.Octets)
	}
	read := func() (text *Text, hash string, err error) {
		if text, err = s.Text(); err == nil {
			hash = Hash([]byte(text.Content))
		}
		return text, hash, err
	}
	if t == nil {
		return read()
	}
	key := textKey{hash, s.MediaType, extension(&TextOptions{URL: s.FinalURL})}
	mine := &textEntry{done: make(chan struct{})}
	e := t.texts.getOr(key, mine)
	if e != mine {
		<-e.done
		return e.text, e.hash, e.err
	}
	defer close(e.done)
	e.text, e.hash, e.err = read()
	const overhead, perBlock = 512, 64
	size := int64(overhead)
	if e.text != nil {
		size += int64(len(e.text.Content) + len(e.text.Blocks)*perBlock)
	}
	for _, old := range t.texts.setSize(key, e, size, cmp.Or(t.Limit, maxTexts)) {
		t.beside.drop(old.text)
	}
	return e.text, e.hash, e.err
}

// Beside returns what read makes of a text, and remembers it beside the text while there is room; size is about how
// many bytes it has. A text has one such value, so all who ask must make the same. It is shared: nobody may change it.
func (t *Texts) Beside(text *Text, read func() (value any, size int64)) any {
	if t == nil {
		value, _ := read()
		return value
	}
	b := t.beside.getOr(text, &beside{})
	b.once.Do(func() {
		var size int64
		b.value, size = read()
		t.beside.setSize(text, b, size, cmp.Or(t.Limit, maxTexts))
	})
	return b.value
}

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

	kept lru[string, *Snapshot]
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
type lru[K, V comparable] struct {
	mu    sync.Mutex
	size  int64
	items map[K]*list.Element
	order list.List // of *lruItem[K, V], the last used in front
}

type lruItem[K, V comparable] struct {
	key   K
	value V
	size  int64
}

func (l *lru[K, V]) get(key K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.items[key]
	if at == nil {
		return v, false
	}
	l.order.MoveToFront(at)
	return at.Value.(*lruItem[K, V]).value, true
}

// getOr returns the value that is there, or adds one, which has no size yet.
func (l *lru[K, V]) getOr(key K, v V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.items[key]; at != nil {
		l.order.MoveToFront(at)
		return at.Value.(*lruItem[K, V]).value
	}
	if l.items == nil {
		l.items = map[K]*list.Element{}
	}
	l.items[key] = l.order.PushFront(&lruItem[K, V]{key: key, value: v})
	return v
}

// put adds a value in the place of the one that was there.
func (l *lru[K, V]) put(key K, v V, size, limit int64) {
	l.drop(key)
	l.getOr(key, v)
	l.setSize(key, v, size, limit)
}

// setSize says how large a value is, if it is still there, and drops those that were not used for longest until all
// together have no more than limit: not those that have no size yet, and only the value itself if it alone has more.
func (l *lru[K, V]) setSize(key K, v V, size, limit int64) (dropped []V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.items[key]
	if at == nil || at.Value.(*lruItem[K, V]).value != v {
		return nil
	}
	if size > limit {
		l.remove(at)
		return []V{v}
	}
	at.Value.(*lruItem[K, V]).size = size
	l.size += size
	for at := l.order.Back(); at != nil && l.size > limit; {
		old := at
		if at = at.Prev(); old.Value.(*lruItem[K, V]).size > 0 {
			dropped = append(dropped, old.Value.(*lruItem[K, V]).value)
			l.remove(old)
		}
	}
	return dropped
}

// drop forgets the value of a key.
func (l *lru[K, V]) drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.items[key]; at != nil {
		l.remove(at)
	}
}

// remove takes an element out. The caller holds the lock.
func (l *lru[K, V]) remove(at *list.Element) {
	item := l.order.Remove(at).(*lruItem[K, V])
	delete(l.items, item.key)
	l.size -= item.size
}
