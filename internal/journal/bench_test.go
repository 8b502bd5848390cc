package journal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// What appending costs its caller. The disk's part is not timed: every hundredth record is waited for beside the clock.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{256, 4096, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j := open1(b, b.TempDir(), &Options{GroupWait: time.Hour})
			record := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				p, err := j.Append(record)
				if err != nil {
					b.Fatal(err)
				}
				if n%100 == 0 {
					b.StopTimer()
					if err := errors.Join(j.Sync(b.Context(), p), j.Release(p)); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// How long it takes until a record is durable.
func BenchmarkSync(b *testing.B) {
	for _, writers := range []int{1, 8, 32} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			j := open1(b, b.TempDir(), nil)
			record := make([]byte, 4096)
			took := make([][]time.Duration, writers)
			work := make(chan struct{})
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for range work {
						start := time.Now()
						p, err := j.Append(record)
						if err == nil {
							err = j.Sync(b.Context(), p)
						}
						if err != nil {
							b.Error(err)
						}
						took[w] = append(took[w], time.Since(start))
					}
				})
			}
			b.SetBytes(int64(len(record)))
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func BenchmarkNext(b *testing.B) {
	j := open1(b, b.TempDir(), nil)
	record := make([]byte, 4096)
	const n = 4096
	for range n {
		if _, err := j.Append(record); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Sync(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	r := j.Reader()
	defer func() { r.Close() }()
	for b.Loop() {
		p, _, err := r.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if p == n {
			r.Close()
			r = j.Reader()
		}
	}
}
