package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ibidhq/ibid/store"
)

// After returns how long after a check of a source that had failed so often the next one is, without chance.
func (f *Freshness) After(failures int, err error) time.Duration {
	return f.after(&store.Recheck{Failures: failures}, err)
}

// Jittered returns d, more or less.
func Jittered(d time.Duration) time.Duration { return jittered(d) }

// Hurry makes the pauses after failures of a delivery this long, of which there are so many.
func (a *Alerts) Hurry(pause time.Duration, n int) {
	a.pauses = slices.Repeat([]time.Duration{pause}, n)
}

// LookAt looks at the keys and the database as Run does from time to time, at a time.
func (a *Alerts) LookAt(ctx context.Context, at time.Time) {
	a.now = func() time.Time { return at }
	a.look(ctx)
	a.keep(ctx)
}

// SignWebhook is signWebhook.
func SignWebhook(secret []byte, id, at string, body []byte) string {
	return signWebhook(secret, id, at, body)
}
