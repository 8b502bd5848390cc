package snapshot

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
)

// Texts caches the texts of documents by the hash of their octets and their media type, because reading a page is most
// of the cost of a verification. The zero value is ready to use; a nil *Texts caches nothing. Both are safe for
// concurrent use.
type Texts struct {
	Limit int64 // approximate bytes of cached texts, and again of values beside them; 0 means 64 MiB

	texts  lru[textKey, *textEntry]
	beside lru[*Text, *beside]
}

// maxTexts is the default of Texts.Limit.
const maxTexts = 64 << 20

// errNoOctets means that only the hash of a snapshot is kept.
var errNoOctets = errors.New("its octets are no longer kept")

// Whole reports whether a snapshot has its octets. That of an empty document does.
func (s *Snapshot) Whole() bool {
	return len(s.Octets) > 0 || s.Hash == "" || s.Hash == Hash(nil)
}

// textKey is everything that a text depends on.
type textKey struct{ hash, mediaType, extension, profile string }

// textEntry is a text, or the reason why there is none. It is complete once done is closed.
type textEntry struct {
	done chan struct{}
	text *Text
	hash string
	err  error
}

// beside is a value derived from a text.
type beside struct {
	once  sync.Once
	value any
}

// Of returns the text of a document and the hash of its Content. It waits for a text that is being read. The text is
// shared and must not be changed. A Hash that is set is trusted, so callers that make snapshots from untrusted data
// must check it; a snapshot without its octets (see [Copies]) is an error.
func (t *Texts) Of(s *Snapshot) (*Text, string, error) { return t.As(s, TextProfile) }

// As is Of for the text according to a profile, [TextProfile] or [TextProfile1].
func (t *Texts) As(s *Snapshot, profile string) (*Text, string, error) {
	if !s.Whole() {
		return nil, "", fmt.Errorf("reading the text of %s: %w", s.URL, errNoOctets)
	}
	hash := s.Hash
	if hash == "" {
		hash = Hash(s.Octets)
	}
	read := func() (text *Text, hash string, err error) {
		o := &TextOptions{MediaType: s.MediaType, URL: s.FinalURL, Profile: profile}
		if text, err = Extract(s.Octets, o); err == nil {
			hash = Hash([]byte(text.Content))
		}
		return text, hash, err
	}
	if t == nil {
		return read()
	}
	key := textKey{hash, s.MediaType, extension(&TextOptions{URL: s.FinalURL}), profile}
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

// Beside returns the value that read derives from a text, and caches it with the text while there is room; size is its
// approximate size in bytes. A text has one such value, so all callers must derive the same. It is shared and must not
// be changed.
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

// Copies stores fetched documents, so that they need not be fetched again while they are current. Implementations must
// be safe for concurrent use.
type Copies interface {
	// Latest returns the latest version of a document by its requested address, in the form of [CleanURL], or nil if
	// there is none. It may no longer have octets, and is then of no use to a Fetcher. Its ETag and LastModified apply
	// to FinalURL.
	Latest(ctx context.Context, url string) (*Snapshot, error)
	// Keep stores a snapshot and must not change it. One with NotModified is another sighting of the stored version.
	Keep(ctx context.Context, s *Snapshot) error
}

// MemoryCopies keeps the latest copy for each address in memory, and drops the least recently used. The zero value is
// ready to use.
type MemoryCopies struct {
	Limit int64 // of octets and headers, in bytes; 0 means 64 MiB

	kept lru[string, *Snapshot]
}

// Latest implements [Copies].
func (c *MemoryCopies) Latest(_ context.Context, url string) (*Snapshot, error) {
	s, _ := c.kept.get(url)
	return s, nil
}

// Keep implements [Copies]. A snapshot larger than the limit is not kept.
func (c *MemoryCopies) Keep(_ context.Context, s *Snapshot) error {
	const overhead = 1 << 10 // addresses, some fields
	size := int64(len(s.Octets)) + overhead
	for name, values := range s.Header {
		for _, v := range values {
			size += int64(len(name) + len(v))
		}
	}
	c.kept.put(s.URL, s, size, cmp.Or(c.Limit, 64<<20))
	return nil
}

// lru holds the most recently used values. The zero value is ready to use. It is safe for concurrent use.
type lru[K, V comparable] struct {
	mu    sync.Mutex
	size  int64
	items map[K]*list.Element
	order list.List // of *lruItem[K, V], most recently used first
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

// getOr returns the value of a key, or adds v, which has no size yet.
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

// put sets the value of a key, replacing any earlier one.
func (l *lru[K, V]) put(key K, v V, size, limit int64) {
	l.drop(key)
	l.getOr(key, v)
	l.setSize(key, v, size, limit)
}

// setSize sets the size of a value, if it is still there, and drops the least recently used values until the total is
// within limit. It does not drop values without a size, and drops only the value itself if that alone exceeds the
// limit.
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

// drop removes the value of a key.
func (l *lru[K, V]) drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.items[key]; at != nil {
		l.remove(at)
	}
}

// remove removes an element. The caller holds the lock.
func (l *lru[K, V]) remove(at *list.Element) {
	item := l.order.Remove(at).(*lruItem[K, V])
	delete(l.items, item.key)
	l.size -= item.size
}
