package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// group is a conversation or a run, with its new rows in a batch.
type group struct {
	tenantID
	runFields
	last, started, ended, answers int64
	numbered                      int64 // for a conversation

	rows []*row
}

// runFields are the columns that only runs have.
type runFields struct {
	agent, question, strategy, captured string
	seq, steps, counted, made           int64
	finished, recorded, size, touched   int64
}

// groupTable describes how the groups of one kind are stored.
type groupTable struct {
	name     string               // the table
	columns  []string             // tenant and id come first
	nonEmpty string               // a condition: the group is not empty
	fields   func(t *group) []any // pointers to the values of the columns
	id       func(r *row) string  // of the group that a row is in; empty if none
}

func conversationTable() *groupTable {
	return &groupTable{
		name:     "conversations",
		columns:  []string{"tenant", "id", "last", "started", "ended", "answers", "numbered"},
		nonEmpty: "answers > 0",
		fields: func(t *group) []any {
			return []any{&t.tenant, &t.id, &t.last, &t.started, &t.ended, &t.answers, &t.numbered}
		},
		id: func(r *row) string { return r.Conversation },
	}
}

func runTable() *groupTable {
	return &groupTable{
		name: "runs",
		columns: []string{
			"tenant", "id", "last", "started", "ended", "answers", "agent", "seq", "steps", "question", "strategy",
			"captured", "counted", "made", "finished", "recorded", "size", "touched",
		},
		nonEmpty: "(answers > 0 OR recorded > 0)",
		fields: func(t *group) []any {
			return []any{
				&t.tenant, &t.id, &t.last, &t.started, &t.ended, &t.answers, &t.agent, &t.seq, &t.steps, &t.question,
				&t.strategy, &t.captured, &t.counted, &t.made, &t.finished, &t.recorded, &t.size, &t.touched,
			}
		},
		id: func(r *row) string { return r.Run },
	}
}

// all returns the columns for a query, each prefixed.
func (table *groupTable) all(prefix string) string {
	return prefix + strings.Join(table.columns, ", "+prefix)
}

func (table *groupTable) scan(rows *sql.Rows, g *group) error { return rows.Scan(table.fields(g)...) }

// upsert returns the statement that stores groups; set is what it updates in existing ones.
func (table *groupTable) upsert(tx *transaction, set string) *tuples {
	return tx.insertion(table.name, table.all(""), " ON CONFLICT (tenant, id) DO UPDATE SET "+set)
}

// groups returns the groups that rows are in and locks them until the transaction ends. They are ordered by id, so that
// all transactions lock them in the same order.
func (tx *transaction) groups(ctx context.Context, table *groupTable, rows []*row) ([]*group, error) {
	by := map[tenantID]*group{}
	for _, r := range rows {
		if table.id(r) == "" {
			continue
		}
		id := tenantID{lookup(r.Tenant), lookup(table.id(r))}
		if by[id] == nil {
			by[id] = &group{tenantID: id}
		}
		by[id].rows = append(by[id].rows, r)
	}
	return tx.lock(ctx, table, by)
}

// lock fills in the groups that exist, and returns all in the order of their ids.
func (tx *transaction) lock(ctx context.Context, table *groupTable, by map[tenantID]*group) ([]*group, error) {
	list := slices.SortedFunc(maps.Values(by), func(a, b *group) int { return a.compare(b.tenantID) })
	var query *tuples
	var values [][]any
	if tx.postgres { // only existing rows can be locked
		query = table.upsert(tx, "last = "+table.name+".last")
		query.after += " RETURNING " + table.all(table.name+".")
		values = rowsOf(list, table.fields)
	} else {
		query = &tuples{
			before: "SELECT " + table.all("") + " FROM (VALUES ", row: "($, $)",
			after: ") AS v JOIN " + table.name + " ON tenant = column1 AND id = column2",
		}
		values = rowsOf(list, func(t *group) []any { return []any{t.tenant, t.id} })
	}
	err := tx.list(ctx, query, values, func(found *sql.Rows) error {
		var f group
		if err := table.scan(found, &f); err != nil {
			return err
		}
		t := by[f.tenantID]
		f.rows = t.rows
		*t = f
		return nil
	})
	return list, err
}

// addRows adds the rows of a batch to their group.
func (t *group) addRows() {
	for _, r := range t.rows {
		t.last = max(t.last, r.n)
		if started := micros(r.Started); t.started == 0 || started < t.started {
			t.started = started
		}
		t.ended = max(t.ended, micros(r.Ended()))
		t.answers++
	}
}

// putGroups stores the updated groups.
func (tx *transaction) putGroups(ctx context.Context, table *groupTable, list []*group) error {
	set := make([]string, 0, len(table.columns))
	for _, column := range table.columns[2:] {
		set = append(set, column+" = excluded."+column)
	}
	return tx.execAll(ctx, table.upsert(tx, strings.Join(set, ", ")), rowsOf(list, table.fields))
}

// putConversations stores the conversations of rows and numbers their sources.
func (tx *transaction) putConversations(ctx context.Context, rows []*row) error {
	table := conversationTable()
	list, err := tx.groups(ctx, table, rows)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.addRows()
	}
	return tx.number(ctx, table, list)
}

// number stores conversations and numbers those sources of their rows that have no number yet.
func (tx *transaction) number(ctx context.Context, table *groupTable, list []*group) error {
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
			var fresh []string
			for _, key := range numberedKeys(r.Call) { // as ibid.Numbering does
				if known[key] == 0 {
					t.numbered++
					known[key] = int(t.numbered)
					fresh = append(fresh, key)
				}
			}
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
	if err := tx.putGroups(ctx, table, list); err != nil {
		return err
	}
	return tx.execAll(ctx, tx.insertion("numbers", "tenant, conversation, number, keys", ""), numbers)
}

// numbering returns the numbers of a conversation's sources.
func numbering(ctx context.Context, q querier, t *group) (ibid.Numbering, error) {
	known := ibid.Numbering{}
	err := each(ctx, q, func(rows *sql.Rows) error {
		var number int
		var encoded []byte
		if err := rows.Scan(&number, &encoded); err != nil {
			return err
		}
		var keys []string
		if err := decode(encoded, &keys, "the numbers of a conversation"); err != nil {
			return err
		}
		for i, key := range keys {
			known[key] = number + i
		}
		return nil
	}, "SELECT number, keys FROM numbers WHERE tenant = $1 AND conversation = $2", t.tenant, t.id)
	return known, err
}

// putRuns stores the runs of rows and assigns each row its step and the number of its event.
func (tx *transaction) putRuns(ctx context.Context, rows []*row) error {
	table := runTable()
	list, err := tx.groups(ctx, table, rows)
	if err != nil {
		return err
	}
	now := micros(tx.now())
	for _, t := range list {
		t.addRows()
		t.made = cmp.Or(t.made, now)
		for i, r := range t.rows {
			if r.counted = r.step <= 0; r.counted {
				t.counted++
				r.step = int(t.steps) + 1 + len(r.Results) // the numbers before it are those of its results
			} else {
				if err := tx.renumberCounted(ctx, t, []int64{int64(r.step)}); err != nil {
					return err
				}
				for _, before := range t.rows[:i] { // steps of the same batch give way as well
					if before.counted && before.step == r.step {
						t.steps++
						before.step = int(t.steps)
					}
				}
			}
			t.steps = max(t.steps, int64(r.step))
			t.agent = cmp.Or(t.agent, plain(r.Agent))
			t.captured = cmp.Or(t.captured, lookup(r.Strategy))
			t.strategy = cmp.Or(t.captured, t.strategy)
		}
		for _, r := range t.rows {
			t.seq++
			r.seq = t.seq
		}
	}
	return tx.putGroups(ctx, table, list)
}

// renumberCounted renumbers those steps of a run that have one of the numbers but were only counted: an explicit number
// always belongs to the step it was given for. t.steps becomes at least the highest of the numbers.
func (tx *transaction) renumberCounted(ctx context.Context, t *group, numbers []int64) error {
	given := map[int64]bool{}
	for _, n := range numbers {
		if n <= t.steps {
			given[n] = true
		}
	}
	for _, n := range numbers {
		t.steps = max(t.steps, n)
	}
	if len(given) == 0 || t.counted == 0 {
		return nil
	}
	type counted struct {
		number, n int64
		update    string
	}
	var moved []counted
	for _, of := range []struct{ query, update string }{
		{"SELECT step, n FROM calls WHERE tenant = $1 AND run = $2 AND counted = 1", "UPDATE calls SET step = " +
			"$1 WHERE n = $2"},
		{
			"SELECT number, n FROM records WHERE tenant = $1 AND run = $2 " +
				"AND id >= '" + countedID + "' AND id < '" + countedEnd + "'",
			"UPDATE records SET number = $1 WHERE n = $2",
		},
	} {
		if err := each(ctx, tx, func(rows *sql.Rows) error {
			c := counted{update: of.update}
			err := rows.Scan(&c.number, &c.n)
			if given[c.number] {
				moved = append(moved, c)
			}
			return err
		}, of.query, t.tenant, t.id); err != nil {
			return err
		}
	}
	slices.SortFunc(
		moved, func(a, b counted) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.n, b.n)) },
	)
	for _, c := range moved {
		t.steps++
		if err := tx.exec(ctx, c.update, t.steps, c.n); err != nil {
			return err
		}
	}
	return nil
}
