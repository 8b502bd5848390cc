package store

import (
	"context"
	"database/sql"
	"fmt"
	"unsafe"
)

// Put stores calls in one transaction: all of them or, with an error, none. A call whose AnswerID its tenant has
// already is left out, so that what was put before a crash can be put again: nothing changes and no second event is
// written.
//
// The order of calls is the order in which the sources of a conversation are numbered and the steps of a run are
// counted. In a batch of 32 or more each costs far less than alone. See [IsTemporary] for what to do about an error.
func (s *Store) Put(ctx context.Context, calls []*Call) error {
	if len(calls) == 0 {
		return nil
	}
	rows := make([]*row, 0, len(calls))
	for _, c := range calls {
		r, err := newRow(c, s.postgres)
		if err != nil {
			return fmt.Errorf("storing answer %q: %w", c.AnswerID, err)
		}
		if s.track {
			r.cited = cited(c.Answer)
		}
		rows = append(rows, r)
	}
	if err := s.name(ctx, rows); err != nil {
		return fmt.Errorf("storing %d answers: %w", len(calls), err)
	}
	if err := s.update(ctx, func(ctx context.Context, tx *transaction) error { return tx.put(ctx, rows) }); err != nil {
		return fmt.Errorf("storing %d answers: %w", len(calls), err)
	}
	return nil
}

// name gives rows that are to be published the public ids of their runs.
func (s *Store) name(ctx context.Context, rows []*row) error {
	for _, r := range rows {
		if !r.Publish || r.isLater() {
			continue
		}
		names, err := s.Publications(ctx)
		if err != nil {
			return err
		}
		r.pub = names.ofCall(r.Call)
	}
	return nil
}

// put stores rows. A later state may be of an answer that is before it in the same batch.
func (tx *transaction) put(ctx context.Context, rows []*row) error {
	known, err := tx.known(ctx, rows)
	if err != nil {
		return err
	}
	fresh := make([]*row, 0, len(rows))
	for _, r := range rows {
		if r.isLater() {
			if err := tx.insert(ctx, fresh); err != nil { // what it is of must be found
				return err
			}
			fresh = fresh[:0]
			if err := tx.refetch(ctx, r); err != nil {
				return err
			}
			continue
		}
		if id := (tenantID{lookup(r.Tenant), lookup(r.AnswerID)}); !known[id] {
			known[id] = true
			fresh = append(fresh, r)
		}
	}
	return tx.insert(ctx, fresh)
}

// known returns which of the answers are there already.
func (tx *transaction) known(ctx context.Context, rows []*row) (map[tenantID]bool, error) {
	ids := make([][]any, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, []any{lookup(r.Tenant), lookup(r.AnswerID)})
	}
	known := make(map[tenantID]bool, len(rows))
	err := tx.list(ctx, &tuples{
		before: "SELECT tenant, answer_id FROM (VALUES ",
		row:    "($, $)",
		after:  ") AS v JOIN calls ON tenant = column1 AND answer_id = column2",
	}, ids, func(found *sql.Rows) error {
		var id tenantID
		err := found.Scan(&id.tenant, &id.id)
		known[id] = true
		return err
	})
	return known, err
}

// insert stores rows that are not there yet.
func (tx *transaction) insert(ctx context.Context, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	next, err := tx.take(ctx, "calls_n", len(rows))
	if err != nil {
		return err
	}
	for i, r := range rows {
		r.n, r.step, r.seq, r.kind = next[i], r.Step.Number, 0, EventAnswer
	}
	for _, do := range []func(context.Context, []*row) error{
		tx.putConversations, tx.putRuns, tx.putCalls, tx.putEvents, tx.index, tx.putPublications, tx.trackRows,
	} {
		if err := do(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// take takes the next n numbers of a counter.
func (tx *transaction) take(ctx context.Context, counter string, n int) ([]int64, error) {
	next := make([]int64, 0, n)
	scan := func(rows *sql.Rows) error {
		var number int64
		err := rows.Scan(&number)
		next = append(next, number)
		return err
	}
	if tx.postgres {
		err := each(ctx, tx, scan, "SELECT nextval($1::regclass) FROM generate_series(1, $2)", counter, n)
		return next, err
	}
	err := each(ctx, tx, scan, "INSERT INTO counters (name, value) VALUES ($1, $2) "+
		"ON CONFLICT (name) DO UPDATE SET value = value + excluded.value RETURNING value", counter, n)
	if err != nil {
		return nil, err
	}
	last := next[0]
	for next = next[:0]; len(next) < n; {
		next = append(next, last-int64(n-1-len(next)))
	}
	return next, nil
}

func (tx *transaction) putCalls(ctx context.Context, rows []*row) error {
	t := tuples{
		before: tx.insertInto(
			"calls", "n, tenant, answer_id, provider, conversation, run, step, counted, started, refetched, call",
		),
		row: "($, $, $, $, $, $, $, $, $, $, $)",
	}
	if tx.postgres {
		t = tuples{
			before: tx.insertInto(
				"calls",
				"n, tenant, answer_id, provider, conversation, run, step, counted, started, refetched, call, document, terms",
			),
			row: "($, $, $, $, $, $, $, $, $, $, $, $::jsonb, $::tsvector)",
		}
	}
	values := make([][]any, 0, len(rows))
	for _, r := range rows {
		counted := 0
		if r.counted {
			counted = 1
		}
		v := []any{
			r.n, lookup(r.Tenant), lookup(r.AnswerID), r.provider(), orNull(r.Conversation), orNull(r.Run), r.step,
			counted, micros(r.Started), r.refetched, tx.text(r.encoded),
		}
		if tx.postgres {
			v = append(v, r.document, r.terms)
		}
		values = append(values, v)
	}
	return tx.exec(ctx, &t, values)
}

// text returns b, which does not change any more, for a column of type TEXT. Neither engine checks or changes it, but
// PostgreSQL takes only UTF-8. JSON has no NUL, but as an escape.
func (tx *transaction) text(b []byte) string {
	s := unsafe.String(unsafe.SliceData(b), len(b)) // a copy would be half of all that storing an answer allocates
	if tx.postgres {
		return plain(s)
	}
	return s
}

func (tx *transaction) putEvents(ctx context.Context, rows []*row) error {
	events := make([]Event, 0, len(rows))
	for _, r := range rows {
		if r.seq == 0 { // in no run
			continue
		}
		data, err := r.event()
		if err != nil {
			return err
		}
		events = append(
			events,
			Event{Tenant: lookup(r.Tenant), Run: lookup(r.Run), Seq: r.seq, Kind: r.kind, At: r.at, Data: data},
		)
	}
	return tx.addEvents(ctx, events)
}

// addEvents stores events, and gives them their ids.
func (tx *transaction) addEvents(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	// Counted while their runs are locked, so that the events of a run are in order by id too.
	ids, err := tx.take(ctx, "events_id", len(events))
	if err != nil {
		return err
	}
	values := make([][]any, 0, len(events))
	for i, e := range events {
		values = append(values, []any{ids[i], e.Tenant, e.Run, e.Seq, e.Kind, micros(e.At), 0, tx.text(e.Data)})
	}
	return tx.exec(ctx, &tuples{
		before: tx.insertInto(
			"events", "id, tenant, run, seq, kind, at, relayed, data",
		),
		row: "($, $, $, $, $, $, $, $)",
	}, values)
}
