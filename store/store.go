package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// DefaultTenant is whose everything is while there are no tokens.
const DefaultTenant = "default"

// Options says how a store is opened. Nil and the zero value are the defaults.
type Options struct {
	Logger *slog.Logger  // nil: nothing is logged
	Wait   time.Duration // how long a write to SQLite waits for another process that writes; 0: 2 s
	// Track says that the web addresses of the sources that answers cite are noted as they are put, to be read again:
	// see [Store.DueRechecks].
	Track bool
}

// Store is an open store. Its methods may be called by many goroutines at once.
type Store struct {
	postgres bool
	db       *pool         // nil until it is open
	write    *sql.DB       // nil for PostgreSQL, which writes by db as well
	writer   *preparer     // the connection of write
	turn     chan struct{} // taken by who uses writer
	logger   *slog.Logger
	wait     time.Duration // of SQLite: Options.Wait
	track    bool
	packer   packer
	names    atomic.Pointer[PubNames] // nil until they are needed
}

// Open opens the store that dsn names, the name of a SQLite file or postgres://…, makes what is not there and brings
// its tables up to date. Any number of processes may do so at the same time. A store that a newer ibid has changed is
// refused with [ErrNewer], one from before the first release with [ErrOlder]; [ErrUnreachable] says that there is no
// server.
//
// ctx bounds opening only.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Store{
		turn:   make(chan struct{}, 1),
		logger: o.Logger,
		wait:   cmp.Or(o.Wait, 2*time.Second),
		track:  o.Track,
		packer: newPacker(),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if err := s.open(ctx, dsn); err != nil {
		return nil, fmt.Errorf("opening the store: %w", errors.Join(err, s.Close()))
	}
	s.logger.LogAttrs(ctx, slog.LevelDebug, "store opened", slog.Bool("postgres", s.postgres))
	return s, nil
}

// Close ends all use of the store. It waits for a [Store.Put] that is under way.
func (s *Store) Close() error {
	var errs []error
	if s.writer != nil {
		s.turn <- struct{}{}
		errs = append(errs, s.writer.close())
		s.writer = nil
		<-s.turn
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
}

// Ping reports whether the store can be read now.
func (s *Store) Ping(ctx context.Context) error {
	if err := each(ctx, s.db, func(*sql.Rows) error { return nil }, "SELECT 1 FROM conversations LIMIT 1"); err != nil {
		return fmt.Errorf("asking the store: %w", err)
	}
	return nil
}
