package store

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ibidhq/ibid"
)

// refetch puts the answer of r in the place of the one it is a later state of, if there is one and it is no step back:
// under a new number, as what the index says of the old one no longer holds. Where the store is damaged so that the
// earlier one cannot be read, r is dropped: a log line is all that is left to do.
func (tx *transaction) refetch(ctx context.Context, r *row) error {
	old, err := tx.earlier(ctx, r)
	if errors.Is(err, errDamaged) {
		tx.logger.LogAttrs(
			ctx, slog.LevelError, "a later state of an answer is dropped: the earlier one cannot be read",
			slog.String("answer", r.AnswerID), slog.String("tenant", r.Tenant), slog.Any("error", err),
		)
		return nil
	}
	if old == nil || err != nil {
		return err
	}
	c := *old.Call
	c.Answer, c.encoded, c.keys = r.Answer, nil, nil
	fresh, err := newRow(&c, tx.postgres)
	if err != nil {
		return err
	}
	next, err := tx.take(ctx, "calls_n", 1)
	if err != nil {
		return err
	}
	fresh.n, fresh.step, fresh.refetched, fresh.at, fresh.again = next[0], old.step, lookup(r.AnswerID), r.at, true
	if fresh.kind = EventAnswer; r.Of != "" {
		fresh.kind = EventBackfill
	}
	if err := tx.replaceCall(ctx, old.n, fresh); err != nil {
		return err
	}
	rows := []*row{fresh}
	list, err := tx.threads(ctx, conversationTable(), rows)
	if err != nil {
		return err
	}
	if err := tx.number(ctx, conversationTable(), list); err != nil {
		return err
	}
	if list, err = tx.threads(ctx, runTable(), rows); err != nil {
		return err
	}
	for _, t := range list {
		t.seq++
		fresh.seq = t.seq
	}
	if err := tx.putThreads(ctx, runTable(), list); err != nil {
		return err
	}
	for _, do := range []func(context.Context, []*row) error{tx.putEvents, tx.index} {
		if err := do(ctx, rows); err != nil {
			return err
		}
	}
	if err := tx.trackRows(ctx, []*row{r}); err != nil {
		return err
	}
	return tx.publishAgain(ctx, &c)
}

// replaceCall stores r in the place of the call with the number old. That another transaction has changed or deleted it
// meanwhile is errChanged, so that this one begins anew with what is there now.
func (tx *transaction) replaceCall(ctx context.Context, old int64, r *row) error {
	set := "UPDATE calls SET n = $1, provider = $2, refetched = $3, call = $4"
	args := []any{r.n, r.provider(), r.refetched, tx.text(r.encoded)}
	where := " WHERE n = $5"
	if tx.postgres {
		set += ", document = $5::jsonb, terms = $6::tsvector"
		args = append(args, r.document, r.terms)
		where = " WHERE n = $7"
	}
	result, err := tx.ExecContext(ctx, set+where, append(args, old)...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errChanged)
	}
	return tx.unindex(ctx, []int64{old})
}

// isLater reports whether the call has a later state of the answer of another.
func (c *Call) isLater() bool { return c.Refetch || c.Of != "" }

// earlier returns the row of which r has a later state; nil if there is none, or if it has that state or a better one.
func (tx *transaction) earlier(ctx context.Context, r *row) (*row, error) {
	var found []numberedCall
	var err error
	switch {
	case r.Of != "":
		found, err = scanCalls(
			ctx, tx, callColumns+"WHERE tenant = $1 AND answer_id = $2", lookup(r.Tenant), lookup(r.Of),
		)
	case r.Answer.ID != "":
		found, err = list(ctx, tx, tx.postgres, byProvider(r.Tenant, r.Upstream, r.Answer.ID))
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	old := &row{Call: found[0].Call, n: found[0].n, step: found[0].Step.Number, refetched: found[0].refetched}
	// Answer ids grow, so what is put again is not over the last.
	if lookup(r.AnswerID) <= old.refetched || isStepBack(old.Answer, r.Answer) {
		return nil, nil
	}
	return old, nil
}

// isStepBack reports whether an answer would lose something by its later state: its end, or the citations that were
// found for the same text where the provider has none.
func isStepBack(old, later *ibid.Answer) bool {
	if !old.Complete {
		return false
	}
	return !later.Complete || later.Text == old.Text && len(later.Citations) == 0 && len(old.Citations) > 0
}
