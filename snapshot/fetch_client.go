package snapshot

import (
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/ibidhq/ibid/internal/unpack"
)

// What a transport may hold.
const (
	maxHeader   = 64 << 10 // of a response, in bytes
	idleConns   = 128
	idleSeconds = 30
)

// newTransport makes what all connections go through. There is no proxy: it would connect for us to wherever we say.
func newTransport(o *FetchOptions, l *FetchLimits, g *guard) *http.Transport {
	d := &net.Dialer{
		Timeout: l.Connect, Resolver: o.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return g.check(network, address) },
	}
	t := &http.Transport{
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    l.Connect,
		ResponseHeaderTimeout:  l.Header,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // we do it, within bounds
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    l.PerHost,
		IdleConnTimeout:        idleSeconds * time.Second,
		ReadBufferSize:         32 << 10, // most pages in one piece
	}
	if l.PerHost == 0 {
		t.MaxIdleConnsPerHost = l.Parallel
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	return t
}

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
		return nil, unreachable(t.clean, reasonClosed, 0, errClosed)
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
