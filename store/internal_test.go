package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// What a conversation or a run has is found by the index of that, however many answers the tenant has.
func TestListsUseTheirIndex(t *testing.T) {
	s := testenv.Must(Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	for index, f := range map[string]filter{
		"calls_by_tenant": {}, "calls_by_conversation": {conversation: "c"}, "calls_by_run": {run: "r"},
	} {
		f.tenant, f.before = DefaultTenant, 100
		c := f.conditions()
		plan := testenv.Must(collect(t.Context(), s.db, func(rows *sql.Rows, step *string) error {
			var id, parent, unused int
			return rows.Scan(&id, &parent, &unused, step)
		}, "EXPLAIN QUERY PLAN "+callColumns+c.newest(engine{}, f.order(), 50), c.args...))(t)
		if all := strings.Join(plan, "; "); !strings.Contains(all, index) {
			t.Errorf("want %s: %s", index, all)
		}
	}
}

// PostgreSQL plans a search for its words: a statement that stays prepared would get one plan for any words, which goes
// through all answers of the tenant.
func TestSearchesAreNotPrepared(t *testing.T) {
	p := testenv.Postgres(t)
	s := testenv.Must(Open(t.Context(), p.Database(t, "plans"), nil))(t)
	defer s.Close()
	s.db.SetMaxOpenConns(1) // whose prepared statements are looked at
	for range 6 {
		testenv.Must(s.Calls(t.Context(), DefaultTenant, &Query{Text: "herons "}))(t)
		testenv.Must(s.Sources(t.Context(), DefaultTenant, &SourceQuery{URL: "https://heron.example/"}))(t)
	}
	var n int
	row := s.db.QueryRowContext(t.Context(),
		"SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%::tsquery%' AND statement LIKE '%FROM calls%'"+
			" AND statement NOT LIKE '%count(*)%'")
	testenv.OK(t, row.Scan(&n))
	if n > 0 {
		t.Errorf("%d searches are prepared", n)
	}
	f := filter{tenant: DefaultTenant}
	f.addSource([]string{"https://heron.example/"})
	if got := f.order(); got != "n + 0" {
		t.Errorf("uses of a source are in the order of %s, which is an index", got)
	}
}

// counted counts queries.
type counted struct {
	querier

	n int
}

func (c *counted) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.n++
	return c.querier.QueryContext(ctx, query, args...)
}

// Each question to the index begins with all that has the words. Where little of that is what is looked for, there must
// not be a question for each few hundred answers: the time would grow with the square of their number.
func TestSearchAsksSeldom(t *testing.T) {
	s := testenv.Must(Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	const all = 20_000
	testenv.OK(t, s.update(t.Context(), func(tx *transaction) error {
		return tx.exec(t.Context(), "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) "+
			"INSERT INTO words (rowid, terms) SELECT n, 'heron' FROM c", all)
	}))
	q := &counted{querier: s.db}
	seen := 0
	testenv.OK(t, searchIndex(t.Context(), q, termQuery{{{text: "heron"}}}, all, func(ns []int64) (bool, error) {
		if seen += len(ns); len(ns) > searchPage {
			t.Errorf("%d answers at a time", len(ns))
		}
		return false, nil
	}))
	testenv.Equal(t, "answers", all-1, seen)
	if q.n > 8 {
		t.Errorf("%d questions for %d answers", q.n, all)
	}
	q.n, seen = 0, 0
	testenv.OK(t, searchIndex(t.Context(), q, termQuery{{{text: "heron"}}}, all, func(ns []int64) (bool, error) {
		seen += len(ns)
		return seen >= 300, nil
	}))
	testenv.Equal(t, "questions for few answers", 2, q.n)
}

// Reads that take long, as many as there are connections, keep nobody from hearing whether a token is valid, and are not
// taken for a store that is away.
func TestTokensDoNotWaitForReads(t *testing.T) {
	s := testenv.Must(Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	secret := testenv.Must(s.NewToken(t.Context(), &Token{Name: "a", Tenant: "a", Scopes: []string{ScopeRead}}))(t)
	for range s.db.size {
		tx := testenv.Must(s.db.BeginTx(t.Context(), nil))(t)
		defer func() { _ = tx.Rollback() }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	testenv.Must(s.TokenBySecret(ctx, secret))(t)
	testenv.Must(s.Tokens(ctx))(t)
	testenv.OK(t, s.Ping(ctx))
}

// A tenant whose reads take long keeps no other tenant's waiting.
func TestReadsAreShared(t *testing.T) {
	s := testenv.Must(Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	var all sync.WaitGroup
	entered, leave := make(chan struct{}, 2*s.db.size), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	busy := WithReader(ctx, "busy")
	for range 2 * s.db.size {
		all.Go(func() {
			testenv.OK(t, each(busy, s.db, func(*sql.Rows) error {
				entered <- struct{}{}
				<-leave
				return nil
			}, "SELECT 1"))
		})
	}
	for range s.db.size / 2 {
		<-entered
	}
	for range 10 {
		testenv.Must(s.Calls(WithReader(ctx, "other"), "other", &Query{Text: "herons"}))(t)
		testenv.Must(s.Calls(WithReader(ctx, "other"), "other", nil))(t)
	}
	if n := len(entered); n > 0 {
		t.Errorf("%d more of the busy tenant's reads go on", n)
	}
	waits, end := context.WithTimeout(busy, time.Millisecond)
	defer end()
	if _, err := s.Calls(waits, "busy", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that does not get its turn: %v", err)
	}
	close(leave)
	all.Wait()
	if len(s.db.shares.byTenant) > 0 {
		t.Errorf("left: %v", s.db.shares.byTenant)
	}
}

// What PostgreSQL may take for a statement is what the operator says of it, else half a minute; and transactions in which
// nothing is asked for end as soon.
func TestStatementTime(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	for parameter, want := range map[string]string{"": "30s", "&statement_timeout=700": "700ms"} {
		s := testenv.Must(Open(t.Context(), dsn+parameter, nil))(t)
		for _, setting := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			var got string
			testenv.OK(t, each(t.Context(), s.db, into(&got), "SHOW "+setting))
			if got != want {
				t.Errorf("%s is %s with %q, not %s", setting, got, parameter, want)
			}
		}
		testenv.OK(t, s.Close())
	}
}
