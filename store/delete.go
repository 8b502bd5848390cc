package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Delete removes an answer, all that was derived from it and what people said of it. The numbers of its sources stay
// with its conversation as long as that has other answers, and the events of its run as long as that has anything; they
// hold nothing of its text. What was recorded of its run stays.
func (s *Store) Delete(ctx context.Context, tenant, answerID string) error {
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		report, err := tx.remove(ctx, "tenant = $1 AND answer_id = $2", lookup(tenant), lookup(answerID))
		if err == nil && report.Answers == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting answer %q: %w", answerID, err)
	}
	return nil
}

// remove removes the answers that where chooses, and the conversations and runs that are empty without them. What
// another transaction removes at the same time is not among them: only what was really deleted is counted.
func (tx *transaction) remove(ctx context.Context, where string, args ...any) (PruneReport, error) {
	var report PruneReport
	var ns []int64
	var answers []tenantID
	conversations, runs := map[tenantID]int64{}, map[tenantID]int64{}
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var n int64
		var tenant, answer string
		var conversation, run sql.NullString
		if err := rows.Scan(&n, &tenant, &answer, &conversation, &run); err != nil {
			return err
		}
		ns, answers = append(ns, n), append(answers, tenantID{tenant, answer})
		if conversation.Valid {
			conversations[tenantID{tenant, conversation.String}]++
		}
		if run.Valid {
			runs[tenantID{tenant, run.String}]++
		}
		return nil
	}, "DELETE FROM calls WHERE "+where+" RETURNING n, tenant, answer_id, conversation, run", args...)
	if err != nil || len(ns) == 0 {
		return report, err
	}
	report.Answers = len(ns)
	if err := tx.unindex(ctx, ns); err != nil {
		return report, err
	}
	// Runs before what is published of them, and that before its pins: as everybody locks them.
	if err := tx.shrink(ctx, "conversations", conversations); err != nil {
		return report, err
	}
	if err := tx.shrink(ctx, "runs", runs); err != nil {
		return report, err
	}
	if err := tx.endClaims(ctx, slices.SortedFunc(maps.Keys(runs), tenantID.compare)); err != nil {
		return report, err
	}
	for _, query := range []string{
		"DELETE FROM feedback WHERE tenant = $1 AND answer_id = $2",
		"DELETE FROM publications WHERE tenant = $1 AND answer_id = $2 AND digest = ''",
		// what was private and hashed cannot be found out any more
		"UPDATE publications SET salt = '' WHERE tenant = $1 AND answer_id = $2",
		"DELETE FROM pins WHERE tenant = $1 AND answer_id = $2",
	} {
		if _, err := tx.removeOf(ctx, answers, query); err != nil {
			return report, err
		}
	}
	return report, tx.removeEmpty(ctx, &report)
}

// endClaims takes what is to be published of runs from whoever builds it now, because he may have read what is not
// there any more.
func (tx *transaction) endClaims(ctx context.Context, runs []tenantID) error {
	_, err := tx.removeOf(
		ctx, runs, "UPDATE publications SET due = 0 WHERE tenant = $1 AND run = $2 AND state = '"+statePending+"'",
	)
	return err
}

// shrink takes answers off the counts of threads.
func (tx *transaction) shrink(ctx context.Context, table string, by map[tenantID]int64) error {
	for _, t := range slices.SortedFunc(maps.Keys(by), tenantID.compare) {
		_, err := tx.ExecContext(
			ctx, "UPDATE "+table+" SET answers = answers - $1 WHERE tenant = $2 AND id = $3", by[t], t.tenant, t.id,
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// idle holds for runs of which every event was handed on.
const idle = "NOT EXISTS (SELECT 1 FROM events WHERE tenant = runs.tenant AND run = runs.id AND relayed = 0)"

// removeEmpty removes conversations without answers, and runs without answers and records that are idle: first
// themselves, so that nothing of one is removed that has got an answer meanwhile.
func (tx *transaction) removeEmpty(ctx context.Context, report *PruneReport) error {
	conversations, err := tx.removed(ctx, "DELETE FROM conversations WHERE answers <= 0 RETURNING tenant, id")
	if err != nil {
		return err
	}
	if _, err := tx.removeOf(
		ctx, conversations, "DELETE FROM numbers WHERE tenant = $1 AND conversation = $2",
	); err != nil {
		return err
	}
	runs, err := tx.removed(
		ctx, "DELETE FROM runs WHERE answers <= 0 AND recorded <= 0 AND "+idle+" RETURNING tenant, id",
	)
	if err != nil {
		return err
	}
	events, err := tx.removeOf(ctx, runs, "DELETE FROM events WHERE tenant = $1 AND run = $2")
	for _, query := range []string{
		"DELETE FROM feedback WHERE tenant = $1 AND run = $2",
		"DELETE FROM publications WHERE tenant = $1 AND run = $2 AND digest = ''",
		"UPDATE publications SET salt = '' WHERE tenant = $1 AND run = $2",
		"DELETE FROM pins WHERE tenant = $1 AND run = $2",
	} {
		if _, err := tx.removeOf(ctx, runs, query); err != nil {
			return err
		}
	}
	report.Conversations += len(conversations)
	report.Runs += len(runs)
	report.Events += events
	return err
}

// removed returns what a query has removed.
func (tx *transaction) removed(ctx context.Context, query string) ([]tenantID, error) {
	var list []tenantID
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var t tenantID
		err := rows.Scan(&t.tenant, &t.id)
		list = append(list, t)
		return err
	}, query)
	return list, err
}

// removeOf runs a query for what belongs to each of threads, and returns how many rows that were.
func (tx *transaction) removeOf(ctx context.Context, threads []tenantID, query string) (int, error) {
	sum := 0
	for _, t := range threads {
		result, err := tx.ExecContext(ctx, query, t.tenant, t.id)
		if err != nil {
			return sum, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return sum, err
		}
		sum += int(n)
	}
	return sum, nil
}

// tenantID is an id of a tenant's.
type tenantID struct{ tenant, id string }

// compare says the order in which rows are locked, which is the same for everybody.
func (t tenantID) compare(other tenantID) int {
	return cmp.Or(strings.Compare(t.tenant, other.tenant), strings.Compare(t.id, other.id))
}
