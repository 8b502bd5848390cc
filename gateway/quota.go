package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/store"
)

// quotaEvery is how often the store is asked how much there is.
const quotaEvery = 10 * time.Second

// quota is how much a tenant may have stored, and has.
type quota struct {
	most int64
	used atomic.Int64
}

// errQuota says that a tenant has as much as it may.
var errQuota = errors.New("the tenant's stored answers have as many bytes as its quota allows")

// isFull reports whether a tenant's new answers are not kept.
func (g *Gateway) isFull(tenant string) bool {
	q := g.quotas[tenant]
	return q != nil && q.used.Load() >= q.most
}

// grown notes that an answer of so many bytes will be stored.
func (g *Gateway) grown(tenant string, n int) {
	if q := g.quotas[tenant]; q != nil {
		q.used.Add(int64(n))
	}
}

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

// watchQuotas asks the store from time to time how much the tenants with a quota have, until ctx ends.
func (g *Gateway) watchQuotas(ctx context.Context) {
	tick := time.NewTicker(quotaEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		g.countStored(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
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
