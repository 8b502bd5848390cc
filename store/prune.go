package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pruneBatch is how many answers, or records of runs, are removed in one transaction.
const pruneBatch = 256

// Retention says how long answers, and what was recorded of runs, are kept. A duration of zero or less means for ever.
type Retention struct {
	Default    time.Duration            // of what was recorded of runs, and of providers that are not in ByProvider
	ByProvider map[string]time.Duration // by ibid.Answer.Provider; by the upstream's name where the answer says none
	// of octets of sources, from when they were read last; of what is known of a version nobody cites, too
	Copies time.Duration
	// of manifests, from when they were published. Those of deleted answers stay as long
	Manifests time.Duration
	Now       time.Time         // zero: now
	DryRun    bool              // count, and remove nothing
	Progress  func(PruneReport) // called after each batch with what has been removed so far; nil: not
}

// PruneReport says what was removed.
type PruneReport struct {
	Answers       int
	Conversations int // that have no answer any more
	Runs          int // likewise, and nothing recorded, with their events
	Events        int
	Steps         int // that were recorded
	Manifests     int
	Copies        int // octets of sources
	Versions      int // of sources
}

func (r *PruneReport) add(more PruneReport) {
	r.Answers += more.Answers
	r.Conversations += more.Conversations
	r.Runs += more.Runs
	r.Events += more.Events
	r.Steps += more.Steps
	r.Manifests += more.Manifests
	r.Copies += more.Copies
	r.Versions += more.Versions
}

// expiry says which answers of a provider have expired.
type expiry struct {
	provider string
	before   int64
}

// Prune removes the answers that are older than r says, and what was recorded of runs to which nothing was added for so
// long, in small transactions, so that nobody waits long for it. An answer goes by its provider's retention also where
// its run was recorded. Events that were not handed on yet are kept, and so is their run. What was removed before an
// error stays removed and is in the report.
func (s *Store) Prune(ctx context.Context, r *Retention) (PruneReport, error) {
	var report PruneReport
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
	var touched int64 // what was recorded before goes
	if r.Default > 0 {
		touched = micros(now.Add(-r.Default))
	}
	expiries, err := s.expiries(ctx, r, now)
	switch {
	case err != nil:
	case r.DryRun:
		if report, err = s.prunable(ctx, expiries, touched); err == nil {
			err = s.prunableRead(ctx, r, now, &report)
		}
	default:
		done := func(more PruneReport) {
			report.add(more)
			if r.Progress != nil {
				r.Progress(report)
			}
		}
		if err = s.prune(ctx, expiries, touched, done); err == nil {
			err = s.pruneRead(ctx, r, now, done)
		}
	}
	if err != nil {
		return report, fmt.Errorf("pruning answers: %w", err)
	}
	return report, nil
}

// expiries says for each provider there is from when on its answers are kept.
func (s *Store) expiries(ctx context.Context, r *Retention, now time.Time) ([]expiry, error) {
	keep := make(map[string]time.Duration, len(r.ByProvider))
	for provider, duration := range r.ByProvider {
		keep[lookup(provider)] = duration
	}
	var list []expiry
	provider, found := "", true
	for first := true; ; first = false {
		// From one to the next: DISTINCT would look at every row.
		query := "SELECT provider FROM calls WHERE provider > $1 ORDER BY provider LIMIT 1"
		if first {
			query = strings.Replace(query, ">", ">=", 1)
		}
		found = false
		err := each(
			ctx, s.db,
			func(rows *sql.Rows) error { found = true; return rows.Scan(&provider) },
			query, provider,
		)
		if err != nil || !found {
			return list, err
		}
		duration, said := keep[provider]
		if !said {
			duration = r.Default
		}
		if duration > 0 {
			list = append(list, expiry{provider, micros(now.Add(-duration))})
		}
	}
}

func (s *Store) prune(ctx context.Context, expiries []expiry, touched int64, done func(PruneReport)) error {
	lock := ""
	if s.postgres {
		lock = " FOR UPDATE SKIP LOCKED" // whoever prunes at the same time takes others
	}
	for _, e := range expiries {
		for {
			var removed PruneReport
			err := s.update(ctx, func(ctx context.Context, tx *transaction) (err error) {
				removed, err = tx.remove(
					ctx,
					"n IN (SELECT n FROM calls WHERE provider = $1 AND started < $2 ORDER BY started LIMIT $3"+lock+")",
					e.provider, e.before, pruneBatch,
				)
				return err
			})
			if err != nil {
				return err
			}
			if removed.Answers == 0 {
				break
			}
			done(removed)
		}
	}
	for more := true; more; {
		var removed PruneReport
		err := s.update(ctx, func(ctx context.Context, tx *transaction) (err error) {
			removed = PruneReport{}
			more, err = tx.removeRecords(ctx, touched, lock, &removed)
			return err
		})
		if err != nil {
			return err
		}
		if removed != (PruneReport{}) {
			done(removed)
		}
	}
	var removed PruneReport
	// Runs whose last event was not handed on when their last answer went.
	if err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		removed = PruneReport{}
		return tx.removeEmpty(ctx, &removed)
	}); err != nil {
		return err
	}
	if removed != (PruneReport{}) {
		done(removed)
	}
	return nil
}

// removeRecords removes some of what was recorded of runs that nobody has touched since then, and reports whether there
// may be more.
func (tx *transaction) removeRecords(
	ctx context.Context, touched int64, lock string, report *PruneReport,
) (more bool, err error) {
	var runs []tenantID
	err = each(ctx, tx, func(rows *sql.Rows) error {
		var t tenantID
		err := rows.Scan(&t.tenant, &t.id)
		runs = append(runs, t)
		return err
	}, "SELECT tenant, id FROM runs WHERE recorded > 0 AND touched < $1 ORDER BY touched, tenant, id LIMIT $2"+lock, touched, pruneBatch)
	if err == nil {
		err = tx.endClaims(ctx, runs)
	}
	if err != nil || len(runs) == 0 {
		return false, err
	}
	left := pruneBatch
	for _, t := range runs {
		removed, err := tx.removeRecordsOf(ctx, t, left, report)
		if err != nil {
			return false, err
		}
		if left -= removed; left <= 0 {
			break
		}
	}
	return true, tx.removeEmpty(ctx, report)
}

// removeRecordsOf removes what was recorded of a run, or so many of its records, and returns how many those were. What
// was said of the run itself goes last.
func (tx *transaction) removeRecordsOf(ctx context.Context, run tenantID, most int, report *PruneReport) (int, error) {
	records, size := 0, 0
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var id string
		var bytes int
		if err := rows.Scan(&id, &bytes); err != nil {
			return err
		}
		records++
		size += bytes
		if id != headID {
			report.Steps++
		}
		return nil
	}, "DELETE FROM records WHERE n IN (SELECT n FROM records WHERE tenant = $1 AND run = $2 ORDER BY CASE id WHEN '"+headID+"' THEN 1 ELSE 0 END, n DESC LIMIT $3) RETURNING id, octet_length(record)",
		run.tenant, run.id, most)
	if err != nil {
		return 0, err
	}
	set, args := "recorded = recorded - $3, size = size - $4", []any{run.tenant, run.id, records, size}
	if records < most { // that was all
		set, args = "recorded = 0, size = 0", args[:2]
	}
	_, err = tx.ExecContext(ctx, "UPDATE runs SET "+set+" WHERE tenant = $1 AND id = $2", args...)
	return records, err
}

// prunable counts what prune would remove.
func (s *Store) prunable(ctx context.Context, expiries []expiry, touched int64) (PruneReport, error) {
	var report PruneReport
	terms := append(make([]string, 0, len(expiries)+1), "1 = 0")
	var args []any
	for _, e := range expiries {
		args = append(args, e.provider, e.before)
		terms = append(terms, "(provider = $"+strconv.Itoa(len(args)-1)+" AND started < $"+strconv.Itoa(len(args))+")")
	}
	expired := "(" + strings.Join(terms, " OR ") + ")"
	empty := func(column string) string {
		return " NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = t.tenant AND calls." + column + " = t.id AND NOT " + expired + ")"
	}
	all := append(slices.Clip(args), touched)
	run := empty("run") + " AND (t.recorded <= 0 OR t.touched < $" + strconv.Itoa(len(all)) + ")" +
		" AND NOT EXISTS (SELECT 1 FROM events WHERE events.tenant = t.tenant AND events.run = t.id AND events.relayed = 0)"
	for _, c := range []struct {
		query string
		args  []any
		count *int
	}{
		{"SELECT count(*) FROM calls WHERE " + expired, args, &report.Answers},
		{"SELECT count(*) FROM conversations t WHERE" + empty("conversation"), args, &report.Conversations},
		{"SELECT count(*) FROM runs t WHERE" + run, all, &report.Runs},
		{"SELECT count(*) FROM events e JOIN runs t ON e.tenant = t.tenant AND e.run = t.id WHERE" + run, all, &report.Events},
		{
			"SELECT count(*) FROM records r JOIN runs t ON r.tenant = t.tenant AND r.run = t.id WHERE r.id <> '' AND t.recorded > 0 AND t.touched < $1",
			[]any{touched},
			&report.Steps,
		},
	} {
		if err := s.db.QueryRowContext(ctx, c.query, c.args...).Scan(c.count); err != nil {
			return report, err
		}
	}
	return report, nil
}
