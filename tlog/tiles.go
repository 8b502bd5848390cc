package tlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	merkle "golang.org/x/mod/sumdb/tlog"
)

// Leaf is an entry of the log: the SHA-256 of a manifest's octets.
type Leaf = [32]byte

// Hash is a hash of the tree.
type Hash = merkle.Hash

// Tiles keeps a log: its leaves, the hashes of its tree and the checkpoint signed last. A store knows no Merkle tree;
// it reads and writes what the log tells it to. [MemoryTiles] is the one in memory; package tlogtest says whether
// another one is right.
//
// In SQL it is two tables and a row: leaves (index, leaf; both unique), hashes (index, hash) and the head (size,
// checkpoint). Implementations are safe for concurrent use, by several processes where their storage is.
type Tiles interface {
	// Update makes one transaction that no other Update overlaps, in whatever process (SELECT … FOR UPDATE of the head,
	// BEGIN IMMEDIATE). It reads the head and which of leaves are there, calls grow with them, and writes what grow
	// returns: all of it or nothing. With an error of grow, or a nil Growth, it writes nothing; the error is returned
	// wrapped. It refuses a growth with a leaf or the index of a hash that is there already. It may call grow again
	// when it has to repeat the transaction. leaves are at most MaxLeaves.
	Update(ctx context.Context, leaves []Leaf, grow func(*Before) (*Growth, error)) error

	// Head returns the head that the last Update left. Of a new log that is 0 and nil.
	Head(ctx context.Context) (size int64, checkpoint []byte, err error)

	// Hashes returns the hashes at indexes, in their order. One that is missing is an error. Indexes are up to 256, in
	// any order.
	Hashes(ctx context.Context, indexes []int64) ([]Hash, error)

	// Leaves returns the n leaves from index from on. One that is missing is an error. n is at most MaxLeaves.
	Leaves(ctx context.Context, from int64, n int) ([]Leaf, error)

	// Find returns the index of a leaf, or an error that is ErrNotFound.
	Find(ctx context.Context, leaf Leaf) (int64, error)
}

// MaxLeaves is how many leaves are read from a store, and given to one Update, at a time.
const MaxLeaves = 4096

// Before is what an Update has read.
type Before struct {
	Size       int64          // how many leaves there are
	Checkpoint []byte         // the one signed last; nil: none yet
	Known      map[Leaf]int64 // the indexes of those of the given leaves that are there

	// Hashes reads within the transaction, like Tiles.Hashes.
	Hashes func(indexes []int64) ([]Hash, error)
}

// Growth is what an Update writes.
type Growth struct {
	Leaves     []Leaf // the first has the index Before.Size; none is there yet, none is in it twice
	FirstHash  int64  // index of the first hash: the number of hashes that are there
	Hashes     []Hash
	Checkpoint []byte // replaces the one before
}

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
