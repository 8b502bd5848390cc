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
	// statementTime is how long PostgreSQL may work on a statement, and how long it keeps an idle transaction open,
	// unless the DSN, the role or the database sets statement_timeout. Migrations may take longer.
	statementTime = 30 * time.Second
	// answerTime is how much later than the end of that time the answer may arrive.
	answerTime = 2 * time.Second
	// restTime is how long nothing may have been read from a connection that is used again without a ping, and pingTime
	// how long the ping may take.
	restTime = time.Second
	pingTime = 2 * time.Second
)

// errSilent says that a connection seems to be half open: the machine at its other end lost power, or something in
// between dropped the connection without telling either end.
var errSilent = errors.New("the database says nothing")

// quietConn is a connection to PostgreSQL that bounds how long a read or a write may make no progress. TCP alone would
// wait for a quarter of an hour, or for ever where something between the two ends still answers.
type quietConn struct {
	net.Conn

	mu    sync.Mutex
	limit time.Duration
	until time.Time // the deadline that pgx has set
	heard time.Time // when something was read last
}

// quietDial makes the connections of a configuration quietConns.
func quietDial(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &quietConn{Conn: conn, limit: statementTime + answerTime}, nil
	}
}

// quietOptions bound the time of statements on the connections of quietDial, at both ends, and ping those that have
// rested before they are used again.
func quietOptions() []stdlib.OptionOpenDB {
	return []stdlib.OptionOpenDB{
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			var limit int64 // in ms
			// The server has to end a transaction whose client is gone: it holds locks.
			err := conn.QueryRow(ctx, `SELECT
					(extract(epoch FROM set_config('statement_timeout', wanted, false)::interval) * 1000)::bigint,
					set_config('idle_in_transaction_session_timeout', wanted, false)
				FROM (SELECT CASE setting WHEN '0' THEN $1 ELSE setting || 'ms' END AS wanted
					FROM pg_settings WHERE name = 'statement_timeout') AS t`,
				fmt.Sprintf("%dms", statementTime.Milliseconds()),
			).Scan(&limit, nil)
			if err != nil {
				return fmt.Errorf("bounding statements: %w", err)
			}
			if c := quietConnOf(conn); c != nil {
				c.mu.Lock()
				c.limit = time.Duration(limit)*time.Millisecond + answerTime
				c.mu.Unlock()
			}
			return nil
		}),
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }), // see below
		stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
			if c := quietConnOf(conn); c != nil && !c.rested() {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, pingTime)
			defer cancel()
			if conn.Ping(ctx) != nil {
				return driver.ErrBadConn
			}
			return nil
		}),
	}
}

// quietConnOf returns the connection below conn, beneath TLS too.
func quietConnOf(conn *pgx.Conn) *quietConn {
	below := conn.PgConn().Conn()
	if secure, ok := below.(interface{ NetConn() net.Conn }); ok {
		below = secure.NetConn()
	}
	c, _ := below.(*quietConn)
	return c
}

// rested reports whether nothing was read for longer than restTime.
func (c *quietConn) rested() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.heard) > restTime
}

// Read is that of [net.Conn].
func (c *quietConn) Read(p []byte) (int, error) {
	ours, err := c.bound(c.SetReadDeadline)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.heard = time.Now()
		c.mu.Unlock()
	}
	return n, silent(err, ours)
}

// Write is that of [net.Conn].
func (c *quietConn) Write(p []byte) (int, error) {
	ours, err := c.bound(c.SetWriteDeadline)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	return n, silent(err, ours)
}

// bound sets the deadline of the next read or write, and returns it if it is ours and not that of pgx.
func (c *quietConn) bound(set func(time.Time) error) (ours time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ours = time.Now().Add(c.limit)
	if !c.until.IsZero() && c.until.Before(ours) {
		return time.Time{}, set(c.until)
	}
	return ours, set(ours)
}

// silent returns err, or [errSilent] if the deadline that passed is ours. errSilent is no timeout in the sense of
// [net.Error], because pgx goes on using a connection after a timeout.
func silent(err error, ours time.Time) error {
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() && !ours.IsZero() && !time.Now().Before(ours) {
		return errSilent
	}
	return err
}

// SetDeadline is that of [net.Conn].
func (c *quietConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetDeadline(t)
}
