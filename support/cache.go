package support

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// Cache keeps what a checker was told, so that it need not ask again. Both methods may be called concurrently. A value
// that Get returns is not changed, and one that Put was given is not changed afterwards.
//
// Keys are hashes: a cache learns no claim and no passage from them. Values hold a label and a quote from the passage.
type Cache interface {
	Get(key [sha256.Size]byte) (value []byte, ok bool)
	Put(key [sha256.Size]byte, value []byte)
}

// MemoryEntries is how many entries a [MemoryCache] holds unless it is told another number.
const MemoryEntries = 10_000

// MemoryCache is a [Cache] in memory that forgets what was not asked for longest. The zero value is ready.
type MemoryCache struct {
	Entries int // the most it holds; 0: MemoryEntries

	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order list.List // of memoryEntry, latest first
}

type memoryEntry struct {
	key   [sha256.Size]byte
	value []byte
}

// Get implements [Cache].
func (m *MemoryCache) Get(key [sha256.Size]byte) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[key]
	if !ok {
		return nil, false
	}
	m.order.MoveToFront(e)
	return e.Value.(memoryEntry).value, true
}

// Put implements [Cache].
func (m *MemoryCache) Put(key [sha256.Size]byte, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byKey[key]; ok {
		e.Value = memoryEntry{key, value}
		m.order.MoveToFront(e)
		return
	}
	if m.byKey == nil {
		m.byKey = map[[sha256.Size]byte]*list.Element{}
	}
	m.byKey[key] = m.order.PushFront(memoryEntry{key, value})
	limit := m.Entries
	if limit <= 0 {
		limit = MemoryEntries
	}
	for len(m.byKey) > limit {
		last := m.order.Back()
		delete(m.byKey, m.order.Remove(last).(memoryEntry).key)
	}
}

// cacheKey is the hash of parts. Each is preceded by its length, so that no two lists of parts have the same hash.
func cacheKey(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // a hash takes everything
		_, _ = h.Write([]byte(part))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
