package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ibidhq/ibid/internal/unpack"
)

// run does a job, with retries where these may help.
func (f *Fetcher) run(ctx context.Context, j *job, t *target) (s *Snapshot, ferr *FetchError) {
	defer func() {
		if why := recover(); why != nil { // a third-party decoder, on untrusted bytes
			s, ferr = nil, unreachable(j.URL, reasonProtocol, 0, fmt.Errorf("%s: %v", panicked, why))
		}
	}()
	retries := f.limits.Retries
	if j.Retries != 0 {
		retries = max(0, min(retries, j.Retries))
	}
	var prior *Snapshot // the copy for a conditional request
	if j.Copies != nil && !j.Fresh && j.purpose == forDocument {
		copied, err := j.Copies.Latest(ctx, j.URL)
		switch {
		case err != nil:
			f.log.WarnContext(ctx, "reading a copy", slog.String("url", j.URL), slog.Any("error", err))
		case copied == nil || copied.ETag == "" && copied.LastModified == "",
			int64(len(copied.Octets)) > j.most(&f.limits), Hash(copied.Octets) != copied.Hash:
			// no copy that a 304 could refer to
		default:
			prior = copied
		}
	}
	delays := backoff.ExponentialBackOff{ // from the limit to 1.5 times that, so that not all retry at once
		InitialInterval: f.limits.Backoff * 5 / 4, RandomizationFactor: 0.2, Multiplier: 2, MaxInterval: time.Hour,
	}
	for n := range retries + 1 {
		s, ferr = f.try(ctx, j, t, prior)
		if ferr == nil {
			if j.Copies != nil && j.purpose == forDocument && s.Status == http.StatusOK {
				// A copy that cannot be kept does not fail the fetch, and cancellation is not worth a warning.
				if err := j.Copies.Keep(ctx, s); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
					f.log.WarnContext(ctx, "keeping a copy", slog.String("url", j.URL), slog.Any("error", err))
				}
			}
			return s, nil
		}
		if ferr.URL != j.URL {
			ferr.URL, ferr.FinalURL = j.URL, ferr.URL
		}
		if n == retries || !ferr.isTemporary() || ferr.RetryAfter > f.limits.RetryAfter {
			break
		}
		if err := sleep(ctx, max(delays.NextBackOff(), ferr.RetryAfter)); err != nil {
			return nil, f.classify(ctx, t, err)
		}
	}
	return nil, ferr
}

// most is the maximum size of the document.
func (j *job) most(l *FetchLimits) int64 {
	if j.MaxBytes > 0 {
		return min(j.MaxBytes, l.Bytes)
	}
	return l.Bytes
}

// try makes one attempt, following redirects. The URL of its error is that of the hop.
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
			prior = nil // the 304 is about another version than our copy: ask unconditionally
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

// redirect returns the checked target of a redirect.
func (h *hop) redirect(resp *http.Response) (*target, *FetchError) {
	from := h.at.clean
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, unreachable(from, reasonProtocol, resp.StatusCode, errors.New("it redirects without a Location"))
	}
	ref, err := url.Parse(location)
	if err != nil || len(location) > maxURL {
		return nil, blocked(location, reasonURL, "%s redirects to an invalid address", from)
	}
	to := location // as written: resolving would clean up what must be refused
	if !ref.IsAbs() {
		to = h.at.url.ResolveReference(ref).String()
	}
	if h.job.purpose == forLocation {
		return parseTarget(to)
	}
	if h.job.NoRedirect {
		return nil, unreachable(from, reasonRedirects, resp.StatusCode, errors.New("it must not redirect"))
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

// RetryAfter parses a Retry-After field, seconds or a date, and returns the time from now, at most a year. It is 0 if v
// is neither.
func RetryAfter(v string, now time.Time) time.Duration {
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

// hop is one request and its response.
type hop struct {
	f     *Fetcher
	job   *job
	at    *target
	prior *Snapshot     // the copy that a 304 would refer to; nil if the request is unconditional
	left  time.Duration // time left for all hops; do reduces it
}

// The reasons why a hop ends before its response does.
var (
	errTotal   = errors.New("it took too long in total")
	errIdle    = errors.New("nothing was received for too long")
	errSent    = errors.New("as sent it is longer than the limit")
	errDecoded = errors.New("it is longer than the limit")
)

// do waits for its turn, sends the request and reads the response. It returns a document or a redirect target, or
// neither if the request must be repeated unconditionally.
func (h *hop) do(ctx context.Context) (*target, *Snapshot, *FetchError) {
	f := h.f
	if h.job.Scheduled && h.job.purpose == forDocument {
		if err := f.checkRobots(ctx, h.at); err != nil {
			return nil, nil, err
		}
	}
	queue := f.hosts.open(strings.TrimSuffix(h.at.url.Hostname(), ".")) // a trailing dot makes no other host
	defer f.hosts.close(queue)
	if err := queue.places.acquire(ctx, h.job.Scheduled); err != nil {
		return nil, nil, f.classify(ctx, h.at, err)
	}
	defer queue.places.release(h.job.Scheduled)
	if err := f.hosts.wait(ctx, queue, &f.all, h.job.Scheduled); err != nil {
		return nil, nil, f.classify(ctx, h.at, err)
	}
	defer f.all.release(h.job.Scheduled)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watched{idle: f.limits.Idle, end: time.Now().Add(h.left)}
	w.timer = time.AfterFunc(h.left, func() {
		if time.Now().Before(w.end) {
			cancel(errIdle)
		} else {
			cancel(errTotal)
		}
	})
	defer func() {
		w.timer.Stop()
		h.left = time.Until(w.end)
	}()
	// without Referer and cookies
	header := http.Header{"User-Agent": {f.userAgent}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}}
	if h.job.Accept != "" {
		header["Accept"] = []string{h.job.Accept}
	}
	if h.job.Identity {
		header["Accept-Encoding"] = []string{"identity"}
	}
	if h.prior != nil {
		if h.prior.ETag != "" {
			header["If-None-Match"] = []string{h.prior.ETag}
		}
		if h.prior.LastModified != "" {
			header["If-Modified-Since"] = []string{h.prior.LastModified}
		}
	}
	request := http.Request{
		Method: http.MethodGet, URL: h.at.url, Host: h.at.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	resp, err := f.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return nil, nil, f.classify(ctx, h.at, err)
	}
	defer func() { _ = resp.Body.Close() }() // already read as far as needed
	next, s, ferr := h.read(ctx, resp, w)
	if ferr != nil && ferr.RetryAfter > 0 &&
		(ferr.Status == http.StatusTooManyRequests || ferr.Status == http.StatusServiceUnavailable) {
		queue.setBusy(ferr.Status, ferr.RetryAfter)
	}
	return next, s, ferr
}

// read reads a response as far as needed.
func (h *hop) read(ctx context.Context, resp *http.Response, w *watched) (*target, *Snapshot, *FetchError) {
	now := time.Now().UTC()
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		next, ferr := h.redirect(resp)
		if ferr == nil && h.job.purpose == forLocation {
			return nil, &Snapshot{FinalURL: next.clean}, nil
		}
		return next, nil, ferr
	case http.StatusNotModified:
		if h.prior != nil {
			return nil, h.unmodified(resp, now), nil
		}
	}
	if resp.StatusCode/100 != 2 || resp.StatusCode == http.StatusPartialContent {
		ferr := statusError(resp.StatusCode)
		ferr.URL, ferr.RetryAfter = h.at.clean, RetryAfter(resp.Header.Get("Retry-After"), now)
		return nil, nil, ferr
	}
	if h.job.purpose == forLocation {
		return nil, nil, unreachable(h.at.clean, reasonRedirects, resp.StatusCode, errors.New("it does not redirect"))
	}
	octets, err := h.octets(resp, w)
	if err != nil {
		ferr := h.f.classify(ctx, h.at, err)
		ferr.Status = resp.StatusCode
		return nil, nil, ferr
	}
	s := &Snapshot{
		FinalURL:     h.at.clean,
		Status:       resp.StatusCode,
		Header:       keptFields(resp.Header),
		FetchedAt:    now,
		UserAgent:    h.f.userAgent,
		MediaType:    resp.Header.Get("Content-Type"),
		ETag:         resp.Header.Get("ETag"),
		LastModified: resp.Header.Get("Last-Modified"),
		Octets:       octets,
		Hash:         Hash(octets),
	}
	if len(resp.Trailer) > 0 { // set once the body was read
		s.Trailer = keptFields(resp.Trailer)
	}
	return nil, s, nil
}

// unmodified returns a snapshot of our copy, which the server says is current, or nil if the server means another
// version.
func (h *hop) unmodified(resp *http.Response, now time.Time) *Snapshot {
	tag := resp.Header.Get("ETag")
	if tag != "" && h.prior.ETag != "" && strings.TrimPrefix(tag, "W/") != strings.TrimPrefix(h.prior.ETag, "W/") {
		return nil
	}
	s := *h.prior
	s.NotModified, s.FetchedAt, s.UserAgent, s.Hops, s.Trailer = true, now, h.f.userAgent, nil, nil
	s.Header = s.Header.Clone()
	if s.Header == nil {
		s.Header = http.Header{}
	}
	for name, values := range keptFields(resp.Header) {
		if !strings.HasPrefix(name, "Content-") { // those describe a body, which this response does not have
			s.Header[name] = values
		}
	}
	s.LastModified = s.Header.Get("Last-Modified")
	return &s
}

// keptFields removes the fields that are not kept from a header: cookies, and those for the connection (RFC 9110,
// 7.6.1).
func keptFields(header http.Header) http.Header {
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(header, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name := range strings.FieldsSeq(`Connection Keep-Alive Proxy-Authenticate Proxy-Authentication-Info
		Proxy-Connection Set-Cookie Set-Cookie2 Te Trailer Transfer-Encoding Upgrade`) {
		delete(header, name)
	}
	return header
}

// codingError means that the body is in a coding that is not known or was not accepted.
type codingError string

func (e codingError) Error() string { return fmt.Sprintf("its content coding is %.40q", string(e)) }

// octets reads a body and removes its coding.
func (h *hop) octets(resp *http.Response, w *watched) ([]byte, error) {
	most, sent := h.job.most(&h.f.limits), h.f.limits.Compressed
	said := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	coding, ok := unpack.Find(said)
	if !ok || h.job.Identity && coding != unpack.Plain {
		return nil, codingError(said)
	}
	cut := h.job.purpose == forRobots // read up to the limit
	switch {
	case cut:
	case resp.ContentLength > sent:
		return nil, errSent
	case coding == unpack.Plain && resp.ContentLength > most:
		return nil, errDecoded
	}
	w.Reader = resp.Body
	body := unpack.Limit(w, sent, errSent)
	if coding != unpack.Plain && resp.ContentLength != 0 {
		var err error
		if body, err = coding.Reader(body, unpack.MaxWindow); errors.Is(err, io.EOF) {
			return []byte{}, nil // an empty body is not gzip, but common
		} else if err != nil {
			return nil, err
		}
	}
	over := errDecoded
	if cut {
		over = io.EOF
	}
	return io.ReadAll(unpack.Limit(body, most, over))
}

// watched is a body that cancels its hop if it takes too long, in total or until the next piece arrives. One timer
// serves both.
type watched struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
	end   time.Time
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(min(w.idle, time.Until(w.end)))
	return w.Reader.Read(p)
}
