package store

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"time"
)

// oldRows says which rows of what was published and read have expired.
type oldRows struct {
	keep  time.Duration // how long they are kept; zero or less: for ever
	which string        // a query for their keys, up to $1, without a limit
	drop  string        // before the keys of those that go, in brackets
	count func(*PruneReport) *int
}

// old lists what expires besides answers and what was recorded.
func (r *Retention) old() []oldRows {
	return []oldRows{
		{
			r.Manifests, "SELECT path FROM publications WHERE state = '" + stateBuilt + "' AND due < $1",
			// The digest stays, so that nothing else is ever served there.
			"UPDATE publications SET state = '" + stateExpired + "', signed = '', salt = '' WHERE path IN ",
			func(p *PruneReport) *int { return &p.Manifests },
		},
		{
			r.Copies, "SELECT hash FROM copies WHERE seen < $1",
			"DELETE FROM copies WHERE seen < $1 AND hash IN ", // said twice: it may be seen while we wait for its row
			func(p *PruneReport) *int { return &p.Copies },
		},
		{
			rememberedFor, "SELECT key FROM memory WHERE kind IN " + remembered + " AND at < $1",
			"DELETE FROM memory WHERE kind IN " + remembered + " AND at < $1 AND key IN ", nil,
		},
	}
}

// pruneRead removes what has expired of what was published and read.
func (s *Store) pruneRead(ctx context.Context, r *Retention, now time.Time, done func(PruneReport)) error {
	if r.Copies > 0 {
		if err := s.pruneVersions(ctx, micros(now.Add(-r.Copies)), done); err != nil {
			return err
		}
	}
	if err := s.pruneMemory(ctx); err != nil {
		return err
	}
	for _, old := range r.old() {
		for old.keep > 0 {
			var n int64
			err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
				result, err := tx.ExecContext(
					ctx, old.drop+"("+old.which+" LIMIT $2)",
					micros(now.Add(-old.keep)),
					pruneBatch,
				)
				if err == nil {
					n, err = result.RowsAffected()
				}
				return err
			})
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			if old.count != nil {
				var removed PruneReport
				*old.count(&removed) = int(n)
				done(removed)
			}
		}
	}
	return nil
}

// versionCited holds for versions of sources that a pin is of.
const versionCited = "EXISTS (SELECT 1 FROM pins WHERE pins.tenant = versions.tenant AND pins.url = versions.url)"

// pruneVersions removes what is known of versions that were seen last before then, but for what is cited.
func (s *Store) pruneVersions(ctx context.Context, before int64, done func(PruneReport)) error {
	seen, last := int64(math.MinInt64), int64(0) // of the one looked at last: those that stay are looked at once
	for read := pruneBatch; read == pruneBatch; {
		var removed, at, n int64
		err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
			read, removed = 0, 0
			c := conditions{where: []string{"last_seen < $1"}, args: []any{before}}
			var old []int64
			cited := false
			err := each(ctx, tx, func(rows *sql.Rows) error {
				err := rows.Scan(&at, &n, &cited)
				if read++; !cited {
					old = append(old, n)
				}
				return err
			}, "SELECT last_seen, n, "+versionCited+" FROM versions WHERE last_seen < $1 AND (last_seen, n) > ($2, $3) ORDER BY last_seen, n LIMIT $4", before, seen, last, pruneBatch)
			if err != nil || len(old) == 0 {
				return err
			}
			c.in("n", old)
			result, err := tx.ExecContext(ctx, "DELETE FROM versions WHERE "+strings.Join(c.where, " AND "), c.args...)
			if err == nil {
				removed, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return err
		}
		seen, last = at, n
		if removed > 0 {
			done(PruneReport{Versions: int(removed)})
		}
	}
	return nil
}

// pruneMemory removes the oldest of what verifiers remember where that is too much.
func (s *Store) pruneMemory(ctx context.Context) error {
	over := map[[2]string]int{}
	err := each(ctx, s.db, func(rows *sql.Rows) error {
		var tenant, kind string
		var n int
		err := rows.Scan(&tenant, &kind, &n)
		over[[2]string{tenant, kind}] = n - MaxOfKind
		return err
	}, "SELECT tenant, kind, count(*) FROM memory GROUP BY tenant, kind HAVING count(*) > $1", MaxOfKind)
	for of, n := range over {
		for ; err == nil && n > 0; n -= pruneBatch {
			err = s.update(ctx, func(ctx context.Context, tx *transaction) error {
				_, err := tx.ExecContext(ctx, "DELETE FROM memory WHERE tenant = $1 AND kind = $2 AND key IN "+
					"(SELECT key FROM memory WHERE tenant = $1 AND kind = $2 ORDER BY at, key LIMIT $3)", of[0], of[1], min(n, pruneBatch))
				return err
			})
		}
	}
	return err
}

// prunableRead counts what pruneRead would remove.
func (s *Store) prunableRead(ctx context.Context, r *Retention, now time.Time, report *PruneReport) error {
	if r.Copies > 0 {
		err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM versions WHERE last_seen < $1 AND NOT "+versionCited, micros(now.Add(-r.Copies))).
			Scan(&report.Versions)
		if err != nil {
			return err
		}
	}
	for _, old := range r.old() {
		if old.keep <= 0 || old.count == nil {
			continue
		}
		if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM ("+old.which+") AS old", micros(now.Add(-old.keep))).
			Scan(old.count(report)); err != nil {
			return err
		}
	}
	return nil
}
