package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// Why there is no manifest: errors of Manifests wrap one of these.
var (
	ErrPending  = errors.New("the manifest is not built yet")
	ErrNotFound = errors.New("there is no such manifest")
	ErrMutated  = errors.New("another manifest is there already")
)

// Manifests keeps what was published, for ever, by the path of its URL. It is safe for concurrent use.
type Manifests interface {
	// Manifest returns what is kept; nobody may change it. The error wraps ErrPending or ErrNotFound, or says what went
	// wrong.
	Manifest(ctx context.Context, path string) (*Signed, error)
	// KeepManifest keeps s. Where the same body is kept already, nothing changes; where another is, the error wraps
	// ErrMutated.
	KeepManifest(ctx context.Context, path string, s *Signed) error
}

// defaultMemory is how many bytes of manifests MemoryManifests keeps unless its Limit says another number.
const defaultMemory = 64 << 20

// MemoryManifests keeps manifests in memory, for examples and agents without a disk: when the program ends, they are
// gone. Above the limit the oldest are forgotten. The zero value is ready. Do not copy it.
type MemoryManifests struct {
	Limit int64 // bytes of bodies; 0: 64 MiB

	mu    sync.Mutex
	all   map[string]*Signed
	order []string // the oldest first
	size  int64
}

// Manifest implements [Manifests].
func (m *MemoryManifests) Manifest(_ context.Context, path string) (*Signed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[path]
	if s == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return s, nil
}

// KeepManifest implements [Manifests].
func (m *MemoryManifests) KeepManifest(_ context.Context, path string, s *Signed) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.all[path]; old != nil {
		if bytes.Equal(old.Body, s.Body) {
			return nil
		}
		return fmt.Errorf("%s: %w", path, ErrMutated)
	}
	if m.all == nil {
		m.all = map[string]*Signed{}
	}
	m.all[path] = s
	m.order = append(m.order, path)
	m.size += int64(len(s.Body))
	for m.size > cmp.Or(m.Limit, defaultMemory) && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.size -= int64(len(m.all[oldest].Body))
		delete(m.all, oldest)
	}
	return nil
}
