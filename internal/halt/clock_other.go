//go:build !linux

package halt

import "time"

// ThreadTime returns a function that returns the time that has passed: an upper bound of the CPU time.
func ThreadTime() func() time.Duration { return TimePassed() }
