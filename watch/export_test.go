package watch

import (
	"time"

	"github.com/ibidhq/ibid/store"
)

// After returns how long after a check of a source that had failed so often the next one is, without chance.
func (f *Freshness) After(failures int, err error) time.Duration {
	return f.after(&store.Recheck{Failures: failures}, err)
}

// Jittered returns d, more or less.
func Jittered(d time.Duration) time.Duration { return jittered(d) }
