package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

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
	if len(s.db.shares.taken) > 0 {
		t.Errorf("left: %v", s.db.shares.taken)
	}
}
