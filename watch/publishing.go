package watch

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

const (
	// publishEvery is how often the store is asked for manifests to build.
	publishEvery = time.Second
	// publishAtOnce is how many are built at a time.
	publishAtOnce = 8
	// publishFor bounds the building of one; publishLease is longer, so that no other node starts earlier.
	publishFor   = 4 * time.Minute
	publishLease = 5 * time.Minute
	// publishAttempts is how often a manifest with a fault of its own is tried. Other failures, such as an unavailable
	// store or a missing key, are retried for ever.
	publishAttempts = 10
	// publishBackoff is the pause after the first attempt. It doubles each time, up to publishBackoffMost.
	publishBackoff     = 2 * time.Second
	publishBackoffMost = 10 * time.Minute
	// idleEvery is how often idle runs are looked for.
	idleEvery = 15 * time.Second
	// endFor bounds the final report on interrupted work.
	endFor = 5 * time.Second
)

// PublishingOptions are the options of [NewPublishing]. Store, Publisher and Fetcher are required.
type PublishingOptions struct {
	Store     *store.Store
	Publisher *manifest.Publisher // with level 2 or 3
	Fetcher   *snapshot.Fetcher   // fetches the cited sources
	Texts     *snapshot.Texts     // caches texts; may be nil
	Idle      time.Duration       // time without a call after which a run has ended; 0 leaves that to its agent
	// Resolve stores an answer in which redirecting URLs (wire.IsRedirect) were replaced by their targets, like
	// BackfillOptions.Store; its manifest is built once it is stored. If nil, they are left unchanged.
	Resolve  func(ctx context.Context, call *store.Call) error
	Excerpts manifest.Excerpts // the sources whose excerpts are published; empty means manifest.ExcerptsPublic
	// Wake signals that there are events to relay, like bus.Bus.Wake. If it is nil, they are found later.
	Wake    func()
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Publishing builds manifests: it fetches the sources that an answer cites, as an observer, and passes the manifest to
// the publisher and to the store. Several nodes can share the work.
//
// A source is requested at most twice, and all sources of an answer together may take two minutes and 32 MiB. Those not
// fetched within these limits are unavailable, with the reason in the manifest.
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
	results, err := newCounter(o.Metrics, "ibid_manifests_total",
		"Manifests to build by result: built, postponed or failed.", "result")
	if err != nil {
		return nil, fmt.Errorf("preparing to publish: %w", err)
	}
	return &Publishing{options: *o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), results: results}, nil
}

// Run builds manifests until ctx ends and returns nil. Interrupted ones are built by the next run or another node.
func (p *Publishing) Run(ctx context.Context) error {
	var idle time.Time // when idle runs were last looked for
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
				p.runs.mu.Lock()
				if time.Since(p.runs.at) >= runFor {
					p.runs.trail = nil
				}
				p.runs.mu.Unlock()
			}
			return list, err
		},
	}
	all.run(ctx)
	return nil
}

// do builds one manifest and records the result.
func (p *Publishing) do(ctx context.Context, job *store.Publication) {
	work, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	err := recovered(
		work, p.log, "building a manifest", slog.String("path", job.Path), func() error { return p.publish(work, job) },
	)
	if err == nil || errors.Is(err, manifest.ErrMutated) { // another node was faster
		p.results.WithLabelValues("built").Inc()
		if p.options.Wake != nil {
			p.options.Wake()
		}
		return
	}
	if errors.Is(err, store.ErrConflict) { // it was taken over, or is due again at once
		p.log.LogAttrs(
			ctx, slog.LevelDebug, "a manifest was built in vain", slog.String("path", job.Path), slog.Any("error", err),
		)
		return
	}
	end, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancelEnd()
	after := min(publishBackoff<<min(job.Attempts-1, 16), publishBackoffMost)
	result, level, why := "postponed", slog.LevelWarn, err.Error()
	_, own := errors.AsType[*ownFault](err)
	switch {
	case ctx.Err() != nil:
		level, why, after = slog.LevelDebug, "interrupted", 0
	case errors.Is(err, errResolved):
		level = slog.LevelDebug
	case errors.Is(err, store.ErrNotFound), own && job.Attempts >= publishAttempts:
		result = "failed"
	}
	var ended error
	if result == "failed" {
		ended = p.options.Store.FailPublication(end, job, why)
	} else {
		ended = p.options.Store.PostponePublication(end, job, why, after)
	}
	p.results.WithLabelValues(result).Inc()
	p.log.LogAttrs(
		ctx, level, "a manifest was not built", slog.String("path", job.Path), slog.String("answer_id", job.AnswerID),
		slog.String("result", result), slog.Int("attempt", job.Attempts), slog.Any("error", errors.Join(err, ended)),
	)
}

// ownFault is an error caused by the answer or by a bug: it is likely to recur.
type ownFault struct{ error }

func (e *ownFault) Unwrap() error { return e.error }

// fault marks an error of in-memory work as the answer's own, unless ctx has ended.
func fault(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &ownFault{err}
}

// stored marks an error of the store as the answer's own, unless it is temporary.
func stored(err error) error {
	if err == nil || store.IsTemporary(err) {
		return err
	}
	return &ownFault{err}
}

// publish builds one manifest and stores it.
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

const (
	// freshFor is how long a fetched source counts as current, so that the manifests of an answer and of its run cite
	// the same version.
	freshFor = time.Minute
	// readFor and readBytes limit the fetching of one manifest's sources, in time and bytes: the rest are not fetched.
	// The last MaxReads of them may exceed the limit.
	readFor   = 2 * time.Minute
	readBytes = 32 << 20
	// runFor is how long a run that was read counts as current.
	runFor = 30 * time.Second
)

// publishable is the subject of a manifest.
type publishable struct {
	answer *ibid.Answer
	call   *store.Call  // the call that returned the answer; nil if the agent wrote it
	trail  *trail.Trail // nil if the call has no run
}

// read reads the subject of a manifest.
func (p *Publishing) read(ctx context.Context, job *store.Publication) (*publishable, error) {
	what := &publishable{}
	var err error
	if job.AnswerID != "" {
		if what.call, err = p.options.Store.Call(ctx, job.Tenant, job.AnswerID); err != nil {
			return nil, stored(err)
		}
		what.answer = what.call.Answer
	}
	if job.Run != "" {
		what.trail, err = p.runs.read(ctx, p.options.Store, job, what.answer)
		if err != nil && (job.AnswerID == "" || !errors.Is(err, store.ErrNotFound)) {
			return nil, stored(err)
		}
	}
	if job.AnswerID != "" {
		if one := answeredIn(what.trail, job.AnswerID); one != nil {
			what.answer = one // in case it has changed in the meantime
		}
		return what, nil
	}
	if what.trail == nil {
		return nil, fmt.Errorf("reading the final answer: %w", store.ErrNotFound)
	}
	id := what.trail.FinalID()
	if id == "" {
		if what.answer, err = what.trail.FinalAnswer(ctx, nil, nil); err != nil {
			return nil, fault(ctx, err)
		}
		return what, nil
	}
	if what.call, err = p.options.Store.Call(ctx, job.Tenant, id); err != nil {
		return nil, stored(err)
	}
	if what.answer = answeredIn(what.trail, id); what.answer == nil {
		what.answer = what.call.Answer
	}
	return what, nil
}

// lastRun caches the run that was read last: its answers are published one after another, and each needs the steps
// before it. Runs may be large, so only one is read at a time.
type lastRun struct {
	mu          sync.Mutex
	tenant, run string
	trail       *trail.Trail
	at          time.Time
}

// read returns the run for a manifest. A later revision, or the manifest of the run itself, needs its latest state.
func (l *lastRun) read(
	ctx context.Context, s *store.Store, job *store.Publication, answer *ibid.Answer,
) (*trail.Trail, error) {
	if job.AnswerID == "" || job.Revision > 1 {
		return s.Trail(ctx, job.Tenant, job.Run)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenant == job.Tenant && l.run == job.Run && time.Since(l.at) < runFor &&
		same(answeredIn(l.trail, job.AnswerID), answer) {
		return l.trail, nil
	}
	at := time.Now()
	t, err := s.Trail(ctx, job.Tenant, job.Run)
	if err != nil {
		return nil, err
	}
	l.tenant, l.run, l.trail, l.at = job.Tenant, job.Run, t, at
	return t, nil
}

// answeredIn returns a run's captured answer by its id, or nil.
func answeredIn(t *trail.Trail, id string) *ibid.Answer {
	if t == nil {
		return nil
	}
	for i := range slices.Backward(t.Steps) {
		list := t.Steps[i].Answers
		for k := range slices.Backward(list) {
			if list[k].ID == id {
				return list[k].Answer
			}
		}
	}
	return nil
}

// same reports whether two states of an answer have the same text, sources and citations.
func same(a, b *ibid.Answer) bool {
	return a != nil && a.Text == b.Text &&
		slices.EqualFunc(a.Sources, b.Sources, func(x, y ibid.Source) bool { return x.ID == y.ID && x.URL == y.URL }) &&
		slices.EqualFunc(a.Citations, b.Citations, func(x, y ibid.Citation) bool {
			return x.ID == y.ID && x.Span == y.Span && x.Claim == y.Claim &&
				slices.EqualFunc(x.Refs, y.Refs, func(x, y ibid.Ref) bool {
					return x.Source == y.Source && x.Quote == y.Quote
				})
		})
}

// build builds the manifest and checks that it can be published.
func (p *Publishing) build(ctx context.Context, job *store.Publication, what *publishable) (*manifest.Manifest, error) {
	publisher := p.options.Publisher
	b := manifest.Builder{
		Self: publisher.URL(job.Path), RunID: job.Pub, AgentID: publisher.Agent(), By: manifest.ByObserver,
		Read: p.reader(job.Tenant), Texts: p.options.Texts, Salt: job.Salt,
		Excerpts: p.options.Excerpts,
	}
	if job.Supersedes != "" {
		b.Supersedes = publisher.URL(job.Supersedes)
	}
	if what.call == nil && what.answer != nil && what.answer.Provider == "" { // written by the agent from its passages
		b.QuotedBy = manifest.OriginPublisher
	}
	if job.AnswerID != "" && what.call.Body != nil {
		b.BodyHash, b.MediaType = what.call.Body.Hash, what.call.Body.MediaType
	}
	m, err := b.Build(ctx, what.answer, what.trail)
	if err != nil {
		return nil, err
	}
	if list := m.Problems(); len(list) > 0 {
		return nil, fmt.Errorf(
			"building a manifest: it contradicts itself: %s at %q: %s", list[0].Status, list[0].Path, list[0].Detail,
		)
	}
	return m, nil
}

// reader returns the function that fetches the sources of one manifest, unless they were fetched recently.
func (p *Publishing) reader(tenant string) func(context.Context, string) (*snapshot.Snapshot, error) {
	copies := p.options.Store.Copies(tenant)
	until := time.Now().Add(readFor)
	var octets atomic.Int64
	return func(ctx context.Context, url string) (*snapshot.Snapshot, error) {
		if octets.Load() >= readBytes {
			return nil, &snapshot.FetchError{URL: url, Kind: snapshot.TooLarge, Reason: "together"}
		}
		s := recent(ctx, copies, url, freshFor)
		if s == nil {
			ctx, cancel := context.WithDeadline(ctx, until)
			defer cancel()
			var err error
			if s, err = p.options.Fetcher.Fetch(
				ctx, &snapshot.FetchRequest{URL: url, Copies: copies, Retries: 1},
			); err != nil {
				return nil, err
			}
		}
		octets.Add(int64(len(s.Octets)))
		return s, nil
	}
}

// recent returns what was fetched of a source within that time, or nil.
func recent(ctx context.Context, copies snapshot.Copies, url string, within time.Duration) *snapshot.Snapshot {
	s, err := copies.Latest(ctx, url)
	if err != nil || s == nil || s.Octets == nil || time.Since(s.FetchedAt) >= within {
		return nil
	}
	return s
}

// pinsOf returns what to check later: each excerpt cited by a stored answer, or recorded by a run for its final one.
func pinsOf(job *store.Publication, what *publishable, m *manifest.Manifest, signed *manifest.Signed) []store.Pin {
	answer, run := "", job.Run
	if what.call != nil {
		answer, run = what.call.AnswerID, what.call.Run
	}
	sum := signed.Digest()
	var list []store.Pin
	for _, c := range m.Cited(what.answer) {
		if !strings.HasPrefix(c.Source.URL, "http") {
			continue // it cannot be fetched
		}
		pin := store.Pin{
			URL: c.Source.URL, AnswerID: answer, Run: run, Citation: c.Citation, ClaimID: c.Claim.ID,
			SourceID: c.Source.Source, Claim: *c.Source, Path: job.Path, Digest: hex.EncodeToString(sum[:]),
		}
		if c.Document != nil {
			pin.Source = *c.Document
		}
		list = append(list, pin)
	}
	return list
}

const (
	// resolveAgain is how long a resolved answer may take to reach the store, and how long URLs that could not be
	// resolved are not tried again.
	resolveAgain = time.Minute
	// maxResolves is how many URLs of an answer are resolved at a time.
	maxResolves = 8
)

// errResolved postpones the manifest of an answer that was changed first.
var errResolved = errors.New("addresses of its sources were resolved")

// resolved remembers recent results by tenant and answer: the manifests of an answer and of its run are built at the
// same time, and the changed answer reaches the store later.
type resolved struct {
	mu   sync.Mutex
	list map[[2]string]*resolving
}

// resolving is the state of resolving one answer's URLs.
type resolving struct {
	since    time.Time
	done     bool
	replaced []string // URLs that will no longer be in the answer
}

// take starts resolving the URLs of an answer, and returns the function that records the result. Otherwise it reports
// whether to wait: because another manifest is doing so, or the store does not have the changed answer yet.
func (r *resolved) take(c *store.Call) (done func(replaced []string, err error), wait bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(
		r.list, func(_ [2]string, one *resolving) bool { return one.done && time.Since(one.since) > resolveAgain },
	)
	key := [2]string{c.Tenant, c.AnswerID}
	if one := r.list[key]; one != nil {
		return nil, !one.done ||
			slices.ContainsFunc(
				c.Answer.Sources, func(s ibid.Source) bool { return slices.Contains(one.replaced, s.URL) },
			)
	}
	if r.list == nil {
		r.list = map[[2]string]*resolving{}
	}
	one := &resolving{}
	r.list[key] = one
	return func(replaced []string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			delete(r.list, key)
		}
		one.since, one.done, one.replaced = time.Now(), true, replaced
	}, false
}

// resolve replaces URLs that only redirect, if there are any and Resolve is set.
func (p *Publishing) resolve(ctx context.Context, call *store.Call) error {
	redirects := func(s ibid.Source) bool { return wire.IsRedirect(s.URL) }
	if p.options.Resolve == nil || call == nil || !slices.ContainsFunc(call.Answer.Sources, redirects) {
		return nil
	}
	done, wait := p.resolved.take(call)
	if wait {
		return errResolved
	}
	if done == nil {
		return nil // these could not be resolved
	}
	var replaced []string // no longer in the answer
	changed, err := resolveRedirects(ctx, p.options.Fetcher, call.Answer)
	if err == nil && changed != nil {
		if err = p.options.Resolve(ctx, call.WithAnswer(changed)); err != nil {
			err = fmt.Errorf("keeping where its sources are: %w", err)
		}
		for i := range call.Answer.Sources {
			if s := &call.Answer.Sources[i]; err == nil && changed.Sources[i].URL != s.URL {
				replaced = append(replaced, s.URL)
			}
		}
	}
	done(replaced, err)
	if err == nil && len(replaced) > 0 {
		err = errResolved
	}
	return err
}

// resolveRedirects returns the answer with redirecting URLs replaced by their targets, each resolved once, or nil if
// there are none or none could be resolved. Those that cannot be resolved are left unchanged.
func resolveRedirects(ctx context.Context, f *snapshot.Fetcher, a *ibid.Answer) (*ibid.Answer, error) {
	leads := make([]string, len(a.Sources))
	slots := make(chan struct{}, maxResolves)
	var all sync.WaitGroup
	for i := range a.Sources {
		if !wire.IsRedirect(a.Sources[i].URL) {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if to, err := f.Location(ctx, a.Sources[i].URL); err == nil && !wire.IsRedirect(to) {
				leads[i] = to
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, changed := *a, false
	out.Sources = slices.Clone(a.Sources)
	for i, to := range leads {
		if s := &out.Sources[i]; to != "" {
			s.OriginalURL, s.URL, changed = cmp.Or(s.OriginalURL, s.URL), to, true
		}
	}
	if !changed {
		return nil, nil //nolint:nilnil // as documented
	}
	return &out, nil
}
