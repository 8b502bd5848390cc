package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Several prune at once, as the nodes of a gateway do each hour: what has answers that are kept keeps them.
func exercisePruneTogether(t *testing.T, dsn string) {
	t.Helper()
	stores := []*store.Store{open(t, dsn), open(t, dsn), open(t, dsn)}
	var calls []*store.Call
	for n := range 600 {
		c := call(n, "Old or new.", fmt.Sprintf("s%d.example", n%9))
		c.Run, c.Conversation = fmt.Sprint("run", n%5), fmt.Sprint("talk", n%5)
		if n >= 590 {
			c.Started = c.Started.Add(1000 * time.Hour)
		}
		calls = append(calls, c)
	}
	put(t, stores[0], calls...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum store.PruneReport
	for _, s := range stores {
		wg.Go(func() {
			report, err := s.Prune(t.Context(), &store.Retention{Default: time.Hour, Now: noon().Add(10 * time.Hour)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Answers += report.Answers
			sum.Conversations += report.Conversations
		})
	}
	wg.Wait()
	diff(t, "together", sum, store.PruneReport{Answers: 590})
	for n := range 5 {
		talk, err := stores[1].Conversation(t.Context(), store.DefaultTenant, fmt.Sprint("talk", n), nil)
		if err != nil || talk.Answers != 2 || len(talk.Calls) != 2 || len(talk.Numbering) != 9 {
			t.Errorf("conversation: %+v, %v", talk, err)
		}
		run, err := stores[2].Run(t.Context(), store.DefaultTenant, fmt.Sprint("run", n), nil)
		if err != nil || run.Answers != 2 || len(run.Calls) != 2 {
			t.Errorf("run: %+v, %v", run, err)
		}
	}
}

// An answer that is deleted while it is fetched again stays deleted, and its conversation with it.
func exerciseRefetchOfDeleted(t *testing.T, dsn string) {
	t.Helper()
	one, other := open(t, dsn), open(t, dsn)
	for n := range 40 {
		first := call(n, "First.", "a.example")
		first.Conversation, first.Run = fmt.Sprint("talk", n), fmt.Sprint("talk", n)
		put(t, one, first)
		later := call(1000+n, "Later.", "b.example")
		later.Refetch, later.Answer.ID = true, first.Answer.ID
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := one.Delete(t.Context(), store.DefaultTenant, first.AnswerID); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := other.Put(t.Context(), []*store.Call{later}); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, err := one.Call(t.Context(), store.DefaultTenant, first.AnswerID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d: %v", n, err)
		}
		if _, err := one.Conversation(t.Context(), store.DefaultTenant, first.Conversation, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d: its conversation: %v", n, err)
		}
	}
}

// An answer may have more sources than are found by their names.
func exerciseManySources(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "Very many.")
	for n := range 20_500 {
		id := fmt.Sprintf("source-%d", n)
		c.Answer.Sources = append(c.Answer.Sources, ibid.Source{ID: id, Kind: ibid.Web, URL: "https://many.example/" + id})
	}
	put(t, s, c)
	for _, q := range []store.Query{{Source: "https://many.example/source-0"}, {Text: "very many"}} {
		if got := ids(t, s, q); len(got) != 1 {
			t.Errorf("%+v finds %q", q, got)
		}
	}
}

// A refetch that cannot find what it is of, because that is damaged, is dropped: it does not hold up others.
func exerciseDamaged(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "First.")
	c.Conversation = "talk"
	put(t, s, c)
	driver := "sqlite"
	if strings.HasPrefix(dsn, "postgres") {
		driver = "pgx"
	}
	db := testenv.Must(sql.Open(driver, dsn))(t)
	defer db.Close()
	testenv.Must(db.Exec("UPDATE calls SET call = '{'"))(t)
	if _, err := s.Call(t.Context(), c.Tenant, c.AnswerID); err == nil || store.IsTemporary(err) {
		t.Errorf("reading it: %v", err)
	}
	again, of := call(2, "Later."), call(3, "Later.")
	again.Refetch, again.Answer.ID, of.Of = true, c.Answer.ID, c.AnswerID
	put(t, s, again, of, call(4, "Another."))
	if got, err := s.Call(t.Context(), store.DefaultTenant, "ans_0004"); err != nil || got.Answer.Text != "Another." {
		t.Errorf("another: %+v, %v", got, err)
	}
}

// So is one that the index, damaged, does not find.
func TestIndexDamagedRefetch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := open(t, name)
	put(t, s, call(1, "First."))
	db := testenv.Must(sql.Open("sqlite", name))(t)
	defer db.Close()
	testenv.Must(db.Exec("UPDATE words_data SET block = x'ff00ff' WHERE id > 10"))(t)
	again := call(2, "Later.")
	again.Refetch, again.Answer.ID = true, "resp_1"
	put(t, s, again, call(3, "Another."))
	if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0003"); err != nil {
		t.Error(err)
	}
	if _, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "first"}); err == nil || store.IsTemporary(err) {
		t.Errorf("searching: %v", err)
	}
}
