package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

const (
	// digestFor is how long an overview's numbers are good for.
	digestFor = time.Minute
	// maxDigests is of how many tenants they are kept.
	maxDigests = 256
	// maxDigested is how many answers, the last stored ones, are read for them, and digestBatch how many of these at a
	// time.
	maxDigested = 500
	digestBatch = 10
	// digestTime is for how long they are read, and digestText how many bytes of text these may have: of long answers
	// fewer are read.
	digestTime = time.Second
	digestText = 16 << 20
	// topSources is how many sources an overview names, and manySources how many the list of sources does.
	topSources  = 8
	manySources = 50
)

// digest is what is known of a tenant's answers in numbers. It does not change once it is made.
type digest struct {
	at       time.Time
	counts   store.Counts
	days     []store.CheckedDay
	broken   []store.BrokenSource
	answers  int         // that were read: those with text
	older    bool        // there are more than were read
	perCited map[int]int // answers by their number of citations
	says     int         // sentences of them that say something
	uncited  int         // of says: those without a citation
	bare     int         // answers that say something and have no citation at all
	top      []usedSource
}

// usedSource is a source with how often it was cited.
type usedSource struct {
	Key, URL, Title, Site, Letter string
	Answers, Citations            int
}

// digests keeps the digests of tenants. The zero value is ready.
type digests struct {
	flight singleflight.Group
	mu     sync.Mutex
	kept   map[string]*digest // by tenant
	making map[string]bool    // of which tenants one is being made
}

// digest returns what is known of a tenant, at most [digestFor] old. It is made once for all who ask at the same time,
// and who comes while it is being made gets the one before, if there is one.
func (p *Page) digest(ctx context.Context, tenant string) (*digest, error) {
	all := &p.bounds.digests
	if d, good := all.get(tenant); good {
		return d, nil
	}
	made, err, _ := all.flight.Do(tenant, func() (any, error) {
		if d, good := all.get(tenant); good {
			return d, nil
		}
		all.begin(tenant)
		defer all.end(tenant)
		// It is for others, too, if who asked has left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askStore)
		defer cancel()
		d, err := p.makeDigest(ctx, tenant)
		if err == nil {
			all.put(tenant, d)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return made.(*digest), nil //nolint:forcetypeassert // it is what the function returns
}

// get returns a digest that is good still, also because the next is being made; not good: there is none.
func (all *digests) get(tenant string) (d *digest, good bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d = all.kept[tenant]
	return d, d != nil && (all.making[tenant] || time.Since(d.at) < digestFor)
}

func (all *digests) begin(tenant string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.making == nil {
		all.making = map[string]bool{}
	}
	all.making[tenant] = true
}

func (all *digests) end(tenant string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.making, tenant)
}

// put keeps a digest, in the place of the oldest if there are many.
func (all *digests) put(tenant string, d *digest) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.kept == nil {
		all.kept = map[string]*digest{}
	}
	if all.kept[tenant] == nil && len(all.kept) >= maxDigests {
		oldest := slices.MinFunc(
			slices.Collect(maps.Keys(all.kept)),
			func(a, b string) int { return all.kept[a].at.Compare(all.kept[b].at) },
		)
		delete(all.kept, oldest)
	}
	all.kept[tenant] = d
}

func (p *Page) makeDigest(ctx context.Context, tenant string) (*digest, error) {
	d := &digest{at: time.Now(), perCited: map[int]int{}}
	counts, err := p.o.Store.Counts(ctx, tenant)
	if err != nil {
		return nil, err
	}
	d.counts = *counts
	if d.days, err = p.o.Store.CheckedDays(ctx, tenant); err != nil {
		return nil, err
	}
	if d.broken, err = p.o.Store.BrokenSources(ctx, tenant, manySources); err != nil {
		return nil, err
	}
	used, err := p.readAnswers(ctx, tenant, d)
	if err != nil {
		return nil, err
	}
	d.top = slices.SortedFunc(func(yield func(usedSource) bool) {
		for _, key := range slices.Sorted(maps.Keys(used)) {
			if !yield(*used[key]) {
				return
			}
		}
	}, func(a, b usedSource) int {
		return cmp.Or(b.Citations-a.Citations, b.Answers-a.Answers, cmp.Compare(a.Title, b.Title))
	})
	d.top = slices.Clone(d.top[:min(len(d.top), manySources)])
	return d, nil
}

// readAnswers counts the last answers, as many as there is time for, and returns what they cite by its key.
func (p *Page) readAnswers(ctx context.Context, tenant string, d *digest) (map[string]*usedSource, error) {
	used := map[string]*usedSource{}
	q := &store.Query{Limit: digestBatch}
	text, read := 0, 0
	for until := time.Now().Add(digestTime); ; {
		page, err := p.o.Store.Calls(ctx, tenant, q)
		if err != nil {
			return nil, err
		}
		for _, call := range page.Items {
			text += len(call.Answer.Text)
			if read > 0 && (read == maxDigested || text > digestText || time.Now().After(until)) {
				d.older = true
				return used, nil
			}
			read++
			if err := d.add(ctx, call.Answer, used); err != nil {
				return nil, err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return used, nil
		}
	}
}

// add counts an answer.
func (d *digest) add(ctx context.Context, a *ibid.Answer, used map[string]*usedSource) error {
	if a.Text == "" {
		return nil
	}
	d.answers++
	d.perCited[len(a.Citations)]++
	found, err := support.Attribute(ctx, a, nil, nil) // of its sentences; there is nothing to find
	if err != nil {
		return err
	}
	says := false
	for i := range found.Sentences {
		if s := &found.Sentences[i]; s.Says() {
			says = true
			d.says++
			if s.Uncited() {
				d.uncited++
			}
		}
	}
	if says && len(a.Citations) == 0 {
		d.bare++
	}
	seen := map[string]bool{}
	for i := range a.Citations {
		for k := range a.Citations[i].Refs {
			if s := a.Source(a.Citations[i].Refs[k].Source); s != nil {
				countUse(used, seen, s)
			}
		}
	}
	return nil
}

// countUse counts a citation of a source. seen has those that the answer cited before.
func countUse(used map[string]*usedSource, seen map[string]bool, s *ibid.Source) {
	key := s.Key()
	u := used[key]
	if u == nil {
		u = &usedSource{Key: key, URL: s.URL, Title: sourceTitle(s), Site: siteOf(s), Letter: letterOf(s)}
		used[key] = u
	}
	u.Citations++
	if !seen[key] {
		seen[key] = true
		u.Answers++
	}
}
