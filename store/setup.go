package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// errNotReady marks why a database that could not be reached when the store was opened is not ready yet. Whatever it
// is, it says nothing of what was to be stored.
var errNotReady = errors.New("the database is not ready")

// setup brings the tables of a database up to date that could not be reached when the store was opened. Whoever needs
// the database tries it; others wait meanwhile. Nil is one that was reached.
type setup struct {
	migrate func(context.Context) error
	turn    chan struct{}
	done    atomic.Bool
}

func newSetup(migrate func(context.Context) error) *setup {
	return &setup{migrate: migrate, turn: make(chan struct{}, 1)}
}

// ready returns nil once the tables are up to date.
func (s *setup) ready(ctx context.Context) error {
	if s == nil || s.done.Load() {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.done.Load() {
		return nil
	}
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	s.done.Store(true)
	return nil
}
