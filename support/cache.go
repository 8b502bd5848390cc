package support

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"
)

// Cache keeps a judge's verdicts, so that it need not ask again. Both methods may be called concurrently. Values
// returned by Get or passed to Put must not be changed afterwards.
//
// Keys are hashes, which reveal neither claim nor passage. Values contain a label and quotes from the passages.
type Cache interface {
	Get(ctx context.Context, key [sha256.Size]byte) (value []byte, ok bool)
	Put(ctx context.Context, key [sha256.Size]byte, value []byte)
}

// memoryEntries is the default of [MemoryCache.Entries].
const memoryEntries = 10_000

// MemoryCache is an in-memory [Cache] that evicts the least recently used entry. The zero value is ready to use.
type MemoryCache struct {
	Entries int // the most entries it keeps; 0 means 10,000

	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order list.List // of memoryEntry, most recently used first
}

type memoryEntry struct {
	key   [sha256.Size]byte
	value []byte
}

// Get implements [Cache].
func (m *MemoryCache) Get(_ context.Context, key [sha256.Size]byte) ([]byte, bool) {
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
func (m *MemoryCache) Put(_ context.Context, key [sha256.Size]byte, value []byte) {
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
		limit = memoryEntries
	}
	for len(m.byKey) > limit {
		last := m.order.Back()
		delete(m.byKey, m.order.Remove(last).(memoryEntry).key)
	}
}

// cacheKey hashes parts. Each is preceded by its length, so that different lists never hash the same bytes.
func cacheKey(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // a hash never fails
		_, _ = h.Write([]byte(part))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// paramsHash returns a hash of parameters for [Info.Params].
func paramsHash(parts ...string) string {
	key := cacheKey(parts...)
	return hex.EncodeToString(key[:8])
}
