package ibid

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Twice the text takes at most 2.3 times the work. It is measured as CPU time of this thread, which other programs
// hardly change, and a shape fails only if every attempt does.
func TestRenderLinear(t *testing.T) {
	if os.Getenv("IBID_LINEAR") == "" {
		t.Skip("IBID_LINEAR is not set: it needs a quiet machine")
	}
	const (
		size     = 200_000
		most     = 2.3
		attempts = 20
	)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for _, style := range []string{"html", "latex", "live"} {
				short, long := time.Hour, time.Hour
				a, _ := boundsAnswer(shape(size), "T", "https://s.example/p")
				b, _ := boundsAnswer(shape(2*size), "T", "https://s.example/p")
				for range attempts { // the least of each: what disturbs a measurement adds to it
					short = min(short, cpuOf(t, func() { renderings[style](a) }))
					long = min(long, cpuOf(t, func() { renderings[style](b) }))
					if float64(long) <= most*float64(short) {
						break
					}
				}
				if float64(long) > most*float64(short) {
					t.Errorf("%s: %v for %d bytes, %v for twice as many", style, short, size, long)
				}
			}
		})
	}
}

// cpuOf returns the CPU time that do takes on this thread.
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
	before := used()
	do()
	return time.Duration(used() - before)
}
