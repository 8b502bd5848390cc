package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The limits on guessing.
const (
	failureBurst  = 20              // different invalid tokens from one address in a burst
	failureEvery  = 3 * time.Second // after that, one more per interval
	maxAddresses  = 4096            // addresses whose invalid tokens are counted
	maxWrong      = 512             // remembered invalid tokens, so that each counts once
	maxValid      = 4096            // remembered valid tokens, so that guessing does not lock out their holders
	addressBits64 = 64              // IPv6 prefix length: whoever has one such address has all
)

// failures limits how many access tokens a client may guess, by its address: beyond that, it gets a 429 for every token
// that was not valid before, without further checks. An invalid token that is sent repeatedly, as by a program whose
// token was revoked, counts once.
//
// The address is the connection's: behind a proxy, all clients share one. Tokens that were valid since the process
// started are checked regardless of their address.
type failures struct {
	logger  *slog.Logger
	refused func(ctx context.Context, from netip.Prefix) // may be nil

	mu        sync.Mutex
	addresses map[netip.Prefix]*rate.Limiter
	wrong     map[[sha256.Size]byte]time.Time
	valid     map[[sha256.Size]byte]struct{}
}

func newFailures(logger *slog.Logger, refused func(context.Context, netip.Prefix)) *failures {
	return &failures{
		refused:   refused,
		logger:    cmp.Or(logger, slog.New(slog.DiscardHandler)),
		addresses: map[netip.Prefix]*rate.Limiter{},
		wrong:     map[[sha256.Size]byte]time.Time{},
		valid:     map[[sha256.Size]byte]struct{}{},
	}
}

// check returns the problem of a client that has guessed too often to be checked now, or nil.
func (f *failures) check(r *http.Request, sum [sha256.Size]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter := f.addresses[clientAddress(r)]
	if limiter == nil {
		return nil
	}
	if _, ok := f.valid[sum]; ok {
		return nil
	}
	if _, ok := f.wrong[sum]; ok {
		return nil // it is refused as before
	}
	left := limiter.Tokens()
	if left >= 1 {
		return nil
	}
	return TooMany(
		time.Duration((1-left)*float64(failureEvery)), "too many access tokens from this address were not valid",
		"try again later; `ibid token list` shows which tokens there are",
	)
}

// succeeded records a valid token.
func (f *failures) succeeded(sum [sha256.Size]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.valid[sum]; !ok {
		makeRoom(f.valid, maxValid)
		f.valid[sum] = struct{}{}
		delete(f.wrong, sum)
	}
}

// failed records and logs an invalid token. At most as many lines are logged as failures are allowed.
func (f *failures) failed(ctx context.Context, r *http.Request, sum [sha256.Size]byte) {
	address := clientAddress(r)
	f.mu.Lock()
	_, again := f.wrong[sum]
	var left float64
	if !again {
		makeRoom(f.wrong, maxWrong)
		f.wrong[sum] = time.Now()
		limiter := f.addresses[address]
		if limiter == nil {
			makeRoom(f.addresses, maxAddresses)
			limiter = rate.NewLimiter(rate.Every(failureEvery), failureBurst)
			f.addresses[address] = limiter
		}
		limiter.Allow()
		left = limiter.Tokens()
	}
	f.mu.Unlock()
	if again {
		return
	}
	f.logger.LogAttrs(ctx, slog.LevelWarn, "an access token was refused",
		slog.String("address", address.String()), slog.Bool("limited", left < 1))
	if f.refused != nil {
		f.refused(ctx, address)
	}
}

// clientAddress returns the network that counts as one client: an IPv4 address, or a /64 of IPv6. It is the zero value
// if the address is unknown.
func clientAddress(r *http.Request) netip.Prefix {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	address := a.Addr().Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = addressBits64
	}
	prefix, err := address.Prefix(bits)
	if err != nil { // an address with a zone
		prefix, _ = address.WithZone("").Prefix(bits)
	}
	return prefix
}
