package gateway

import (
	"context"
	"sync"

	"github.com/ibidhq/ibid/store/journal"
)

// progress is how far the indexer is.
type progress struct {
	mu      sync.Mutex
	passed  journal.Position
	current bool          // what earlier processes left is in the store
	moved   chan struct{} // closed when one of them changes; nil: nobody waits
}

// advance notes that everything up to to is in the store. Current says that this includes all of earlier processes.
func (p *progress) advance(to journal.Position, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = max(p.passed, to)
	p.current = p.current || current
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

func (p *progress) isCurrent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *progress) at() journal.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// awaited reports whether somebody waits.
func (p *progress) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved != nil
}

// wait returns when everything up to to is in the store, and what an earlier process left, or with ctx's error.
func (p *progress) wait(ctx context.Context, to journal.Position) error {
	for {
		p.mu.Lock()
		if p.current && p.passed >= to {
			p.mu.Unlock()
			return nil
		}
		if p.moved == nil {
			p.moved = make(chan struct{})
		}
		moved := p.moved
		p.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
