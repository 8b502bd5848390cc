package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// statementTimeout is how long PostgreSQL may work on a statement, and how long it keeps an idle transaction open,
	// unless the DSN, the role or the database sets statement_timeout. Migrations may take longer.
	statementTimeout = 30 * time.Second
	// responseGrace is how long after that limit the answer may still arrive.
	responseGrace = 2 * time.Second
	// maxIdle is how long a connection may have been silent to be reused without a ping, and pingTimeout how long the
	// ping may take.
	maxIdle     = time.Second
	pingTimeout = 2 * time.Second
)

// errNoResponse means that a connection seems to be half open: the machine at the other end lost power, or something in
// between dropped the connection without notifying either end.
var errNoResponse = errors.New("the database does not respond")

// timeoutConn is a connection to PostgreSQL that limits how long a read or a write may make no progress. TCP alone
// would wait for a quarter of an hour, or forever if something between the two ends still answers.
type timeoutConn struct {
	net.Conn

	mu       sync.Mutex
	limit    time.Duration
	until    time.Time // the deadline that pgx has set
	lastRead time.Time // when something was last read
}

// timeoutDial wraps the connections of a configuration in timeoutConns.
func timeoutDial(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &timeoutConn{Conn: conn, limit: statementTimeout + responseGrace}, nil
	}
}

// timeoutOptions limit the time of statements on the connections of timeoutDial, at both ends, and ping idle
// connections before they are reused.
func timeoutOptions() []stdlib.OptionOpenDB {
	return []stdlib.OptionOpenDB{
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			var limit int64 // in ms
			// The server has to end a transaction whose client is gone, because it holds locks.
			err := conn.QueryRow(ctx, `SELECT
					(extract(epoch FROM set_config('statement_timeout', wanted, false)::interval) * 1000)::bigint,
					set_config('idle_in_transaction_session_timeout', wanted, false)
				FROM (SELECT CASE setting WHEN '0' THEN $1 ELSE setting || 'ms' END AS wanted
					FROM pg_settings WHERE name = 'statement_timeout') AS t`,
				fmt.Sprintf("%dms", statementTimeout.Milliseconds()),
			).Scan(&limit, nil)
			if err != nil {
				return fmt.Errorf("limiting statements: %w", err)
			}
			if c := timeoutConnOf(conn); c != nil {
				c.mu.Lock()
				c.limit = time.Duration(limit)*time.Millisecond + responseGrace
				c.mu.Unlock()
			}
			return nil
		}),
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }), // see below
		stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
			if c := timeoutConnOf(conn); c != nil && !c.idle() {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, pingTimeout)
			defer cancel()
			if conn.Ping(ctx) != nil {
				return driver.ErrBadConn
			}
			return nil
		}),
	}
}

// timeoutConnOf returns the timeoutConn under conn, with or without TLS.
func timeoutConnOf(conn *pgx.Conn) *timeoutConn {
	below := conn.PgConn().Conn()
	if secure, ok := below.(interface{ NetConn() net.Conn }); ok {
		below = secure.NetConn()
	}
	c, _ := below.(*timeoutConn)
	return c
}

// idle reports whether nothing was read for longer than maxIdle.
func (c *timeoutConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastRead) > maxIdle
}

// Read implements [net.Conn].
func (c *timeoutConn) Read(p []byte) (int, error) {
	ours, err := c.bound(c.SetReadDeadline)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.lastRead = time.Now()
		c.mu.Unlock()
	}
	return n, silent(err, ours)
}

// Write implements [net.Conn].
func (c *timeoutConn) Write(p []byte) (int, error) {
	ours, err := c.bound(c.SetWriteDeadline)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	return n, silent(err, ours)
}

// bound sets the deadline of the next read or write, and returns it unless pgx has set an earlier one.
func (c *timeoutConn) bound(set func(time.Time) error) (ours time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ours = time.Now().Add(c.limit)
	if !c.until.IsZero() && c.until.Before(ours) {
		return time.Time{}, set(c.until)
	}
	return ours, set(ours)
}

// silent returns err, or [errNoResponse] if our deadline passed. errNoResponse is not a timeout as defined by
// [net.Error], because pgx keeps using a connection after a timeout.
func silent(err error, ours time.Time) error {
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() && !ours.IsZero() && !time.Now().Before(ours) {
		return errNoResponse
	}
	return err
}

// SetDeadline implements [net.Conn].
func (c *timeoutConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetDeadline(t)
}
