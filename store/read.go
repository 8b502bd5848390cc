package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Call returns an answer with its call.
func (s *Store) Call(ctx context.Context, tenant, answerID string) (*Call, error) {
	list, err := scanCalls(
		ctx, s.db, callColumns+"WHERE tenant = $1 AND answer_id = $2", lookup(tenant), lookup(answerID),
	)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading answer %q: %w", answerID, err)
	}
	if err := s.fillVerification(ctx, tenant, []*Call{list[0].Call}); err != nil {
		return nil, fmt.Errorf("reading answer %q: %w", answerID, err)
	}
	return list[0].Call, nil
}

// byProvider looks for the answer that has an id with its provider.
func byProvider(tenant, upstream, providerID string) *filter {
	return &filter{
		tenant: tenant, before: math.MaxInt64, limit: 1,
		terms: termQuery{{{text: hashed(providerTerm, upstream, providerID)}}},
	}
}

// Calls returns calls, the last stored first; one that was fetched again counts as stored then. Calls that arrive while
// a list is read through are not in its later pages, so nothing is in it twice.
func (s *Store) Calls(ctx context.Context, tenant string, q *Query) (*Page[*Call], error) {
	if q == nil {
		q = &Query{}
	}
	f := filter{
		tenant:       tenant,
		limit:        limitOf(q.Limit) + 1,
		conversation: q.Conversation,
		run:          q.Run,
		verification: q.Verification,
	}
	if q.Text != "" {
		f.terms.addWords(q.Text)
	}
	if q.Source != "" {
		f.terms.addNames(append(addressNames(q.Source), q.Source))
	}
	found, next, err := s.page(ctx, "a", q.Cursor, &f)
	if err != nil {
		return nil, fmt.Errorf("listing answers: %w", err)
	}
	page := &Page[*Call]{Next: next}
	for _, c := range found {
		page.Items = append(page.Items, c.Call)
	}
	if err := s.fillVerification(ctx, tenant, page.Items); err != nil {
		return nil, fmt.Errorf("listing answers: %w", err)
	}
	return page, nil
}

// page returns the calls behind a cursor, and the cursor behind them.
func (s *Store) page(
	ctx context.Context, list, cursor string, f *filter,
) (calls []numberedCall, next string, err error) {
	if err = readCursor(list, cursor, &f.before); err != nil {
		return nil, "", err
	}
	found, err := s.list(ctx, f)
	if err != nil {
		return nil, "", err
	}
	calls, next = cut(found, f.limit-1, func(c numberedCall) string { return newCursor(list, c.n) })
	return calls, next, nil
}

// filter chooses calls.
type filter struct {
	tenant, conversation, run, verification string
	terms                                   termQuery
	before                                  int64 // calls.n
	limit                                   int
}

// list returns the calls of a filter, the newest first.
func (s *Store) list(ctx context.Context, f *filter) ([]numberedCall, error) {
	if s.postgres || len(f.terms) == 0 {
		return list(ctx, s.db, s.postgres, f)
	}
	tx, err := s.db.BeginTx(ctx, nil) // the index and the calls as of one moment
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, tx, false, f)
	return found, errors.Join(err, tx.Rollback())
}

func list(ctx context.Context, q querier, postgres bool, f *filter) ([]numberedCall, error) {
	if f.terms.impossible() {
		return nil, nil
	}
	c := conditions{where: []string{"tenant = $1", "n < $2"}, args: []any{lookup(f.tenant), f.before}}
	if f.conversation != "" {
		c.and("conversation = $", lookup(f.conversation))
	}
	if f.run != "" {
		c.and("run = $", lookup(f.run))
	}
	c.verification(f.verification)
	if postgres && len(f.terms) > 0 {
		c.and("terms @@ $::tsquery", f.terms.tsquery())
	}
	if postgres || len(f.terms) == 0 {
		return scanCalls(ctx, q, callColumns+c.newest(f.limit), c.args...)
	}
	var all []numberedCall
	what := append(termQuery{{{text: hashed(tenantTerm, f.tenant)}}}, f.terms...)
	err := searchIndex(ctx, q, what, f.before, func(ns []int64) (bool, error) {
		some := c.clone()
		some.in("n", ns)
		calls, err := scanCalls(ctx, q, callColumns+some.newest(f.limit-len(all)), some.args...)
		all = append(all, calls...)
		return len(all) >= f.limit, err
	})
	return all, err
}

// conditions builds what follows WHERE.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) clone() *conditions {
	return &conditions{slices.Clone(c.where), slices.Clone(c.args)}
}

// and adds a condition; the last $ stands for arg.
func (c *conditions) and(condition string, arg any) {
	i := strings.LastIndexByte(condition, '$')
	c.where = append(c.where, condition[:i]+c.param(arg)+condition[i+1:])
}

// in adds that a column has one of these numbers.
func (c *conditions) in(column string, ns []int64) {
	params := make([]string, 0, len(ns))
	for _, n := range ns {
		params = append(params, c.param(n))
	}
	c.where = append(c.where, column+" IN ("+strings.Join(params, ", ")+")")
}

func (c *conditions) param(arg any) string {
	c.args = append(c.args, arg)
	return "$" + strconv.Itoa(len(c.args))
}

// newest returns all conditions, for so many of the newest calls. They are chosen by their numbers: to sort whole calls
// would be to read them all.
func (c *conditions) newest(limit int) string {
	return "WHERE n IN (SELECT n FROM calls WHERE " + strings.Join(
		c.where, " AND ",
	) + " ORDER BY n DESC LIMIT " + c.param(
		limit,
	) + ") ORDER BY n DESC"
}

// numberedCall is a call with its place in the order of arrival.
type numberedCall struct {
	*Call
	n         int64
	refetched string
}

const callColumns = "SELECT n, step, refetched, call FROM calls "

// scanCalls runs a query for callColumns.
func scanCalls(ctx context.Context, q querier, query string, args ...any) ([]numberedCall, error) {
	var list []numberedCall
	err := each(ctx, q, func(rows *sql.Rows) error {
		c, err := scanCall(rows)
		list = append(list, c)
		return err
	}, query, args...)
	return list, err
}

// scanCall reads a row of callColumns.
func scanCall(rows *sql.Rows) (numberedCall, error) {
	var c numberedCall
	var step int
	var encoded []byte
	err := rows.Scan(&c.n, &step, &c.refetched, &encoded)
	if err != nil {
		return c, err
	}
	if c.Call, err = DecodeCall(encoded); err != nil {
		return c, fmt.Errorf("%w: %w", errDamaged, err)
	}
	c.Step.Number = step
	return c, nil
}

// A cursor is the numbers by which the last item of a page is sorted, behind a letter for the list that it is of.
func newCursor(list string, numbers ...int64) string {
	b := []byte(list)
	for i, n := range numbers {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, n, 36)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor reads the numbers of a cursor; the empty one is before everything.
func readCursor(list, cursor string, numbers ...*int64) error {
	if cursor == "" {
		for _, n := range numbers {
			*n = math.MaxInt64
		}
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	text, ok := strings.CutPrefix(string(b), list)
	parts := strings.Split(text, ".")
	if err != nil || !ok || len(parts) != len(numbers) {
		return fmt.Errorf("%w of this list: %.40q", ErrCursor, cursor)
	}
	for i, part := range parts {
		if *numbers[i], err = strconv.ParseInt(part, 36, 64); err != nil {
			return fmt.Errorf("%w of this list: %.40q", ErrCursor, cursor)
		}
	}
	return nil
}

func limitOf(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// cut takes the one item too many off that says that there is another page.
func cut[T any](items []T, limit int, cursor func(T) string) (page []T, next string) {
	if len(items) <= limit {
		return items, ""
	}
	return items[:limit], cursor(items[limit-1])
}
