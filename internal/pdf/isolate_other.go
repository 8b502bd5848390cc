//go:build !linux && !darwin

package pdf

import "time"

// limitProcess does nothing here: the reader counts its work and memory, and the parent ends this process when its time
// is over.
func limitProcess(uint64, time.Duration) {}
