package watch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

const (
	// freshFor is how long what was read of a source counts as read now: the answer's manifest and its run's cite the
	// same.
	freshFor = time.Minute
	// readFor is how long the sources of one manifest are read, and readBytes how many of their octets: when that is
	// over, the others are not read. The last MaxReads of them may be over.
	readFor   = 2 * time.Minute
	readBytes = 32 << 20
	// runFor is how long the run of an answer counts as read now.
	runFor = 30 * time.Second
)

// publishable is what a manifest is of.
type publishable struct {
	answer *ibid.Answer
	call   *store.Call  // that the answer came by; nil: the agent wrote it
	trail  *trail.Trail // nil: the call is in no run
}

// read reads what a manifest is to be of.
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
			what.answer = one // should it have changed meanwhile
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

// lastRun remembers the run that was read last: its answers come one after the other, and each needs the steps before
// it. A run may be large, so that only one is read at a time.
type lastRun struct {
	mu          sync.Mutex
	tenant, run string
	trail       *trail.Trail
	at          time.Time
}

// read returns the run that a manifest is to be of. What is not to be built for the first time, or of the whole run,
// needs all that is known now.
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

// forget lets go of a run that was not read just now.
func (l *lastRun) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) >= runFor {
		l.trail = nil
	}
}

// answeredIn returns the captured answer that a run has under an id; nil: it has none.
func answeredIn(t *trail.Trail, id string) *ibid.Answer {
	if one := findAnswer(t, func(one *trail.StepAnswer) bool { return one.ID == id }); one != nil {
		return one.Answer
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

// findAnswer returns the last answer of a run's steps that is so; nil: none is.
func findAnswer(t *trail.Trail, is func(*trail.StepAnswer) bool) *trail.StepAnswer {
	if t == nil {
		return nil
	}
	for i := range slices.Backward(t.Steps) {
		list := t.Steps[i].Answers
		for k := range slices.Backward(list) {
			if is(&list[k]) {
				return &list[k]
			}
		}
	}
	return nil
}

// build makes the manifest, and sees to it that it can be published.
func (p *Publishing) build(ctx context.Context, job *store.Publication, what *publishable) (*manifest.Manifest, error) {
	publisher := p.options.Publisher
	b := manifest.Builder{
		Self: publisher.URL(job.Path), RunID: job.Pub, AgentID: publisher.Agent(), By: manifest.ByObserver,
		Read: p.reader(job.Tenant), Texts: p.options.Texts, Salt: job.Salt,
	}
	if job.Supersedes != "" {
		b.Supersedes = publisher.URL(job.Supersedes)
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

// reader returns what reads the sources of one manifest, unless they were read just now.
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

// recent returns what was read of a source within that time; nil: nothing was.
func recent(ctx context.Context, copies snapshot.Copies, url string, within time.Duration) *snapshot.Snapshot {
	s, err := copies.Latest(ctx, url)
	if err != nil || s == nil || s.Octets == nil || time.Since(s.FetchedAt) >= within {
		return nil
	}
	return s
}

// pinsOf returns what is to be looked at again: each excerpt of a stored answer's citations.
func pinsOf(job *store.Publication, what *publishable, m *manifest.Manifest, signed *manifest.Signed) []store.Pin {
	if what.call == nil {
		return nil
	}
	sum := signed.Digest()
	var list []store.Pin
	for _, c := range m.Cited(what.answer) {
		if !strings.HasPrefix(c.Source.URL, "http") {
			continue // nobody can look at it
		}
		pin := store.Pin{
			URL:      c.Source.URL,
			AnswerID: what.call.AnswerID,
			Run:      what.call.Run,
			Citation: c.Citation,
			ClaimID:  c.Claim.ID,
			SourceID: c.Source.Source,
			Claim:    *c.Source,
			Path:     job.Path,
			Digest:   hex.EncodeToString(sum[:]),
		}
		if c.Document != nil {
			pin.Source = *c.Document
		}
		list = append(list, pin)
	}
	return list
}
