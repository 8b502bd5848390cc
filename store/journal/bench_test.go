package journal

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkSync measures how long it takes until a record is durable.
func BenchmarkSync(b *testing.B) {
	for _, writers := range []int{1, 8, 32} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			j := openFor(b, b.TempDir(), nil)
			took := make([][]time.Duration, writers)
			work := make(chan struct{})
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for range work {
						start := time.Now()
						p, err := j.Append(make([]byte, 4096))
						if err == nil {
							err = j.Sync(b.Context(), p)
						}
						if err == nil && p%64 == 0 {
							err = j.Release(p)
						}
						if err != nil {
							b.Error(err)
						}
						took[w] = append(took[w], time.Since(start))
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			all := slices.Concat(took...)
			slices.Sort(all)
			for name, at := range map[string]int{"p50-ms": len(all) / 2, "p99-ms": len(all) * 99 / 100} {
				b.ReportMetric(float64(all[at].Microseconds())/1000, name)
			}
		})
	}
}
