package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// run does a job: it tries, and tries again where that may help.
func (f *Fetcher) run(ctx context.Context, j *job, t *target) (s *Snapshot, ferr *FetchError) {
	defer func() {
		if why := recover(); why != nil { // somebody else's decoder, over somebody else's bytes
			s, ferr = nil, unreachable(j.URL, reasonProtocol, 0, fmt.Errorf("%s: %v", panicked, why))
		}
	}()
	retries := f.limits.Retries
	if j.Retries != 0 {
		retries = max(0, min(retries, j.Retries))
	}
	prior := f.prior(ctx, j)
	delays := backoff.ExponentialBackOff{ // from the limit to half as much again, so that not all come back at once
		InitialInterval: f.limits.Backoff * 5 / 4, RandomizationFactor: 0.2, Multiplier: 2, MaxInterval: time.Hour,
	}
	for n := range retries + 1 {
		s, ferr = f.try(ctx, j, t, prior)
		if ferr == nil {
			f.keep(ctx, j, s)
			return s, nil
		}
		if ferr.URL != j.URL {
			ferr.URL, ferr.FinalURL = j.URL, ferr.URL
		}
		if n == retries || !ferr.passing() || ferr.RetryAfter > f.limits.RetryAfter {
			break
		}
		if err := sleep(ctx, max(delays.NextBackOff(), ferr.RetryAfter)); err != nil {
			return nil, f.classify(ctx, t, err)
		}
	}
	return nil, ferr
}

// prior returns the copy by which a request can be conditional, nil if there is none.
func (f *Fetcher) prior(ctx context.Context, j *job) *Snapshot {
	if j.Copies == nil || j.Fresh || j.purpose != forDocument {
		return nil
	}
	s, err := j.Copies.Latest(ctx, j.URL)
	if err != nil {
		f.log.WarnContext(ctx, "reading a copy", slog.String("url", j.URL), slog.Any("error", err))
		return nil
	}
	most := j.most(&f.limits)
	if s == nil || s.ETag == "" && s.LastModified == "" || int64(len(s.Octets)) > most || Hash(s.Octets) != s.Hash {
		return nil // there is nothing that a 304 could stand for
	}
	return s
}

// keep keeps what was read. That it cannot be kept does not make it unread.
func (f *Fetcher) keep(ctx context.Context, j *job, s *Snapshot) {
	if j.Copies == nil || j.purpose != forDocument || s.Status != http.StatusOK {
		return
	}
	if err := j.Copies.Keep(ctx, s); err != nil {
		f.log.WarnContext(ctx, "keeping a copy", slog.String("url", j.URL), slog.Any("error", err))
	}
}

// most is how many bytes the document may have.
func (j *job) most(l *FetchLimits) int64 {
	if j.MaxBytes > 0 {
		return min(j.MaxBytes, l.Bytes)
	}
	return l.Bytes
}

// try goes from hop to hop once. The URL of its error is that of the hop.
func (f *Fetcher) try(ctx context.Context, j *job, t *target, prior *Snapshot) (*Snapshot, *FetchError) {
	var visited []string
	h := hop{f: f, job: j, at: t, left: f.limits.Total}
	for {
		if h.prior = nil; prior != nil && prior.FinalURL == h.at.clean {
			h.prior = prior
		}
		next, s, err := h.do(ctx)
		switch {
		case err != nil:
			if len(visited) > 0 {
				err.Hops = append(visited[1:], h.at.clean)
			}
			return nil, err
		case s != nil:
			s.URL = j.URL
			if len(visited) > 1 {
				s.Hops = visited[1:]
			}
			return s, nil
		case next == nil:
			prior = nil // our copy is another than the server's, which did not send the octets of that
			continue
		}
		visited = append(visited, h.at.clean)
		if len(visited) > f.limits.Redirects || slices.Contains(visited, next.clean) {
			err := unreachable(next.clean, reasonRedirects, 0, fmt.Errorf("redirect %d leads there", len(visited)))
			err.Hops = visited[1:]
			return nil, err
		}
		h.at = next
	}
}

// redirect returns where a response redirects to, checked.
func (h *hop) redirect(resp *http.Response) (*target, *FetchError) {
	from := h.at.clean
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, unreachable(from, reasonProtocol, resp.StatusCode, errors.New("it redirects to nowhere"))
	}
	ref, err := url.Parse(location)
	if err != nil || len(location) > maxURL {
		return nil, blocked(location, reasonURL, "%s redirects to what is no address", from)
	}
	to := location // as it was written: resolving would tidy what has to be refused
	if !ref.IsAbs() {
		to = h.at.url.ResolveReference(ref).String()
	}
	if h.job.purpose == forLocation {
		return parseTarget(to)
	}
	if h.job.NoRedirect {
		return nil, unreachable(from, reasonRedirects, resp.StatusCode, errors.New("it redirects, and must not"))
	}
	next, ferr := h.f.guard.target(to)
	if ferr != nil {
		return nil, ferr
	}
	if h.at.url.Scheme == "https" && next.url.Scheme != "https" {
		return nil, blocked(to, reasonDowngrade, "%s redirects to it", from)
	}
	return next, nil
}

// retryAfter reads the field of that name: seconds or a date.
func retryAfter(v string, now time.Time) time.Duration {
	const most = 366 * 24 * time.Hour
	if v == "" {
		return 0
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, at.Sub(now)), most)
	}
	seconds := int64(0)
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return 0
		}
		seconds = min(seconds*10+int64(v[i]-'0'), int64(most/time.Second))
	}
	return time.Duration(seconds) * time.Second
}
