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
	"github.com/jackc/pgx/v5/stdlib"
)

// pool is a pool of connections to one database. After the server has been away, connections from before are dead,
// which only shows when they are used: pgx tests a connection only after it was idle for a second, and database/sql
// takes another only if pgx knows that nothing was sent. Queries and the beginning of transactions change nothing, so
// they are retried with the next connection.
type pool struct {
	*sql.DB

	size  int    // maximum number of connections
	setup *setup // what must be done before the first query; nil if nothing

	shares shares
}

// newPool returns a pool of up to size connections, of which up to idle stay open when unused.
func newPool(db *sql.DB, size, idle int) *pool {
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(idle)
	return &pool{DB: db, size: size, shares: shares{limit: max(1, size/2), byTenant: map[string]*share{}}}
}

// QueryContext is like that of [sql.DB].
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

// BeginTx is like that of [sql.DB].
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

// openPGX opens the database that config names.
func openPGX(config *pgx.ConnConfig, o ...stdlib.OptionOpenDB) *sql.DB {
	return sql.OpenDB(briefConnector{stdlib.GetConnector(*config, o...)})
}

// briefConnector connects like pgx, with errors that say each thing once.
type briefConnector struct{ driver.Connector }

// Connect is like that of [driver.Connector].
func (c briefConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, &briefError{err}
	}
	return conn, nil
}

// briefError is an error of connecting. pgx lists its attempts in lines, and with sslmode=prefer, the default, it makes
// two at each address, which mostly end in the same way.
type briefError struct{ error }

func (e *briefError) Unwrap() error { return e.error }

func (e *briefError) Error() string {
	head, rest, _ := strings.Cut(e.error.Error(), "\n")
	var attempts []string
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(attempts, line) {
			attempts = append(attempts, line)
		}
	}
	return strings.TrimSpace(head + " " + strings.Join(attempts, "; "))
}

// retry repeats do with one connection after another while these are dead. Each fails only once.
func (p *pool) retry(do func() error) error {
	for range p.size {
		if err := do(); !isDead(err) {
			return err
		}
	}
	return do()
}

// isDead reports whether err means that an established connection to PostgreSQL is gone.
func isDead(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// the server closed it: by an administrator's command or after a crash
		return pg.Code == "57P01" || pg.Code == "57P02"
	}
	// database/sql returns ErrBadConn after trying three connections that were all dead. This happens under load, when
	// others return theirs.
	broken := []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET}
	return slices.ContainsFunc(broken, func(b error) bool { return errors.Is(err, b) })
}

// unreachable marks an error that means that no server accepts connections. If a server answers, it adds what the
// operator has to do there.
func unreachable(err error) error {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	connect, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case connecting && !answered,
		connecting && (pg.Code == "57P03" || strings.HasPrefix(pg.Code, "53")): // it starts, stops or has no room
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case connecting:
		return advised(err, pg, connect.Config.User, connect.Config.Database)
	case answered:
		return advised(err, pg, "ROLE", "DATABASE")
	}
	return err
}

// setupError is an error from a PostgreSQL server that is not set up for ibid.
type setupError struct {
	error

	hint string
}

func (e *setupError) Unwrap() error { return e.error }

// Hint returns what to do on the server.
func (e *setupError) Hint() string { return e.hint }

// advised adds a hint to an error from a server that was to be used with role and database.
func advised(err error, pg *pgconn.PgError, role, database string) error {
	role, database = pgx.Identifier{role}.Sanitize(), pgx.Identifier{database}.Sanitize()
	var hint string
	switch pg.Code {
	case "3D000": // invalid_catalog_name
		hint = "as the server's administrator: CREATE DATABASE " + database + " OWNER " + role + ";"
	case "28P01": // invalid_password
		hint = "the password comes from PGPASSWORD, ~/.pgpass or the URL; as the server's administrator: " +
			"ALTER ROLE " + role + " PASSWORD '…'; or, if there is no such role, CREATE ROLE " + role +
			" LOGIN PASSWORD '…';"
	case "28000": // invalid_authorization_specification
		hint = "as the server's administrator: CREATE ROLE " + role + " LOGIN PASSWORD '…'; CREATE DATABASE " +
			database + " OWNER " + role + ";"
		if strings.Contains(pg.Message, "pg_hba.conf") {
			hint = "pg_hba.conf on the server determines who may connect from where, and whether only with " +
				"?sslmode=require or verify-full in the URL"
		}
	case "42501": // insufficient_privilege
		hint = "ibid creates its tables itself; as the server's administrator: ALTER DATABASE " + database +
			" OWNER TO " + role + "; or GRANT CREATE ON SCHEMA public TO " + role + ";"
	default:
		return err
	}
	return &setupError{err, hint}
}

// errNotReady marks errors of a database that could not be reached when the store was opened and is not ready yet. They
// say nothing about what was to be stored.
var errNotReady = errors.New("the database is not ready")

// setup migrates a database that could not be reached when the store was opened. Each caller that needs the database
// tries to, while others wait, until one has succeeded. A nil setup is ready.
type setup struct {
	migrate func(context.Context) error
	running chan struct{}
	done    atomic.Bool
}

// ready returns nil once the tables are up to date.
func (s *setup) ready(ctx context.Context) error {
	if s == nil || s.done.Load() {
		return nil
	}
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
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

// WithReader returns a context for reads on behalf of a tenant, which together use at most half of the connections, so
// that others' reads need not wait for them. Without it, reads are not limited.
func WithReader(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, readerKey{}, tenant)
}

// shares limits how many of a pool's connections each tenant uses.
type shares struct {
	limit int // per tenant

	mu       sync.Mutex
	byTenant map[string]*share
}

// share is the share of one tenant.
type share struct {
	slots chan struct{} // holds one element per running read
	users int           // reads running or waiting
}

// acquire waits until the tenant may start another read. The caller must call release when the read ends.
func (s *shares) acquire(ctx context.Context) (release func(), err error) {
	tenant, ok := ctx.Value(readerKey{}).(string)
	if !ok {
		return func() {}, nil
	}
	s.mu.Lock()
	own := s.byTenant[tenant]
	if own == nil {
		own = &share{slots: make(chan struct{}, s.limit)}
		s.byTenant[tenant] = own
	}
	own.users++
	s.mu.Unlock()
	select {
	case own.slots <- struct{}{}:
		return func() {
			<-own.slots
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
	if s.byTenant[tenant].users--; s.byTenant[tenant].users == 0 {
		delete(s.byTenant, tenant)
	}
}
