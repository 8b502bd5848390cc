package store

import (
	"context"
	"sync"
)

type readerKey struct{}

// WithReader returns a context for reads on behalf of a tenant: together they use half of the connections at most, so
// that others' reads do not wait until they have ended. Without one there is no such bound.
func WithReader(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, readerKey{}, tenant)
}

// shares are the parts of a pool's connections that tenants have.
type shares struct {
	most int // of one tenant

	mu    sync.Mutex
	taken map[string]*share
}

// share is that of one tenant.
type share struct {
	turns chan struct{} // has one for each read that goes on
	users int           // reads that go on or wait
}

// take waits until one more of the reader's reads may go on. Release ends it.
func (s *shares) take(ctx context.Context) (release func(), err error) {
	tenant, ok := ctx.Value(readerKey{}).(string)
	if !ok {
		return func() {}, nil
	}
	mine := s.join(tenant)
	select {
	case mine.turns <- struct{}{}:
		return func() {
			<-mine.turns
			s.leave(tenant)
		}, nil
	case <-ctx.Done():
		s.leave(tenant)
		return nil, ctx.Err()
	}
}

func (s *shares) join(tenant string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.taken[tenant]
	if mine == nil {
		mine = &share{turns: make(chan struct{}, s.most)}
		s.taken[tenant] = mine
	}
	mine.users++
	return mine
}

func (s *shares) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[tenant].users--; s.taken[tenant].users == 0 {
		delete(s.taken, tenant)
	}
}
