package store

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

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
