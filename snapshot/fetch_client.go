package snapshot

import (
	"io"
	"net/http"

	"github.com/ibidhq/ibid/internal/unpack"
)

// Client returns a client for other requests than Fetch makes, such as POST, to addresses that data names. It goes
// where the Fetcher goes and nowhere else: public networks and those that are allowed, checked again when a name is
// resolved, through no proxy. It follows no redirect, has no cookies, and its limits of time and of bytes are the
// Fetcher's. It does not wait in the queues of the hosts, and does not try again. Every error beneath the client's is a
// [*FetchError]. It ends with the Fetcher.
func (f *Fetcher) Client() *http.Client {
	return &http.Client{
		Transport:     guarded{f},
		Timeout:       f.limits.Total,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guarded sends what is not a Fetcher's own through its guard.
type guarded struct{ f *Fetcher }

// RoundTrip implements [http.RoundTripper].
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	t, ferr := g.target(r)
	if ferr != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, ferr
	}
	if r.Header.Get("User-Agent") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", g.f.userAgent)
	}
	resp, err := g.f.transport.RoundTrip(r)
	if err != nil {
		return nil, g.f.classify(r.Context(), t, err)
	}
	resp.Body = &bounded{unpack.Limit(resp.Body, g.f.limits.Bytes, errDecoded), resp.Body}
	return resp, nil
}

// target says where a request goes, or why it is not sent.
func (g guarded) target(r *http.Request) (*target, *FetchError) {
	t, err := g.f.guard.target(r.URL.String())
	if err != nil {
		return nil, err
	}
	g.f.mu.Lock()
	defer g.f.mu.Unlock()
	switch {
	case g.f.closed:
		return nil, &FetchError{URL: t.clean, Kind: Unreachable, Reason: reasonClosed, Err: errClosed}
	case r.Host != "" && r.Host != r.URL.Host:
		return nil, blocked(t.clean, reasonHost, "it is asked for by another name, %.100q", r.Host)
	}
	return t, nil
}

// bounded is a body of which only so much can be read.
type bounded struct {
	io.Reader
	io.Closer
}
