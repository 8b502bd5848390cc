package snapshot

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ibidhq/ibid/internal/unpack"
)

// defaultUserAgent is the User-Agent of a [Fetcher].
const defaultUserAgent = "ibid (+https://github.com/ibidhq/ibid)"

// FetchOptions are the options of a [Fetcher]. Nil and the zero value mean: only public networks, the default limits,
// no copies.
type FetchOptions struct {
	Allow  []netip.Prefix // networks that may be reached besides the public ones, on any port
	Limits FetchLimits    // zero fields mean the defaults
	// UserAgent is the User-Agent; empty means "ibid (+https://github.com/ibidhq/ibid)". Its part before the first
	// space, slash or parenthesis is matched in robots.txt.
	UserAgent string
	// where fetched documents are kept, to request them conditionally the next time; nil disables it
	Copies   Copies
	Resolver *net.Resolver // nil means the system's
	TLS      *tls.Config   // nil means the system's roots
	Log      *slog.Logger  // logs copies that could not be read or kept; nil disables it
}

// FetchLimits bounds fetching. Zero fields mean the default; a negative number has the meaning in the field's comment,
// or else also means the default.
type FetchLimits struct {
	Bytes      int64         // of a document without content codings; 8 MiB
	Compressed int64         // of a document as it is sent; 8 MiB
	Redirects  int           // 5; negative means none
	Connect    time.Duration // for name and connection, and again for the TLS handshake; 5 s
	Header     time.Duration // from the request to the end of the response's header; 10 s
	Idle       time.Duration // between two pieces of a body; 5 s
	Total      time.Duration // for one attempt with its redirects, without waiting in queues; 30 s
	PerHost    int           // concurrent requests to one host; 2; negative means no limit
	Gap        time.Duration // between the starts of two requests to one host; 100 ms; negative means none
	Parallel   int           // concurrent requests in total; 64
	Retries    int           // after 429, 5xx and lost connections; 2; negative means none
	Backoff    time.Duration // before the first retry, doubled for each further one; 500 ms; negative means none
	// a server that asks for a longer delay is not tried again; 30 s; negative means that none is waited for
	RetryAfter time.Duration
}

// FetchRequest describes what to fetch. Only URL is required.
type FetchRequest struct {
	URL        string
	Scheduled  bool   // nobody waits for it: honour robots.txt, and let others go first
	NoRedirect bool   // fail on a redirect: for documents that trust is based on
	Identity   bool   // accept no content coding; a response that has one is an error
	MaxBytes   int64  // of the document, if less than the limit; 0 means the limit
	Accept     string // the Accept field; empty means anything
	Fresh      bool   // make no conditional request: the octets come over the network
	NoCopy     bool   // make no conditional request, and keep no copy
	Retries    int    // if fewer than the limit; 0 means the limit, negative none
	// Copies replaces the fetcher's copies, for programs with several stores of copies. It must be comparable, such as
	// a pointer: concurrent requests with different Copies do not share a response. Nil means the fetcher's.
	Copies Copies
}

// Snapshot is a document as it was read once. It is plain data; its JSON does not have the octets. What a [Fetcher]
// returns may be shared with other callers and must not be changed.
type Snapshot struct {
	URL      string `json:"url"`                 // requested, in the form of [CleanURL]
	FinalURL string `json:"final_url,omitempty"` // after redirects
	// the addresses between URL and FinalURL, each redirecting to the next, and the last to FinalURL
	Hops   []string `json:"hops,omitempty"`
	Status int      `json:"status"` // of the response, 2xx; for an unmodified copy, of its original response
	// as received, without cookies and fields for a single connection
	Header       http.Header `json:"header,omitempty"`
	Trailer      http.Header `json:"-"`                    // likewise; nil if there is none, or for an unmodified copy
	MediaType    string      `json:"media_type,omitempty"` // the Content-Type field as sent
	ETag         string      `json:"etag,omitempty"`
	LastModified string      `json:"last_modified,omitempty"`
	FetchedAt    time.Time   `json:"fetched_at"`
	UserAgent    string      `json:"user_agent,omitempty"`
	NotModified  bool        `json:"-"`    // the server replied 304: Octets are those of our copy
	Octets       []byte      `json:"-"`    // without content codings
	Hash         string      `json:"hash"` // of Octets, see [Hash]
}

// Text returns the visible text of the document. See [Extract].
func (s *Snapshot) Text() (*Text, error) {
	return Extract(s.Octets, &TextOptions{MediaType: s.MediaType, URL: s.FinalURL})
}

// Fetcher fetches documents whose addresses come from untrusted data: it connects to public addresses only, whatever a
// name resolves to and wherever a redirect leads, and is bounded in time and memory. One is enough for a program: it
// holds the queues of hosts and caches their robots.txt. It is safe for concurrent use. Create it with [NewFetcher].
type Fetcher struct {
	limits    FetchLimits
	userAgent string
	copies    Copies
	log       *slog.Logger
	guard     *guard
	transport *http.Transport
	hosts     hosts
	all       places
	robots    robots

	mu      sync.Mutex
	closed  bool
	flights map[job]*flight
	flying  sync.WaitGroup
}

// job is the normalized form of a request. Equal jobs share one flight.
type job struct {
	FetchRequest // URL as CleanURL gives it
	purpose      purpose
}

type purpose int

const (
	forDocument purpose = iota
	forRobots           // cut off if too long
	forLocation         // only the first redirect matters
)

// flight is a job in progress.
type flight struct {
	waiters int // guarded by Fetcher.mu
	cancel  context.CancelCauseFunc
	done    chan struct{}
	snap    *Snapshot // only FinalURL if forLocation
	err     *FetchError
}

var (
	errClosed    = errors.New("the fetcher is closed")
	errAbandoned = errors.New("its callers are gone")
)

// NewFetcher returns a Fetcher. Close it when it is no longer needed.
func NewFetcher(o *FetchOptions) *Fetcher {
	o = cmp.Or(o, &FetchOptions{})
	l := o.Limits.orDefaults()
	f := &Fetcher{
		limits: l, userAgent: cmp.Or(o.UserAgent, defaultUserAgent), copies: o.Copies,
		log:   cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		guard: &guard{slices.Clone(o.Allow), ssrf.New()}, flights: map[job]*flight{},
		hosts: hosts{perHost: l.PerHost, gap: l.Gap, maxDelay: l.RetryAfter},
		all:   places{size: l.Parallel},
	}
	d := &net.Dialer{
		Timeout: l.Connect, Resolver: o.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return f.guard.check(network, address) },
	}
	f.transport = &http.Transport{ // without a proxy, which would connect to any address for us
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    l.Connect,
		ResponseHeaderTimeout:  l.Header,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // done here, within bounds
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    cmp.Or(l.PerHost, l.Parallel),
		IdleConnTimeout:        idleSeconds * time.Second,
		ReadBufferSize:         32 << 10, // enough for most pages
		TLSClientConfig:        o.TLS.Clone(),
	}
	return f
}

// orDefaults fills in the defaults. In its result 0 has the meaning that a negative limit has before.
func (l FetchLimits) orDefaults() FetchLimits {
	return FetchLimits{
		Bytes:      orDefault(l.Bytes, 8<<20),
		Compressed: orDefault(l.Compressed, 8<<20),
		Redirects:  max(0, cmp.Or(l.Redirects, 5)),
		Connect:    orDefault(l.Connect, 5*time.Second),
		Header:     orDefault(l.Header, 10*time.Second),
		Idle:       orDefault(l.Idle, 5*time.Second),
		Total:      orDefault(l.Total, 30*time.Second),
		PerHost:    max(0, cmp.Or(l.PerHost, 2)),
		Gap:        max(0, cmp.Or(l.Gap, 100*time.Millisecond)),
		Parallel:   orDefault(l.Parallel, 64),
		Retries:    max(0, cmp.Or(l.Retries, 2)),
		Backoff:    max(0, cmp.Or(l.Backoff, 500*time.Millisecond)),
		RetryAfter: max(0, cmp.Or(l.RetryAfter, 30*time.Second)),
	}
}

// orDefault returns n, or the default unless n is positive.
func orDefault[N int | int64 | time.Duration](n, fallback N) N {
	if n <= 0 {
		return fallback
	}
	return n
}

// Fetch reads a document. Concurrent equal requests share one request to the network, which continues while at least
// one caller waits for it. Every error is a [*FetchError], including that of a context that ended.
func (f *Fetcher) Fetch(ctx context.Context, r *FetchRequest) (*Snapshot, error) {
	s, err := f.get(ctx, &job{FetchRequest: *r})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Location returns where an address redirects to, in the form of [CleanURL], without fetching that: it makes one
// request and reads no body. The target is not checked. An address that does not redirect is an error: [Unreachable],
// redirects.
func (f *Fetcher) Location(ctx context.Context, url string) (string, error) {
	s, err := f.get(ctx, &job{FetchRequest: FetchRequest{URL: url}, purpose: forLocation})
	if err != nil {
		return "", err
	}
	return s.FinalURL, nil
}

// Close cancels all fetches, waits for them to end and closes all connections. Later fetches fail. Close always returns
// nil.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	f.closed = true
	for _, one := range f.flights {
		one.cancel(errClosed)
	}
	f.mu.Unlock()
	f.flying.Wait()
	f.transport.CloseIdleConnections()
	return nil
}

// get starts or joins a job's flight and waits for it.
func (f *Fetcher) get(ctx context.Context, j *job) (*Snapshot, *FetchError) {
	t, ferr := f.guard.target(j.URL)
	if ferr != nil {
		return nil, ferr
	}
	j.URL = t.clean
	switch {
	case j.NoCopy:
		j.Copies = nil
	case j.Copies == nil:
		j.Copies = f.copies
	}
	if err := ctx.Err(); err != nil {
		return nil, ended(j.URL, err)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, unreachable(j.URL, reasonClosed, 0, errClosed)
	}
	one := f.flights[*j]
	if one == nil { // its context ends with its last caller's, not with the first's
		flying, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		one = &flight{cancel: cancel, done: make(chan struct{})}
		f.flights[*j] = one
		f.flying.Go(func() {
			one.snap, one.err = f.run(flying, j, t)
			cancel(nil)
			f.mu.Lock()
			if f.flights[*j] == one {
				delete(f.flights, *j)
			}
			f.mu.Unlock()
			close(one.done)
		})
	}
	one.waiters++
	f.mu.Unlock()
	select {
	case <-one.done:
		return one.snap, one.err
	case <-ctx.Done():
		f.leaveFlight(j, one)
		return nil, ended(j.URL, ctx.Err())
	}
}

// ended returns the error for a caller's context that ended.
func ended(url string, err error) *FetchError {
	if errors.Is(err, context.DeadlineExceeded) {
		return unreachable(url, reasonTimeout, 0, err)
	}
	return unreachable(url, reasonCancelled, 0, err)
}

// leaveFlight leaves a flight. The last caller cancels it, and waits until it has ended.
func (f *Fetcher) leaveFlight(j *job, one *flight) {
	f.mu.Lock()
	one.waiters--
	last := one.waiters == 0
	if last && f.flights[*j] == one {
		delete(f.flights, *j) // later callers need a new one
	}
	f.mu.Unlock()
	if last {
		one.cancel(errAbandoned)
		<-one.done
	}
}

// Limits of the transport.
const (
	maxHeader   = 64 << 10 // of a response, in bytes
	idleConns   = 128
	idleSeconds = 30
)

// Client returns a client for requests other than those of Fetch, such as POST, to addresses from untrusted data. It
// reaches what the Fetcher reaches and nothing else: public networks and allowed ones, checked again when a name is
// resolved, and without a proxy. It follows no redirects, has no cookies, and has the Fetcher's limits of time and
// bytes. It does not use the queues of hosts, and does not retry. Every error that the client wraps is a [*FetchError].
// It must not be used after the Fetcher is closed.
func (f *Fetcher) Client() *http.Client {
	return &http.Client{
		Transport:     guarded{f},
		Timeout:       f.limits.Total,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guarded is a transport that sends requests through a Fetcher's guard.
type guarded struct{ f *Fetcher }

// RoundTrip implements [http.RoundTripper].
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	t, ferr := g.f.guard.target(r.URL.String())
	if ferr == nil {
		g.f.mu.Lock()
		switch {
		case g.f.closed:
			ferr = unreachable(t.clean, reasonClosed, 0, errClosed)
		case r.Host != "" && r.Host != r.URL.Host:
			ferr = blocked(t.clean, reasonHost, "its Host field has another name, %.100q", r.Host)
		}
		g.f.mu.Unlock()
	}
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

// bounded is a body with a size limit.
type bounded struct {
	io.Reader
	io.Closer
}
