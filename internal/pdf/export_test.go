package pdf

import (
	"context"
	"time"
)

// The bounds of one reading, for its fuzz target.
const (
	MaxWork   = maxWork
	MaxMemory = maxMemory
)

// ReadHere reads a PDF in this process, and returns the work and the memory that were counted.
func ReadHere(ctx context.Context, b []byte, maxTime time.Duration) (d *Document, work, memory int, err error) {
	f := newFile(ctx, b, maxTime)
	d, err = f.read(100)
	return d, f.work, f.held, err
}

// LimitProcess limits this process as that of a PDF.
func LimitProcess(cpu time.Duration) { limitProcess(processMemory, cpu) }

// EndIsolation makes Read read in this process again.
func EndIsolation() { isolated.Store(nil) }
