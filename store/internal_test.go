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

// The members of a conversation or a run are found by its index, however many answers the tenant has.
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

// PostgreSQL plans each search for its words: a prepared statement would get one plan for any words, which scans all
// answers of the tenant.
func TestSearchesAreNotPrepared(t *testing.T) {
	p := testenv.Postgres(t)
	s := testenv.Must(Open(t.Context(), p.Database(t, "plans"), nil))(t)
	defer s.Close()
	s.db.SetMaxOpenConns(1) // the connection whose prepared statements are examined
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

// Each lookup in the index begins with all entries that match. If few of these are in the result, there must not be a
// lookup for every few hundred answers: the time would grow with the square of their number.
func TestSearchLookups(t *testing.T) {
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

// Long reads on all connections do not delay checking whether a token is valid, and do not make the store look
// unavailable.
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

// Long reads of one tenant do not delay those of another.
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

// PostgreSQL's statement timeout is the operator's setting, or else half a minute; idle transactions end after the same
// time.
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
