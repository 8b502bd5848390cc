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

// defaultUserAgent is how a [Fetcher] names itself.
const defaultUserAgent = "ibid (+https://github.com/ibidhq/ibid)"

// FetchOptions says how a [Fetcher] fetches. Nil and the zero value mean: only public networks, the default limits, no
// copies.
type FetchOptions struct {
	Allow  []netip.Prefix // networks that may be reached besides the public ones, on any port
	Limits FetchLimits    // zero fields: the defaults
	// UserAgent names the fetcher; empty: "ibid (+https://github.com/ibidhq/ibid)". robots.txt knows it by what stands
	// before the first space, slash or parenthesis.
	UserAgent string
	// nil: nothing is remembered. Else what is fetched is kept, and asked for again conditionally
	Copies   Copies
	Resolver *net.Resolver // nil: the system's
	TLS      *tls.Config   // nil: the system's roots
	Log      *slog.Logger  // told of copies that could not be read or kept; nil: nobody
}

// FetchLimits bounds fetching. Zero fields mean the default; a negative number means what its comment says, else the
// default, too.
type FetchLimits struct {
	Bytes      int64         // of a document, its codings removed; 8 MiB
	Compressed int64         // of a document as it is sent; 8 MiB
	Redirects  int           // 5; negative: none is followed
	Connect    time.Duration // for the name, the connection and, again, the TLS handshake; 5 s
	Header     time.Duration // from the request to the end of the response's header; 10 s
	Idle       time.Duration // between two pieces of a body; 5 s
	Total      time.Duration // for one try, redirects included, waiting in queues not; 30 s
	PerHost    int           // requests to one host at a time; 2; negative: no limit
	Gap        time.Duration // between the starts of two requests to one host; 100 ms; negative: none
	Parallel   int           // requests at a time in all; 64
	Retries    int           // after 429, 5xx and lost connections; 2; negative: none
	Backoff    time.Duration // before the first retry, doubled for each further one; 500 ms; negative: none
	// a server that asks for more patience is not tried again; 30 s; negative: none is waited for
	RetryAfter time.Duration
}

// FetchRequest says what to fetch. Only URL is needed.
type FetchRequest struct {
	URL        string
	Scheduled  bool   // nobody waits for it: robots.txt is honoured, and others go first
	NoRedirect bool   // for documents that say whom to trust
	Identity   bool   // no content coding is accepted, and an answer that has one is an error
	MaxBytes   int64  // of the document, if that is less than the limit; 0: the limit
	Accept     string // the field Accept; empty: anything
	Fresh      bool   // no conditional request: the octets come over the network
	NoCopy     bool   // it is asked for unconditionally, and not kept among the copies
	Retries    int    // fewer than the limit; 0: the limit; negative: none
	// Copies takes the place of the fetcher's, where several have copies of their own. It must be comparable, as a
	// pointer is: who asks for the same with other copies does not share the answer. Nil: the fetcher's.
	Copies Copies
}

// Snapshot is a document as it was read once. It is plain data, as JSON without the octets; what a [Fetcher] returns
// may be shared with others who asked for the same, so do not change it.
type Snapshot struct {
	URL      string `json:"url"`                 // asked for, in the form of [CleanURL]
	FinalURL string `json:"final_url,omitempty"` // where it was found after redirects
	// the addresses between: each redirected to the next, the last one to FinalURL. URL is not among them
	Hops   []string `json:"hops,omitempty"`
	Status int      `json:"status"` // of the response: 2xx; of a copy that still holds, of that it came by
	// as received, without cookies and what was meant for one connection only
	Header       http.Header `json:"header,omitempty"`
	Trailer      http.Header `json:"-"`                    // likewise; nil: none came, or it is a copy that still holds
	MediaType    string      `json:"media_type,omitempty"` // the field Content-Type as sent
	ETag         string      `json:"etag,omitempty"`
	LastModified string      `json:"last_modified,omitempty"`
	FetchedAt    time.Time   `json:"fetched_at"`
	UserAgent    string      `json:"user_agent,omitempty"`
	NotModified  bool        `json:"-"`    // the server said 304: Octets are those of our copy
	Octets       []byte      `json:"-"`    // content codings removed
	Hash         string      `json:"hash"` // of Octets, see [Hash]
}

// Text returns the visible text of the document. See [Extract].
func (s *Snapshot) Text() (*Text, error) {
	return Extract(s.Octets, &TextOptions{MediaType: s.MediaType, URL: s.FinalURL})
}

// Fetcher fetches documents that data names, as a stranger may: it connects to public addresses only, whatever a name
// resolves to and wherever a redirect leads, and it is bounded in time and memory. One is enough for a program: it
// holds the queues of the hosts and what it knows of their robots.txt. It is safe for concurrent use. Make it with
// [NewFetcher].
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

// job is what one request of a caller comes to. Those that are equal share one flight.
type job struct {
	FetchRequest // URL as CleanURL gives it
	purpose      purpose
}

type purpose int

const (
	forDocument purpose = iota
	forRobots           // what is too long is cut off
	forLocation         // only the first redirect is of interest
)

// flight is a job under way.
type flight struct {
	waiters int // under the lock of the Fetcher
	cancel  context.CancelCauseFunc
	done    chan struct{}
	snap    *Snapshot // with forLocation: only FinalURL
	err     *FetchError
}

var (
	errClosed = errors.New("the fetcher is closed")
	errLeft   = errors.New("nobody waits for it any more")
)

// NewFetcher returns a Fetcher. Close it when it is not needed any more.
func NewFetcher(o *FetchOptions) *Fetcher {
	o = cmp.Or(o, &FetchOptions{})
	l := o.Limits.orDefaults()
	f := &Fetcher{
		limits: l, userAgent: cmp.Or(o.UserAgent, defaultUserAgent), copies: o.Copies,
		log:   cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		guard: &guard{slices.Clone(o.Allow), ssrf.New()}, flights: map[job]*flight{},
		hosts: hosts{perHost: l.PerHost, gap: l.Gap, patient: l.RetryAfter},
		all:   places{size: l.Parallel},
	}
	d := &net.Dialer{
		Timeout: l.Connect, Resolver: o.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return f.guard.check(network, address) },
	}
	f.transport = &http.Transport{ // without a proxy, which would connect for us to wherever we say
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    l.Connect,
		ResponseHeaderTimeout:  l.Header,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // we do it, within bounds
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    cmp.Or(l.PerHost, l.Parallel),
		IdleConnTimeout:        idleSeconds * time.Second,
		ReadBufferSize:         32 << 10, // most pages in one piece
		TLSClientConfig:        o.TLS.Clone(),
	}
	return f
}

// orDefaults fills in the defaults. From here on 0 means none where a negative limit does.
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

// orDefault returns a limit without which there would be none at all.
func orDefault[N int | int64 | time.Duration](n, byDefault N) N {
	if n <= 0 {
		return byDefault
	}
	return n
}

// Fetch reads a document. Equal requests at the same time share one request to the network, which goes on while at
// least one caller waits for it. Every error is a [*FetchError], also that of a context that ended.
func (f *Fetcher) Fetch(ctx context.Context, r *FetchRequest) (*Snapshot, error) {
	s, err := f.get(ctx, &job{FetchRequest: *r})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Location returns where an address redirects to, in the form of [CleanURL], and fetches nothing from there: one
// request, no body. The answer is not checked for where it leads. An address that does not redirect is an error:
// [Unreachable], redirects.
func (f *Fetcher) Location(ctx context.Context, url string) (string, error) {
	s, err := f.get(ctx, &job{FetchRequest: FetchRequest{URL: url}, purpose: forLocation})
	if err != nil {
		return "", err
	}
	return s.FinalURL, nil
}

// Close ends what is being fetched, waits for its end and closes all connections. What is fetched later is an error.
// Close itself has none.
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

// get waits for a job's flight.
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
	if one == nil { // its context ends with the last who waits for it, not with the first
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

// ended is the error of a caller's context.
func ended(url string, err error) *FetchError {
	if errors.Is(err, context.DeadlineExceeded) {
		return unreachable(url, reasonTimeout, 0, err)
	}
	return unreachable(url, reasonCancelled, 0, err)
}

// leaveFlight gives a flight up. The last one ends it, and waits for that.
func (f *Fetcher) leaveFlight(j *job, one *flight) {
	f.mu.Lock()
	one.waiters--
	last := one.waiters == 0
	if last && f.flights[*j] == one {
		delete(f.flights, *j) // who comes now needs another
	}
	f.mu.Unlock()
	if last {
		one.cancel(errLeft)
		<-one.done
	}
}

// What a transport may hold.
const (
	maxHeader   = 64 << 10 // of a response, in bytes
	idleConns   = 128
	idleSeconds = 30
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
	t, ferr := g.f.guard.target(r.URL.String())
	if ferr == nil {
		g.f.mu.Lock()
		switch {
		case g.f.closed:
			ferr = unreachable(t.clean, reasonClosed, 0, errClosed)
		case r.Host != "" && r.Host != r.URL.Host:
			ferr = blocked(t.clean, reasonHost, "it is asked for by another name, %.100q", r.Host)
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

// bounded is a body of which only so much can be read.
type bounded struct {
	io.Reader
	io.Closer
}
