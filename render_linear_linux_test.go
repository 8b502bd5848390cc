package ibid

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Doubling the text takes at most 2.3 times the CPU time and the memory, whatever its shape. The time is that for three
// doublings, because it is never exact. With IBID_LINEAR=250000 the texts are that many bytes, so that also what is slow
// only in long texts is found.
func TestRenderLinear(t *testing.T) {
	size := 12_500
	if s := os.Getenv("IBID_LINEAR"); s != "" {
		var err error
		if size, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	defer withMemory()()
	for name, shape := range shapes {
		for _, style := range []string{"claims", "latex", "live"} { // the others do a part of the same
			wrong := ""
			for _, n := range []int{size, 2 * size} { // what is not linear gets worse, what a cache does gets better
				var works []func()
				for _, times := range []int{1, 2, 8} {
					a, _ := boundsAnswer(shape(times*n), "T", "https://s.example/p")
					works = append(works, func() { renderings[style](a) })
				}
				if wrong = notLinear(t, works[0], works[1], works[2]); wrong == "" {
					break
				}
			}
			if wrong != "" {
				t.Errorf("%s, %s: %s", name, style, wrong)
			}
		}
	}
}

// notLinear returns what is wrong unless work on twice as much takes at most 2.3 times the memory of work, and that on
// eight times as much 2.3³ times the CPU time. The least of several measurements is compared, since what disturbs one
// adds to it.
func notLinear(t *testing.T, work, twice, eightTimes func()) string {
	t.Helper()
	const (
		most     = 2.3
		least    = 2 << 20 // bytes of memory that count
		attempts = 2       // at least
		patience = 20      // attempts at most
	)
	one, two := memoryOf(work), memoryOf(twice)
	if float64(two) > most*float64(max(one, least)) {
		return fmt.Sprintf("%d bytes of memory, %d for twice the text", one, two)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	short, long := time.Hour, time.Hour
	for n := 1; ; n++ {
		short, long = min(short, cpuOf(t, work)), min(long, cpuOf(t, eightTimes))
		if ok := float64(long) <= most*most*most*float64(short); ok && n >= attempts {
			return ""
		} else if n == patience {
			return fmt.Sprintf("%v of CPU time, %v for eight times the text", short, long)
		}
	}
}

// withMemory makes measurements comparable: garbage is collected between them only, and the memory that they use is there
// already. Call what it returns to undo it.
func withMemory() (undo func()) {
	const limit, ready = 1 << 30, 1 << 28
	most, percent := debug.SetMemoryLimit(limit), debug.SetGCPercent(-1)
	all := make([]byte, ready)
	for i := 0; i < ready; i += 4 << 10 {
		all[i] = 1
	}
	runtime.KeepAlive(all)
	return func() {
		debug.SetMemoryLimit(most)
		debug.SetGCPercent(percent)
	}
}

// memoryOf returns how many bytes do allocates.
func memoryOf(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// cpuOf returns the CPU time that do takes on this thread. Other programs hardly change it.
func cpuOf(t *testing.T, do func()) time.Duration {
	t.Helper()
	used := func() int64 {
		const thread = 3 // CLOCK_THREAD_CPUTIME_ID
		var ts syscall.Timespec
		_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, thread, uintptr(unsafe.Pointer(&ts)), 0)
		if failed != 0 {
			t.Skip("no clock of the thread's CPU time: ", failed)
		}
		return ts.Nano()
	}
	runtime.GC()
	before := used()
	do()
	return time.Duration(used() - before)
}
