package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// The roles of messages that matter to a conversation.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Turn is one call of a conversation: what the model was told since the call before it, and the answer.
type Turn struct {
	Asked []Message
	Call  *Call
}

// Turns returns the calls of a page of a conversation, each with the messages that the one before did not have: see
// [Call.Asked].
func (c *Conversation) Turns() []Turn {
	turns := make([]Turn, 0, len(c.Calls))
	before := c.Before
	for _, call := range c.Calls {
		turns = append(turns, Turn{call.Asked(before), call})
		before = call
	}
	return turns
}

// Shown returns the turns of a page without those that a later one replaces because its client asked again: see
// [Call.Follows]. Before is the call before the page, or nil. A call that is on no page hides nothing.
func Shown(turns []Turn, before *Call) []Turn {
	var shown []Turn
	for _, turn := range turns {
		if kept, last, ok := KeptBehind(shown, before, turn.Call.Follows); ok {
			shown, turn.Asked = kept, turn.Call.Asked(last)
		}
		shown = append(shown, turn)
	}
	return shown
}

// KeptBehind returns the turns of a page that remain when a call follows the answer named by follows, as in
// [Call.Follows], and the call that is then the last; nil if there is none. If follows is nil, or names a call that is
// neither on the page nor before, all remain and ok is false.
func KeptBehind(turns []Turn, before *Call, follows *string) (kept []Turn, last *Call, ok bool) {
	if follows == nil {
		return turns, nil, false
	}
	at := slices.IndexFunc(turns, func(t Turn) bool { return t.Call.AnswerID == *follows })
	switch {
	case at >= 0:
		return turns[:at+1], turns[at].Call, true
	case *follows == "":
		return nil, nil, true
	case before != nil && before.AnswerID == *follows:
		return nil, before, true
	}
	return turns, nil, false
}

// Asked returns the messages of a call that the call before it in its conversation did not have: a client sends all
// messages again each time, the instructions with every question, and after a tool's result the same question once
// more. Before is nil for the first call.
func (c *Call) Asked(before *Call) []Message {
	messages := sinceAnswer(c.Prompt)
	if before == nil {
		return messages
	}
	for _, m := range sinceAnswer(before.Prompt) {
		isAgain := len(messages) > 0 && messages[0] == m
		if !isAgain || m.Role == RoleUser && before.Answer.Finish != ibid.FinishTool {
			break
		}
		messages = messages[1:]
	}
	return messages
}

// sinceAnswer returns the messages after the model's last one.
func sinceAnswer(prompt []Message) []Message {
	for i, m := range slices.Backward(prompt) {
		if m.Role == RoleAssistant {
			return prompt[i+1:]
		}
	}
	return prompt
}

// Conversations returns conversations, the one with the most recently stored call first. One that gets a call while the
// list is being paged through moves to the front.
func (s *Store) Conversations(ctx context.Context, tenant string, q *Query) (*Page[Conversation], error) {
	page, err := listGroups(ctx, s.db, conversationTable(), tenant, q, (*group).conversation)
	return page, wrap(err, "listing conversations")
}

// stepped is the condition of [Query.Stepped], and of the index runs_stepped.
const stepped = "(answers > 1 OR recorded > 0 OR steps > 1)"

// Runs returns runs in the order of [Store.Conversations].
func (s *Store) Runs(ctx context.Context, tenant string, q *Query) (*Page[Run], error) {
	table := runTable()
	if q != nil && q.Stepped {
		table.nonEmpty = stepped
	}
	page, err := listGroups(ctx, s.db, table, tenant, q, (*group).run)
	return page, wrap(err, "listing runs")
}

// listGroups returns a page of a tenant's conversations or runs, converted by show.
func listGroups[T any](
	ctx context.Context, db querier, table *groupTable, tenant string, q *Query, show func(*group) *T,
) (*Page[T], error) {
	q = cmp.Or(q, &Query{})
	groups := numberedList[group, T]{
		letter: table.name[:1], query: "SELECT " + table.all("") + " FROM " + table.name, column: "last",
		scan: table.scan, item: func(g *group) (T, int64) { return *show(g), g.last },
	}
	c := conditionsOf(tenant)
	c.where = append(c.where, table.nonEmpty)
	return groups.page(ctx, db, c, q.Cursor, q.Limit)
}

func (t *group) conversation() *Conversation {
	return &Conversation{ID: t.id, Started: instant(t.started), Updated: instant(t.ended), Answers: int(t.answers)}
}

func (t *group) run() *Run {
	return &Run{
		ID:       t.id,
		Agent:    t.agent,
		Question: t.question,
		Strategy: t.strategy,
		Started:  t.began(),
		Ended:    instant(max(t.ended, micros(t.began()))),
		Finished: instant(t.finished),
		Answers:  int(t.answers),
		Recorded: int(max(t.recorded-1, 0)),
	}
}

// began returns when a run began: the earliest known time, or else when it was first heard of.
func (t *group) began() time.Time {
	at := cmp.Or(t.started, t.made)
	if t.started == 0 && t.finished != 0 {
		at = min(at, t.finished)
	}
	return instant(at)
}

// Conversation returns a conversation with a page of its calls; only Cursor and Limit of q apply. The first page has
// the latest calls, the next one those before them. Within a page the oldest is first.
func (s *Store) Conversation(ctx context.Context, tenant, id string, q *Query) (c *Conversation, err error) {
	defer wrapResult(&err, "reading conversation %q", id)
	q = cmp.Or(q, &Query{})
	var at, n int64
	if err := readCursor(memberCursor, q.Cursor, &at, &n); err != nil {
		return nil, err
	}
	row, err := s.readGroup(ctx, conversationTable(), tenantID{tenant, id})
	if err != nil {
		return nil, err
	}
	limit := limitOf(q.Limit)
	// Ordered by when they began, which does not change when they are fetched again.
	latest, err := scanCalls(
		ctx, s.db,
		callColumns+s.first(
			"tenant = $1 AND conversation = $2 AND (started, n) < ($3, $4)", "started DESC, n DESC", "$5",
		),
		row.tenant, row.id, at, n, limit+1,
	)
	if err != nil {
		return nil, err
	}
	c = row.conversation()
	c.ID = id
	if len(latest) > limit {
		c.Before = latest[limit].Call
	}
	latest, c.Next = trimPage(
		latest, limit, func(c numberedCall) string { return newCursor(memberCursor, micros(c.Started), c.n) },
	)
	for _, call := range slices.Backward(latest) {
		c.Calls = append(c.Calls, call.Call)
	}
	// The numbers are read after the calls, so that they include all of their sources.
	if c.Numbering, err = numbering(ctx, s.db, row); err != nil {
		return nil, err
	}
	return c, s.fillVerification(ctx, tenant, c.Calls)
}

// Run returns a run with a page of its calls and recorded steps, like [Store.Conversation]; within a page they are
// ordered by step.
func (s *Store) Run(ctx context.Context, tenant, id string, q *Query) (r *Run, err error) {
	defer wrapResult(&err, "reading run %.60q", id)
	t, err := s.readGroup(ctx, runTable(), tenantID{tenant, id})
	if err != nil {
		return nil, err
	}
	w, next, err := s.window(ctx, t, q)
	if err != nil {
		return nil, err
	}
	r = t.run()
	r.ID, r.Next = id, next
	calls, err := scanCalls(
		ctx, s.db, callColumns+"WHERE tenant = $1 AND run = $2 AND "+inWindow+" ORDER BY started, n", w...,
	)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		r.Calls = append(r.Calls, c.Call)
	}
	if err := s.fillVerification(ctx, tenant, r.Calls); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Calls, func(a, b *Call) int { return cmp.Compare(a.Step.Number, b.Step.Number) })
	r.Steps = steps(r.Calls)
	r.Recordings, err = collect(
		ctx, s.db, scanStep,
		recordColumns+"records WHERE tenant = $1 AND run = $2 AND "+inWindow+" AND id <> '"+headID+"' ORDER BY "+
			"started, n",
		w...,
	)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Recordings, func(a, b trail.Step) int { return compareNumbers(a.Number, b.Number) })
	err = each(ctx, s.db, func(rows *sql.Rows) error {
		var stored record
		if err := scanRecord(rows, &stored); err != nil {
			return err
		}
		h, err := decodeHead(stored.text)
		if err == nil {
			r.Question, r.Parent, r.AnswerID, r.Answer = cmp.Or(h.Question, r.Question), h.Parent, h.AnswerID, h.Answer
		}
		return err
	}, recordColumns+"records WHERE tenant = $1 AND run = $2 AND id = $3", t.tenant, t.id, headID)
	return r, err
}

// scanStep reads a row of recordColumns that holds a step.
func scanStep(rows *sql.Rows, step *trail.Step) error {
	var r record
	if err := scanRecord(rows, &r); err != nil {
		return err
	}
	found, err := r.step()
	if err == nil {
		*step = *found
	}
	return err
}

// compareNumbers orders steps without a number last.
func compareNumbers(a, b int) int {
	return cmp.Or(cmp.Compare(min(b, 1), min(a, 1)), cmp.Compare(a, b))
}

// inWindow is the condition whose arguments window returns.
const inWindow = "(started, n) < ($3, $4) AND (started, n) >= ($5, $6)"

// window selects a page of the calls and recorded steps of a run, the latest first. Both are numbered by the same
// counter. It returns the arguments for [inWindow], and the cursor of the next page.
func (s *Store) window(ctx context.Context, t *group, q *Query) (args []any, next string, err error) {
	q = cmp.Or(q, &Query{})
	type place struct{ at, n int64 }
	var before place
	if err := readCursor(memberCursor, q.Cursor, &before.at, &before.n); err != nil {
		return nil, "", err
	}
	limit := limitOf(q.Limit)
	const where = " WHERE tenant = $1 AND run = $2 AND (started, n) < ($3, $4) "
	places, err := collect(
		ctx, s.db, func(rows *sql.Rows, p *place) error { return rows.Scan(&p.at, &p.n) },
		"SELECT started, n FROM calls"+where+"UNION ALL SELECT started, n FROM records"+where+
			"AND id <> '"+headID+"' ORDER BY started DESC, n DESC LIMIT $5",
		t.tenant, t.id, before.at, before.n, limit+1,
	)
	if err != nil {
		return nil, "", err
	}
	places, next = trimPage(places, limit, func(p place) string { return newCursor(memberCursor, p.at, p.n) })
	last := before
	if len(places) > 0 {
		last = places[len(places)-1]
	}
	return []any{t.tenant, t.id, before.at, before.n, last.at, last.n}, next, nil
}

// steps returns the steps that calls are in. Where several calls are one step, the first that has a value counts.
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
		switch s := &list[i]; {
		case s.After != nil:
		case s.Number > 1: // whether or not it still exists
			s.After = []int{s.Number - 1}
		default:
			s.After = []int{}
		}
	}
	return list
}

// memberCursor begins the cursors of members of a conversation or a run; no list of conversations or runs uses it.
const memberCursor = "m"

// readGroup returns a conversation or run by its id.
func (s *Store) readGroup(ctx context.Context, table *groupTable, id tenantID) (*group, error) {
	return readOne(
		ctx, s.db, table.scan,
		"SELECT "+table.all("")+" FROM "+table.name+" WHERE tenant = $1 AND id = $2 AND "+table.nonEmpty,
		lookup(id.tenant), lookup(id.id),
	)
}

// Sources returns where a source was used, most recently stored first.
func (s *Store) Sources(ctx context.Context, tenant string, q *SourceQuery) (page *Page[SourceUse], err error) {
	defer wrapResult(&err, "listing uses of a source")
	if q == nil || q.URL == "" && q.ID == "" {
		return nil, errors.New("neither a URL nor an id")
	}
	names := addressNames(q.URL)
	if q.ID != "" {
		names = append(names, q.ID, "#"+q.ID, "id:"+q.ID)
	}
	f := filter{tenant: tenant, limit: limitOf(q.Limit) + 1}
	f.addSource(names)
	calls, next, err := s.page(ctx, "s", q.Cursor, &f)
	if err != nil {
		return nil, err
	}
	page = &Page[SourceUse]{Next: next}
	for _, c := range calls {
		page.Items = append(page.Items, uses(c.Call, names)...)
	}
	return page, nil
}

// uses returns the uses of those sources of c that have one of names.
func uses(c *Call, names []string) []SourceUse {
	var list []SourceUse
	for i := range c.Answer.Sources {
		source := &c.Answer.Sources[i]
		if !slices.ContainsFunc(sourceNames(source), func(n string) bool { return slices.Contains(names, n) }) {
			continue
		}
		use := SourceUse{
			Key:          source.Key(),
			URL:          source.URL,
			Title:        source.Title,
			AnswerID:     c.AnswerID,
			Conversation: c.Conversation,
			Run:          c.Run,
			Started:      c.Started,
		}
		for k := range c.Answer.Citations {
			citation := &c.Answer.Citations[k]
			text, span := "", citation.Span
			if citation.Placed() && 0 <= span.Start && span.Start <= span.End && span.End <= len(c.Answer.Text) {
				text = c.Answer.Text[span.Start:span.End]
			}
			for _, ref := range citation.Refs {
				if ref.Source == source.ID {
					use.Citations = append(use.Citations, SourceCitation{text, ref.Quote})
				}
			}
		}
		list = append(list, use)
	}
	return list
}
