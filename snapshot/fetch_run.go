package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// run does a job: it tries, and tries again where that may help.
func (f *Fetcher) run(ctx context.Context, j *job, t *target) (s *Snapshot, ferr *FetchError) {
	defer func() {
		if why := recover(); why != nil { // somebody else's decoder, over somebody else's bytes
			s, ferr = nil, &FetchError{
				URL:    j.URL,
				Kind:   Unreachable,
				Reason: reasonProtocol,
				Err:    fmt.Errorf("%s: %v", panicked, why),
			}
		}
	}()
	retries := f.limits.Retries
	if j.Retries != 0 {
		retries = max(0, min(retries, j.Retries))
	}
	prior := f.prior(ctx, j)
	for n := range retries + 1 {
		s, ferr = f.try(ctx, j, t, prior)
		if ferr == nil {
			f.keep(ctx, j, s)
			return s, nil
		}
		ferr.FinalURL = other(ferr.URL, j.URL)
		ferr.URL = j.URL
		if n == retries || !ferr.passing() || ferr.RetryAfter > f.limits.RetryAfter {
			break
		}
		wait := f.limits.Backoff << n
		if wait > 0 {
			wait += rand.N(wait/2 + 1) // so that not all come back at once
		}
		if err := pause(ctx, max(wait, ferr.RetryAfter)); err != nil {
			return nil, f.classify(ctx, t, err)
		}
	}
	return nil, ferr
}

// other returns a unless it is b.
func other(a, b string) string {
	if a == b {
		return ""
	}
	return a
}

// passing reports whether what was wrong may be over in a moment.
func (e *FetchError) passing() bool {
	if e.Kind != Unreachable {
		return false
	}
	switch e.Reason {
	case reason429:
		return true
	case reason5xx:
		return e.Status != http.StatusNotImplemented && e.Status != http.StatusHTTPVersionNotSupported
	case reasonConnect:
		return true
	}
	return false
}

// prior returns the copy by which a request can be conditional, nil if there is none.
func (f *Fetcher) prior(ctx context.Context, j *job) *Snapshot {
	if j.Copies == nil || j.Fresh || j.purpose != forDocument {
		return nil
	}
	s, err := j.Copies.Latest(ctx, j.URL)
	if err != nil {
		f.log.LogAttrs(
			ctx, slog.LevelWarn, "reading a copy", slog.String("url", j.URL),
			slog.String("error", err.Error()),
		)
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
		f.log.LogAttrs(
			ctx, slog.LevelWarn, "keeping a copy", slog.String("url", j.URL),
			slog.String("error", err.Error()),
		)
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
			return nil, &FetchError{
				URL:    next.clean,
				Kind:   Unreachable,
				Reason: reasonRedirects,
				Hops:   visited[1:],
				Err:    fmt.Errorf("redirect %d leads there", len(visited)),
			}
		}
		h.at = next
	}
}

// errNoRedirect: the document must be where its address says.
var errNoRedirect = errors.New("it redirects, and must not")

// follow returns where a response redirects to, checked.
func (h *hop) follow(resp *http.Response) (*target, *FetchError) {
	from := h.at.clean
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, &FetchError{
			URL:    from,
			Kind:   Unreachable,
			Reason: reasonProtocol,
			Status: resp.StatusCode,
			Err:    errors.New("it redirects to nowhere"),
		}
	}
	to, err := h.resolve(location)
	if err != nil {
		return nil, err
	}
	if h.job.purpose == forLocation {
		return parseTarget(to)
	}
	if h.job.NoRedirect {
		return nil, &FetchError{
			URL:    from,
			Kind:   Unreachable,
			Reason: reasonRedirects,
			Status: resp.StatusCode,
			Err:    errNoRedirect,
		}
	}
	next, err := h.f.guard.target(to)
	if err != nil {
		return nil, err
	}
	if h.at.url.Scheme == "https" && next.url.Scheme != "https" {
		return nil, blocked(to, reasonDowngrade, "%s redirects to it", from)
	}
	return next, nil
}

// resolve makes a Location absolute.
func (h *hop) resolve(location string) (string, *FetchError) {
	ref, err := url.Parse(location)
	if err != nil || len(location) > MaxURL {
		return "", blocked(location, reasonURL, "%s redirects to what is no address", h.at.clean)
	}
	if ref.IsAbs() {
		return location, nil // as it was written: resolving would tidy what has to be refused
	}
	return h.at.url.ResolveReference(ref).String(), nil
}

// statusError returns what a status says that is not a document's, nil for one that is.
func statusError(status int) *FetchError {
	e := &FetchError{Kind: Unreachable, Status: status, Err: fmt.Errorf("the server said %d", status)}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = Gone
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusUnavailableForLegalReasons:
		e.Kind = AccessDenied
	case http.StatusTooManyRequests:
		e.Reason = reason429
	case http.StatusPartialContent: // nobody asked for a part
		e.Reason = reasonProtocol
	default:
		switch status / 100 {
		case 2:
			return nil
		case 4:
			e.Reason = reason4xx
		case 5:
			e.Reason = reason5xx
		default:
			e.Reason = reasonProtocol
		}
	}
	return e
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
