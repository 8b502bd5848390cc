package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/store"
)

// Budget divides a limited resource, such as bytes held or calls served, among those who make requests. No tenant may
// use all of it, and no token all of its tenant's share, so that one cannot starve the others. It is safe for
// concurrent use. The zero value has nothing to give.
type Budget struct {
	what               string // as in a problem's text: "bytes of requests"
	all, tenant, token int64

	mu   sync.Mutex
	held map[sharer]int64
	sum  int64
}

// sharer is a tenant or one of its tokens.
type sharer struct{ tenant, token string }

// NewBudget returns a budget of size all. A tenant may hold half of it and a token a quarter, but at least one, the
// largest size of a single request. what describes the resource, as in "bytes of requests".
func NewBudget(what string, all, one int64) *Budget {
	return &Budget{
		what: what, all: all, tenant: max(all/2, min(one, all)), token: max(all/4, min(one, all)),
		held: map[sharer]int64{},
	}
}

// Hold reserves n for a request. The error is a problem that names the exceeded share: a 429 if it is the caller's,
// else a 503.
func (b *Budget) Hold(who Identity, n int64) error { return b.HoldMore(who, 0, n) }

// HoldMore reserves n more for a request that already holds has. A request that would need more than its caller's whole
// share is a 413: it would fail again.
func (b *Budget) HoldMore(who Identity, has, n int64) error {
	tenant, token := sharer{tenant: who.Tenant}, sharer{who.Tenant, who.Token}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case has+n > b.tenant || who.Token != "" && has+n > b.token:
		return NewProblem(
			CodeTooLarge, fmt.Sprintf("it needs more than the %s that one caller may hold", b.what),
			"ask for less at a time, or give ibid more memory: docs/serve.md, Limits",
		)
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
	return TooMany(
		2*time.Second, fmt.Sprintf("too many %s of this %s are held at the same time", b.what, whose),
		"try again when other calls have ended",
	)
}

// Release returns n of what a request held.
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

const (
	// DefaultPace is the default time for the next 32 KiB of a body to arrive.
	DefaultPace = 10 * time.Second
	// paceBytes is how much of a body has to arrive in that time.
	paceBytes = 32 << 10
)

// NewPaced returns a reader of a request's body that times out if the body arrives too slowly: if the next 32 KiB do
// not arrive within pace, or the whole body not by end (zero means no such limit). A client that stops halfway would
// otherwise hold memory that others need. After [Paced.Done], the deadline no longer applies.
func NewPaced(body io.Reader, w http.ResponseWriter, pace time.Duration, end time.Time) *Paced {
	p := &Paced{body: body, w: w, pace: pace, end: end}
	p.extend()
	return p
}

// Paced is a body with a minimum pace. Use [NewPaced].
type Paced struct {
	body     io.Reader
	w        http.ResponseWriter
	pace     time.Duration
	end      time.Time
	received int // bytes since the deadline was set
}

func (p *Paced) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	if p.received += n; p.received >= paceBytes {
		p.extend()
	}
	return n, err
}

// Done removes the deadline.
func (p *Paced) Done() { setReadDeadline(p.w, time.Time{}) }

func (p *Paced) extend() {
	next := time.Now().Add(p.pace)
	if !p.end.IsZero() && next.After(p.end) {
		next = p.end
	}
	p.received = 0
	setReadDeadline(p.w, next)
}

// quotaEvery is how often the store is asked how much is stored.
const quotaEvery = 10 * time.Second

// quota is how much a tenant may store, and how much it has stored.
type quota struct {
	limit int64
	used  atomic.Int64
}

// errQuota reports that a tenant has used up its quota.
var errQuota = errors.New("the tenant's stored answers have as many bytes as its quota allows")

// overQuota counts an answer that is not kept because of the quota, and raises an alert once a day.
func (g *Gateway) overQuota(tenant string) {
	g.metrics.failed(failedQuota)
	q := g.quotas[tenant]
	g.alert(&store.Alert{
		Kind: store.AlertQuota, Tenant: tenant,
		Subject: store.AlertSubject{Since: time.Now().UTC().Format(time.DateOnly)},
		Summary: fmt.Sprintf("New answers are not kept: the tenant's stored answers have %s bytes; its quota is %s.",
			shownBytes(q.used.Load()), shownBytes(q.limit)),
	})
}

// shownBytes formats a number of bytes with at most four digits.
func shownBytes(n int64) string {
	f := float64(n)
	for _, unit := range []string{"", " Ki", " Mi", " Gi"} {
		if f < 1024 {
			return fmt.Sprintf("%.4g%s", math.Floor(f*10)/10, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.4g Ti", f)
}

// countStored asks the store how much the tenants with a quota have stored. If that fails, the last numbers remain.
func (g *Gateway) countStored(ctx context.Context) {
	usage, err := g.options.Store.Usage(ctx, slices.Collect(maps.Keys(g.quotas)))
	if err != nil {
		g.log.LogAttrs(ctx, slog.LevelDebug, "cannot determine how much is stored", slog.Any("error", err))
		return
	}
	for tenant, q := range g.quotas {
		q.used.Store(usage[tenant])
	}
}
