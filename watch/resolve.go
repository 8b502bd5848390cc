package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// resolveAgain is how long after its addresses were resolved an answer may take to reach the store, and how long
	// those that could not be resolved are not asked again.
	resolveAgain = time.Minute
	// maxResolves is how many addresses of an answer are asked at a time.
	maxResolves = 8
)

// errResolved says that an answer was changed first, and its manifest comes afterwards.
var errResolved = errors.New("addresses of its sources were resolved")

// resolved remembers what was resolved just now, by tenant and answer: the answer's manifest and its run's are built at
// the same time, and the answer reaches the store later.
type resolved struct {
	mu   sync.Mutex
	list map[[2]string]*resolving
}

// resolving is what becomes of the addresses of one answer.
type resolving struct {
	since    time.Time
	done     bool
	replaced []string // these will not be in the answer any more
}

// take begins to resolve the addresses of an answer: then it returns how to say what came of it. Else it reports
// whether to wait: somebody else is at it, or the store has not got the answer yet.
func (r *resolved) take(c *store.Call) (done func(replaced []string, err error), wait bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(
		r.list,
		func(_ [2]string, one *resolving) bool { return one.done && time.Since(one.since) > resolveAgain },
	)
	key := [2]string{c.Tenant, c.AnswerID}
	if one := r.list[key]; one != nil {
		return nil, !one.done ||
			slices.ContainsFunc(
				c.Answer.Sources,
				func(s ibid.Source) bool { return slices.Contains(one.replaced, s.URL) },
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

// resolve replaces addresses that only redirect, if there are any and that is wanted.
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
		return nil // these lead nowhere
	}
	replaced, err := p.replace(ctx, call)
	done(replaced, err)
	if err == nil && len(replaced) > 0 {
		err = errResolved
	}
	return err
}

// replace resolves the addresses of an answer, has it kept, and returns those that it has not any more.
func (p *Publishing) replace(ctx context.Context, call *store.Call) ([]string, error) {
	changed, err := resolveRedirects(ctx, p.options.Fetcher, call.Answer)
	if err != nil || changed == nil {
		return nil, err
	}
	if err := p.options.Resolve(ctx, withAnswer(call, changed)); err != nil {
		return nil, fmt.Errorf("keeping where its sources are: %w", err)
	}
	var replaced []string
	for i := range call.Answer.Sources {
		if s := &call.Answer.Sources[i]; changed.Sources[i].URL != s.URL {
			replaced = append(replaced, s.URL)
		}
	}
	return replaced, nil
}

// resolveRedirects returns the answer with those addresses replaced that lead elsewhere and say nothing, each asked
// once; nil: there are none, or none could be resolved. What cannot be resolved stays as it is.
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
		return nil, nil //nolint:nilnil // as it says
	}
	return &out, nil
}
