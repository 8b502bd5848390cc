package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The index of terms in SQLite is an FTS5 table without content: of each answer it has the terms, in their order, under
// the answer's number. Terms are cut by us (see tokenizer), so FTS5 only splits at spaces, and both engines find the
// same. An answer that changes gets a new number. What is deleted is marked, and leaves the index when FTS5 merges what
// it stands in, or with [Store.Reindex].

// searchPage is how many answers are looked up in the index at a time.
const searchPage = 256

// termText returns the terms of an answer as FTS5 takes them.
func termText(c *Call) string {
	seen := map[string]bool{}
	var b strings.Builder
	var t tokenizer
	t.eachTerm(c, func(term []byte) bool {
		b.Write(term)
		b.WriteByte(' ')
		if seen[string(term)] {
			return false
		}
		seen[string(term)] = true
		return true
	})
	return b.String()
}

// index adds answers that were stored just now to the index.
func (tx *transaction) index(ctx context.Context, rows []*row) error {
	if tx.postgres { // there the terms are a column
		return nil
	}
	values := make([][]any, 0, len(rows))
	for _, r := range rows {
		values = append(values, []any{r.n, termText(r.Call)})
	}
	return tx.changeIndex(ctx, &tuples{before: "INSERT INTO words (rowid, terms) VALUES ", row: "($, $)"}, values)
}

// unindex takes deleted answers out of the index.
func (tx *transaction) unindex(ctx context.Context, ns []int64) error {
	if tx.postgres {
		return nil
	}
	values := make([][]any, 0, len(ns))
	for _, n := range ns {
		values = append(values, []any{n})
	}
	return tx.changeIndex(ctx, &tuples{before: "DELETE FROM words WHERE rowid IN (", row: "$", after: ")"}, values)
}

// changeIndex runs a statement that changes the index. One that is damaged stays as it is: searches say so, and no
// answer waits for it.
func (tx *transaction) changeIndex(ctx context.Context, t *tuples, rows [][]any) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT words"); err != nil {
		return err
	}
	err := tx.exec(ctx, t, rows)
	if err == nil { // else FTS5 would write, and find the damage, only with the commit
		_, err = tx.ExecContext(ctx, "INSERT INTO words (words) VALUES ('flush')")
	}
	if isCorrupt(err) {
		tx.logger.LogAttrs(ctx, slog.LevelError, "the index is damaged: it does not find new answers until it is made anew",
			slog.Any("error", err))
		_, err = tx.ExecContext(ctx, "ROLLBACK TO words")
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, "RELEASE words")
	}
	return err
}

// isCorrupt reports whether SQLite found the index damaged: as such, or because it has already what is new.
func isCorrupt(err error) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && (lite.Code()&0xff == sqlite3.SQLITE_CORRUPT || lite.Code()&0xff == sqlite3.SQLITE_CONSTRAINT)
}

// Reindex makes the index of SQLite anew from the answers that are stored: when it is damaged, or to remove what it
// still has of deleted ones at once. Nothing is written meanwhile. PostgreSQL does all this itself (REINDEX).
func (s *Store) Reindex(ctx context.Context) error {
	if s.postgres {
		return nil
	}
	if err := s.update(ctx, func(ctx context.Context, tx *transaction) error { return tx.reindex(ctx) }); err != nil {
		return fmt.Errorf("making the index anew: %w", err)
	}
	return nil
}

func (tx *transaction) reindex(ctx context.Context) error {
	for _, statement := range []string{"DROP TABLE IF EXISTS words", createWords} {
		if _, err := tx.querier.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for last := int64(-1); ; {
		var rows []*row
		err := each(ctx, tx, func(found *sql.Rows) error {
			var r row
			var encoded []byte
			err := found.Scan(&r.n, &encoded)
			last = r.n
			if err != nil {
				return err
			}
			if r.Call, err = DecodeCall(encoded); err == nil { // a damaged answer is found by nothing
				rows = append(rows, &r)
			}
			return nil
		}, "SELECT n, call FROM calls WHERE n > $1 ORDER BY n LIMIT $2", last, searchPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := tx.index(ctx, rows); err != nil {
			return err
		}
	}
}

// createWords makes the index; the migrations do too.
const createWords = `CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, tokenize='ascii')`

// searchIndex calls take with the numbers of answers before a number that have what is looked for, the newest first and
// some hundred at a time, until it reports that it has enough. It is for SQLite; q is a transaction, so that all of it
// is as of one moment.
func searchIndex(
	ctx context.Context, q querier, what termQuery, before int64, take func(ns []int64) (enough bool, err error),
) error {
	match := what.ftsQuery()
	for {
		var ns []int64
		err := each(ctx, q, func(rows *sql.Rows) error {
			err := rows.Scan(&before)
			ns = append(ns, before)
			return err
		}, "SELECT rowid FROM words WHERE words MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3", match, before, searchPage)
		if isCorrupt(err) {
			return fmt.Errorf("%w: %w", errIndex, err)
		}
		if err != nil || len(ns) == 0 {
			return err
		}
		if enough, err := take(ns); enough || err != nil || len(ns) < searchPage {
			return err
		}
	}
}

// ftsQuery returns what is looked for as FTS5 takes it. No character of a term means anything between quotes.
func (q termQuery) ftsQuery() string { return q.format(`"`, " OR ", " AND ", " *") }

// tsquery returns what is looked for as PostgreSQL takes it.
func (q termQuery) tsquery() string { return q.format("'", " | ", " & ", ":*") }

// format writes a query with an engine's quotes, words for or and and, and mark for the beginning of a term.
func (q termQuery) format(quote, or, and, prefix string) string {
	var b strings.Builder
	for i, list := range q {
		if i > 0 {
			b.WriteString(and)
		}
		for k, term := range list {
			if k == 0 {
				b.WriteByte('(')
			} else {
				b.WriteString(or)
			}
			b.WriteString(quote + term.text + quote)
			if term.prefix {
				b.WriteString(prefix)
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}
