package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// Event is something that happened to a run. Events are written in the same transaction as what they report.
type Event struct {
	ID     int64 // unique in the store, never reused
	Tenant string
	Run    string
	Seq    int64 // from 1, without gaps, for each run of a tenant
	Kind   string
	At     time.Time
	Data   json.RawMessage
}

// EventAnswer is the kind of event for a captured or refetched answer. Its data is an object with answer_id, step,
// tool, conversation, agent, upstream, provider, model, complete, finish, citations and sources (counts), error and
// refetch. Unknown values are null.
const EventAnswer = "answer"

// EventBackfill is the kind of event for an answer that received citations, or verdicts on them, after it had ended:
// see Call.Of. Its data is that of an [EventAnswer].
const EventBackfill = "backfill"

// EventStep is the kind of event for a recorded step. Its data is an object with step (its number), id, tool, sources
// and cited (counts), error (whether it failed) and replaced (whether it replaced an earlier record).
const EventStep = "step"

// EventFinish is the kind of event for a run that was reported finished or given another final answer. Its data is an
// object with answer_id (the captured answer that is the final one) and answered (whether there is a final answer).
const EventFinish = "finish"

// Events returns up to limit events of a run with a Seq over after, in order. A run that does not exist has none.
func (s *Store) Events(ctx context.Context, tenant, run string, after int64, limit int) ([]Event, error) {
	list, err := s.events(
		ctx, "tenant = $1 AND run = $2 AND seq > $3 ORDER BY seq LIMIT $4", lookup(tenant), lookup(run), after,
		limitOf(limit),
	)
	return list, wrap(err, "reading events")
}

// Outbox returns up to limit events that have not been passed to [Store.Relayed] and are at least olderThan old; the
// events of a run are in order.
func (s *Store) Outbox(ctx context.Context, limit int, olderThan time.Duration) ([]Event, error) {
	list, err := s.events(
		ctx, "relayed = 0 AND at <= $1 ORDER BY id LIMIT $2", micros(s.now().Add(-olderThan)), limitOf(limit),
	)
	return list, wrap(err, "reading the outbox")
}

func (s *Store) events(ctx context.Context, where string, args ...any) ([]Event, error) {
	return collect(ctx, s.db, func(rows *sql.Rows, e *Event) error {
		var at int64
		err := rows.Scan(&e.ID, &e.Tenant, &e.Run, &e.Seq, &e.Kind, &at, (*[]byte)(&e.Data))
		e.At = instant(at)
		return err
	}, "SELECT id, tenant, run, seq, kind, at, data FROM events WHERE "+where, args...)
}

// newEvent returns an event of a run, timed now: see [transaction.addRunEvents].
func newEvent(tenant, run, kind string, data any) (Event, error) {
	b, err := json.Marshal(data)
	return Event{Tenant: tenant, Run: run, Kind: kind, At: time.Now(), Data: []byte(plain(string(b)))}, err
}

// Relayed marks events as handed on. Ids that do not exist or are already marked are ignored.
func (s *Store) Relayed(ctx context.Context, ids []int64) error {
	values := rowsOf(ids, func(id int64) []any { return []any{id} })
	err := s.update(ctx, func(tx *transaction) error {
		return tx.execAll(
			ctx, &tuples{before: "UPDATE events SET relayed = 1 WHERE relayed = 0 AND id IN (", row: "$", after: ")"},
			values,
		)
	})
	return wrap(err, "marking events as relayed")
}
