package ibid

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Four times the text takes at most 2.3² times the work, whatever its shape. A shape fails only if every attempt does.
// With IBID_LINEAR=250000 the texts are that many bytes, so that also what is slow only in long texts is found.
func TestRenderLinear(t *testing.T) {
	size := 25_000
	if s := os.Getenv("IBID_LINEAR"); s != "" {
		var err error
		if size, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	const (
		times    = 4
		most     = 2.3 * 2.3
		attempts = 20
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, shape := range shapes {
		a, _ := boundsAnswer(shape(size), "T", "https://s.example/p")
		b, _ := boundsAnswer(shape(times*size), "T", "https://s.example/p")
		for _, style := range []string{"claims", "latex", "live"} { // the others do a part of the same
			short, long, ok := time.Hour, time.Hour, false
			for range attempts { // the least of each: what disturbs a measurement adds to it
				shortNow := cpuOf(t, func() { renderings[style](a) })
				longNow := cpuOf(t, func() { renderings[style](b) })
				short, long = min(short, shortNow), min(long, longNow)
				if ok = float64(long) <= most*float64(short) || float64(longNow) <= most*float64(shortNow); ok {
					break
				}
			}
			if !ok {
				t.Errorf("%s, %s: %v for %d bytes, %v for %d times as many", name, style, short, size, long, times)
			}
		}
	}
}

// cpuOf returns the CPU time that do takes on this thread, without collecting garbage. Other programs hardly change it.
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
	const memory = 1 << 30 // from here on garbage is collected all the same
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := used()
	do()
	return time.Duration(used() - before)
}
