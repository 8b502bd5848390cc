//go:build unix

package server

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections this process may have open; 0: it is not known.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // on some systems it is signed
}
