package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// MaxCalls is how many calls of one conversation or run are returned with it: the last ones.
const MaxCalls = 10_000

// Conversations returns conversations, the one that began last first.
func (s *Store) Conversations(ctx context.Context, tenant string, q *Query) (*Page[Conversation], error) {
	threads, err := s.threads(ctx, conversationTable(), tenant, q)
	if err != nil {
		return nil, fmt.Errorf("listing conversations: %w", err)
	}
	page := &Page[Conversation]{Next: threads.Next}
	for i := range threads.Items {
		page.Items = append(page.Items, *threads.Items[i].conversation())
	}
	return page, nil
}

// Runs returns runs, the one that began last first.
func (s *Store) Runs(ctx context.Context, tenant string, q *Query) (*Page[Run], error) {
	threads, err := s.threads(ctx, runTable(), tenant, q)
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	page := &Page[Run]{Next: threads.Next}
	for i := range threads.Items {
		page.Items = append(page.Items, *threads.Items[i].run())
	}
	return page, nil
}

func (t *thread) conversation() *Conversation {
	return &Conversation{ID: t.id, Started: instant(t.started), Updated: instant(t.ended), Answers: int(t.answers)}
}

func (t *thread) run() *Run {
	return &Run{ID: t.id, Agent: t.agent, Started: instant(t.started), Ended: instant(t.ended), Answers: int(t.answers)}
}

// threads returns a page of the threads of a table.
func (s *Store) threads(ctx context.Context, table *threadTable, tenant string, q *Query) (*Page[thread], error) {
	if q == nil {
		q = &Query{}
	}
	before, err := readCursor(table.name[:1], q.Cursor)
	if err != nil {
		return nil, err
	}
	c := conditions{where: []string{"tenant = $1", "first < $2", "answers > 0"}, args: []any{name(tenant), before}}
	limit := limitOf(q.Limit)
	query := "SELECT " + table.all() + " FROM " + table.name + " WHERE " + strings.Join(c.where, " AND ") + " ORDER BY first DESC LIMIT " + c.param(limit+1)
	var found []thread
	if err := each(ctx, s.read, func(rows *sql.Rows) error {
		t, err := table.scan(rows)
		found = append(found, t)
		return err
	}, query, c.args...); err != nil {
		return nil, err
	}
	threads, next := cut(found, limit, func(t thread) string { return newCursor(table.name[:1], t.first) })
	return &Page[thread]{Items: threads, Next: next}, nil
}

// all returns the columns that scan reads.
func (table *threadTable) all() string {
	return "tenant, id, first, started, ended, answers" + table.columns
}

func (table *threadTable) scan(rows *sql.Rows) (thread, error) {
	var t thread
	err := rows.Scan(append([]any{&t.tenant, &t.id, &t.first, &t.started, &t.ended, &t.answers}, table.fields(&t)...)...)
	return t, err
}

// Conversation returns a conversation with its last [MaxCalls] calls.
func (s *Store) Conversation(ctx context.Context, tenant, id string) (*Conversation, error) {
	c, err := s.conversation(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("reading conversation %q: %w", id, err)
	}
	return c, nil
}

func (s *Store) conversation(ctx context.Context, tenant, id string) (*Conversation, error) {
	t, calls, err := s.thread(ctx, conversationTable(), tenant, id)
	if err != nil {
		return nil, err
	}
	c := t.conversation()
	c.ID = id
	slices.SortStableFunc(calls, func(a, b *Call) int { return a.Started.Compare(b.Started) })
	c.Calls = calls
	c.Numbering, err = numbering(ctx, s.read, t) // read after the calls: it has all sources of theirs
	return c, err
}

// Run returns a run with its last [MaxCalls] calls.
func (s *Store) Run(ctx context.Context, tenant, id string) (*Run, error) {
	t, calls, err := s.thread(ctx, runTable(), tenant, id)
	if err != nil {
		return nil, fmt.Errorf("reading run %q: %w", id, err)
	}
	r := t.run()
	r.ID = id
	slices.SortStableFunc(calls, func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Step.Number, b.Step.Number), a.Started.Compare(b.Started))
	})
	r.Calls, r.Steps = calls, steps(calls)
	return r, nil
}

// steps returns the steps that calls are in. Where several are one step, the first that says something of it counts.
func steps(calls []*Call) []Step {
	var list []Step
	for _, c := range calls {
		if n := len(list); n > 0 && list[n-1].Number == c.Step.Number {
			list[n-1].Tool = cmp.Or(list[n-1].Tool, c.Step.Tool)
			if list[n-1].After == nil {
				list[n-1].After = c.Step.After
			}
			continue
		}
		list = append(list, c.Step)
	}
	for i := range list {
		if list[i].After == nil {
			list[i].After = []int{}
			if i > 0 {
				list[i].After = []int{list[i-1].Number}
			}
		}
	}
	return list
}

// thread returns a conversation or run with its calls in the order of their arrival.
func (s *Store) thread(ctx context.Context, table *threadTable, tenant, id string) (*thread, []*Call, error) {
	var t thread
	found := false
	err := each(ctx, s.read, func(rows *sql.Rows) (err error) {
		found = true
		t, err = table.scan(rows)
		return err
	}, "SELECT "+table.all()+" FROM "+table.name+" WHERE tenant = $1 AND id = $2 AND answers > 0", name(tenant), name(id))
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, ErrNotFound
	}
	list, err := scanCalls(ctx, s.read, callColumns+"WHERE tenant = $1 AND "+table.call+" = $2 ORDER BY n DESC LIMIT $3", t.tenant, t.id, MaxCalls)
	if err != nil {
		return nil, nil, err
	}
	calls := make([]*Call, 0, len(list))
	for _, c := range slices.Backward(list) {
		calls = append(calls, c.Call)
	}
	return &t, calls, nil
}

// Sources returns where a source was used, the last stored first.
func (s *Store) Sources(ctx context.Context, tenant string, q *SourceQuery) (*Page[SourceUse], error) {
	page, err := s.sources(ctx, tenant, q)
	if err != nil {
		return nil, fmt.Errorf("listing uses of a source: %w", err)
	}
	return page, nil
}

func (s *Store) sources(ctx context.Context, tenant string, q *SourceQuery) (*Page[SourceUse], error) {
	if q == nil || q.URL == "" && q.ID == "" {
		return nil, errors.New("neither a URL nor an id")
	}
	names := addressNames(q.URL)
	if q.ID != "" {
		names = append(names, q.ID, "#"+q.ID, "id:"+q.ID)
	}
	f := filter{tenant: tenant, limit: limitOf(q.Limit) + 1}
	f.search.names(names)
	calls, next, err := s.page(ctx, "s", q.Cursor, &f)
	if err != nil {
		return nil, err
	}
	page := &Page[SourceUse]{Next: next}
	for _, c := range calls {
		page.Items = append(page.Items, uses(c.Call, names)...)
	}
	return page, nil
}

// uses returns the uses of the sources of c that have one of names.
func uses(c *Call, names []string) []SourceUse {
	var list []SourceUse
	for i := range c.Answer.Sources {
		source := &c.Answer.Sources[i]
		if !slices.ContainsFunc(sourceNames(source), func(n string) bool { return slices.Contains(names, n) }) {
			continue
		}
		use := SourceUse{
			Key: source.Key(), URL: source.URL, Title: source.Title, AnswerID: c.AnswerID, Conversation: c.Conversation, Run: c.Run,
			Started: c.Started,
		}
		for k := range c.Answer.Citations {
			citation := &c.Answer.Citations[k]
			for _, ref := range citation.Refs {
				if ref.Source == source.ID {
					use.Citations = append(use.Citations, SourceCitation{words(c.Answer, citation), ref.Quote})
				}
			}
		}
		list = append(list, use)
	}
	return list
}

// words returns the words of the answer that a citation is of.
func words(a *ibid.Answer, c *ibid.Citation) string {
	if !c.Placed() || c.Span.Start < 0 || c.Span.Start > c.Span.End || c.Span.End > len(a.Text) {
		return ""
	}
	return a.Text[c.Span.Start:c.Span.End]
}
