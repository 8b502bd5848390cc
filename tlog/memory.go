package tlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// MemoryTiles keeps a log in memory. The zero value is empty and ready; it must not be copied. Safe for concurrent use.
type MemoryTiles struct {
	mu         sync.RWMutex
	leaves     []Leaf
	at         map[Leaf]int64
	hashes     []Hash
	checkpoint []byte
}

// Update implements [Tiles].
func (m *MemoryTiles) Update(ctx context.Context, leaves []Leaf, grow func(*Before) (*Growth, error)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("updating the log: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := &Before{
		Size:       int64(len(m.leaves)),
		Checkpoint: slices.Clone(m.checkpoint),
		Known:      map[Leaf]int64{},
		Hashes:     m.read,
	}
	for _, leaf := range leaves {
		if at, ok := m.at[leaf]; ok {
			before.Known[leaf] = at
		}
	}
	growth, err := grow(before)
	if err != nil {
		return fmt.Errorf("updating the log: %w", err)
	}
	if growth == nil {
		return nil
	}
	if growth.FirstHash != int64(len(m.hashes)) {
		return fmt.Errorf("updating the log: the first hash is %d, there are %d", growth.FirstHash, len(m.hashes))
	}
	at := make(map[Leaf]int64, len(growth.Leaves))
	for i, leaf := range growth.Leaves {
		_, old := m.at[leaf]
		if _, twice := at[leaf]; old || twice {
			return fmt.Errorf("updating the log: leaf %x is there already", leaf[:4])
		}
		at[leaf] = before.Size + int64(i)
	}
	if m.at == nil {
		m.at = at
	} else {
		maps.Copy(m.at, at)
	}
	m.leaves = append(m.leaves, growth.Leaves...)
	m.hashes = append(m.hashes, growth.Hashes...)
	m.checkpoint = slices.Clone(growth.Checkpoint)
	return nil
}

// Head implements [Tiles].
func (m *MemoryTiles) Head(context.Context) (int64, []byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(len(m.leaves)), slices.Clone(m.checkpoint), nil
}

// Hashes implements [Tiles].
func (m *MemoryTiles) Hashes(_ context.Context, indexes []int64) ([]Hash, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.read(indexes)
}

// read wants the lock held.
func (m *MemoryTiles) read(indexes []int64) ([]Hash, error) {
	hashes := make([]Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(m.hashes)) {
			return nil, fmt.Errorf("reading the log: no hash %d of %d", at, len(m.hashes))
		}
		hashes[i] = m.hashes[at]
	}
	return hashes, nil
}

// Leaves implements [Tiles].
func (m *MemoryTiles) Leaves(_ context.Context, from int64, n int) ([]Leaf, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if size := int64(len(m.leaves)); from < 0 || n < 0 || from > size || int64(n) > size-from {
		return nil, fmt.Errorf("reading the log: no leaves %d to %d of %d", from, from+int64(n), size)
	}
	return slices.Clone(m.leaves[from : from+int64(n)]), nil
}

// Find implements [Tiles].
func (m *MemoryTiles) Find(_ context.Context, leaf Leaf) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	at, ok := m.at[leaf]
	if !ok {
		return 0, fmt.Errorf("reading the log: leaf %x: %w", leaf[:4], ErrNotFound)
	}
	return at, nil
}
