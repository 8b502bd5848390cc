package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/sqlite"
	"github.com/ibidhq/ibid/internal/unpack"
)

// DefaultTenant is the tenant of all calls and rows unless there are access tokens.
const DefaultTenant = "default"

// Options configures a store. Nil and the zero value are the defaults.
type Options struct {
	Logger *slog.Logger  // nil disables logging
	Wait   time.Duration // how long a write to SQLite waits for another process's; 0 means 2 s
	// Track records the web addresses of cited sources as answers are put, so that the sources can be read again: see
	// [Store.DueRechecks].
	Track bool
	// Serve makes this process the one that serves the SQLite file, until Close: if another does and still does after
	// this time, Open fails with [ErrServed]. 0 is for processes that only read or write. Any number of processes may
	// serve a PostgreSQL database.
	Serve time.Duration
	// Later lets the store open while its PostgreSQL server cannot be reached. Until it can, every operation fails with
	// [ErrUnreachable], which is temporary. The first one that reaches the server brings its tables up to date.
	Later bool
	// Committed receives the events that a transaction has added, right after its commit, and before the next one of
	// SQLite. It must not block or change them. These events are not left for [Store.Outbox]. Nil leaves them all
	// there.
	Committed func([]Event)
	// Now is the clock by which work is due, leases end, answers expire and PostgreSQL's partitions are made; nil means
	// [time.Now]. It may jump: if it is set back, scheduled work is delayed by as much.
	Now func() time.Time
}

// Store is an open store. Its methods may be called concurrently.
type Store struct {
	engine
	db      *pool         // nil until it is open
	urgent  *pool         // one connection, for queries that must not wait behind long ones
	write   *sql.DB       // nil for PostgreSQL, which writes through db too
	writer  *preparer     // the connection of write
	writing chan struct{} // held while writer is in use
	file    *sqliteFile   // nil for PostgreSQL
	served  func() error  // ends Options.Serve; nil without
	logger  *slog.Logger
	wait    time.Duration // Options.Wait, for SQLite
	track   bool
	process string   // names this process in the work that it has begun
	does    sync.Map // the tables of the work that it does
	packer  *unpack.Packer
	names   atomic.Pointer[PubNames] // nil until they are needed
	// partitioned is when PostgreSQL partitions are next made, in milliseconds since 1970.
	partitioned atomic.Int64
}

// Open opens the store that dsn names, a SQLite file or postgres://…, creates what is missing and brings its tables up
// to date. Any number of processes may do so at the same time. It fails with [ErrNewer] if a newer ibid has changed the
// store, with [ErrOlder] if the store is from before the first release, and with [ErrUnreachable] if there is no
// server, unless Options.Later is set.
//
// ctx bounds opening only.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	o = cmp.Or(o, &Options{})
	s := &Store{
		engine:  engine{now: o.Now, committed: o.Committed},
		writing: make(chan struct{}, 1),
		logger:  cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		wait:    cmp.Or(o.Wait, 2*time.Second),
		track:   o.Track,
		process: rand.Text(),
		packer:  unpack.NewPacker(zstd.SpeedFastest, 1<<20, MaxCopy),
	}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if IsPostgres(dsn) {
		err = s.openPostgres(ctx, dsn, o.Later)
	} else if err = s.openSQLite(ctx, dsn, o.Serve); sqlite.IsDamage(err) {
		err = fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", errors.Join(err, s.Close()))
	}
	s.logger.LogAttrs(ctx, slog.LevelDebug, "store opened", slog.Bool("postgres", s.postgres))
	return s, nil
}

// Close closes the store. It waits for a [Store.Put] in progress.
func (s *Store) Close() error {
	var errs []error
	if s.writer != nil {
		s.writing <- struct{}{}
		errs = append(errs, s.writer.close())
		s.writer = nil
		<-s.writing
	}
	if s.file != nil {
		s.file.close()
	}
	for _, p := range []*pool{s.db, s.urgent} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.served != nil {
		errs = append(errs, s.served())
		s.served = nil
	}
	return errors.Join(errs...)
}

// Now returns the time by the store's clock.
func (s *Store) Now() time.Time { return s.now() }

// Ping checks that the store can be read and written.
func (s *Store) Ping(ctx context.Context) error {
	if s.file != nil {
		if err := s.file.health(ctx); err != nil {
			return fmt.Errorf("checking the store: %w", err)
		}
	}
	err := each(ctx, s.urgent, func(*sql.Rows) error { return nil }, "SELECT 1 FROM conversations LIMIT 1")
	if err != nil {
		return fmt.Errorf("checking the store: %w", err)
	}
	return nil
}

// migrationLock is the key of the PostgreSQL advisory lock held during migration: "ibid".
const migrationLock = 0x69626964

// lockWait is how long SQLite waits for a lock at a time. Longer waits check their context in between.
const lockWait = 100 * time.Millisecond

// IsPostgres reports whether dsn names a PostgreSQL server rather than a SQLite file.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// parsePostgres parses the DSN of a server.
func parsePostgres(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("not a PostgreSQL DSN") // the cause quotes it, including its password
	}
	return config, nil
}

// connectTimeout limits connecting to PostgreSQL unless the DSN has a connect_timeout: a server that does not answer
// counts as unreachable, like one that refuses.
const connectTimeout = 5 * time.Second

// openPostgres connects to the server that dsn names.
func (s *Store) openPostgres(ctx context.Context, dsn string, later bool) error {
	config, err := parsePostgres(dsn)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "ibid")
	s.postgres = true
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	plain := config.Copy()
	timeoutDial(config)
	s.db = newPool(openPGX(config, timeoutOptions()...), 8, 8)
	s.urgent = newPool(openPGX(config, timeoutOptions()...), 1, 1)
	migrate := func(ctx context.Context) error {
		err := migratePostgres(ctx, plain)
		if err == nil {
			s.partition(ctx)
		}
		return err
	}
	err = migrate(ctx)
	if later && errors.Is(err, ErrUnreachable) {
		s.logger.LogAttrs(
			ctx, slog.LevelWarn, "the database cannot be reached; answers wait in the journal", slog.Any("error", err),
		)
		s.db.setup = &setup{migrate: migrate, running: make(chan struct{}, 1)}
		s.urgent.setup = s.db.setup
		return nil
	}
	return err
}

// openSQLite opens a SQLite file. One connection writes, as SQLite allows only one writer anyway; the others read.
func (s *Store) openSQLite(ctx context.Context, name string, serve time.Duration) error {
	if name == "" || strings.HasPrefix(name, ":memory:") {
		return errors.New("SQLite needs a file name")
	}
	if i := strings.Index(name, "://"); i > 0 {
		return fmt.Errorf("%.20s… is neither a file name nor postgres://…", name[:i+3])
	}
	if err := file.CreatePrivate(name); err != nil {
		return err
	}
	if serve > 0 {
		if err := s.serve(ctx, name, serve); err != nil {
			return err
		}
	}
	// FULL: a commit is on disk when it returns, because captures may wait for it. Deleted data is overwritten.
	writer, err := sqliteDB(
		name, "synchronous(FULL)", "secure_delete(ON)", "cache_size(-8192)", "temp_store(MEMORY)",
		"wal_autocheckpoint(4000)",
	)
	if err != nil {
		return err
	}
	s.write = writer
	s.write.SetMaxOpenConns(1)
	if err := newDialect(false).migrate(ctx, s.write, sqliteLock(name)); err != nil {
		return err
	}
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	s.writer = &preparer{conn: conn, statements: map[string]*sql.Stmt{}}
	if _, err := conn.ExecContext(ctx, "PRAGMA "+sqlite.BusyTimeout(lockWait)); err != nil { // from now on begin waits
		return err
	}
	reader, err := sqliteDB(name, "query_only(1)")
	if err != nil {
		return err
	}
	s.db = newPool(reader, max(4, runtime.GOMAXPROCS(0)), 2)
	if reader, err = sqliteDB(name, "query_only(1)"); err != nil {
		return err
	}
	s.urgent = newPool(reader, 1, 1)
	s.file, err = watchFile(name, s.logger)
	return err
}

// serve excludes other servers from the file. One that was killed may take a moment to end.
func (s *Store) serve(ctx context.Context, name string, wait time.Duration) error {
	target, err := filepath.EvalSymlinks(name) // whatever it is called
	if err != nil {
		return err
	}
	s.served, err = sqlite.Lock(ctx, target+"-serve", wait, func() {
		s.logger.LogAttrs(
			ctx, slog.LevelWarn, "another process serves the database, which may be ending: waiting for it",
			slog.String("file", name), slog.Duration("at_most", wait),
		)
	})
	if errors.Is(err, sqlite.ErrLocked) {
		err = ErrServed
	}
	return err
}

// sqliteDB opens an existing file: a later connection must not recreate one that was deleted.
func sqliteDB(name string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}}
	for _, p := range append([]string{sqlite.BusyTimeout(20 * lockWait), "journal_mode(WAL)"}, pragmas...) {
		query.Add("_pragma", p)
	}
	return sqlite.Open(name, query)
}
