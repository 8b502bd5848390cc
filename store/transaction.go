package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// errClosed is what a Store says after Close.
var errClosed = errors.New("the store is closed")

// querier runs statements: a transaction of PostgreSQL, or the one connection that writes to SQLite.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// transaction is a transaction under way. What is done through it is done wholly or not at all.
type transaction struct {
	querier
	engine
	logger *slog.Logger
}

// engine says which database it is, and what time.
type engine struct {
	postgres bool
	now      func() time.Time // Options.Now
}

// ifPostgres returns a part of a statement that SQLite does not need, where one transaction writes at a time.
func (e engine) ifPostgres(clause string) string {
	if e.postgres {
		return clause
	}
	return ""
}

// forUpdate ends a query for rows that are to be changed.
func (e engine) forUpdate() string { return e.ifPostgres(" FOR UPDATE") }

// skipLocked ends a query for rows that others may be busy with, who then have them.
func (e engine) skipLocked() string { return e.ifPostgres(" FOR UPDATE SKIP LOCKED") }

// insertion returns a statement that adds rows, with what follows them. Any error ends the transaction, so that SQLite
// need not keep what it would need to undo only the statement.
func (tx *transaction) insertion(table, columns, after string) *tuples {
	verb := "INSERT INTO "
	if !tx.postgres {
		verb = "INSERT OR ROLLBACK INTO "
	}
	return &tuples{
		before: verb + table + " (" + columns + ") VALUES ",
		row:    "($" + strings.Repeat(", $", strings.Count(columns, ",")) + ")",
		after:  after,
	}
}

// insert adds a row.
func (tx *transaction) insert(ctx context.Context, table, columns string, values ...any) error {
	return tx.execAll(ctx, tx.insertion(table, columns, ""), [][]any{values})
}

// maxAttempts is how often a transaction is tried that others are in the way of.
const maxAttempts = 5

// update runs do in a transaction. PostgreSQL may refuse one because of another at the same time: then do runs again.
func (s *Store) update(ctx context.Context, do func(*transaction) error) error {
	if !s.postgres {
		return s.updateSQLite(ctx, do)
	}
	for attempt := 1; ; attempt++ {
		err := s.updatePostgres(ctx, do)
		if !isConflict(err) || attempt == maxAttempts {
			return err
		}
	}
}

func (s *Store) updatePostgres(ctx context.Context, do func(*transaction) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(&transaction{tx, s.engine, s.logger}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *Store) updateSQLite(ctx context.Context, do func(*transaction) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.writer == nil {
		return errClosed
	}
	if err := s.file.check(ctx); err != nil {
		s.saveDeleted(ctx)
		return err
	}
	err := s.begin(ctx)
	if err == nil {
		err = do(&transaction{s.writer, s.engine, s.logger})
	}
	if err == nil {
		if _, err = s.writer.ExecContext(ctx, "COMMIT"); err == nil {
			_ = s.file.wrote(ctx, nil)
			return s.file.check(ctx) // what went to a file that was deleted meanwhile is not kept
		}
	}
	err = s.file.wrote(ctx, err)
	// An error that ended the transaction by itself, such as a full disk, makes this one fail: nothing is lost by that.
	// Where ctx ended while it began, it may have begun all the same.
	_, _ = s.writer.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// begin begins a transaction of SQLite's. While another process writes, SQLite waits for a moment at a time, and does
// not look at ctx meanwhile.
func (s *Store) begin(ctx context.Context) error {
	begun := time.Now()
	s.writer.pace.begun = begun
	for {
		_, err := s.writer.ExecContext(ctx, "BEGIN IMMEDIATE")
		if !isBusy(err) || ctx.Err() != nil || time.Since(begun) >= s.wait {
			return err
		}
	}
}

// preparer is a connection that prepares each statement once.
type preparer struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	pace       pacer
}

// pacer interrupts the long work of storing many answers: SQLite runs in this process. On a machine with one core Go
// looks for what came from the network only when nothing else wants to run, or after 10 ms: calls that pass through
// would wait as long, at each of their steps.
type pacer struct{ begun time.Time }

const (
	maxStretch = time.Millisecond      // of work without a pause
	breath     = 50 * time.Microsecond // what waits goes first, however long it takes
)

func (p *pacer) pause() {
	if time.Since(p.begun) > maxStretch {
		time.Sleep(breath) //nolint:forbidigo // no event is waited for: others go first
		p.begun = time.Now()
	}
}

func (p *preparer) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := p.statements[query]; s != nil {
		return s, nil
	}
	s, err := p.conn.PrepareContext(ctx, query)
	if err == nil {
		p.statements[query] = s
	}
	return s, err
}

// ExecContext is that of [sql.Conn].
func (p *preparer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	p.pace.pause()
	s, err := p.prepare(ctx, query) //nolint:sqlclosecheck // by close
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// QueryContext is that of [sql.Conn].
func (p *preparer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, query) //nolint:sqlclosecheck // by close
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p *preparer) close() error {
	var errs []error
	for _, s := range p.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, p.conn.Close())...)
}

// tuples is a statement over any number of rows: before, a list of tuples of parameters, after.
type tuples struct {
	before, after string
	row           string // the parameters of one row, as $: "($, $::jsonb)"
}

// rowsOf returns the rows for [transaction.execAll] or [transaction.list] that row makes of a list.
func rowsOf[T any](list []T, row func(T) []any) [][]any {
	rows := make([][]any, len(list))
	for i, item := range list {
		rows[i] = row(item)
	}
	return rows
}

// maxTuples is how many rows go into one statement, and maxTuplesLite how many into one of SQLite's, so that it does
// not run long: see [pacer]. They are split into powers of two, so that there are few statements to prepare. PostgreSQL
// takes 65,535 parameters, SQLite 32,766.
const maxTuples, maxTuplesLite = 64, 16

// text returns the statement for n rows. SQLite's parameters have no names: its driver would look for each of them.
func (t *tuples) text(n int, postgres bool) string {
	var b strings.Builder
	b.WriteString(t.before)
	param := 0
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, c := range []byte(t.row) {
			switch {
			case c != '$':
				b.WriteByte(c)
			case postgres:
				param++
				b.WriteString("$" + strconv.Itoa(param))
			default:
				b.WriteByte('?')
			}
		}
	}
	b.WriteString(t.after)
	return b.String()
}

// split calls do with the statement and the arguments for a part of rows, until all had their turn.
func (t *tuples) split(rows [][]any, postgres bool, do func(query string, args []any) error) error {
	for len(rows) > 0 {
		n := maxTuplesLite
		if postgres {
			n = maxTuples
		}
		for n > len(rows) {
			n /= 2
		}
		args := make([]any, 0, n*len(rows[0]))
		for _, row := range rows[:n] {
			args = append(args, row...)
		}
		if err := do(t.text(n, postgres), args); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// exec runs a statement.
func (tx *transaction) exec(ctx context.Context, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

// execAll runs t for all rows.
func (tx *transaction) execAll(ctx context.Context, t *tuples, rows [][]any) error {
	return t.split(rows, tx.postgres, func(query string, args []any) error {
		return tx.exec(ctx, query, args...)
	})
}

// list runs t for all rows and calls scan for each row of what it returns.
func (tx *transaction) list(ctx context.Context, t *tuples, rows [][]any, scan func(*sql.Rows) error) error {
	return t.split(
		rows, tx.postgres, func(query string, args []any) error { return each(ctx, tx, scan, query, args...) },
	)
}

// changed runs a statement and returns how many rows it changed.
func (tx *transaction) changed(ctx context.Context, query string, args ...any) (int, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// change runs one statement in a transaction and returns how many rows it changed.
func (s *Store) change(ctx context.Context, query string, args ...any) (n int, err error) {
	err = s.update(ctx, func(tx *transaction) (err error) {
		n, err = tx.changed(ctx, query, args...)
		return err
	})
	return n, err
}

// claimDue returns up to limit of the rows that a query finds due, which the end of it sorts, and has claim keep each
// from other callers.
func claimDue[T any](
	ctx context.Context, s *Store, limit int, query string, scan func(*sql.Rows, *T) error,
	claim func(*transaction, *T) error,
) (list []T, err error) {
	err = s.update(ctx, func(tx *transaction) (err error) {
		list, err = collect(ctx, tx, scan, query+" LIMIT $2"+tx.skipLocked(), micros(s.now()), limitOf(limit))
		for i := 0; i < len(list) && err == nil; i++ {
			err = claim(tx, &list[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// collect runs a query and returns what scan makes of each row; nil with an error.
func collect[T any](
	ctx context.Context, q querier, scan func(*sql.Rows, *T) error, query string, args ...any,
) ([]T, error) {
	var list []T
	err := each(ctx, q, func(rows *sql.Rows) error {
		var item T
		err := scan(rows, &item)
		list = append(list, item)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readOne returns what scan makes of the first row of a query; [ErrNotFound]: there is none.
func readOne[T any](
	ctx context.Context, q querier, scan func(*sql.Rows, *T) error, query string, args ...any,
) (*T, error) {
	list, err := collect(ctx, q, scan, query, args...)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// scanNumber reads a row of one number, for [collect].
func scanNumber(rows *sql.Rows, n *int64) error { return rows.Scan(n) }

// exists reports whether a query finds a row.
func exists(ctx context.Context, q querier, query string, args ...any) (bool, error) {
	return find(ctx, q, nil, query, args...)
}

// find reads the row of a query into dest, if dest is not nil, and reports whether there is one. Of several rows the
// last counts.
func find(ctx context.Context, q querier, dest []any, query string, args ...any) (found bool, err error) {
	err = each(ctx, q, func(rows *sql.Rows) error {
		if found = true; dest == nil {
			return nil
		}
		return rows.Scan(dest...)
	}, query, args...)
	return found, err
}

// into returns a function for [each] that reads the columns of a row into dest, which stays as it is without a row.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// decode reads the JSON of a row; what says which, for the error.
func decode(text []byte, v any, what string) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %s: %w", errDamaged, what, err)
	}
	return nil
}

// each runs a query and calls scan, which asks nothing itself, for each row of what it returns.
func each(ctx context.Context, q querier, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	if p, ok := q.(*pool); ok {
		release, err := p.shares.take(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
