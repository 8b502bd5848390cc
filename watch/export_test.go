package watch

import (
	"context"
	"slices"
	"time"

	"github.com/ibidhq/ibid/store"
)

// After returns the interval after a check of a source with so many failures, without jitter.
func (f *Freshness) After(failures int, err error) time.Duration {
	return f.after(&store.Recheck{Failures: failures}, err)
}

// Jittered returns d with jitter.
func Jittered(d time.Duration) time.Duration { return jittered(d) }

// Hurry replaces the pauses after failed deliveries with n pauses of this length.
func (a *Alerts) Hurry(pause time.Duration, n int) {
	a.pauses = slices.Repeat([]time.Duration{pause}, n)
}

// LookAt checks the keys and the database as Run does periodically, at a given time.
func (a *Alerts) LookAt(ctx context.Context, at time.Time) {
	a.now = func() time.Time { return at }
	a.look(ctx)
	a.keep(ctx)
}

// SignWebhook is signWebhook.
func SignWebhook(secret []byte, id, at string, body []byte) string {
	return signWebhook(secret, id, at, body)
}
