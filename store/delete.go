package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Delete removes an answer and all that was derived from it. The numbers of its sources stay with its conversation as long
// as that has other answers, and the events of its run as long as that has; they hold nothing of its text.
func (s *Store) Delete(ctx context.Context, tenant, answerID string) error {
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		gone, err := tx.expired(ctx, "SELECT n, tenant, conversation, run FROM calls WHERE tenant = $1 AND answer_id = $2", name(tenant), name(answerID))
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return ErrNotFound
		}
		_, err = tx.remove(ctx, gone)
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting answer %q: %w", answerID, err)
	}
	return nil
}

// goner is an answer that is to be removed.
type goner struct {
	n                 int64
	tenant            string
	conversation, run sql.NullString
}

// expired returns the answers that a query chooses.
func (tx *transaction) expired(ctx context.Context, query string, args ...any) ([]goner, error) {
	var list []goner
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var g goner
		err := rows.Scan(&g.n, &g.tenant, &g.conversation, &g.run)
		list = append(list, g)
		return err
	}, query, args...)
	return list, err
}

// remove removes answers, and the conversations and runs that are empty without them.
func (tx *transaction) remove(ctx context.Context, gone []goner) (PruneReport, error) {
	report := PruneReport{Answers: len(gone)}
	ns := make([]int64, 0, len(gone))
	conversations, runs := map[owned]int64{}, map[owned]int64{}
	for _, g := range gone {
		ns = append(ns, g.n)
		if g.conversation.Valid {
			conversations[owned{g.tenant, g.conversation.String}]++
		}
		if g.run.Valid {
			runs[owned{g.tenant, g.run.String}]++
		}
	}
	if err := tx.deleteCalls(ctx, ns); err != nil {
		return report, err
	}
	if err := tx.shrink(ctx, "conversations", conversations); err != nil {
		return report, err
	}
	if err := tx.shrink(ctx, "runs", runs); err != nil {
		return report, err
	}
	return report, tx.removeEmpty(ctx, &report)
}

// deleteCalls removes answers, and what they are found by.
func (tx *transaction) deleteCalls(ctx context.Context, ns []int64) error {
	if err := tx.exec(ctx, &tuples{before: "DELETE FROM calls WHERE n IN (", each: "$", after: ")"}, column(ns)); err != nil {
		return err
	}
	return tx.gone(ctx, ns)
}

func column(ns []int64) [][]any {
	rows := make([][]any, 0, len(ns))
	for _, n := range ns {
		rows = append(rows, []any{n})
	}
	return rows
}

// shrink takes answers off the counts of threads.
func (tx *transaction) shrink(ctx context.Context, table string, by map[owned]int64) error {
	for _, id := range sortedIDs(by) {
		_, err := tx.ExecContext(ctx, "UPDATE "+table+" SET answers = answers - $1 WHERE tenant = $2 AND id = $3", by[id], id.tenant, id.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes conversations without answers, and runs without answers whose events were all handed on.
func (tx *transaction) removeEmpty(ctx context.Context, report *PruneReport) error {
	const idle = "SELECT tenant, id FROM runs WHERE answers <= 0 AND NOT EXISTS" +
		" (SELECT 1 FROM events WHERE tenant = runs.tenant AND run = runs.id AND relayed = 0)"
	for _, d := range []struct {
		query string
		count *int
	}{
		{"DELETE FROM numbers WHERE (tenant, conversation) IN (SELECT tenant, id FROM conversations WHERE answers <= 0)", nil},
		{"DELETE FROM conversations WHERE answers <= 0", &report.Conversations},
		{"DELETE FROM events WHERE (tenant, run) IN (" + idle + ")", &report.Events},
		{"DELETE FROM runs WHERE (tenant, id) IN (" + idle + ")", &report.Runs},
	} {
		result, err := tx.ExecContext(ctx, d.query)
		if err != nil {
			return err
		}
		if d.count == nil {
			continue
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		*d.count += int(n)
	}
	return nil
}
