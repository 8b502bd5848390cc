package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

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
