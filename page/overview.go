package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

const (
	// digestFor is how long an overview's numbers are valid.
	digestFor = time.Minute
	// maxDigests is for how many tenants they are kept.
	maxDigests = 256
	// maxDigested is how many answers, the latest stored ones, are read for them, and digestBatch how many at a time.
	maxDigested = 500
	digestBatch = 10
	// digestTime is how long reading them may take, and digestText how many bytes of text are read: fewer answers are
	// read if they are long.
	digestTime = time.Second
	digestText = 16 << 20
	// topSources is how many sources an overview names, and manySources how many the list of sources does.
	topSources  = 8
	manySources = 50
)

// overviewBody is the content of the overview.
type overviewBody struct {
	*digest

	Facts      []total
	CitedChart *chart
	Verified   *chart // nil if nothing was checked
}

// total is a number with its noun, and the address of the details.
type total struct{ Count, Noun, URL string }

// overview shows statistics.
func (p *Page) overview(ctx context.Context, r *httpx.Request) (*view, error) {
	p.captured.CatchUp(ctx)
	d, err := p.digest(ctx, r.Who.Tenant)
	if err != nil {
		return nil, err
	}
	body := &overviewBody{
		digest: d, Facts: totals(&d.Counts), CitedChart: citationChart(d), Verified: verifiedChart(d.days),
	}
	return &view{Name: "overview", Title: "Overview", Body: body}, nil
}

// totals returns the counts of everything.
func totals(c *store.Counts) []total {
	list := []total{}
	for _, f := range []struct {
		n         int
		one, many string
		url       string
	}{
		{c.Answers, "answer", "answers", "/ui/answers"},
		{c.Conversations, "conversation", "conversations", "/ui/answers"},
		{c.Runs, "run", "runs", "/ui/runs"},
		{c.Incidents, "incident", "incidents", "/ui/incidents"},
	} {
		count, noun := strconv.Itoa(f.n), f.many
		switch {
		case f.n == 1:
			noun = f.one
		case f.n > store.MaxCounted:
			count = "over " + strconv.Itoa(store.MaxCounted)
		}
		list = append(list, total{count, noun, f.url})
	}
	return list
}

// digest is the statistics of a tenant's answers. It does not change once it is made.
type digest struct {
	Counts  store.Counts
	Top     []usedSource // cited most
	Broken  []brokenSource
	Answers int   // number of answers read: those with text
	Older   bool  // there are more than were read
	Uncited share // of the sentences that make a statement: those without a citation
	Bare    share // of the answers: those that make statements and have no citation at all
	At      time.Time

	days     []store.CheckedDay
	perCited map[int]int // answers by their number of citations
}

// share is a fraction.
type share struct{ Part, Of int }

// Width returns the share in percent.
func (s share) Width() float64 { return round(100 * s.Share()) }

// Share returns the share, from 0 to 1.
func (s share) Share() float64 { return float64(s.Part) / float64(max(s.Of, 1)) }

// usedSource is a source with how often it was cited.
type usedSource struct {
	Key, Title, Site, Letter string
	Answers, Citations       int
	Width                    float64 // relative to the most cited source, which has 100
}

// brokenSource is a source whose citations failed a check.
type brokenSource struct {
	store.BrokenSource

	Title, Site string
}

// digests caches the digests of tenants. The zero value is ready to use.
type digests struct {
	flight singleflight.Group
	mu     sync.Mutex
	kept   map[string]*digest // by tenant
	making map[string]bool    // tenants whose next one is being made
}

// digest returns the digest of a tenant, at most [digestFor] old. Concurrent calls share one that is being made; calls
// that come while it is being made get the previous one, if there is one.
func (p *Page) digest(ctx context.Context, tenant string) (*digest, error) {
	all := &p.bounds.digests
	if d, good := all.get(tenant); good {
		return d, nil
	}
	made, err, _ := all.flight.Do(tenant, func() (any, error) {
		if d, good := all.get(tenant); good {
			return d, nil
		}
		all.setMaking(tenant, true)
		defer all.setMaking(tenant, false)
		// Others use it too, even if the caller has left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askStore)
		defer cancel()
		d, err := p.makeDigest(ctx, tenant)
		if err == nil {
			all.keep(tenant, d)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return made.(*digest), nil //nolint:forcetypeassert // it is what the function returns
}

// get returns a digest that is still valid, or is used because the next is being made; good is false if there is none.
func (all *digests) get(tenant string) (d *digest, good bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d = all.kept[tenant]
	return d, d != nil && (all.making[tenant] || time.Since(d.At) < digestFor)
}

// setMaking records whether the next digest of a tenant is being made.
func (all *digests) setMaking(tenant string, making bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.making == nil {
		all.making = map[string]bool{}
	}
	if all.making[tenant] = making; !making {
		delete(all.making, tenant)
	}
}

// keep stores a digest, in place of the oldest if there are too many.
func (all *digests) keep(tenant string, d *digest) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.kept == nil {
		all.kept = map[string]*digest{}
	}
	if all.kept[tenant] == nil && len(all.kept) >= maxDigests {
		oldest := slices.MinFunc(
			slices.Collect(maps.Keys(all.kept)),
			func(a, b string) int { return all.kept[a].At.Compare(all.kept[b].At) },
		)
		delete(all.kept, oldest)
	}
	all.kept[tenant] = d
}

func (p *Page) makeDigest(ctx context.Context, tenant string) (*digest, error) {
	d := &digest{At: time.Now(), perCited: map[int]int{}}
	counts, err := p.o.Store.Counts(ctx, tenant)
	if err != nil {
		return nil, err
	}
	d.Counts = *counts
	if d.days, err = p.o.Store.CheckedDays(ctx, tenant); err != nil {
		return nil, err
	}
	broken, err := p.o.Store.BrokenSources(ctx, tenant, manySources)
	if err != nil {
		return nil, err
	}
	for _, b := range broken {
		s := &ibid.Source{ID: b.SourceID, URL: b.URL, Title: b.Source.Title}
		d.Broken = append(d.Broken, brokenSource{b, sourceTitle(s), siteOf(s)})
	}
	used := map[string]*usedSource{}
	if err := p.readAnswers(ctx, tenant, d, used); err != nil {
		return nil, err
	}
	for _, u := range used {
		d.Top = append(d.Top, *u)
	}
	slices.SortFunc(d.Top, func(a, b usedSource) int {
		return cmp.Or(
			b.Citations-a.Citations, b.Answers-a.Answers, cmp.Compare(a.Title, b.Title), cmp.Compare(a.Key, b.Key),
		)
	})
	d.Top = slices.Clone(d.Top[:min(len(d.Top), manySources)])
	for i := range d.Top {
		d.Top[i].Width = round(100 * float64(d.Top[i].Citations) / float64(d.Top[0].Citations))
	}
	return d, nil
}

// readAnswers counts the latest answers, as many as time allows, and their sources by key.
func (p *Page) readAnswers(ctx context.Context, tenant string, d *digest, used map[string]*usedSource) error {
	q := &store.Query{Limit: digestBatch}
	size, read := 0, 0
	for until := time.Now().Add(digestTime); ; {
		page, err := p.o.Store.Calls(ctx, tenant, q)
		if err != nil {
			return err
		}
		for _, call := range page.Items {
			size += len(call.Answer.Text)
			if read > 0 && (read == maxDigested || size > digestText || time.Now().After(until)) {
				d.Older = true
				return nil
			}
			read++
			if err := d.add(ctx, call.Answer, used); err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

// add counts an answer.
func (d *digest) add(ctx context.Context, a *ibid.Answer, used map[string]*usedSource) error {
	if a.Text == "" {
		return nil
	}
	d.Answers++
	d.Bare.Of++
	d.perCited[len(a.Citations)]++
	found, err := support.Attribute(ctx, a, nil, nil) // splits it into sentences; there is nothing to attribute
	if err != nil {
		return err
	}
	says := false
	for i := range found.Sentences {
		if s := &found.Sentences[i]; s.Says() {
			says = true
			d.Uncited.Of++
			if s.Uncited() {
				d.Uncited.Part++
			}
		}
	}
	if says && len(a.Citations) == 0 {
		d.Bare.Part++
	}
	seen := map[string]bool{}
	for i := range a.Citations {
		for k := range a.Citations[i].Refs {
			s := a.Source(a.Citations[i].Refs[k].Source)
			if s == nil {
				continue
			}
			key := s.Key()
			u := used[key]
			if u == nil {
				u = &usedSource{Key: key, Title: sourceTitle(s), Site: siteOf(s), Letter: letterOf(s)}
				used[key] = u
			}
			u.Citations++
			if !seen[key] {
				seen[key] = true
				u.Answers++
			}
		}
	}
	return nil
}
