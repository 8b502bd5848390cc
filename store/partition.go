package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// PostgreSQL partitions calls by answer_id. The ids that a gateway makes are "ans_" and a UUID version 7, which begins
// with the time: its first four digits count spans of 2³² ms, some seven weeks. Each span is a partition, calls_019a
// for ans_019a…. Ids without a time, and those of a span without a partition, are in calls_other. Statements name only
// calls; PostgreSQL finds the partition for an answer_id.

// spanBits is the binary logarithm of a span's length in milliseconds.
const spanBits = 32

// otherCalls is the default partition, for ids outside of all spans.
const otherCalls = "calls_other"

// gonePrefix begins the name of a detached partition whose derived rows are still to be removed.
const gonePrefix = "gone_"

// partitionLock is the key of the advisory lock held while partitions are created or removed: "ibip".
const partitionLock = 0x69626970

// partitionWait is how long a change of partitions waits for statements that use calls; new ones queue behind it. It
// exceeds deadlock_timeout, one second, after which autovacuum yields.
const partitionWait = "3s"

// partitionRetry is the delay before creating partitions is retried.
const partitionRetry = time.Minute

func spanOf(t time.Time) int64 { return t.UnixMilli() >> spanBits }

func partitionOf(span int64) string { return fmt.Sprintf("calls_%04x", span) }

// partition creates the partitions of the current span and of the next one. The latter exists seven weeks before it is
// needed, so that a failure, which is logged, leaves time to retry. Answers of a span that has no partition go to
// calls_other and stay there.
func (s *Store) partition(ctx context.Context) {
	if !s.postgres {
		return
	}
	now, due := s.now(), s.partitioned.Load()
	if now.UnixMilli() < due || !s.partitioned.CompareAndSwap(due, now.Add(partitionRetry).UnixMilli()) {
		return
	}
	next := (spanOf(now) + 1) << spanBits
	for span := spanOf(now); span <= spanOf(now)+1; span++ {
		err := s.makePartition(ctx, span)
		if err == nil {
			continue
		}
		s.logger.LogAttrs(
			ctx, slog.LevelWarn, "a partition of calls could not be created; its answers are kept in "+otherCalls,
			slog.String("partition", partitionOf(span)), slog.Any("error", err),
		)
		if !hasState(err, "23514") { // check_violation: such answers are in calls_other already
			return
		}
	}
	s.partitioned.CompareAndSwap(now.Add(partitionRetry).UnixMilli(), next)
}

// makePartition creates the partition of a span unless it exists. It does not use [Store.update], which waits until the
// store is set up: creating partitions may be part of that.
func (s *Store) makePartition(ctx context.Context, span int64) error {
	name := partitionOf(span)
	found, err := newDialect(true).hasTable(ctx, s.db.DB, name)
	if found || err != nil {
		return err
	}
	return s.inOneTransaction(
		ctx,
		"SET LOCAL lock_timeout = '"+partitionWait+"'",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", partitionLock),
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s PARTITION OF calls FOR VALUES FROM ('ans_%04x') TO ('ans_%04x')",
			name, span, span+1),
		countTerms(name),
	)
}

// inOneTransaction executes statements in PostgreSQL, all or none.
func (s *Store) inOneTransaction(ctx context.Context, statements ...string) error {
	tx, err := s.db.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// countTerms returns the statement that makes PostgreSQL record the frequencies of ten times as many terms as by
// default. It assumes all others to be half as frequent as the rarest recorded one: with millions of answers, frequent
// enough to look for a rare word by scanning answers, newest first, instead of using the index.
func countTerms(table string) string {
	return "ALTER TABLE " + table + " ALTER terms SET STATISTICS 1000"
}

// analyze updates the planner's statistics of calls as a whole unless that was done within a day. Autovacuum analyzes
// partitions, but never the partitioned table.
func (s *Store) analyze(ctx context.Context) error {
	if !s.postgres {
		return nil
	}
	fresh, err := exists(ctx, s.db, "SELECT 1 FROM pg_stat_user_tables WHERE relid = 'calls'::regclass AND "+
		"last_analyze > now() - interval '1 day'")
	if err != nil || fresh {
		return err
	}
	if err := s.inOneTransaction(ctx, "SET LOCAL lock_timeout = '"+partitionWait+"'", countTerms("calls")); err != nil {
		return err
	}
	// This takes minutes with millions of answers, but blocks neither reads nor writes.
	return s.inOneTransaction(ctx, "SET LOCAL statement_timeout = 0", "ANALYZE calls")
}

// callTables lists the tables that hold answers, oldest first.
func (s *Store) callTables(ctx context.Context) ([]string, error) {
	if !s.postgres {
		return []string{"calls"}, nil
	}
	return collect(ctx, s.db, scanText, "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "+
		"WHERE inhparent = 'calls'::regclass ORDER BY relname")
}

// errKept aborts detaching a partition in which an answer is still to be kept.
var errKept = errors.New("an answer in it is kept")

// detach detaches a partition from calls if all of its answers have expired, and reports whether it did. If it cannot
// get the lock in time, the answers are removed one by one instead.
func (s *Store) detach(ctx context.Context, table string, r *Retention, now time.Time) (bool, error) {
	if table == otherCalls || table == "calls" || table >= partitionOf(spanOf(now)) { // gateways still make ids for it
		return false, nil
	}
	err := s.allExpired(ctx, s.db, table, r, now)
	if err == nil {
		err = s.update(ctx, func(tx *transaction) error {
			for _, statement := range []string{
				"SET LOCAL lock_timeout = '" + partitionWait + "'", "ALTER TABLE calls DETACH PARTITION " + table,
			} {
				if err := tx.exec(ctx, statement); err != nil {
					return err
				}
			}
			if err := s.allExpired(ctx, tx, table, r, now); err != nil { // nobody else can write to it now
				return err
			}
			return tx.exec(ctx, "ALTER TABLE "+table+" RENAME TO "+gonePrefix+table)
		})
	}
	// lock_not_available; or another node did it: object_not_in_prerequisite_state or undefined_table
	if errors.Is(err, errKept) || hasState(err, "55P03", "55000") || isNoTable(err) {
		return false, nil
	}
	return err == nil, err
}

// allExpired returns errKept if a table has an answer that has not expired.
func (s *Store) allExpired(ctx context.Context, q querier, table string, r *Retention, now time.Time) error {
	list, err := expiries(ctx, q, table, r, now)
	for i := 0; i < len(list) && err == nil; i++ {
		var kept bool
		kept, err = exists(
			ctx, q, "SELECT 1 FROM "+table+" WHERE provider = $1 AND started >= $2 LIMIT 1",
			list[i].provider, list[i].before,
		)
		if kept {
			err = errKept
		}
	}
	return err
}

// removeDetached removes what was derived from the answers of detached partitions, in small transactions, and then the
// partitions. If it is interrupted, it resumes from a mark. One node does it at a time.
func (s *Store) removeDetached(ctx context.Context, done func(PruneReport)) error {
	if !s.postgres {
		return nil
	}
	for {
		var removed PruneReport
		more := false
		err := s.update(ctx, func(tx *transaction) (err error) {
			removed, more, err = tx.removeDetached(ctx)
			return err
		})
		if err != nil || !more {
			return err
		}
		done(removed)
	}
}

// removeDetached removes a batch of the first such partition and reports whether there may be more to do.
func (tx *transaction) removeDetached(ctx context.Context) (removed PruneReport, more bool, err error) {
	if err := each(ctx, tx, into(&more), "SELECT pg_try_advisory_xact_lock($1)", partitionLock); err != nil || !more {
		return removed, false, err
	}
	gone, err := collect(ctx, tx, scanText, "SELECT relname FROM pg_class WHERE relkind = 'r' AND "+
		"starts_with(relname, $1) AND pg_table_is_visible(oid) ORDER BY relname", gonePrefix+"calls_")
	if err != nil || len(gone) == 0 {
		return removed, false, err
	}
	removed, last, err := tx.removeAnswers(ctx, "SELECT "+removedColumns+" FROM "+gone[0]+
		" WHERE n > COALESCE((SELECT value FROM marks WHERE name = $1), 0) ORDER BY n LIMIT $2", gone[0], pruneBatch)
	if err != nil {
		return removed, false, err
	}
	if removed.Answers > 0 {
		return removed, true, tx.execAll(ctx, tx.insertion(
			"marks", "name, value", " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		), [][]any{{gone[0], last}})
	}
	if err := tx.exec(ctx, "DELETE FROM marks WHERE name = $1", gone[0]); err != nil {
		return removed, false, err
	}
	return removed, true, tx.exec(ctx, "DROP TABLE "+gone[0])
}

// isNoTable reports whether a table does not exist, such as a partition that another node has just detached.
func isNoTable(err error) bool { return hasState(err, "42P01") }

// scanText reads a row of one text column, for [collect].
func scanText(rows *sql.Rows, text *string) error { return rows.Scan(text) }
