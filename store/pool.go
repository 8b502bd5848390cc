package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pool is connections to one database. When its server has been away, those of before are dead, which whoever takes one
// finds out by using it: pgx tries one only after it was idle for a second, and database/sql takes another only where
// pgx knows that nothing was sent. A query and the beginning of a transaction change nothing, so they are tried with
// the next.
type pool struct {
	*sql.DB

	size  int    // connections at the same time
	setup *setup // what is left to do before the first query; nil: nothing

	shares shares
}

// newPool returns a pool of up to size connections, of which some stay open while they rest.
func newPool(db *sql.DB, size, resting int) *pool {
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(resting)
	return &pool{DB: db, size: size, shares: shares{most: max(1, size/2), taken: map[string]*share{}}}
}

// QueryContext is that of [sql.DB].
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	if err := p.setup.ready(ctx); err != nil {
		return nil, err
	}
	err = p.retry(func() error {
		rows, err = p.DB.QueryContext(ctx, query, args...) //nolint:sqlclosecheck,rowserrcheck // the caller's
		return err
	})
	return rows, err
}

// BeginTx is that of [sql.DB].
func (p *pool) BeginTx(ctx context.Context, o *sql.TxOptions) (tx *sql.Tx, err error) {
	if err := p.setup.ready(ctx); err != nil {
		return nil, err
	}
	err = p.retry(func() error {
		tx, err = p.DB.BeginTx(ctx, o)
		return err
	})
	return tx, err
}

// retry does something with one connection after another as long as these are dead: each is found out once.
func (p *pool) retry(do func() error) error {
	for range p.size {
		if err := do(); !isDead(err) {
			return err
		}
	}
	return do()
}

// isDead reports whether an error says that the connection to PostgreSQL, once made, is no more.
func isDead(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// the server ended it: by an administrator's command, after a crash
		return pg.Code == "57P01" || pg.Code == "57P02"
	}
	// What database/sql gives up with ErrBadConn was tried with three connections that all were dead: under load, where
	// others hand back theirs.
	broken := []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET}
	return slices.ContainsFunc(broken, func(b error) bool { return errors.Is(err, b) })
}

// unreachable marks an error that says that there is no server that takes connections. Where a server answers, it says
// what the operator has to do there first.
func unreachable(err error) error {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	connect, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case connecting && !answered, connecting && pg.Code == "57P03": // it starts or stops
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case connecting:
		return advised(err, pg, connect.Config.User, connect.Config.Database)
	case answered:
		return advised(err, pg, "ROLE", "DATABASE")
	}
	return err
}

// setupError is an error of a PostgreSQL server that is not set up for ibid.
type setupError struct {
	error

	hint string
}

func (e *setupError) Unwrap() error { return e.error }

// Hint says what to do at the server.
func (e *setupError) Hint() string { return e.hint }

// advised adds what to do about an error of a server that was to be used by that role and database.
func advised(err error, pg *pgconn.PgError, role, database string) error {
	role, database = pgx.Identifier{role}.Sanitize(), pgx.Identifier{database}.Sanitize()
	var hint string
	switch pg.Code {
	case "3D000": // invalid_catalog_name
		hint = "as the server's administrator: CREATE DATABASE " + database + " OWNER " + role + ";"
	case "28P01": // invalid_password
		hint = "the password is that of PGPASSWORD, ~/.pgpass or the URL; as the server's administrator: " +
			"ALTER ROLE " + role + " PASSWORD '…'; or, if there is no such role, CREATE ROLE " + role +
			" LOGIN PASSWORD '…';"
	case "28000": // invalid_authorization_specification
		hint = "as the server's administrator: CREATE ROLE " + role + " LOGIN PASSWORD '…'; CREATE DATABASE " +
			database + " OWNER " + role + ";"
		if strings.Contains(pg.Message, "pg_hba.conf") {
			hint = "pg_hba.conf on the server says who may connect from where, and whether only with " +
				"?sslmode=require or verify-full in the URL"
		}
	case "42501": // insufficient_privilege
		hint = "ibid makes its tables itself; as the server's administrator: ALTER DATABASE " + database +
			" OWNER TO " + role + "; or GRANT CREATE ON SCHEMA public TO " + role + ";"
	default:
		return err
	}
	return &setupError{err, hint}
}

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
	s.mu.Lock()
	mine := s.taken[tenant]
	if mine == nil {
		mine = &share{turns: make(chan struct{}, s.most)}
		s.taken[tenant] = mine
	}
	mine.users++
	s.mu.Unlock()
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

func (s *shares) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[tenant].users--; s.taken[tenant].users == 0 {
		delete(s.taken, tenant)
	}
}
