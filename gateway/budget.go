package gateway

import (
	"fmt"
	"net/http"
	"sync"
)

// Budget shares something that is scarce among those who make requests: bytes that are held, calls that are served. No
// tenant has all of it, and no token all of its tenant's, so that one cannot starve the others. Its methods may be
// called at the same time; the zero value has nothing to give.
type Budget struct {
	what               string // in the words of a problem: "bytes of requests"
	all, tenant, token int64

	mu   sync.Mutex
	held map[sharer]int64
	sum  int64
}

// sharer is a tenant, or one of its tokens.
type sharer struct{ tenant, token string }

// NewBudget returns a budget of so much of something, of which a tenant has half and a token a quarter, but at least so
// much that one request can be served. What names it, as in "bytes of requests".
func NewBudget(what string, all, one int64) *Budget {
	return &Budget{
		what: what, all: all, tenant: max(all/2, min(one, all)), token: max(all/4, min(one, all)),
		held: map[sharer]int64{},
	}
}

// Hold takes n for a request. The error is a problem: it says who has too much of it, and is a 429 where that is the
// caller, else a 503.
func (b *Budget) Hold(who Identity, n int64) error {
	tenant, token := sharer{tenant: who.Tenant}, sharer{who.Tenant, who.Token}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case who.Token != "" && b.held[token]+n > b.token:
		return b.tooMuch("access token")
	case b.held[tenant]+n > b.tenant:
		return b.tooMuch("tenant")
	case b.sum+n > b.all:
		p := Unavailable("too many " + b.what + " are held at the same time")
		p.Hint = "try again in a moment"
		return p
	}
	b.sum += n
	b.held[tenant] += n
	if who.Token != "" {
		b.held[token] += n
	}
	return nil
}

func (b *Budget) tooMuch(whose string) error {
	p := NewProblem(CodeTooMany, fmt.Sprintf("too many %s of this %s are held at the same time", b.what, whose),
		"try again when others have ended")
	p.Header = http.Header{"Retry-After": {"2"}}
	return p
}

// Release gives back n of what a request held.
func (b *Budget) Release(who Identity, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum -= n
	for _, s := range []sharer{{tenant: who.Tenant}, {who.Tenant, who.Token}} {
		if b.held[s] -= n; b.held[s] <= 0 {
			delete(b.held, s)
		}
		if who.Token == "" {
			return
		}
	}
}

// Held returns how much is held.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}
