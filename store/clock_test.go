package store_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// The clock jumps by an hour during a lease: another caller gets the source only if the lease has ended, only one of
// two results counts, and work is done when the clock reaches its due time.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			var off atomic.Int64
			now := func() time.Time { return noon().Add(time.Duration(off.Load())) }
			s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), &store.Options{Now: now, Track: true}))(t)
			defer s.Close()
			put(t, s, call(1, "Herons.", "herons.example"))
			const lease = time.Minute
			claim := func() []store.Recheck {
				t.Helper()
				return testenv.Must(s.DueRechecks(t.Context(), 10, lease))(t)
			}
			first := claim()
			if len(first) != 1 || len(claim()) != 0 {
				t.Fatalf("%d are due at first", len(first))
			}
			off.Store(int64(jump))
			second := claim()
			if forward := jump > 0; (len(second) == 1) != forward {
				t.Fatalf("%d are due after the jump", len(second))
			}
			// The first holder finishes, an hour later or earlier.
			testenv.OK(t, s.SetRecheck(t.Context(), &first[0], now().Add(time.Hour), true))
			for i := range second {
				testenv.OK(t, s.SetRecheck(t.Context(), &second[i], now().Add(time.Hour), false))
			}
			if len(claim()) != 0 {
				t.Error("it is due before its time")
			}
			off.Add(int64(time.Hour))
			again := claim()
			if len(again) != 1 {
				t.Fatal("it is never due again")
			}
			if want := 1 - len(second); again[0].Failures != want { // of the two, the last holder's counts
				t.Errorf("%d failures are counted, not %d", again[0].Failures, want)
			}
			// The holder dies with the lease, and the clock goes back: the recheck is delayed by that.
			off.Add(int64(-time.Hour))
			if len(claim()) != 0 {
				t.Error("it is due during a lease")
			}
			off.Add(int64(time.Hour + lease))
			if len(claim()) != 1 {
				t.Error("a lease sticks")
			}
		})
	}
}
