package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// The number of items of a page: by default, and at most.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// Query selects from a list. Nil and the zero value select its first page, unfiltered. Conditions in several fields
// must all hold. Fields that do not apply to a list are ignored.
type Query struct {
	// Text selects answers that contain all of its words in their text, prompt, quotes or titles of sources. It is
	// plain text without any syntax. Its last word matches as a prefix unless it is followed by something that is not a
	// word.
	Text         string
	Source       string // the URL of a source, in any form, or its ibid.Source.Key
	Conversation string
	Run          string
	// Verification selects answers by the results of checking their citations: [VerifiedFailed],
	// [VerifiedUnverifiable], [VerifiedPassed] and [VerifiedUnchecked] by all of them, any other value by one with this
	// status.
	Verification string
	// Stepped selects runs that have more than one step or that an agent recorded: a single call is a run of its own.
	Stepped bool
	Cursor  string // Page.Next of the page before; empty for the first page
	Limit   int    // 0 means DefaultLimit; capped at MaxLimit
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Next  string // the cursor of the next page; empty on the last
}

// Conversation is a group of calls to which a client gave a common name.
type Conversation struct {
	ID      string
	Started time.Time // its first call
	Updated time.Time // its last call
	Answers int       // the number of its calls
	Calls   []*Call   // a page of its calls, oldest first; nil in a list
	Before  *Call     // the one before those; nil if there is none
	Next    string    // the cursor of the page that ends with Before; empty if there is none
	// Numbering has the numbers of all sources of the conversation, including those of deleted answers; nil in a list.
	Numbering ibid.Numbering
}

// Run is one piece of an agent's work: a single call, or the steps that its client named or recorded. [Store.Trail]
// returns all of it.
type Run struct {
	ID       string
	Agent    string
	Question string // as recorded; in a list only its beginning
	Strategy string // as recorded: name@version
	Started  time.Time
	Ended    time.Time // when its last call so far was answered, or its last recorded step ended
	Finished time.Time // when it ended, as recorded; zero if that was not recorded
	Answers  int       // the number of its calls
	Recorded int       // the number of its recorded steps

	Parent   string // the run that it is nested in, as recorded; this and the following are not in a list
	Answer   string // the final answer, as recorded; empty if it was not
	AnswerID string // the captured answer that was named as the final one

	Steps      []Step       // those of Calls, by number, with After filled in
	Calls      []*Call      // a page of its calls, by step, then oldest first
	Recordings []trail.Step // the recorded steps on the same page, by number; those without one come last
	Next       string       // the cursor of the page before it in time; empty if there is none
}

// SourceQuery selects uses of one source by URL or ID; at least one is required. With both, either match suffices.
type SourceQuery struct {
	URL    string // in any form: it is normalised
	ID     string // an ibid.Source.Key, a provider's global id, or the source's id in its answer
	Cursor string
	Limit  int
}

// SourceUse is the use of a source by an answer.
type SourceUse struct {
	Key          string // ibid.Source.Key
	URL          string
	Title        string
	AnswerID     string
	Conversation string
	Run          string
	Started      time.Time
	Citations    []SourceCitation // empty if the source was found but not cited
}

// SourceCitation is what was cited of a source: the answer's words and the source's.
type SourceCitation struct {
	CitedText string // empty if the citation has no place in the text
	Quote     string // empty if the provider sent none
}

// Call returns an answer with its call.
func (s *Store) Call(ctx context.Context, tenant, answerID string) (*Call, error) {
	c, err := readOne(
		ctx, s.db, scanCall, callColumns+"WHERE tenant = $1 AND answer_id = $2", lookup(tenant), lookup(answerID),
	)
	if err == nil {
		err = s.fillVerification(ctx, tenant, []*Call{c.Call})
	}
	if err != nil {
		return nil, fmt.Errorf("reading answer %q: %w", answerID, err)
	}
	return c.Call, nil
}

// Calls returns calls, most recently stored first; fetching one again counts as storing it. Calls that arrive while a
// list is paged through do not appear in its later pages, so nothing is listed twice.
func (s *Store) Calls(ctx context.Context, tenant string, q *Query) (*Page[*Call], error) {
	q = cmp.Or(q, &Query{})
	f := filter{
		tenant:       tenant,
		limit:        limitOf(q.Limit) + 1,
		conversation: q.Conversation,
		run:          q.Run,
		verification: q.Verification,
	}
	if q.Text != "" {
		words := queryWords(q.Text)
		for _, word := range words {
			f.terms = append(f.terms, []queryTerm{word})
		}
		if len(words) == 0 { // nothing lacks all words
			f.terms = append(f.terms, nil)
		}
	}
	if q.Source != "" {
		f.addSource(append(addressNames(q.Source), q.Source))
	}
	found, next, err := s.page(ctx, "a", q.Cursor, &f)
	page := &Page[*Call]{Next: next}
	for _, c := range found {
		page.Items = append(page.Items, c.Call)
	}
	if err == nil {
		err = s.fillVerification(ctx, tenant, page.Items)
	}
	if err != nil {
		return nil, fmt.Errorf("listing answers: %w", err)
	}
	return page, nil
}

// page returns the calls after a cursor, and the next cursor.
func (s *Store) page(
	ctx context.Context, letter, cursor string, f *filter,
) (calls []numberedCall, next string, err error) {
	if err = readCursor(letter, cursor, &f.before); err != nil {
		return nil, "", err
	}
	var found []numberedCall
	if s.postgres || len(f.terms) == 0 {
		found, err = list(ctx, s.db, s.engine, f)
	} else {
		found, err = s.listByIndex(ctx, f)
	}
	if err != nil {
		return nil, "", err
	}
	calls, next = trimPage(found, f.limit-1, func(c numberedCall) string { return newCursor(letter, c.n) })
	return calls, next, nil
}

// filter selects calls.
type filter struct {
	tenant, conversation, run, verification string
	terms                                   termQuery
	source                                  bool  // the terms include a source
	before                                  int64 // calls.n
	limit                                   int
}

// addSource selects calls with a source that has one of names.
func (f *filter) addSource(names []string) {
	list := make([]queryTerm, 0, len(names))
	for _, name := range names {
		list = append(list, queryTerm{text: hashed(sourceTerm, name)})
	}
	f.source, f.terms = true, append(f.terms, list)
}

// listByIndex is list for SQLite's index of terms, read in the same snapshot as the calls.
func (s *Store) listByIndex(ctx context.Context, f *filter) ([]numberedCall, error) {
	release, err := s.db.shares.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // returns it to the pool
	// Without ctx: if it ended while the transaction begins, the connection would be returned with an open transaction.
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, tx, s.engine, f)
	return found, errors.Join(err, tx.Rollback())
}

// list returns the calls that a filter selects, newest first.
func list(ctx context.Context, q querier, e engine, f *filter) ([]numberedCall, error) {
	if slices.ContainsFunc(f.terms, func(terms []queryTerm) bool { return len(terms) == 0 }) {
		return nil, nil
	}
	c := f.conditions()
	if len(f.terms) == 0 {
		return scanCalls(ctx, q, callColumns+c.newest(e, f.order(), f.limit), c.args...)
	}
	if e.postgres {
		c.and("terms @@ $::tsquery", f.terms.tsquery())
		// Planned for these words each time. A prepared statement gets one generic plan, which scans the answers in
		// order: good for common words, but slow for others.
		query := callColumns + c.newest(e, f.order(), f.limit)
		return scanCalls(ctx, q, query, append([]any{pgx.QueryExecModeExec}, c.args...)...)
	}
	var all []numberedCall
	what := f.terms
	// A tenant's term matches many answers, and is needless if no other tenant has any.
	shared, err := exists(ctx, q, "SELECT 1 FROM usage WHERE tenant <> $1 LIMIT 1", lookup(f.tenant))
	if err != nil {
		return nil, err
	}
	if shared {
		what = append(termQuery{{{text: hashed(tenantTerm, f.tenant)}}}, what...)
	}
	err = searchIndex(ctx, q, what, f.before, func(ns []int64) (bool, error) {
		some := conditions{slices.Clone(c.where), slices.Clone(c.args)}
		in(&some, "n", ns)
		calls, err := scanCalls(ctx, q, callColumns+some.newest(e, f.order(), f.limit-len(all)), some.args...)
		all = append(all, calls...)
		return len(all) >= f.limit, err
	})
	return all, err
}

// conditions returns the conditions other than terms.
func (f *filter) conditions() *conditions {
	c := conditionsOf(f.tenant)
	c.and(f.order()+" < $", f.before)
	c.andIfSet("conversation = $", lookup(f.conversation))
	c.andIfSet("run = $", lookup(f.run))
	c.verification(f.verification)
	return c
}

// order is the sort key of calls. The few calls of a conversation, a run or a source should be found by these: a sum is
// in no index, which keeps an engine from scanning all calls of the tenant in the order of n.
func (f *filter) order() string {
	if f.conversation != "" || f.run != "" || f.source {
		return "n + 0"
	}
	return "n"
}

// conditions builds a WHERE clause.
type conditions struct {
	where []string
	args  []any
}

// conditionsOf returns the condition that a row belongs to a tenant, whose parameter is $1.
func conditionsOf(tenant string) *conditions {
	return &conditions{where: []string{"tenant = $1"}, args: []any{lookup(tenant)}}
}

func (c *conditions) text() string { return strings.Join(c.where, " AND ") }

// and adds a condition; arg replaces the last $ in it.
func (c *conditions) and(condition string, arg any) {
	i := strings.LastIndexByte(condition, '$')
	c.where = append(c.where, condition[:i]+c.param(arg)+condition[i+1:])
}

// andIfSet adds a condition unless value is empty.
func (c *conditions) andIfSet(condition, value string) {
	if value != "" {
		c.and(condition, value)
	}
}

// in adds the condition that a column has one of values.
func in[T any](c *conditions, column string, values []T) {
	params := make([]string, 0, len(values))
	for _, v := range values {
		params = append(params, c.param(v))
	}
	c.where = append(c.where, column+" IN ("+strings.Join(params, ", ")+")")
}

func (c *conditions) param(arg any) string {
	c.args = append(c.args, arg)
	return "$" + strconv.Itoa(len(c.args))
}

// newest returns all conditions, for up to limit of the newest calls by [filter.order].
func (c *conditions) newest(e engine, order string, limit int) string {
	return e.first(c.text(), order+" DESC", c.param(limit))
}

// first returns what follows [callColumns] for the first calls in an order, which may have several columns. In SQLite
// they are selected by number, because sorting whole calls would read them all. PostgreSQL reads them anyway, and would
// look up each number in every partition.
func (e engine) first(where, order, limit string) string {
	sorted := "WHERE " + where + " ORDER BY " + order + " LIMIT " + limit
	if e.postgres {
		return sorted
	}
	return "WHERE n IN (SELECT n FROM calls " + sorted + ") ORDER BY " + order
}

// numberedCall is a call with its number in the order of arrival.
type numberedCall struct {
	*Call
	n         int64
	refetched string
}

const callColumns = "SELECT n, step, refetched, call FROM calls "

// scanCalls runs a query for callColumns.
func scanCalls(ctx context.Context, q querier, query string, args ...any) ([]numberedCall, error) {
	return collect(ctx, q, scanCall, query, args...)
}

// scanCall reads a row of callColumns.
func scanCall(rows *sql.Rows, c *numberedCall) error {
	var step int
	var encoded []byte
	err := rows.Scan(&c.n, &step, &c.refetched, &encoded)
	if err != nil {
		return err
	}
	if c.Call, err = DecodeCall(encoded); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	c.Step.Number = step
	return nil
}

// A cursor is a letter for its list, followed by the numbers by which the last item of a page is sorted.
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

// readCursor reads the numbers of a cursor; the empty cursor starts at the beginning.
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
	for i, n := range numbers {
		if *n, err = strconv.ParseInt(parts[i], 36, 64); err != nil {
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

// numberedList is a list of rows sorted by a number, highest first.
type numberedList[R, T any] struct {
	letter string // begins its cursors
	query  string // without conditions
	column string
	scan   func(*sql.Rows, *R) error
	item   func(*R) (T, int64) // the item for a row, and its number
}

// page returns the page of the rows after a cursor that meet c.
func (l *numberedList[R, T]) page(
	ctx context.Context, q querier, c *conditions, cursor string, limit int,
) (*Page[T], error) {
	var before int64
	if err := readCursor(l.letter, cursor, &before); err != nil {
		return nil, err
	}
	limit = limitOf(limit)
	c.and(l.column+" < $", before)
	found, err := collect(ctx, q, l.scan, l.query+" WHERE "+c.text()+" ORDER BY "+l.column+" DESC LIMIT "+
		c.param(limit+1), c.args...)
	if err != nil {
		return nil, err
	}
	page := &Page[T]{}
	found, page.Next = trimPage(found, limit, func(row R) string {
		_, n := l.item(&row)
		return newCursor(l.letter, n)
	})
	for i := range found {
		one, _ := l.item(&found[i])
		page.Items = append(page.Items, one)
	}
	return page, nil
}

// trimPage removes the extra item that indicates another page.
func trimPage[T any](items []T, limit int, cursor func(T) string) (page []T, next string) {
	if len(items) <= limit {
		return items, ""
	}
	return items[:limit], cursor(items[limit-1])
}
