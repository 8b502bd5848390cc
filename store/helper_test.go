package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
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

// engines runs a test on SQLite and on PostgreSQL.
func engines(t *testing.T, run func(t *testing.T, dsn func(t *testing.T) string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		run(t, func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "ibid.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		server := testenv.Postgres(t)
		var mu sync.Mutex
		n := 0
		run(t, func(t *testing.T) string {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			n++
			return server.Database(t, fmt.Sprintf("t%d", n))
		})
	})
}

func open(tb testing.TB, dsn string) *store.Store {
	tb.Helper()
	s := testenv.Must(store.Open(context.Background(), dsn, &store.Options{Wait: time.Minute}))(tb)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// raw opens the database of a store directly.
func raw(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if store.IsPostgres(dsn) {
		driver = "pgx"
	}
	db := testenv.Must(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// noon is the base time of the tests' calls: each starts a second after the one with the number before.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// call is the n-th call of a test, in conversation conv. Its answer has the given text and cites a page of each site.
func call(n int, text string, sites ...string) *store.Call {
	a := &ibid.Answer{
		ID: fmt.Sprintf("resp_%d", n), Provider: "openai", Format: "openai-responses", Model: "m", Text: text, Complete: true,
		Finish: ibid.FinishStop, Parts: []ibid.Part{{Span: ibid.Span{End: len(text)}, Kind: ibid.AnswerPart}},
	}
	for i, site := range sites {
		id := fmt.Sprintf("web:%d", i)
		a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.Web, Title: "About " + site, URL: "https://" + site + "/page"})
		if err := a.Cite(ibid.Span{End: len(text)}, ibid.Ref{Source: id, Quote: "as said by " + site}); err != nil {
			panic(err)
		}
	}
	return &store.Call{
		AnswerID: fmt.Sprintf("ans_%04d", n), Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses",
		Run: fmt.Sprintf("run_%d", n), Status: 200, Started: noon().Add(time.Duration(n) * time.Second),
		FirstByte: 200 * time.Millisecond, Duration: time.Second, Bytes: 4096, Answer: a,
	}
}

func put(tb testing.TB, s *store.Store, calls ...*store.Call) {
	tb.Helper()
	testenv.OK(tb, s.Put(tb.Context(), calls))
}

// ids lists the answers of a query, page by page.
func ids(tb testing.TB, s *store.Store, q store.Query) []string {
	tb.Helper()
	list := []string{}
	for {
		page, err := s.Calls(tb.Context(), store.DefaultTenant, &q)
		if err != nil {
			tb.Fatalf("Calls(%+v): %v", q, err)
		}
		for _, c := range page.Items {
			list = append(list, strings.TrimPrefix(c.AnswerID, "ans_000"))
		}
		if page.Next == "" {
			return list
		}
		q.Cursor = page.Next
	}
}

// shown returns everything that a reader can see of a call.
func shown(tb testing.TB, c *store.Call) string {
	tb.Helper()
	copied := *c
	document := testenv.Must(c.Answer.Document(&ibid.DocumentOptions{Raw: true, AnswerID: c.AnswerID}).JSON())(tb)
	copied.Answer = nil
	rest := testenv.Must(json.Marshal(copied))(tb)
	return string(rest) + string(document)
}

func diff(tb testing.TB, about string, got, want any) {
	tb.Helper()
	testenv.Equal(tb, about, want, got)
}
