package verify

import (
	"bytes"
	"cmp"
	"context"
	"sync"
)

// Memory is what a verifier remembers from one job to the next: which bytes a manifest had, which response it was seen
// with, keys, checkpoints of logs and verdicts. Without it nothing of that can be noticed. Implementations are safe for
// concurrent use and never interpret a value; package verifytest tests one.
//
// A kind is a short word of this package, a key any text.
type Memory interface {
	// Recall returns the value; nil: there is none.
	Recall(ctx context.Context, kind, key string) ([]byte, error)
	// Remember keeps value unless there is one, and returns what is there now. Of several at once, one wins and all see
	// it.
	Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error)
	// Replace keeps value in place of what is there.
	Replace(ctx context.Context, kind, key string, value []byte) error
}

// The kinds of memory. What they hold is this package's, and may change between versions; what cannot be read is as if
// it were not there.
const (
	memoryManifest   = "manifest"   // URL → sha256 of the body first seen there
	memoryOutput     = "output"     // sha256 of a manifest → hash of the response it was seen with
	memoryKeys       = "keys"       // origin → its keys and discovery, with the time
	memoryCheckpoint = "checkpoint" // origins of publisher and log → the largest checkpoint seen
	memoryVerdict    = "verdict"    // claim and source → what came of it, with the time
)

// defaultMemory bounds each kind of a [MemoryMap], in bytes.
const defaultMemory = 64 << 20

// MemoryMap is a [Memory] that ends with the program. The zero value is ready. Of each kind the oldest values are
// forgotten when there are too many: so what costs little to make many of, as verdicts do, pushes out no keys and no
// manifests.
type MemoryMap struct {
	Limit int // of the values of one kind with their keys, in bytes; 0: 64 MiB

	mu    sync.Mutex
	kinds map[string]*kindMemory
}

// kindMemory holds the values of a kind.
type kindMemory struct {
	values map[string][]byte
	order  []string // keys by first arrival
	size   int
}

// Recall implements [Memory].
func (m *MemoryMap) Recall(_ context.Context, kind, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[kind]; k != nil {
		return bytes.Clone(k.values[key]), nil
	}
	return nil, nil
}

// Remember implements [Memory].
func (m *MemoryMap) Remember(_ context.Context, kind, key string, value []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[kind]; k != nil && k.values[key] != nil {
		return bytes.Clone(k.values[key]), nil
	}
	m.put(kind, key, value)
	return bytes.Clone(value), nil
}

// Replace implements [Memory].
func (m *MemoryMap) Replace(_ context.Context, kind, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(kind, key, value)
	return nil
}

func (m *MemoryMap) put(kind, key string, value []byte) {
	const around = 128 // of an entry, about
	if m.kinds == nil {
		m.kinds = map[string]*kindMemory{}
	}
	k := m.kinds[kind]
	if k == nil {
		k = &kindMemory{values: map[string][]byte{}}
		m.kinds[kind] = k
	}
	if before, there := k.values[key]; there {
		k.size -= len(before)
	} else {
		k.size += len(key) + around
		k.order = append(k.order, key)
	}
	k.values[key] = append([]byte{}, value...) // never nil: an empty value is one
	for k.size += len(value); k.size > cmp.Or(m.Limit, defaultMemory); {
		oldest := k.order[0]
		k.size -= len(oldest) + around + len(k.values[oldest])
		delete(k.values, oldest)
		k.order = k.order[1:]
	}
}
