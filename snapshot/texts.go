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

	mu     sync.Mutex
	size   int64
	beside int64
	used   list.List // of *textEntry, the one used last first
	all    map[textKey]*list.Element
	byText map[*Text]*textEntry
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
	key  textKey
	size int64
	done chan struct{}
	text *Text
	hash string
	err  error

	beside *beside // under the lock of Texts
}

// beside is what somebody made of a text.
type beside struct {
	once  sync.Once
	value any
	size  int64 // under the lock of Texts
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
	t.mu.Lock()
	if at, ok := t.all[key]; ok {
		t.used.MoveToFront(at)
		t.mu.Unlock()
		e := at.Value.(*textEntry)
		<-e.done
		return e.text, e.hash, e.err
	}
	e := &textEntry{key: key, done: make(chan struct{})}
	if t.all == nil {
		t.all = map[textKey]*list.Element{}
	}
	t.all[key] = t.used.PushFront(e)
	t.mu.Unlock()

	defer close(e.done)
	e.text, e.hash, e.err = read()
	t.addText(e)
	return e.text, e.hash, e.err
}

// addText counts a text that was read, and forgets those that were not used for the longest time.
func (t *Texts) addText(e *textEntry) {
	const overhead, perBlock = 512, 64
	t.mu.Lock()
	defer t.mu.Unlock()
	e.size = overhead
	if e.text != nil {
		e.size += int64(len(e.text.Content) + len(e.text.Blocks)*perBlock)
	}
	t.size += e.size
	if e.text != nil {
		if t.byText == nil {
			t.byText = map[*Text]*textEntry{}
		}
		t.byText[e.text] = e
	}
	most := cmp.Or(t.Limit, maxTexts)
	for at := t.used.Back(); at != nil && t.size > most; {
		before := at.Prev()
		if old := at.Value.(*textEntry); old.size > 0 {
			t.used.Remove(at) // one that is being read has no size yet, and stays
			delete(t.all, old.key)
			delete(t.byText, old.text)
			t.size -= old.size
			t.clear(old)
		}
		at = before
	}
}

// Beside returns what read makes of a text, and remembers it beside the text while there is room; size is about how
// many bytes it has. A text has one such value, so all who ask must make the same. It is shared: nobody may change it.
// Of a text that is not remembered it is made each time.
func (t *Texts) Beside(text *Text, read func() (value any, size int64)) any {
	b := t.besideOf(text)
	b.once.Do(func() {
		var size int64
		b.value, size = read()
		t.keepBeside(text, b, size)
	})
	return b.value
}

// besideOf returns the place for what is made of a text.
func (t *Texts) besideOf(text *Text) *beside {
	if t == nil {
		return &beside{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byText[text]
	if e == nil {
		return &beside{}
	}
	if e.beside == nil {
		e.beside = &beside{}
	}
	return e.beside
}

// keepBeside counts what was made, and forgets what stands beside the texts that were not used for the longest time.
func (t *Texts) keepBeside(text *Text, b *beside, size int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byText[text]
	if e == nil || e.beside != b {
		return // forgotten meanwhile
	}
	b.size = size
	t.beside += size
	most := cmp.Or(t.Limit, maxTexts)
	for at := t.used.Back(); at != nil && t.beside > most; at = at.Prev() {
		if old := at.Value.(*textEntry); old.beside != nil && old.beside.size > 0 {
			t.clear(old)
		}
	}
}

// clear forgets what stands beside a text. The caller holds the lock.
func (t *Texts) clear(e *textEntry) {
	if e.beside != nil {
		t.beside -= e.beside.size
		e.beside = nil
	}
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
	return at.Value.(*lruItem[V]).value, true
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
	if at != nil {
		item := l.order.Remove(at).(*lruItem[V])
		delete(l.items, item.key)
		l.size -= item.size
	}
}
