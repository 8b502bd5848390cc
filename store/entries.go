package store

import (
	"cmp"
	"context"
	"slices"
)

// Entry is one entry of a tenant's list of answers. Exactly one of its fields is set.
type Entry struct {
	Call *Call // an answer on its own, or the latest one of its conversation
	Run  *Run  // of more than one step; without its calls
}

// Entries returns everything that was answered, the most recently stored first: each answer is in one entry. Those of a
// conversation are one, and so are those of a run unless they are in a conversation. Of q only Cursor and Limit apply.
func (s *Store) Entries(ctx context.Context, tenant string, q *Query) (page *Page[Entry], err error) {
	defer wrapResult(&err, "listing what was answered")
	q = cmp.Or(q, &Query{})
	var before int64
	if err := readCursor(entryCursor, q.Cursor, &before); err != nil {
		return nil, err
	}
	limit := limitOf(q.Limit)
	c := conditionsOf(tenant)
	c.and("n < $", before)
	c.where = append(c.where, standsAlone)
	calls, err := scanCalls(ctx, s.db, callColumns+c.newest(s.engine, "n", limit+1), c.args...)
	if err != nil {
		return nil, err
	}
	table := runTable()
	runs, err := collect(
		ctx, s.db, table.scan, "SELECT "+table.all("")+" FROM runs WHERE tenant = $1 AND last < $2 AND "+stepped+
			" AND "+inNoConversation+" ORDER BY last DESC LIMIT $3", lookup(tenant), before, limit+1,
	)
	if err != nil {
		return nil, err
	}
	// The rows of both tables are numbered by one counter.
	type numbered struct {
		Entry
		n int64
	}
	var all []numbered
	for i := range calls {
		all = append(all, numbered{Entry{Call: calls[i].Call}, calls[i].n})
	}
	for i := range runs {
		all = append(all, numbered{Entry{Run: runs[i].run()}, runs[i].last})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(b.n, a.n) })
	all, next := trimPage(all, limit, func(e numbered) string { return newCursor(entryCursor, e.n) })
	page = &Page[Entry]{Next: next}
	var shown []*Call
	for i := range all {
		page.Items = append(page.Items, all[i].Entry)
		if all[i].Call != nil {
			shown = append(shown, all[i].Call)
		}
	}
	return page, s.fillVerification(ctx, tenant, shown)
}

// entryCursor begins the cursors of the list of entries.
const entryCursor = "e"

// standsAlone selects calls that are an entry: the latest of each conversation, and those that are in none and in no
// run of several steps. An answer that is fetched again keeps the time it began, but not its number.
const standsAlone = `CASE WHEN conversation IS NULL
	THEN NOT EXISTS (SELECT 1 FROM runs WHERE runs.tenant = calls.tenant AND runs.id = calls.run AND ` + stepped + `)
	ELSE NOT EXISTS (SELECT 1 FROM calls AS later WHERE later.tenant = calls.tenant
		AND later.conversation = calls.conversation AND (later.started, later.n) > (calls.started, calls.n)) END`

// inNoConversation selects runs none of whose calls is in a conversation.
const inNoConversation = `NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = runs.tenant AND calls.run = runs.id
	AND calls.conversation IS NOT NULL)`
