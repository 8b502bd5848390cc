package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jimsmart/grobotstxt"
)

// What is read and remembered of robots.txt (RFC 9309).
const (
	maxRobots       = 500 << 10        // read of one, in bytes; the rest is as if it were not there
	robotsLife      = 24 * time.Hour   // how long one holds, at most
	robotsRetryLife = 10 * time.Minute // how long none is tried after one could not be read
	// of an address; one that is longer is not asked about, and not fetched by schedule
	maxRobotsPath = 2048
	robotsMemory  = 16 << 20 // for all, in bytes
)

// rules is the robots.txt of a site.
type rules struct {
	body  string
	err   *FetchError // it could not be read: nothing is allowed
	until time.Time
}

// robots remembers rules by site: scheme, host and port.
type robots struct{ known lru[*rules] }

// checkRobots asks a site's robots.txt whether a page may be fetched by schedule: 2xx says so, any other answer of the
// 400s means that there is none, and whatever else happens means no.
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

// product is the name by which robots.txt knows a user agent.
func product(userAgent string) string {
	if end := strings.IndexAny(userAgent, " /("); end >= 0 {
		return userAgent[:end]
	}
	return userAgent
}

// allows asks a robots.txt. One that breaks its reader allows nothing.
func allows(body, agent, url string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return body == "" || len(url) <= maxRobotsPath && grobotstxt.AgentAllowed(body, agent, url)
}
