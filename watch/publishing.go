package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// publishEvery is how often the store is asked for manifests that are to be built.
	publishEvery = time.Second
	// publishAtOnce is how many are built at a time.
	publishAtOnce = 8
	// publishFor bounds how long one may take; publishLease is longer, so that no other node begins before.
	publishFor   = 4 * time.Minute
	publishLease = 5 * time.Minute
	// publishAttempts is how often one is tried that cannot be built for a reason of its own. What has another one,
	// such as a store or a key that is away, is tried for ever.
	publishAttempts = 10
	// publishBackoff is how long after the first time one is tried again. Each time it is twice as long, up to
	// publishBackoffMost.
	publishBackoff     = 2 * time.Second
	publishBackoffMost = 10 * time.Minute
	// idleEvery is how often runs are looked for that have ended without a word.
	idleEvery = 15 * time.Second
	// endFor is how long the last word about what was interrupted may take.
	endFor = 5 * time.Second
)

// PublishingOptions are the options of [NewPublishing]. Store, Publisher and Fetcher are needed.
type PublishingOptions struct {
	Store     *store.Store
	Publisher *manifest.Publisher // at level 2 or 3
	Fetcher   *snapshot.Fetcher   // reads what is cited
	Texts     *snapshot.Texts     // nil: each text is made anew
	Idle      time.Duration       // a run has ended when it had no call for so long; 0: only its agent says so
	// Resolve keeps an answer in which addresses that only redirect (wire.IsRedirect) were replaced by where they lead,
	// as BackfillOptions.Store does; its manifest is built once the store has it. Nil: they stay as they are.
	Resolve func(ctx context.Context, call *store.Call) error
	// says that there are events to be relayed (bus.Bus.Wake); nil: that is found out by itself, later
	Wake    func()
	Logger  *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nobody counts
}

// Publishing builds the manifests of what is to be published: it reads the sources that an answer cites, as an
// observer, and hands the manifest to the publisher and to the store. Several nodes share the work.
//
// A source is asked for twice at most, and all sources of an answer have two minutes and 32 MiB together; what was not
// read by then is unavailable, and its word in the manifest says why.
type Publishing struct {
	options PublishingOptions
	log     *slog.Logger
	results *prometheus.CounterVec

	runs     lastRun
	resolved resolved
}

// NewPublishing checks the options. It starts nothing: see [Publishing.Run].
func NewPublishing(o *PublishingOptions) (*Publishing, error) {
	if o == nil || o.Store == nil || o.Publisher == nil || o.Fetcher == nil {
		return nil, errors.New("preparing to publish: a store, a publisher or a fetcher is missing")
	}
	if err := o.Publisher.Check(); err != nil {
		return nil, fmt.Errorf("preparing to publish: %w", err)
	}
	if o.Publisher.Level < 2 {
		return nil, fmt.Errorf("preparing to publish: there are no manifests at level %d", o.Publisher.Level)
	}
	p := &Publishing{
		options: *o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ibid_manifests_total",
			Help: "Manifests that were to be built, by what came of it: built, postponed or failed.",
		}, []string{"result"}),
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(p.results); err != nil {
			return nil, fmt.Errorf("preparing to publish: registering its counter: %w", err)
		}
	}
	return p, nil
}

// Run builds manifests until ctx ends; then it returns nil. One that was interrupted is built by whoever comes next.
func (p *Publishing) Run(ctx context.Context) error {
	var idle time.Time // when runs that ended were looked for
	all := poll[store.Publication]{
		every: publishEvery, atOnce: publishAtOnce, do: p.do, log: p.log, what: "manifests",
		due: func(ctx context.Context, limit int) ([]store.Publication, error) {
			if p.options.Idle > 0 && time.Since(idle) > min(idleEvery, p.options.Idle) {
				idle = time.Now()
				if _, err := p.options.Store.PublishIdle(ctx, p.options.Idle); err != nil {
					return nil, err
				}
			}
			if limit == 0 {
				return nil, nil
			}
			list, err := p.options.Store.DuePublications(ctx, limit, publishLease)
			if len(list) == 0 {
				p.runs.forget()
			}
			return list, err
		},
	}
	all.run(ctx)
	return nil
}

// do builds one manifest and says what came of it.
func (p *Publishing) do(ctx context.Context, job *store.Publication) {
	work, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	err := p.survive(work, job)
	if err == nil || errors.Is(err, manifest.ErrMutated) { // another node was faster
		p.results.WithLabelValues("built").Inc()
		if p.options.Wake != nil {
			p.options.Wake()
		}
		return
	}
	if errors.Is(err, store.ErrConflict) { // it is somebody else's now, or due again at once
		p.log.LogAttrs(
			ctx, slog.LevelDebug, "a manifest was built in vain", slog.String("path", job.Path), slog.Any("error", err),
		)
		return
	}
	end, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancelEnd()
	after := min(publishBackoff<<min(job.Attempts-1, 16), publishBackoffMost)
	result, level := "postponed", slog.LevelWarn
	_, own := errors.AsType[*ownFault](err)
	var ended error
	switch {
	case ctx.Err() != nil:
		level = slog.LevelDebug
		ended = p.options.Store.PostponePublication(end, job, "it was interrupted", 0)
	case errors.Is(err, errResolved):
		level = slog.LevelDebug
		ended = p.options.Store.PostponePublication(end, job, err.Error(), after)
	case errors.Is(err, store.ErrNotFound), own && job.Attempts >= publishAttempts:
		result = "failed"
		ended = p.options.Store.FailPublication(end, job, err.Error())
	default:
		ended = p.options.Store.PostponePublication(end, job, err.Error(), after)
	}
	p.results.WithLabelValues(result).Inc()
	p.log.LogAttrs(
		ctx, level, "a manifest was not built", slog.String("path", job.Path), slog.String("answer_id", job.AnswerID),
		slog.String("result", result), slog.Int("attempt", job.Attempts),
		slog.Any("error", errors.Join(err, ended)),
	)
}

// ownFault is an error that has its reason in the answer or in us: it will most likely come again.
type ownFault struct{ error }

func (e *ownFault) Unwrap() error { return e.error }

// fault marks an error of what is done in memory as the answer's own, unless ctx ended.
func fault(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &ownFault{err}
}

// stored marks an error of the store as the answer's own, unless it is the store's.
func stored(err error) error {
	if err == nil || store.IsTemporary(err) {
		return err
	}
	return &ownFault{err}
}

// survive builds one manifest; a mistake of ours is an error.
func (p *Publishing) survive(ctx context.Context, job *store.Publication) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &ownFault{fmt.Errorf("building a manifest: a mistake of ours: %v", v)}
			p.log.ErrorContext(
				ctx, "a mistake of ours was caught", slog.String("path", job.Path),
				slog.String("stack", string(debug.Stack())),
			)
		}
	}()
	return p.publish(ctx, job)
}

// publish builds one manifest and keeps it.
func (p *Publishing) publish(ctx context.Context, job *store.Publication) error {
	what, err := p.read(ctx, job)
	if err != nil {
		return err
	}
	if err := p.resolve(ctx, what.call); err != nil {
		return err
	}
	m, err := p.build(ctx, job, what)
	if err != nil {
		return fault(ctx, err)
	}
	signed, err := p.options.Publisher.Seal(ctx, job.Path, m)
	if err != nil {
		return err
	}
	return stored(p.options.Store.KeepPublication(ctx, job, signed, pinsOf(job, what, m, signed)))
}
