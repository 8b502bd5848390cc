package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/store"
)

const (
	// MaxWorkers is how many second calls may be under way.
	MaxWorkers = 16
	// MaxResponse is how many bytes the response of a second call may have.
	MaxResponse = 16 << 20
)

// BackfillOptions are the options of [NewBackfill].
type BackfillOptions struct {
	Rules []Rule // of those that fit a call, the first counts
	// Store keeps an answer that was completed: call has the first one's AnswerID and everything else, and an Answer
	// with the citations. Nil is an error.
	Store func(ctx context.Context, call *store.Call) error
	// nil: http.DefaultTransport. Redirects are never followed: they would carry a key elsewhere
	Client  *http.Client
	Logger  *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nobody counts
}

// Backfill asks a second time where a stream ended without citations.
type Backfill struct {
	targets []*target
	store   func(context.Context, *store.Call) error
	client  *http.Client
	log     *slog.Logger
	results *prometheus.CounterVec

	queue *queue
}

// Job is an answer that may need a second call.
type Job struct {
	Call     *store.Call // with its answer; neither changes any more, and Backfill changes neither
	Provider string      // of the upstream the call went to; empty: not known
	URL      *url.URL    // the upstream's
	Format   string      // of the answer, for reading the request; empty: it is recognised
	Request  []byte      // the call's body; it does not change any more
	// the caller's key, see [Keys]: kept in memory until the second call was made, never stored or logged
	Keys http.Header
}

// NewBackfill checks the rules. It starts nothing: see [Backfill.Run].
func NewBackfill(o *BackfillOptions) (*Backfill, error) {
	if o == nil || o.Store == nil {
		return nil, errors.New("preparing backfill: nowhere to store what it finds")
	}
	b := &Backfill{
		store:  o.Store,
		client: &http.Client{},
		log:    o.Logger,
		queue:  newQueue(),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ibid_backfill_total",
			Help: "Second calls for streams without citations, by what came of them.",
		}, []string{"upstream", "result"}),
	}
	if o.Client != nil {
		*b.client = *o.Client
	}
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	for _, r := range o.Rules {
		t, err := ready(r)
		if err == nil && b.target(r.Upstream, r.Route) != nil {
			err = errors.New("a rule before it has the same routes")
		}
		if err != nil {
			return nil, fmt.Errorf("preparing backfill: rule for upstream %q, route %q: %w", r.Upstream, r.Route, err)
		}
		b.targets = append(b.targets, t)
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(b.results); err != nil {
			return nil, fmt.Errorf("preparing backfill: registering its counter: %w", err)
		}
	}
	return b, nil
}

// Wants reports whether there is a rule for the calls of an upstream's route: only then is a [Job] worth making.
func (b *Backfill) Wants(upstream, name string) bool { return b.target(upstream, name) != nil }

// target returns the first rule that fits; nil: none does.
func (b *Backfill) target(upstream, name string) *target {
	for _, t := range b.targets {
		if t.Upstream != upstream {
			continue
		}
		if fits, err := path.Match(t.Route, name); err == nil && fits || t.Route == "" || t.Route == name {
			return t
		}
	}
	return nil
}

// Offer hands over a stream that has ended, and reports whether there will be a second call for it. There is none
// without a rule for its route, or if its answer is not whole, has a citation, has no text or waits for a tool; none
// either if the queue is full, and then a line is logged. Offer never blocks.
func (b *Backfill) Offer(j Job) bool {
	c := j.Call
	if c == nil || !b.Wants(c.Upstream, c.Route) || !fits(c) {
		return false
	}
	if b.queue.offer(&j) {
		return true
	}
	b.failed(context.Background(), &j, &failure{result: "dropped", err: errors.New("too many answers are waiting")})
	return false
}

// size returns how many bytes a job holds, about. What is kept was encoded, and remembers how.
func (j *Job) size() int64 {
	record, _ := j.Call.Encode() // without one it is small
	return int64(len(j.Request) + len(record))
}

// Run makes the second calls until ctx ends; then those under way are given up, those waiting are forgotten, and it
// returns nil.
func (b *Backfill) Run(ctx context.Context) error {
	b.queue.run(ctx, MaxWorkers, b.do)
	return nil
}

// do makes one second call and stores what it finds.
func (b *Backfill) do(ctx context.Context, j *Job) {
	call, err := b.ask(ctx, j)
	result := "found"
	switch {
	case err == nil && call == nil:
		result = "nothing"
	case err == nil:
		if err = b.store(ctx, call); err != nil {
			err = &failure{result: "not-stored", err: fmt.Errorf("storing the citations: %w", err)}
		}
	}
	if ctx.Err() != nil && err != nil {
		return
	}
	if err != nil {
		b.failed(ctx, j, err)
		return
	}
	b.results.WithLabelValues(j.Call.Upstream, result).Inc()
	citations := 0
	if call != nil {
		citations = len(call.Answer.Citations)
	}
	b.log.InfoContext(
		ctx, "asked again for citations",
		slog.String(
			"answer_id", j.Call.AnswerID,
		),
		slog.String("upstream", j.Call.Upstream), slog.Int("citations", citations),
	)
}

// failure is why there are no citations.
type failure struct {
	result string // for the counter
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed logs one line, which has no key, no address with a query and no words of anybody.
func (b *Backfill) failed(ctx context.Context, j *Job, err error) {
	result := "error"
	if f, ok := errors.AsType[*failure](err); ok {
		result = f.result
	}
	b.results.WithLabelValues(j.Call.Upstream, result).Inc()
	b.log.WarnContext(ctx, "no citations by a second call",
		slog.String("answer_id", j.Call.AnswerID), slog.String("upstream", j.Call.Upstream),
		slog.String("provider", b.target(j.Call.Upstream, j.Call.Route).Provider),
		slog.String("result", result), slog.Any("error", err))
}
