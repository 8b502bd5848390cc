//go:build linux || darwin

package pdf

import (
	"syscall"
	"time"
)

// limitProcess limits this process's data in bytes and its CPU time. A limit that the system refuses is left out: the
// parent ends the process anyway when its time is over.
func limitProcess(memory uint64, cpu time.Duration) {
	set := func(resource int, most uint64) {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			return
		}
		limit.Cur = min(limit.Max, most)
		limit.Max = limit.Cur
		_ = syscall.Setrlimit(resource, &limit) // as said above
	}
	set(syscall.RLIMIT_DATA, memory)
	set(syscall.RLIMIT_CPU, uint64(cpu/time.Second)+1)
	set(syscall.RLIMIT_CORE, 0)
}
