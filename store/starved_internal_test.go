package store

import (
	"context"
	"path/filepath"
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
