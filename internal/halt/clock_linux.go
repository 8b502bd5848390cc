package halt

import (
	"syscall"
	"time"
	"unsafe"
)

// ThreadTime returns a function that returns the CPU time that the calling thread has used since. Any thread may call
// it while that thread lives.
func ThreadTime() func() time.Duration {
	// clock_getcpuclockid(3): the complement of the thread's id, and that it is a thread's, and its scheduler's clock.
	clock := ^uintptr(syscall.Gettid())<<3 | 1<<2 | 2
	read := func() (time.Duration, bool) {
		var ts syscall.Timespec
		_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock,
			uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // as unsafe.Pointer allows
		return time.Duration(ts.Nano()), failed == 0
	}
	begin, ok := read()
	if !ok {
		return TimePassed()
	}
	return func() time.Duration {
		now, _ := read()
		return now - begin
	}
}
