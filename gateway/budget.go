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
	return TooMany(
		2*time.Second, fmt.Sprintf("too many %s of this %s are held at the same time", b.what, whose),
		"try again when others have ended",
	)
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

const (
	// DefaultPace is in which time the next 32 KiB of a body have to arrive, unless told otherwise.
	DefaultPace = 10 * time.Second
	// paceBytes is how much of a body has to arrive in each of these times.
	paceBytes = 32 << 10
)

// NewPaced returns a reader of a request's body that times out where the body comes too slowly: where the next
// 32 KiB do not come within pace, or all of it not by end (zero: no such limit). A client that stops in the middle
// would otherwise hold memory that others need. What follows the body may take as long as it likes once [Paced.Done]
// was called.
func NewPaced(body io.Reader, w http.ResponseWriter, pace time.Duration, end time.Time) *Paced {
	p := &Paced{body: body, w: w, pace: pace, end: end}
	p.extend()
	return p
}

// Paced is a body that has to keep pace. Get one from [NewPaced].
type Paced struct {
	body io.Reader
	w    http.ResponseWriter
	pace time.Duration
	end  time.Time
	come int // since the deadline was set
}

func (p *Paced) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	if p.come += n; p.come >= paceBytes {
		p.extend()
	}
	return n, err
}

// Done takes the deadline away.
func (p *Paced) Done() { setReadDeadline(p.w, time.Time{}) }

func (p *Paced) extend() {
	next := time.Now().Add(p.pace)
	if !p.end.IsZero() && next.After(p.end) {
		next = p.end
	}
	p.come = 0
	setReadDeadline(p.w, next)
}

// quotaEvery is how often the store is asked how much there is.
const quotaEvery = 10 * time.Second

// quota is how much a tenant may have stored, and has.
type quota struct {
	most int64
	used atomic.Int64
}

// errQuota says that a tenant has as much as it may.
var errQuota = errors.New("the tenant's stored answers have as many bytes as its quota allows")

// overQuota counts that an answer is not kept because of the quota, and tells of it once a day.
func (g *Gateway) overQuota(tenant string) {
	g.metrics.failed(failedQuota)
	q := g.quotas[tenant]
	g.alert(&store.Alert{
		Kind: store.AlertQuota, Tenant: tenant,
		Subject: store.AlertSubject{Since: time.Now().UTC().Format(time.DateOnly)},
		Summary: fmt.Sprintf("New answers are not kept: those of the tenant have %s bytes, and may have %s.",
			shownBytes(q.used.Load()), shownBytes(q.most)),
	})
}

// shownBytes writes a number of bytes with four digits at most.
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

// countStored asks the store how much the tenants with a quota have. While that is not known the last number counts.
func (g *Gateway) countStored(ctx context.Context) {
	usage, err := g.options.Store.Usage(ctx, slices.Collect(maps.Keys(g.quotas)))
	if err != nil {
		g.log.LogAttrs(ctx, slog.LevelDebug, "how much is stored is not known", slog.Any("error", err))
		return
	}
	for tenant, q := range g.quotas {
		q.used.Store(usage[tenant])
	}
}
