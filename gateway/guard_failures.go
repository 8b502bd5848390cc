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

// The limits of what may be guessed.
const (
	failureBurst  = 20              // different wrong tokens from one address, at once
	failureEvery  = 3 * time.Second // and then one more in so long
	maxAddresses  = 4096            // whose wrong tokens are counted
	maxWrong      = 512             // wrong tokens that are remembered, so that each counts once
	maxRightful   = 4096            // right ones that are, so that no guesser keeps their holders out
	addressBits64 = 64              // of IPv6: who has one such address has all
)

// failures limits how many access tokens a client may guess, by its address: from then on it gets a 429 for every
// token that was not right before, without a look at it. A wrong token that is sent again and again, as by a program
// whose token was revoked, counts once.
//
// The address is that of the connection: behind a proxy all clients have one. Tokens that were right since the process
// began are looked at whatever their address did.
type failures struct {
	logger  *slog.Logger
	refused func(ctx context.Context, from netip.Prefix) // nil: nobody is told

	mu        sync.Mutex
	addresses map[netip.Prefix]*rate.Limiter
	wrong     map[[sha256.Size]byte]time.Time
	rightful  map[[sha256.Size]byte]struct{}
}

func newFailures(logger *slog.Logger, refused func(context.Context, netip.Prefix)) *failures {
	return &failures{
		refused:   refused,
		logger:    cmp.Or(logger, slog.New(slog.DiscardHandler)),
		addresses: map[netip.Prefix]*rate.Limiter{},
		wrong:     map[[sha256.Size]byte]time.Time{},
		rightful:  map[[sha256.Size]byte]struct{}{},
	}
}

// check returns the problem of a client that has guessed too often to be listened to now.
func (f *failures) check(r *http.Request, sum [sha256.Size]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter := f.addresses[clientAddress(r)]
	if limiter == nil {
		return nil
	}
	if _, ok := f.rightful[sum]; ok {
		return nil
	}
	if _, ok := f.wrong[sum]; ok {
		return nil // it is refused as ever
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

// right notes that a token was valid.
func (f *failures) right(sum [sha256.Size]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.rightful[sum]; !ok {
		makeRoom(f.rightful, maxRightful)
		f.rightful[sum] = struct{}{}
		delete(f.wrong, sum)
	}
}

// failed notes that a token was not valid, and logs it. There are never more lines than failures that are allowed.
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

// clientAddress returns the network that counts as one client: an IPv4 address, or 64 bits of an IPv6 one. The zero
// value stands for what has no address.
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
