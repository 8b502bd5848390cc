package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// thread is a conversation or a run, and what is new of it in a batch.
type thread struct {
	owned
	first, started, ended, answers int64
	numbered                       int64 // of a conversation
	agent                          string
	seq, steps                     int64 // of a run

	rows []*row
}

// threadTable is how the threads of one kind are stored.
type threadTable struct {
	name    string
	call    string                // the column of calls that has its id
	columns string                // besides those that all have
	zeros   string                // their values before there is anything
	set     string                // how an upsert changes them
	fields  func(t *thread) []any // to scan into
	values  func(t *thread) []any // to store
	id      func(r *row) string   // of the thread that a row is in; empty: none
}

func conversationTable() *threadTable {
	return &threadTable{
		name: "conversations", call: "conversation", columns: ", numbered", zeros: ", 0", set: ", numbered = excluded.numbered",
		fields: func(t *thread) []any { return []any{&t.numbered} },
		values: func(t *thread) []any { return []any{t.numbered} },
		id:     func(r *row) string { return r.Conversation },
	}
}

func runTable() *threadTable {
	return &threadTable{
		name: "runs", call: "run", columns: ", agent, seq, steps", zeros: ", '', 0, 0",
		set:    ", agent = excluded.agent, seq = excluded.seq, steps = excluded.steps",
		fields: func(t *thread) []any { return []any{&t.agent, &t.seq, &t.steps} },
		values: func(t *thread) []any { return []any{t.agent, t.seq, t.steps} },
		id:     func(r *row) string { return r.Run },
	}
}

// threads returns the threads that rows are in, as far as they are known, and keeps them from changing till the transaction
// ends. They are in the order of their ids, so that two transactions lock them in the same order.
func (tx *transaction) threads(ctx context.Context, table *threadTable, rows []*row) ([]*thread, error) {
	by := map[owned]*thread{}
	for _, r := range rows {
		if table.id(r) == "" {
			continue
		}
		id := owned{name(r.Tenant), name(table.id(r))}
		if by[id] == nil {
			by[id] = &thread{owned: id}
		}
		by[id].rows = append(by[id].rows, r)
	}
	list := make([]*thread, 0, len(by))
	for _, t := range by {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thread) int { return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.id, b.id)) })
	ids := make([][]any, 0, len(list))
	for _, t := range list {
		ids = append(ids, []any{t.tenant, t.id})
	}
	query := tuples{
		before: "SELECT " + table.all() + " FROM (VALUES ",
		each:   "($, $)",
		after:  ") AS v JOIN " + table.name + " ON tenant = column1 AND id = column2",
	}
	if tx.postgres { // only what is there can be locked
		err := tx.exec(ctx, &tuples{
			before: "INSERT INTO " + table.name + " (" + table.all() + ") VALUES ",
			each:   "($, $, 0, 0, 0, 0" + table.zeros + ")", after: " ON CONFLICT DO NOTHING",
		}, ids)
		if err != nil {
			return nil, err
		}
		query.after += " ORDER BY tenant, id FOR UPDATE OF " + table.name
	}
	err := tx.list(ctx, &query, ids, func(found *sql.Rows) error {
		f, err := table.scan(found)
		if err != nil {
			return err
		}
		t := by[f.owned]
		f.rows = t.rows
		*t = f
		return nil
	})
	return list, err
}

// grow adds the rows of a batch to their thread.
func (t *thread) grow() {
	for _, r := range t.rows {
		if t.first == 0 {
			t.first = r.n
		}
		if started := micros(r.Started); t.started == 0 || started < t.started {
			t.started = started
		}
		t.ended = max(t.ended, micros(r.Ended()))
		t.answers++
	}
}

// putThreads stores what the threads have become.
func (tx *transaction) putThreads(ctx context.Context, table *threadTable, list []*thread) error {
	values := make([][]any, 0, len(list))
	for _, t := range list {
		values = append(values, append([]any{t.tenant, t.id, t.first, t.started, t.ended, t.answers}, table.values(t)...))
	}
	return tx.exec(ctx, &tuples{
		before: "INSERT INTO " + table.name + " (" + table.all() + ") VALUES ",
		each:   "($, $, $, $, $, $" + strings.Repeat(", $", len(table.values(&thread{}))) + ")",
		after: " ON CONFLICT (tenant, id) DO UPDATE SET first = excluded.first, started = excluded.started," +
			" ended = excluded.ended, answers = excluded.answers" + table.set,
	}, values)
}

// putConversations stores the conversations of rows, and numbers their sources.
func (tx *transaction) putConversations(ctx context.Context, rows []*row) error {
	table := conversationTable()
	list, err := tx.threads(ctx, table, rows)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.grow()
	}
	return tx.number(ctx, table, list)
}

// number stores conversations, and the numbers of those sources of their rows that have none yet.
func (tx *transaction) number(ctx context.Context, table *threadTable, list []*thread) error {
	var numbers [][]any
	for _, t := range list {
		known := ibid.Numbering{}
		if t.numbered > 0 {
			var err error
			if known, err = numbering(ctx, tx, t); err != nil {
				return err
			}
		}
		for _, r := range t.rows {
			first := t.numbered + 1
			fresh := t.take(known, numberedKeys(r.Call))
			if len(fresh) == 0 {
				continue
			}
			keys, err := json.Marshal(fresh)
			if err != nil {
				return err
			}
			numbers = append(numbers, []any{t.tenant, t.id, first, tx.text(keys)})
		}
	}
	if err := tx.putThreads(ctx, table, list); err != nil {
		return err
	}
	return tx.exec(ctx, &tuples{before: "INSERT INTO numbers (tenant, conversation, number, keys) VALUES ", each: "($, $, $, $)"}, numbers)
}

// take numbers the keys that are not known, as ibid.Numbering does, and returns them.
func (t *thread) take(known ibid.Numbering, keys []string) []string {
	var fresh []string
	for _, key := range keys {
		if known[key] == 0 {
			t.numbered++
			known[key] = int(t.numbered)
			fresh = append(fresh, key)
		}
	}
	return fresh
}

// numbering returns the numbers that the sources of a conversation have.
func numbering(ctx context.Context, q querier, t *thread) (ibid.Numbering, error) {
	known := ibid.Numbering{}
	err := each(ctx, q, func(rows *sql.Rows) error {
		var number int
		var encoded []byte
		if err := rows.Scan(&number, &encoded); err != nil {
			return err
		}
		var keys []string
		if err := json.Unmarshal(encoded, &keys); err != nil {
			return fmt.Errorf("reading the numbers of a conversation: %w", err)
		}
		for i, key := range keys {
			known[key] = number + i
		}
		return nil
	}, "SELECT number, keys FROM numbers WHERE tenant = $1 AND conversation = $2", t.tenant, t.id)
	return known, err
}

// putRuns stores the runs of rows, and gives each row its step and the number of its event.
func (tx *transaction) putRuns(ctx context.Context, rows []*row) error {
	table := runTable()
	list, err := tx.threads(ctx, table, rows)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.grow()
		for _, r := range t.rows {
			if r.step <= 0 {
				r.step = int(t.steps) + 1
			}
			t.steps = max(t.steps, int64(r.step))
			t.seq++
			r.seq = t.seq
			t.agent = cmp.Or(t.agent, plain(r.Agent))
		}
	}
	return tx.putThreads(ctx, table, list)
}
