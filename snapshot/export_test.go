package snapshot

import (
	"context"
	"net/netip"
	"runtime"

	"code.dny.dev/ssrf"
)

// For tests outside the package.
const (
	DefaultUserAgent = defaultUserAgent
	MaxHeading       = maxHeading
	MaxURL           = maxURL
)

// CheckURL returns the error of a [Fetcher] for an address before anything is resolved or connected.
func CheckURL(url string, allow []netip.Prefix) error {
	if _, err := (&guard{allow, ssrf.New()}).target(url); err != nil {
		return err
	}
	return nil
}

// WaitWaiters waits until at least want callers wait for flights, and reports whether they do before the context ends.
func WaitWaiters(ctx context.Context, f *Fetcher, want int) bool {
	for ctx.Err() == nil {
		f.mu.Lock()
		n := 0
		for _, one := range f.flights {
			n += one.waiters
		}
		f.mu.Unlock()
		if n >= want {
			return true
		}
		runtime.Gosched()
	}
	return false
}
