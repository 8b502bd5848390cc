package store

import (
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
		rows := testenv.Must(s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+callColumns+c.newest(f.order(), 50), c.args...))(t)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			testenv.OK(t, rows.Scan(&id, &parent, &unused, &step))
			plan = append(plan, step)
		}
		testenv.OK(t, rows.Err())
		if all := strings.Join(plan, "; "); !strings.Contains(all, index) {
			t.Errorf("want %s: %s", index, all)
		}
	}
}
