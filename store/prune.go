package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pruneBatch is how many answers, or records of runs, are removed in one transaction.
const pruneBatch = 256

// Retention is how long answers and recorded runs are kept. A duration of zero or less means forever.
type Retention struct {
	Default    time.Duration            // for recorded runs, and for providers not in ByProvider
	ByProvider map[string]time.Duration // by ibid.Answer.Provider, or else by the upstream's name
	// for octets of sources, since they were last read; also for the metadata of versions that nothing cites
	Copies time.Duration
	// for manifests, since they were published, even if their answers are deleted
	Manifests time.Duration
	Now       time.Time         // zero means the current time
	DryRun    bool              // only count what would be removed
	Progress  func(PruneReport) // called after each batch with the totals so far; may be nil
}

// PruneReport counts what was removed.
type PruneReport struct {
	Answers       int
	Conversations int // that have no answers left
	Runs          int // that have no answers and records left, with their events
	Events        int
	Steps         int // recorded steps
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

// expiry is when the answers of a provider expire.
type expiry struct {
	provider string
	before   int64
}

// Prune removes the answers that are older than r allows, and the records of runs that did not change for that long, in
// small transactions, so that others need not wait long. An answer is subject to its provider's retention even if its
// run was recorded. Events that were not yet handed on are kept, and so are their runs. What was removed before an
// error stays removed; it is in the report, and in the audit log, which is written last. Once a day it also updates
// PostgreSQL's statistics of the partitioned table, which autovacuum never does.
func (s *Store) Prune(ctx context.Context, r *Retention) (report PruneReport, err error) {
	defer wrapResult(&err, "pruning answers")
	now := r.Now
	if now.IsZero() {
		now = s.now()
	}
	var touched int64 // records unchanged since then expire
	if r.Default > 0 {
		touched = micros(now.Add(-r.Default))
	}
	if r.DryRun {
		list, err := expiries(ctx, s.db, "calls", r, now)
		if err == nil {
			report, err = s.prunable(ctx, list, touched)
		}
		if err == nil {
			err = s.prunableRead(ctx, r, now, &report)
		}
		return report, err
	}
	done := func(more PruneReport) {
		if more == (PruneReport{}) {
			return
		}
		report.add(more)
		if r.Progress != nil {
			r.Progress(report)
		}
	}
	if err = s.pruneAnswers(ctx, r, now, done); err == nil {
		err = s.pruneRecords(ctx, touched, done)
	}
	if err == nil {
		err = s.pruneRead(ctx, r, now, done)
	}
	if err == nil {
		err = s.analyze(ctx)
	}
	if report != (PruneReport{}) {
		err = errors.Join(err, s.Audit(context.WithoutCancel(ctx), DefaultTenant, AuditEntry{
			Action: AuditPruned, Detail: fmt.Sprintf(
				"%d answers, %d recorded steps, %d manifests, %d copies, %d versions", report.Answers, report.Steps,
				report.Manifests, report.Copies, report.Versions),
		}))
	}
	return report, err
}

// neverExpires is before all times, in microseconds.
const neverExpires = int64(math.MinInt64)

// expiries returns when the answers of each provider in a table expire.
func expiries(ctx context.Context, q querier, table string, r *Retention, now time.Time) ([]expiry, error) {
	keep := make(map[string]time.Duration, len(r.ByProvider))
	for provider, duration := range r.ByProvider {
		keep[lookup(provider)] = duration
	}
	var list []expiry
	provider := ""
	for compare := ">="; ; compare = ">" {
		// From one provider to the next: DISTINCT would read every row.
		found, err := find(ctx, q, []any{&provider},
			"SELECT provider FROM "+table+" WHERE provider "+compare+" $1 ORDER BY provider LIMIT 1", provider)
		if err != nil || !found {
			return list, err
		}
		duration, ok := keep[provider]
		if !ok {
			duration = r.Default
		}
		before := neverExpires
		if duration > 0 {
			before = micros(now.Add(-duration))
		}
		list = append(list, expiry{provider, before})
	}
}

// pruneAnswers removes expired answers. A partition in which all have expired is removed as a whole.
func (s *Store) pruneAnswers(ctx context.Context, r *Retention, now time.Time, done func(PruneReport)) error {
	tables, err := s.callTables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		out, err := s.detach(ctx, table, r, now)
		if err == nil && !out {
			err = s.pruneRows(ctx, table, r, now, done)
		}
		if err != nil {
			return err
		}
	}
	return s.removeDetached(ctx, done)
}

// pruneRows removes the expired answers of a table in batches.
func (s *Store) pruneRows(
	ctx context.Context, table string, r *Retention, now time.Time, done func(PruneReport),
) error {
	list, err := expiries(ctx, s.db, table, r, now)
	if isNoTable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	query := "DELETE FROM " + table + " WHERE n IN (SELECT n FROM " + table +
		" WHERE provider = $1 AND started < $2 ORDER BY started LIMIT $3" +
		s.skipLocked() + // concurrent pruning takes others
		") RETURNING " + removedColumns
	for _, e := range list {
		for {
			var removed PruneReport
			err := s.update(ctx, func(tx *transaction) (err error) {
				removed, _, err = tx.removeAnswers(ctx, query, e.provider, e.before, pruneBatch)
				return err
			})
			if isNoTable(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if removed.Answers == 0 {
				break
			}
			done(removed)
		}
	}
	return nil
}

// pruneRecords removes expired records of runs, and the runs that are empty without them.
func (s *Store) pruneRecords(ctx context.Context, touched int64, done func(PruneReport)) error {
	lock := s.skipLocked()
	for more := true; more; {
		var removed PruneReport
		err := s.update(ctx, func(tx *transaction) (err error) {
			removed = PruneReport{}
			more, err = tx.removeRecords(ctx, touched, lock, &removed)
			return err
		})
		if err != nil {
			return err
		}
		done(removed)
	}
	var removed PruneReport
	// These are runs whose last event was not yet handed on when their last answer was removed.
	if err := s.update(ctx, func(tx *transaction) error {
		removed = PruneReport{}
		return tx.removeEmpty(ctx, &removed)
	}); err != nil {
		return err
	}
	done(removed)
	return nil
}

// removeRecords removes a batch of the records of runs unchanged since then, and reports whether there may be more.
func (tx *transaction) removeRecords(
	ctx context.Context, touched int64, lock string, report *PruneReport,
) (more bool, err error) {
	runs, err := tx.ids(
		ctx,
		"SELECT tenant, id FROM runs WHERE recorded > 0 AND touched < $1 ORDER BY touched, tenant, id LIMIT $2"+lock,
		touched, pruneBatch,
	)
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

// removeRecordsOf removes up to most of a run's records and returns how many it removed. The record of the run itself
// is removed last.
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
	}, "DELETE FROM records WHERE n IN (SELECT n FROM records WHERE tenant = $1 AND run = $2 ORDER BY CASE "+
		"id WHEN '"+headID+"' THEN 1 ELSE 0 END, n DESC LIMIT $3) RETURNING id, octet_length(record)",
		run.tenant, run.id, most)
	if err != nil {
		return 0, err
	}
	own := []tenantID{{run.tenant, runOwner(run.id)}}
	if _, err := tx.removeOf(ctx, own, "DELETE FROM pins WHERE tenant = $1 AND answer_id = $2"); err != nil {
		return 0, err
	}
	if err := tx.removeAlerts(ctx, own); err != nil {
		return 0, err
	}
	set, args := "recorded = recorded - $3, size = size - $4", []any{run.tenant, run.id, records, size}
	if records < most { // none are left
		set, args = "recorded = 0, size = 0", args[:2]
	}
	return records, tx.exec(ctx, "UPDATE runs SET "+set+" WHERE tenant = $1 AND id = $2", args...)
}

// prunable counts what would be pruned of answers and records.
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
		return " NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = t.tenant " +
			"AND calls." + column + " = t.id AND NOT " + expired + ")"
	}
	all := append(slices.Clip(args), touched)
	run := empty("run") + " AND (t.recorded <= 0 OR t.touched < $" + strconv.Itoa(len(all)) + ")" +
		" AND NOT EXISTS (SELECT 1 FROM events WHERE events.tenant = t.tenant AND events.run = t.id AND " +
		"events.relayed = 0)"
	for _, c := range []struct {
		query string
		args  []any
		count *int
	}{
		{"SELECT count(*) FROM calls WHERE " + expired, args, &report.Answers},
		{"SELECT count(*) FROM conversations t WHERE" + empty("conversation"), args, &report.Conversations},
		{"SELECT count(*) FROM runs t WHERE" + run, all, &report.Runs},
		{"SELECT count(*) FROM events e JOIN runs t ON e.tenant = t.tenant AND e.run = " +
			"t.id WHERE" + run, all, &report.Events},
		{
			"SELECT count(*) FROM records r JOIN runs t ON r.tenant = t.tenant AND r.run = t.id WHERE r.id <> " +
				"'' AND t.recorded > 0 AND t.touched < $1",
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

// oldRows describes how one kind of publication or copy expires.
type oldRows struct {
	keep  time.Duration // how long rows are kept; zero or less means forever
	which string        // a query for the keys of expired rows, up to $1, without a limit
	drop  string        // the statement before the list of keys to remove
	count func(*PruneReport) *int
}

// old lists what expires besides answers and records.
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
			"DELETE FROM copies WHERE seen < $1 AND hash IN ", // repeated, as it may be seen while we wait
			func(p *PruneReport) *int { return &p.Copies },
		},
		{
			rememberedFor, "SELECT key FROM memory WHERE kind IN " + remembered + " AND at < $1",
			"DELETE FROM memory WHERE kind IN " + remembered + " AND at < $1 AND key IN ", nil,
		},
		{AlertsKept, "SELECT n FROM deliveries WHERE at < $1", "DELETE FROM deliveries WHERE n IN ", nil},
		{AlertsKept, "SELECT n FROM alerts WHERE at < $1", "DELETE FROM alerts WHERE n IN ", nil},
	}
}

// pruneRead removes expired publications and copies.
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
			n, err := s.change(ctx, old.drop+"("+old.which+" LIMIT $2)", micros(now.Add(-old.keep)), pruneBatch)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			if old.count != nil {
				var removed PruneReport
				*old.count(&removed) = n
				done(removed)
			}
		}
	}
	return nil
}

// versionCited holds for versions of sources that have a pin.
const versionCited = "EXISTS (SELECT 1 FROM pins WHERE pins.tenant = versions.tenant AND pins.url = versions.url)"

// pruneVersions removes versions last seen before the given time, except those of cited sources.
func (s *Store) pruneVersions(ctx context.Context, before int64, done func(PruneReport)) error {
	seen, last := int64(math.MinInt64), int64(0) // the position of the scan: rows that stay are read only once
	for read := pruneBatch; read == pruneBatch; {
		var at, n int64
		removed := 0
		err := s.update(ctx, func(tx *transaction) error {
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
			}, "SELECT last_seen, n, "+versionCited+" FROM versions WHERE last_seen < $1 AND (last_seen, n) > "+
				"($2, $3) ORDER BY last_seen, n LIMIT $4", before, seen, last, pruneBatch)
			if err != nil || len(old) == 0 {
				return err
			}
			in(&c, "n", old)
			removed, err = tx.changed(ctx, "DELETE FROM versions WHERE "+c.text(), c.args...)
			return err
		})
		if err != nil {
			return err
		}
		seen, last = at, n
		done(PruneReport{Versions: removed})
	}
	return nil
}

// pruneMemory removes the oldest values that verifiers remember beyond the limit.
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
			err = s.forgetOldest(ctx, of[0], of[1], min(n, pruneBatch))
		}
	}
	return err
}

// forgetOldest removes the n oldest values of a kind that a tenant's verifiers remember. It first looks up where these
// end: PostgreSQL would look up a list of keys one by one in a table without statistics.
func (s *Store) forgetOldest(ctx context.Context, tenant, kind string, n int) error {
	var at int64
	var key string
	err := s.db.QueryRowContext(ctx, "SELECT at, key FROM memory WHERE tenant = $1 AND kind = $2 "+
		"ORDER BY at, key LIMIT 1 OFFSET $3", tenant, kind, n-1).Scan(&at, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // others have removed them
	}
	if err == nil {
		_, err = s.change(ctx, "DELETE FROM memory WHERE tenant = $1 AND kind = $2 AND (at, key) <= ($3, $4)",
			tenant, kind, at, key)
	}
	return err
}

// prunableRead counts what pruneRead would remove.
func (s *Store) prunableRead(ctx context.Context, r *Retention, now time.Time, report *PruneReport) error {
	if r.Copies > 0 {
		err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM versions WHERE last_seen < "+
			"$1 AND NOT "+versionCited, micros(now.Add(-r.Copies))).
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

// Delete removes an answer, everything derived from it and its feedback. The numbers of its sources stay while its
// conversation has other answers, and the events of its run while the run has anything; they contain none of its text.
// The records of its run stay.
func (s *Store) Delete(ctx context.Context, tenant, answerID string) error {
	err := s.update(ctx, func(tx *transaction) error {
		report, _, err := tx.removeAnswers(
			ctx, "DELETE FROM calls WHERE tenant = $1 AND answer_id = $2 RETURNING "+removedColumns,
			lookup(tenant), lookup(answerID),
		)
		if err == nil && report.Answers == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return tx.audit(ctx, tenant, AuditEntry{Action: AuditAnswerDeleted, Object: answerID})
	})
	return wrap(err, "deleting answer %q", answerID)
}

// removedColumns are the columns that [transaction.removeAnswers] needs.
const removedColumns = "n, tenant, answer_id, conversation, run, octet_length(call)"

// removeAnswers removes what was derived from the answers that query deletes and returns, or returns because they are
// gone, and the conversations and runs that are empty without them. It also returns the highest number of the answers.
// Answers that another transaction removes at the same time are not counted.
func (tx *transaction) removeAnswers(
	ctx context.Context, query string, args ...any,
) (report PruneReport, last int64, err error) {
	var ns []int64
	var answers []tenantID
	conversations, runs := map[tenantID]int64{}, map[tenantID]int64{}
	shrunk := map[string]int64{}
	err = each(ctx, tx, func(rows *sql.Rows) error {
		var n, bytes int64
		var tenant, answer string
		var conversation, run sql.NullString
		if err := rows.Scan(&n, &tenant, &answer, &conversation, &run, &bytes); err != nil {
			return err
		}
		ns, answers = append(ns, n), append(answers, tenantID{tenant, answer})
		shrunk[tenant] -= bytes
		if conversation.Valid {
			conversations[tenantID{tenant, conversation.String}]++
		}
		if run.Valid {
			runs[tenantID{tenant, run.String}]++
		}
		return nil
	}, query, args...)
	if err != nil || len(ns) == 0 {
		return report, 0, err
	}
	report.Answers, last = len(ns), slices.Max(ns)
	for _, remove := range []func() error{
		func() error { return tx.unindex(ctx, ns) },
		// Runs before their publications, and those before pins: the order in which all transactions lock them.
		func() error { return tx.shrink(ctx, "conversations", conversations) },
		func() error { return tx.shrink(ctx, "runs", runs) },
		func() error { return tx.endClaims(ctx, slices.SortedFunc(maps.Keys(runs), tenantID.compare)) },
		func() error { return tx.removeDerived(ctx, answers, "answer_id") },
		func() error { return tx.removeAlerts(ctx, answers) },
		func() error { return tx.removeEmpty(ctx, &report) },
		func() error { return tx.addUsage(ctx, shrunk) },
	} {
		if err := remove(); err != nil {
			return report, last, err
		}
	}
	return report, last, nil
}

// removeAlerts removes the alerts of answers or of recorded runs.
func (tx *transaction) removeAlerts(ctx context.Context, of []tenantID) error {
	for _, query := range []string{
		"DELETE FROM deliveries WHERE n IN (SELECT n FROM alerts WHERE tenant = $1 AND answer_id = $2)",
		"DELETE FROM alerts WHERE tenant = $1 AND answer_id = $2",
	} {
		if _, err := tx.removeOf(ctx, of, query); err != nil {
			return err
		}
	}
	return nil
}

// endClaims revokes the leases on the publications of runs, because their builders may have read what no longer exists.
func (tx *transaction) endClaims(ctx context.Context, runs []tenantID) error {
	_, err := tx.removeOf(
		ctx, runs, "UPDATE publications SET due = 0 WHERE tenant = $1 AND run = $2 AND state = '"+statePending+"'",
	)
	return err
}

// shrink subtracts removed answers from the counts of groups.
func (tx *transaction) shrink(ctx context.Context, table string, by map[tenantID]int64) error {
	for _, t := range slices.SortedFunc(maps.Keys(by), tenantID.compare) {
		if err := tx.exec(
			ctx, "UPDATE "+table+" SET answers = answers - $1 WHERE tenant = $2 AND id = $3", by[t], t.tenant, t.id,
		); err != nil {
			return err
		}
	}
	return nil
}

// idle holds for runs all of whose events were handed on.
const idle = "NOT EXISTS (SELECT 1 FROM events WHERE tenant = runs.tenant AND run = runs.id AND relayed = 0)"

// removeEmpty removes conversations without answers, and idle runs without answers and records. It removes the groups
// themselves first, so that nothing is removed from one that has just gained an answer.
func (tx *transaction) removeEmpty(ctx context.Context, report *PruneReport) error {
	conversations, err := tx.ids(ctx, "DELETE FROM conversations WHERE answers <= 0 RETURNING tenant, id")
	if err != nil {
		return err
	}
	if _, err := tx.removeOf(
		ctx, conversations, "DELETE FROM numbers WHERE tenant = $1 AND conversation = $2",
	); err != nil {
		return err
	}
	runs, err := tx.ids(ctx, "DELETE FROM runs WHERE answers <= 0 AND recorded <= 0 AND "+idle+" RETURNING tenant, id")
	if err != nil {
		return err
	}
	events, err := tx.removeOf(ctx, runs, "DELETE FROM events WHERE tenant = $1 AND run = $2")
	if err != nil {
		return err
	}
	report.Conversations += len(conversations)
	report.Runs += len(runs)
	report.Events += events
	return tx.removeDerived(ctx, runs, "run")
}

// removeDerived removes the feedback, publications and pins of answers or runs, by the column that has their ids.
func (tx *transaction) removeDerived(ctx context.Context, of []tenantID, column string) error {
	for _, query := range []string{
		"DELETE FROM feedback WHERE ",
		"DELETE FROM publications WHERE digest = '' AND ",
		"UPDATE publications SET salt = '' WHERE ", // so that hashed private inputs can no longer be guessed
		"DELETE FROM pins WHERE ",
	} {
		if _, err := tx.removeOf(ctx, of, query+"tenant = $1 AND "+column+" = $2"); err != nil {
			return err
		}
	}
	return nil
}

// ids returns the tenants and ids that a query, or a statement with RETURNING, yields.
func (tx *transaction) ids(ctx context.Context, query string, args ...any) ([]tenantID, error) {
	scan := func(rows *sql.Rows, t *tenantID) error { return rows.Scan(&t.tenant, &t.id) }
	return collect(ctx, tx, scan, query, args...)
}

// removeOf runs a statement for each of groups and returns how many rows it changed.
func (tx *transaction) removeOf(ctx context.Context, groups []tenantID, query string) (int, error) {
	sum := 0
	for _, t := range groups {
		n, err := tx.changed(ctx, query, t.tenant, t.id)
		if err != nil {
			return sum, err
		}
		sum += n
	}
	return sum, nil
}

// tenantID is an id within a tenant.
type tenantID struct{ tenant, id string }

// compare orders ids. All transactions lock rows in this order.
func (t tenantID) compare(other tenantID) int {
	return cmp.Or(strings.Compare(t.tenant, other.tenant), strings.Compare(t.id, other.id))
}
