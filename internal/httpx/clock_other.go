//go:build !linux

package httpx

import "time"

// threadTime returns a function that returns the time that has passed: an upper bound of the CPU time.
func threadTime() func() time.Duration { return timePassed() }
