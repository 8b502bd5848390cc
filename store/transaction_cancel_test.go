package store_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A call whose context ends during BEGIN leaves no transaction open: SQLite may have begun it all the same, and every
// later call would fail with "cannot start a transaction within a transaction".
func TestCancelledBeginning(t *testing.T) {
	t.Parallel()
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	memory := s.Memory("default")
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(rand.N(150*time.Microsecond), cancel)
		_ = memory.Replace(ctx, "manifest", "key", []byte("value"))
		timer.Stop()
		cancel()
		if err := memory.Replace(t.Context(), "manifest", "key", []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
}
