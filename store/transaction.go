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

	"github.com/ibidhq/ibid/internal/sqlite"
)

// errClosed is returned after Close.
var errClosed = errors.New("the store is closed")

// querier runs statements: a pool, a transaction of PostgreSQL, or the one connection that writes to SQLite.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// transaction is a running transaction. Its changes are made all or none.
type transaction struct {
	querier
	engine
	logger *slog.Logger
	events []Event // added so far
}

// engine holds the kind of database and the clock.
type engine struct {
	postgres bool
	now      func() time.Time // Options.Now
	// committed is Options.Committed.
	committed func([]Event)
}

// ifPostgres returns a part of a statement that SQLite, where only one transaction writes at a time, does not need.
func (e engine) ifPostgres(clause string) string {
	if e.postgres {
		return clause
	}
	return ""
}

// forUpdate ends a query for rows to be changed.
func (e engine) forUpdate() string { return e.ifPostgres(" FOR UPDATE") }

// skipLocked ends a query for rows to be changed that skips those locked by others.
func (e engine) skipLocked() string { return e.ifPostgres(" FOR UPDATE SKIP LOCKED") }

// insertion returns a statement that adds rows, with a clause after them. Any error ends the transaction, which saves
// SQLite from keeping what it would need to undo only the statement.
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

// maxAttempts is how often a transaction is tried that conflicts with others.
const maxAttempts = 5

// update runs do in a transaction. If PostgreSQL aborts it because of a conflict, do runs again.
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
	t := &transaction{querier: tx, engine: s.engine, logger: s.logger}
	if err := do(t); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	t.tell()
	return nil
}

// tell hands the events of a committed transaction on.
func (tx *transaction) tell() {
	if tx.committed != nil && len(tx.events) > 0 {
		tx.committed(tx.events)
	}
}

func (s *Store) updateSQLite(ctx context.Context, do func(*transaction) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.writer == nil {
		return errClosed
	}
	if err := s.file.begin(ctx); err != nil {
		s.saveDeleted(ctx)
		return err
	}
	tx := &transaction{querier: s.writer, engine: s.engine, logger: s.logger}
	defer s.file.end()
	err := s.begin(ctx)
	if err == nil {
		err = do(tx)
	}
	if err == nil {
		if _, err = s.writer.ExecContext(ctx, "COMMIT"); err == nil {
			_ = s.file.recordWrite(ctx, nil)
			// What was written to a file deleted meanwhile is lost.
			if err = s.file.check(ctx); err == nil {
				tx.tell()
			}
			return err
		}
	}
	err = s.file.recordWrite(ctx, err)
	// An error that ended the transaction by itself, such as a full disk, makes this fail harmlessly. If ctx ended
	// during BEGIN, the transaction may have begun.
	_, _ = s.writer.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// begin begins a SQLite transaction. While another process writes, SQLite waits for lockWait at a time without checking
// ctx.
func (s *Store) begin(ctx context.Context) error {
	begun := time.Now()
	s.writer.pace.begun = begun
	for {
		_, err := s.writer.ExecContext(ctx, "BEGIN IMMEDIATE")
		if !sqlite.IsBusy(err) || ctx.Err() != nil || time.Since(begun) >= s.wait {
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

// pacer pauses the long work of storing many answers, as SQLite runs in this process. On a machine with one core, Go
// polls the network only when nothing else is runnable, or after 10 ms: calls passing through would wait that long at
// each of their steps.
type pacer struct{ begun time.Time }

const (
	maxWork   = time.Millisecond      // of work without a pause
	pauseTime = 50 * time.Microsecond // other goroutines go first, however long they take
)

func (p *pacer) pause() {
	if time.Since(p.begun) > maxWork {
		time.Sleep(pauseTime) //nolint:forbidigo // yields to other goroutines
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

// ExecContext is like that of [sql.Conn].
func (p *preparer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	p.pace.pause()
	s, err := p.prepare(ctx, query) //nolint:sqlclosecheck // closed by close
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// QueryContext is like that of [sql.Conn].
func (p *preparer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, query) //nolint:sqlclosecheck // closed by close
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

// rowsOf converts a list to rows for [transaction.execAll] or [transaction.list].
func rowsOf[T any](list []T, row func(T) []any) [][]any {
	rows := make([][]any, len(list))
	for i, item := range list {
		rows[i] = row(item)
	}
	return rows
}

// maxTuples is how many rows one statement has at most, and maxTuplesLite the limit for SQLite, so that it does not run
// long: see [pacer]. Rows are split into powers of two, so that there are few statements to prepare. PostgreSQL accepts
// 65,535 parameters, SQLite 32,766.
const maxTuples, maxTuplesLite = 64, 16

// text returns the statement for n rows. SQLite's parameters are unnamed, because its driver would search for each
// name.
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

// split calls do with the statement and the arguments for successive parts of rows.
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

// list runs t for all rows and calls scan for each row returned.
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

// claimDue returns up to limit of the rows that a query selects as due, and claims each for the caller. The query ends
// with the sort order.
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

// collect runs a query and returns the items that scan reads from its rows; nil on error.
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

// readOne returns the item that scan reads from the first row of a query, or [ErrNotFound].
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

// find reads the row of a query into dest, unless dest is nil, and reports whether there is one. Of several rows the
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

// into returns a function for [each] that reads the columns of a row into dest, which is unchanged if there is none.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// decode decodes the JSON of a row; what describes it in the error.
func decode(text []byte, v any, what string) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %s: %w", errDamaged, what, err)
	}
	return nil
}

// each runs a query and calls scan, which must not run queries itself, for each row.
func each(ctx context.Context, q querier, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	if p, ok := q.(*pool); ok {
		release, err := p.shares.acquire(ctx)
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
