package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver
)

// migrationLock is the number of PostgreSQL's advisory lock that is held while tables are brought up to date: "ibid".
const migrationLock = 0x69626964

// moment is how long SQLite waits for a lock at a time. Whoever waits for longer looks at its context in between.
const moment = 100 * time.Millisecond

// maxMigration is how long opening waits for another process that brings a SQLite file up to date.
const maxMigration = time.Minute

// IsPostgres reports whether dsn is that of a PostgreSQL server, and not the name of a SQLite file.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// parsePostgres reads the DSN of a server.
func parsePostgres(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("not a DSN of PostgreSQL") // the reason quotes it, with its password
	}
	return config, nil
}

func (s *Store) open(ctx context.Context, dsn string) error {
	if IsPostgres(dsn) {
		return s.openPostgres(ctx, dsn)
	}
	return s.openSQLite(ctx, dsn)
}

// openPostgres connects to the server that dsn names.
func (s *Store) openPostgres(ctx context.Context, dsn string) error {
	config, err := parsePostgres(dsn)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "ibid")
	s.postgres = true
	s.db = &pool{stdlib.OpenDB(*config), 8}
	s.db.SetMaxOpenConns(s.db.size)
	s.db.SetMaxIdleConns(s.db.size)
	return unreachable(newDialect(true).migrate(ctx, s.db.DB, func(ctx context.Context) (func() error, error) {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return func() error {
			_, err := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
			return errors.Join(err, conn.Close())
		}, nil
	}))
}

// openSQLite opens the file of that name. One connection writes, as SQLite allows one at a time anyway; the others
// read.
func (s *Store) openSQLite(ctx context.Context, name string) error {
	if name == "" || strings.HasPrefix(name, ":memory:") {
		return errors.New("SQLite needs a file, which has a name")
	}
	if i := strings.Index(name, "://"); i > 0 {
		return fmt.Errorf("%.20s… is neither a file name nor postgres://…", name[:i+3])
	}
	if err := private(name); err != nil {
		return err
	}
	// A commit is on disk when it returns (FULL): captures may wait for it. What is deleted is overwritten.
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
	if _, err := conn.ExecContext(ctx, "PRAGMA "+busyTimeout(moment)); err != nil { // from now on begin waits
		return err
	}
	reader, err := sqliteDB(name, "query_only(1)")
	if err != nil {
		return err
	}
	s.db = &pool{reader, max(4, runtime.GOMAXPROCS(0))}
	s.db.SetMaxOpenConns(s.db.size)
	s.db.SetMaxIdleConns(2)
	return nil
}

func sqliteDB(name string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{}
	for _, p := range append([]string{busyTimeout(20 * moment), "journal_mode(WAL)"}, pragmas...) {
		query.Add("_pragma", p)
	}
	return sql.Open("sqlite", fileURL(name, query.Encode()))
}

// busyTimeout returns the pragma that says how long SQLite waits for a lock.
func busyTimeout(wait time.Duration) string {
	return "busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")"
}

// fileURL returns what SQLite takes for a file whose name may have any character.
func fileURL(name, query string) string {
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath(), RawQuery: query}
	return file.String()
}

// private makes the file, for nobody else to read, if it is not there. SQLite gives the files beside it the same mode.
func private(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// sqliteLock returns a lock between processes: SQLite's own, of an empty file beside the database. A lock of the
// database itself would be in the way of what it protects.
func sqliteLock(name string) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		if err := private(name + "-lock"); err != nil {
			return nil, err
		}
		// SQLite waits a moment, and then looks whether ctx has ended.
		db, err := sql.Open("sqlite", fileURL(name+"-lock", "_pragma="+busyTimeout(moment)+"&_txlock=exclusive"))
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, maxMigration)
		defer cancel()
		for {
			tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // it is held for longer than ctx
			if err == nil {
				return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
			}
			if !isBusy(err) || ctx.Err() != nil {
				return nil, errors.Join(cmp.Or(ctx.Err(), err), db.Close())
			}
		}
	}
}
