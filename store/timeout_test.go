package store_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// throughRelay returns the DSN of a database behind a relay, with other parameters.
func throughRelay(t *testing.T, dsn, parameters string) (*testenv.Relay, string) {
	t.Helper()
	u := testenv.Must(url.Parse(dsn))(t)
	r := testenv.Must(testenv.NewRelay("unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")))(t)
	t.Cleanup(r.Close)
	return r, "postgres://postgres@" + r.Addr() + u.Path + "?sslmode=disable&" + parameters
}

// Silently dead connections to PostgreSQL block nobody for longer than a statement may take, idle or in the middle of
// one, and their locks are released.
func TestSilentDatabase(t *testing.T) {
	relay, dsn := throughRelay(t, testenv.Postgres(t).DSN, "statement_timeout=1000")
	s := open(t, dsn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const writers, each = 4, 25
	var group sync.WaitGroup
	var once sync.Once
	for w := range writers {
		group.Go(func() {
			for i := range each {
				one := call(w*each+i, "Hello.")
				one.Conversation = "the same" // they lock each other out
				for {
					err := s.Put(ctx, []*store.Call{one})
					if err == nil {
						break
					}
					if !store.IsTemporary(err) || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("storing answer %d of writer %d: %v", i, w, err)
						return
					}
				}
				if i == each/2 {
					once.Do(relay.BreakSilently)
				}
			}
		})
	}
	group.Wait()
	relay.BreakSilently()
	for _, err := s.Calls(ctx, store.DefaultTenant, &store.Query{}); err != nil; {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		_, err = s.Calls(ctx, store.DefaultTenant, &store.Query{})
	}
	if n := len(ids(t, s, store.Query{})); n != writers*each {
		t.Errorf("%d answers of %d", n, writers*each)
	}
}
