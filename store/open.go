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
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver
)

// migrationLock is the number of PostgreSQL's advisory lock that is held while tables are brought up to date: "ibid".
const migrationLock = 0x69626964

// openPostgres connects to the server that dsn names.
func (s *Store) openPostgres(ctx context.Context, dsn string, conns int) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New("not a DSN of PostgreSQL") // the reason quotes it, with its password
	}
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "ibid")
	s.postgres = true
	s.read = stdlib.OpenDB(*config)
	s.read.SetMaxOpenConns(cmp.Or(max(conns, 0), 8))
	s.read.SetMaxIdleConns(cmp.Or(max(conns, 0), 8))
	return newDialect(true).migrate(ctx, s.read, func(ctx context.Context) (func() error, error) {
		conn, err := s.read.Conn(ctx)
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
	})
}

// openSQLite opens the file of that name. One connection writes, as SQLite allows one at a time anyway; the others read.
func (s *Store) openSQLite(ctx context.Context, name string, conns int) error {
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
	writer, err := sqliteDB(name, "synchronous(FULL)", "secure_delete(ON)", "cache_size(-8192)", "temp_store(MEMORY)", "wal_autocheckpoint(4000)")
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
	if s.read, err = sqliteDB(name, "query_only(1)"); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(cmp.Or(max(conns, 0), max(4, runtime.GOMAXPROCS(0))))
	s.read.SetMaxIdleConns(2)
	return nil
}

func sqliteDB(name string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{}
	for _, p := range append([]string{"busy_timeout(2000)", "journal_mode(WAL)"}, pragmas...) {
		query.Add("_pragma", p)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath(), RawQuery: query.Encode()}
	return sql.Open("sqlite", file.String())
}

// private makes the file, for nobody else to read, if it is not there. SQLite gives the files beside it the same mode.
func private(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// sqliteLock returns a lock between processes: SQLite's own, of an empty file beside the database. A lock of the database
// itself would be in the way of what it protects.
func sqliteLock(name string) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		if err := private(name + "-lock"); err != nil {
			return nil, err
		}
		file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(name + "-lock")}).EscapedPath()}
		db, err := sql.Open("sqlite", file.String()+"?_pragma=busy_timeout(60000)&_txlock=exclusive")
		if err != nil {
			return nil, err
		}
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
	}
}
