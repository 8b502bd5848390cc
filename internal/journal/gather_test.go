package journal

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Writers who come at about the same time share a sync, once they have shown that they do. Somebody alone never waits.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const syncTime = 150 * time.Microsecond
		var syncs atomic.Int64
		counted := realDisk()
		counted.sync = func(*os.File) error {
			syncs.Add(1)
			time.Sleep(syncTime)
			return nil
		}
		j, err := open(t.TempDir(), nil, counted)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		round := func(writers int) (took time.Duration) {
			begin := time.Now()
			var group sync.WaitGroup
			for i := range writers {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 10 * time.Microsecond) // not all at once
					p, err := j.Append([]byte("record"))
					if err == nil {
						err = j.Sync(t.Context(), p)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			return time.Since(begin)
		}
		alone := func() {
			t.Helper()
			waited := 0
			for range 10 * probeEvery {
				if round(1) != syncTime {
					waited++
				}
			}
			if waited > 11 { // one in probeEvery, and once for those who are gone
				t.Errorf("somebody alone waited %d times in %d", waited, 10*probeEvery)
			}
		}
		alone()
		for range 2 * probeEvery {
			round(32)
		}
		syncs.Store(0)
		for range 100 {
			if took := round(32); took > 2*gatherWait+time.Millisecond {
				t.Errorf("a round took %v", took)
			}
		}
		if n := syncs.Load(); n > 250 {
			t.Errorf("100 times 32 writers took %d syncs", n)
		}
		alone()
	})
}
