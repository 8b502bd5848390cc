//go:build unix

package server

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections this process may open, or 0 if unknown.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // signed on some systems
}
