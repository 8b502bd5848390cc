package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// DefaultTenant is whose everything is while there are no tokens.
const DefaultTenant = "default"

// Options says how a store is opened. Nil and the zero value are the defaults.
type Options struct {
	Logger   *slog.Logger // nil: nothing is logged
	MaxConns int          // connections at the same time; 0: 8 for PostgreSQL; for SQLite, 4 or one for each processor, beside the one that writes
}

// Store is an open store. Its methods may be called by many goroutines at once.
type Store struct {
	postgres bool
	read     *sql.DB
	write    *sql.DB       // nil for PostgreSQL, which writes by read as well
	writer   *preparer     // the connection of write
	turn     chan struct{} // taken by who uses writer
	logger   *slog.Logger
}

// Open opens the store that dsn names, the name of a SQLite file or postgres://…, makes what is not there and brings its
// tables up to date. Any number of processes may do so at the same time. A store that a newer ibid has changed is refused
// with [ErrNewer].
//
// ctx bounds opening only.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Store{turn: make(chan struct{}, 1), logger: o.Logger}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	open := s.openSQLite
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		open = s.openPostgres
	}
	if err := open(ctx, dsn, o.MaxConns); err != nil {
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
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the store can be read now.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.read.QueryRowContext(ctx, "SELECT 1 FROM conversations LIMIT 1").Scan(&one); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("asking the store: %w", err)
	}
	return nil
}
