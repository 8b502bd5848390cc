package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// pruneBatch is how many answers are removed in one transaction.
const pruneBatch = 256

// Retention says how long answers are kept. A duration of zero or less means for ever.
type Retention struct {
	Default    time.Duration            // of providers that are not in ByProvider
	ByProvider map[string]time.Duration // by ibid.Answer.Provider; by the upstream's name where the answer says none
	Now        time.Time                // zero: now
	DryRun     bool                     // count, and remove nothing
	Progress   func(PruneReport)        // called after each batch with what has been removed so far; nil: not
}

// PruneReport says what was removed.
type PruneReport struct {
	Answers       int
	Conversations int // that have no answer any more
	Runs          int // likewise, with their events
	Events        int
}

func (r *PruneReport) add(more PruneReport) {
	r.Answers += more.Answers
	r.Conversations += more.Conversations
	r.Runs += more.Runs
	r.Events += more.Events
}

// expiry says which answers of a provider have expired.
type expiry struct {
	provider string
	before   int64
}

// Prune removes the answers that are older than r says, in small transactions, so that nobody waits long for it. Events that
// were not handed on yet are kept, and so is their run. What was removed before an error stays removed and is in the report.
func (s *Store) Prune(ctx context.Context, r *Retention) (PruneReport, error) {
	var report PruneReport
	expiries, err := s.expiries(ctx, r)
	switch {
	case err != nil:
	case r.DryRun:
		report, err = s.prunable(ctx, expiries)
	default:
		err = s.prune(ctx, expiries, func(more PruneReport) {
			report.add(more)
			if r.Progress != nil {
				r.Progress(report)
			}
		})
	}
	if err != nil {
		return report, fmt.Errorf("pruning answers: %w", err)
	}
	return report, nil
}

// expiries says for each provider there is from when on its answers are kept.
func (s *Store) expiries(ctx context.Context, r *Retention) ([]expiry, error) {
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
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
		err := each(ctx, s.db, func(rows *sql.Rows) error { found = true; return rows.Scan(&provider) }, query, provider)
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

func (s *Store) prune(ctx context.Context, expiries []expiry, done func(PruneReport)) error {
	lock := ""
	if s.postgres {
		lock = " FOR UPDATE SKIP LOCKED" // whoever prunes at the same time takes others
	}
	for _, e := range expiries {
		for {
			var removed PruneReport
			err := s.update(ctx, func(ctx context.Context, tx *transaction) (err error) {
				removed, err = tx.remove(ctx, "n IN (SELECT n FROM calls WHERE provider = $1 AND started < $2 ORDER BY started LIMIT $3"+lock+")",
					e.provider, e.before, pruneBatch)
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

// prunable counts what prune would remove.
func (s *Store) prunable(ctx context.Context, expiries []expiry) (PruneReport, error) {
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
	relayed := " AND NOT EXISTS (SELECT 1 FROM events WHERE events.tenant = t.tenant AND events.run = t.id AND events.relayed = 0)"
	for _, c := range []struct {
		query string
		count *int
	}{
		{"SELECT count(*) FROM calls WHERE " + expired, &report.Answers},
		{"SELECT count(*) FROM conversations t WHERE" + empty("conversation"), &report.Conversations},
		{"SELECT count(*) FROM runs t WHERE" + empty("run") + relayed, &report.Runs},
		{"SELECT count(*) FROM events e JOIN runs t ON e.tenant = t.tenant AND e.run = t.id WHERE" + empty("run") + relayed, &report.Events},
	} {
		if err := s.db.QueryRowContext(ctx, c.query, args...).Scan(c.count); err != nil {
			return report, err
		}
	}
	return report, nil
}
