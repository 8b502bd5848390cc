package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ibidhq/ibid/store"
)

const (
	pruneEvery = time.Hour
	pruneDelay = 5 * time.Minute
	// pruneJump is how far the clock may have jumped forward since the last time.
	pruneJump = 5 * time.Minute
)

// Retention removes answers that are older than the retention allows.
type Retention struct {
	Store  *store.Store
	Keep   store.Retention // Now and DryRun are ignored
	Logger *slog.Logger    // nil disables logging

	clock, steady time.Time // at the last call of jumped, by the store's clock and by one that does not jump
}

// Run removes old answers after a random delay of up to five minutes, so that nodes started together do not prune
// together, and then every hour until ctx ends, when it returns nil. Failures are logged and retried an hour later. If
// the clock has jumped forward, nothing is removed for an hour, in which it can be corrected. Without a duration in
// Keep, only the memory of verifiers is pruned: see [store.Store.Memory].
func (r *Retention) Run(ctx context.Context) error {
	timer := time.NewTimer(rand.N(pruneDelay)) //nolint:gosec // not security-sensitive
	defer timer.Stop()
	_ = r.jumped() // the base for the first comparison
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		r.prune(ctx)
		timer.Reset(pruneEvery)
	}
}

func (r *Retention) prune(ctx context.Context) {
	log := cmp.Or(r.Logger, slog.New(slog.DiscardHandler))
	if by := r.jumped(); by > pruneJump {
		log.LogAttrs(ctx, slog.LevelWarn, "the clock has jumped forward: old answers are not removed for now",
			slog.Duration("by", by))
		return
	}
	keep := r.Keep
	keep.Now, keep.DryRun = r.clock, false
	report, err := r.Store.Prune(ctx, &keep)
	attrs := []slog.Attr{
		slog.Int("answers", report.Answers),
		slog.Int("conversations", report.Conversations),
		slog.Int("runs", report.Runs),
		slog.Int("events", report.Events),
		slog.Int("steps", report.Steps),
		slog.Int("manifests", report.Manifests),
		slog.Int("copies", report.Copies),
		slog.Int("versions", report.Versions),
		slog.Duration("took", time.Since(r.steady)),
	}
	switch {
	case err == nil && report == (store.PruneReport{}):
		log.LogAttrs(ctx, slog.LevelDebug, "nothing is old enough to be removed", attrs...)
	case err == nil:
		log.LogAttrs(ctx, slog.LevelInfo, "removed old answers", attrs...)
	case errors.Is(err, context.Canceled):
		log.LogAttrs(ctx, slog.LevelInfo, "removing old answers was interrupted", attrs...)
	default:
		attrs = append(attrs, slog.Any("error", fmt.Errorf("removing old answers: %w", err)))
		log.LogAttrs(ctx, slog.LevelError, "old answers could not be removed, trying again later", attrs...)
	}
}

// jumped returns how far the store's clock has advanced beyond the elapsed time since the last call, or 0 on the first
// call.
func (r *Retention) jumped() time.Duration {
	clock, steady := r.clock, r.steady
	r.clock, r.steady = r.Store.Now().Round(0), time.Now() // without and with the monotonic reading
	if clock.IsZero() {
		return 0
	}
	return r.clock.Sub(clock) - r.steady.Sub(steady)
}
