package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/google/uuid"
)

const (
	answerPrefix = "ans_"
	runPrefix    = "run_"
)

// idSource mints the ids of answers: ans_ and a UUID of version 7. It reads randomness in batches.
type idSource struct {
	mu    sync.Mutex
	batch [1024]byte
	used  int // of batch; 0: it was never filled
}

func (m *idSource) next() string {
	m.mu.Lock()
	id, _ := uuid.NewV7FromReader((*batchReader)(m)) // it never fails
	m.mu.Unlock()
	var b [len(answerPrefix) + 36]byte
	n := copy(b[:], answerPrefix)
	for i, part := range [...][]byte{id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]} {
		if i > 0 {
			b[n] = '-'
			n++
		}
		n += hex.Encode(b[n:], part)
	}
	return string(b[:])
}

// runOf returns the id of the run that only the answer's call is part of.
func runOf(answerID string) string { return runPrefix + strings.TrimPrefix(answerID, answerPrefix) }

// NewRunID mints the id of a run that is not that of a captured call.
func NewRunID() string {
	id, _ := uuid.NewV7() // crypto/rand never fails
	return runPrefix + id.String()
}

// batchReader reads an idSource's randomness. m.mu is held.
type batchReader idSource

func (b *batchReader) Read(p []byte) (int, error) {
	if b.used == 0 || b.used+len(p) > len(b.batch) {
		_, _ = rand.Read(b.batch[:]) // it never fails
		b.used = 0
	}
	b.used += copy(p, b.batch[b.used:])
	return len(p), nil
}
