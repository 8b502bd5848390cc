package api

import (
	"slices"
	"sync"
)

// maxKnown limits the summaries that are kept, by the stored bytes of their runs. A summary takes about as many bytes
// of memory, and a second of CPU time for four million of them.
const (
	maxKnown = 48 << 20
	perKnown = 4 << 10 // what each counts as, besides
)

// summaries keeps the latest summaries of runs. The zero value is ready to use.
type summaries struct {
	mu   sync.Mutex
	all  []knownSummary // the one used last comes last
	size int64
}

// knownSummary is what was made of a revision of a run.
type knownSummary struct {
	key, revision string
	result        any
	size          int64
}

// get returns a result that was made of this revision.
func (s *summaries) get(key, revision string) (result any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.take(key)
	if !ok || known.revision != revision {
		return nil, false
	}
	s.all, s.size = append(s.all, known), s.size+known.size
	return known.result, true
}

// put keeps a result, which takes about size bytes, in place of an earlier one of its key and of what was not used for
// longest.
func (s *summaries) put(key, revision string, result any, size int64) {
	if body, ok := result.([]byte); ok {
		size = int64(len(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(key)
	if size += int64(len(key)) + perKnown; size > maxKnown {
		return
	}
	s.all, s.size = append(s.all, knownSummary{key, revision, result, size}), s.size+size
	n := 0
	for ; s.size > maxKnown; n++ {
		s.size -= s.all[n].size
	}
	s.all = slices.Delete(s.all, 0, n)
}

// take removes and returns what is kept for a key.
func (s *summaries) take(key string) (known knownSummary, ok bool) {
	i := slices.IndexFunc(s.all, func(one knownSummary) bool { return one.key == key })
	if i < 0 {
		return known, false
	}
	known = s.all[i]
	s.all, s.size = slices.Delete(s.all, i, i+1), s.size-known.size
	return known, true
}
