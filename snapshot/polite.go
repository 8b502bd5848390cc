package snapshot

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jimsmart/grobotstxt"
)

// places is a semaphore with two queues: requests that a caller waits for go before scheduled ones, which get at most
// half of the places. The zero value has no limit.
type places struct {
	size int // 0 means no limit

	mu               sync.Mutex
	taken, scheduled int
	asked, later     list.List // of chan struct{}, closed when a place is granted
}

// acquire waits for a place, which must be released.
func (p *places) acquire(ctx context.Context, scheduled bool) error {
	if p.size <= 0 {
		return nil
	}
	queue := &p.asked
	if scheduled {
		queue = &p.later
	}
	granted := make(chan struct{})
	p.mu.Lock()
	at := queue.PushBack(granted)
	p.grant()
	p.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	late := false
	p.mu.Lock()
	select {
	case <-granted: // at the same time
		late = true
	default:
		queue.Remove(at)
	}
	p.mu.Unlock()
	if late {
		p.release(scheduled)
	}
	return context.Cause(ctx)
}

// release returns a place and grants it to the next in line.
func (p *places) release(scheduled bool) {
	if p.size <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if scheduled {
		p.scheduled--
	}
	p.grant()
}

// grant grants free places. The caller holds the lock.
func (p *places) grant() {
	for p.taken < p.size {
		queue := &p.asked
		if queue.Len() == 0 {
			if p.scheduled >= (p.size+1)/2 || p.later.Len() == 0 {
				return
			}
			queue = &p.later
			p.scheduled++
		}
		p.taken++
		close(queue.Remove(queue.Front()).(chan struct{}))
	}
}

// host is one host's queue.
type host struct {
	places places
	users  int // guarded by hosts.mu

	mu     sync.Mutex
	next   time.Time // earliest start of the next request
	until  time.Time // the host asked for a delay until then
	status int       // of the response that asked for it
}

// hosts holds a queue for each host with current or recent requests.
type hosts struct {
	perHost  int
	gap      time.Duration
	maxDelay time.Duration // longer delays are not waited for

	mu    sync.Mutex
	all   map[string]*host
	sweep int // number of hosts at which unused ones are dropped
}

// maxBusy bounds the delay that a host can ask for: some ask for years, by mistake.
const maxBusy = 10 * time.Minute

// minSweep is the number of hosts below which none is dropped.
const minSweep = 1024

func (h *hosts) open(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[name]
	if one == nil {
		if len(h.all) >= max(h.sweep, minSweep) {
			h.dropUnused(time.Now())
		}
		if h.all == nil {
			h.all = map[string]*host{}
		}
		one = &host{places: places{size: h.perHost}}
		h.all[name] = one
	}
	one.users++
	return one
}

func (h *hosts) close(one *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one.users--
}

// dropUnused drops hosts that have no users and no delay. The caller holds the lock.
func (h *hosts) dropUnused(now time.Time) {
	for name, one := range h.all {
		if one.users == 0 && !one.next.After(now) && !one.until.After(now) {
			delete(h.all, name)
		}
	}
	h.sweep = 2 * len(h.all)
}

// setBusy records that a host asked for a delay.
func (one *host) setBusy(status int, d time.Duration) {
	until := time.Now().Add(min(d, maxBusy))
	one.mu.Lock()
	defer one.mu.Unlock()
	if until.After(one.until) {
		one.until, one.status = until, status
	}
}

// wait waits until a request may start, and reserves that start. It acquires a place in all only then, so that requests
// waiting for a slow host do not block others.
func (h *hosts) wait(ctx context.Context, one *host, all *places, scheduled bool) error {
	for {
		one.mu.Lock()
		left, asked, status := time.Until(one.next), time.Until(one.until), one.status
		one.mu.Unlock()
		if asked > h.maxDelay {
			busy := statusError(status)
			busy.RetryAfter = asked
			return busy
		}
		if asked > 0 {
			left = asked
		}
		if err := sleep(ctx, left); err != nil {
			return err
		}
		if err := all.acquire(ctx, scheduled); err != nil {
			return err
		}
		one.mu.Lock()
		now := time.Now()
		isDue := !one.next.After(now) && !one.until.After(now)
		if isDue {
			one.next = now.Add(h.gap)
		}
		one.mu.Unlock()
		if isDue {
			return nil
		}
		all.release(scheduled) // another request started meanwhile
	}
}

// sleep waits, or returns the cause if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Limits for robots.txt (RFC 9309).
const (
	maxRobots       = 500 << 10        // bytes read of each; the rest is ignored
	robotsLife      = 24 * time.Hour   // how long one is cached at most
	robotsRetryLife = 10 * time.Minute // how long a failure is cached
	// maximum length of an address; longer ones are not checked, and not fetched by schedule
	maxRobotsPath = 2048
	robotsMemory  = 16 << 20 // bytes cached for all
)

// rules is the robots.txt of a site.
type rules struct {
	body  string
	err   *FetchError // it could not be read, so nothing is allowed
	until time.Time
}

// robots caches rules by site: scheme, host and port.
type robots struct{ known lru[string, *rules] }

// checkRobots checks whether a site's robots.txt lets a page be fetched by schedule. A 2xx has the rules, a status in
// the 400s other than 429 means that there are none, and anything else means that nothing is allowed.
func (f *Fetcher) checkRobots(ctx context.Context, t *target) *FetchError {
	if t.url.Path == "/robots.txt" {
		return nil
	}
	site := t.url.Scheme + "://" + t.url.Host
	r, ok := f.robots.known.get(site)
	if !ok || !time.Now().Before(r.until) {
		ask := FetchRequest{URL: site + "/robots.txt", Scheduled: true, MaxBytes: maxRobots}
		s, err := f.get(ctx, &job{FetchRequest: ask, purpose: forRobots})
		if ctx.Err() != nil {
			return f.classify(ctx, t, context.Cause(ctx))
		}
		r = readRules(s, err)
		f.robots.known.put(site, r, int64(len(r.body)+len(site)), robotsMemory)
	}
	refused := &FetchError{URL: t.clean, Kind: RobotsDisallowed}
	switch {
	case r.err != nil:
		refused.Reason, refused.Err = reasonUnreachable, fmt.Errorf("its robots.txt: %w", r.err)
		return refused
	case !allows(r.body, product(f.userAgent), t.clean):
		refused.Reason, refused.Err = reasonRule, errors.New("its robots.txt does not allow it")
		return refused
	}
	return nil
}

func readRules(s *Snapshot, err *FetchError) *rules {
	now := time.Now()
	switch {
	case err == nil:
		return &rules{body: string(s.Octets), until: now.Add(robotsLife)}
	case err.Kind == Gone, err.Kind == AccessDenied, err.Reason == reason4xx:
		return &rules{until: now.Add(robotsLife)}
	}
	return &rules{err: err, until: now.Add(robotsRetryLife)}
}

// product returns the name of a user agent in robots.txt.
func product(userAgent string) string {
	if end := strings.IndexAny(userAgent, " /("); end >= 0 {
		return userAgent[:end]
	}
	return userAgent
}

// allows evaluates a robots.txt. If its parser panics, nothing is allowed.
func allows(body, agent, url string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return body == "" || len(url) <= maxRobotsPath && grobotstxt.AgentAllowed(body, agent, url)
}
