package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
	"github.com/ibidhq/ibid/tee"
	"github.com/ibidhq/ibid/watch"
)

// Gateway passes calls through to providers and keeps their answers. It is safe for concurrent use.
//
// A gateway needs three calls: ServeHTTP behind a server ([NewServer]), [Gateway.Run], and finally [Gateway.Close].
type Gateway struct {
	upstreams  map[string]*upstream
	names      []string // upstream names, sorted
	options    Options  // with its defaults filled in
	log        *slog.Logger
	metrics    *metrics
	buffers    buffers
	idleTimers sync.Pool // of *idleTimer

	active       atomic.Int64 // calls being served
	closing      atomic.Bool
	storeErr     atomic.Pointer[error] // why the store last refused answers; nil if it accepts them
	idle         chan struct{}         // buffered; receives when the last call ends while closing
	inProcess    *http.Transport
	lateSearches sync.Map // *LateSearch by the name sent in lateHeader
	lateSeq      atomic.Uint64
	stop         context.Context
	cancel       context.CancelFunc // cancels stop, which ends tunnels and connections in memory

	memory *Budget // bytes of what requests and responses take
	packer *unpack.Packer
	calls  *Budget // concurrent calls

	policed    bool          // any policies are configured
	judging    *Budget       // concurrent comparisons of answers with policies
	policyTime time.Duration // the time limit of a comparison
	texts      snapshot.Texts
	quotas     map[string]*quota // by tenant; read-only

	tail    tail
	last    atomic.Uint64 // the last position appended
	indexed progress
	running atomic.Bool  // Run is running
	oldest  atomic.Int64 // end of the oldest answer in the indexer's batch, in Unix nanoseconds; 0 if none
}

// New returns a gateway. It starts no goroutines: see [Gateway.Run].
func New(options *Options) (_ *Gateway, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making a gateway: %w", err)
		}
	}()
	if options == nil || len(options.Upstreams) == 0 || options.Store == nil || options.Journal == nil {
		return nil, errors.New("upstreams, a store and a journal are required")
	}
	g := &Gateway{
		indexed:   progress{wanted: make(chan struct{}, 1)},
		upstreams: map[string]*upstream{}, options: *options, idle: make(chan struct{}, 1),
		log:     cmp.Or(options.Logger, slog.New(slog.DiscardHandler)),
		judging: NewBudget("comparisons", maxJudged, 1), policyTime: PolicyTime, quotas: map[string]*quota{},
		// For requests, which are kept while their streams are open: possibly minutes, and thousands at a time.
		packer: unpack.NewPacker(zstd.SpeedDefault, 128<<10, math.MaxInt),
	}
	g.idleTimers.New = func() any { return new(idleTimer) }
	g.stop, g.cancel = context.WithCancel(context.Background())
	o := &g.options
	o.Capture, o.Prompts = cmp.Or(o.Capture, Strict), cmp.Or(o.Prompts, PromptsLast)
	switch {
	case !slices.Contains([]Mode{Strict, Stored, Relaxed}, o.Capture):
		return nil, fmt.Errorf("capture %q: must be strict, store or relaxed", o.Capture)
	case !slices.Contains([]Prompts{PromptsNone, PromptsLast, PromptsAll}, o.Prompts):
		return nil, fmt.Errorf("prompts %q: must be none, last or all", o.Prompts)
	case o.Citing != nil && (o.Citing.Level < 1 || o.Citing.Level > 3):
		return nil, errors.New("the level of publishing must be 1, 2 or 3")
	case o.Citing != nil && o.Citing.Level > 1 && (o.Citing.Origin == "" || o.Citing.Pub == nil):
		return nil, errors.New("publishing: from level 2 on, manifests need an address")
	}
	o.CaptureWait = cmp.Or(max(o.CaptureWait, 0), DefaultCaptureWait)
	if o.Transport == nil {
		o.Transport = NewTransport(o.Proxy)
	}
	limits := &o.Limits
	limits.Request = cmp.Or(max(limits.Request, 0), 32<<20)
	limits.Memory = cmp.Or(max(limits.Memory, 0), memoryByDefault())
	limits.Calls = cmp.Or(max(limits.Calls, 0), 32<<10)
	limits.RequestPace = cmp.Or(max(limits.RequestPace, 0), DefaultPace)
	limits.RequestTime = cmp.Or(max(limits.RequestTime, 0), 2*time.Minute)
	limits.Idle = cmp.Or(max(limits.Idle, 0), 2*time.Minute)
	limits.Tail = cmp.Or(max(limits.Tail, 0), 64<<20)
	limits.Decoded = cmp.Or(max(limits.Decoded, 0), 32<<20)
	g.memory = NewBudget("bytes of memory", limits.Memory, max(
		limits.Request+1+tee.HoldStep*DecodeMemory, limits.Decoded*DecodeMemory,
	))
	g.calls = NewBudget("calls", limits.Calls, 1)
	for name, tenant := range o.Tenants {
		if err := tenant.Policies.check(); err != nil {
			return nil, fmt.Errorf("tenant %q: %w", name, err)
		}
		g.policed = g.policed || tenant.Policies != nil
		if tenant.Quota > 0 {
			g.quotas[name] = &quota{limit: tenant.Quota}
		}
	}
	g.inProcess = g.newInProcess()
	g.tail.limit = limits.Tail
	if g.metrics, err = newMetrics(g, o.Metrics); err != nil {
		return nil, err
	}
	for i := range o.Upstreams {
		u, err := newUpstream(&o.Upstreams[i], o.Transport)
		if err != nil {
			return nil, err
		}
		g.policed = g.policed || u.Policies != nil
		if g.upstreams[u.Name] != nil {
			return nil, fmt.Errorf("two upstreams are named %q", u.Name)
		}
		g.metrics.addUpstream(u.Name)
		u.tunnel = g.newTunnel(u)
		g.upstreams[u.Name] = u
		g.names = append(g.names, u.Name)
	}
	slices.Sort(g.names)
	return g, nil
}

// ServeHTTP passes a call through to the upstream named by the first segment of its path. The path must be as the
// client sent it; an [http.ServeMux] would clean it. The gateway takes over the request and changes its header.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.handle(w, r, nil) //nolint:contextcheck // the request has the context
}

// handle serves a call. If who is nil, the guard identifies the caller.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request, who *Identity) {
	g.active.Add(1)
	defer g.leave()
	if g.closing.Load() {
		g.refuse(w, r, Unavailable("ibid is shutting down"))
		return
	}
	e := &exchange{g: g, w: w, in: r, inProcess: who != nil}
	if err := e.admit(who); err != nil {
		g.refuse(w, r, err)
		return
	}
	if err := g.calls.Hold(e.who, 1); err != nil {
		g.refuse(w, r, err)
		return
	}
	defer g.calls.Release(e.who, 1)
	e.serve()
}

// refuse answers with a problem. A client that does not read it in time is disconnected.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	setWriteDeadline(w, time.Now().Add(g.options.Limits.Idle))
	WriteProblem(w, r, err)
}

func (g *Gateway) leave() {
	if g.active.Add(-1) == 0 && g.closing.Load() {
		select {
		case g.idle <- struct{}{}:
		default:
		}
	}
}

// MissingUpstream returns the problem of a call whose path is a provider's own and lacks the name of an upstream, as
// sent by a client with the wrong base URL. It returns nil if the path is no provider's.
func (g *Gateway) MissingUpstream(r *http.Request) *Problem {
	path := r.URL.EscapedPath()
	if _, ok := call.FindRoute("", r.Method, path); !ok {
		return nil
	}
	var matching []string
	for _, name := range g.names {
		if _, ok := call.FindRoute(g.upstreams[name].Provider, r.Method, path); ok {
			matching = append(matching, name)
		}
	}
	if len(matching) == 0 {
		return nil
	}
	name := matching[0]
	if slices.Contains(matching, "openai") { // the others copied its path
		name = "openai"
	}
	p := NewProblem(CodeNotFound, "the path is a provider's, without the name of an upstream before it",
		"put the name into the base URL: "+r.Method+" /"+name+path)
	if len(matching) > 1 {
		p.Hint += "; upstreams with this path are " + strings.Join(matching, ", ")
	}
	return p
}

// Find returns a captured answer that may not be in the store yet. To read an answer by id, ask Find first, then the
// store. The call must not be changed.
func (g *Gateway) Find(tenant, answerID string) (*store.Call, bool) {
	return g.tail.find(tailKey{tenant, answerID})
}

// CatchUp waits until everything captured so far is in the store, so that lists include what the reader has just seen
// arrive. It needs [Gateway.Run] to be running. The error is ctx's.
func (g *Gateway) CatchUp(ctx context.Context) error {
	return g.indexed.wait(ctx, journal.Position(g.last.Load()))
}

// Ready returns the reason why answers are not captured or not stored at the moment: the journal is full or cannot be
// written, or [Gateway.Run] is not running. A store that is down is no reason: the journal holds its answers until
// then.
func (g *Gateway) Ready() error {
	if !g.running.Load() {
		return errors.New("the indexer is not running")
	}
	if err := g.options.Journal.Stats().Err; err != nil {
		return fmt.Errorf("answers cannot be stored: %w", err)
	}
	return nil
}

// StoreAway returns the error with which the store last refused answers, which now wait in the journal. It is nil if
// the store accepts them or none were sent.
func (g *Gateway) StoreAway() error {
	if err := g.storeErr.Load(); err != nil {
		return *err
	}
	return nil
}

// Close shuts the gateway down: it refuses new calls, waits for those being served, and then for their answers to be in
// the store. Shut the server down first ([Shutdown] does both). When ctx ends, Close closes the tunnels, gives the
// remaining calls another moment, and returns ctx's error; answers not yet in the store are in the journal. End Run's
// context afterwards.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.Store(true)
	err := g.drain(ctx)
	g.cancel()
	g.inProcess.CloseIdleConnections()
	if err != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWait)
		defer cancel()
		return errors.Join(fmt.Errorf("closing the gateway: %w", err), g.drain(last))
	}
	if !g.running.Load() {
		return nil
	}
	if err := g.CatchUp(ctx); err != nil {
		return fmt.Errorf("closing the gateway: waiting for the store: %w", err)
	}
	return nil
}

// drain waits until no calls are being served.
func (g *Gateway) drain(ctx context.Context) error {
	for g.active.Load() > 0 {
		select {
		case <-g.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Mode determines when a client may see the end of an answer.
type Mode string

// The modes of capture. In all of them the client's call succeeds even if the capture fails.
const (
	Strict  Mode = "strict"  // when the answer is in the journal, on disk: the default
	Stored  Mode = "store"   // when it is also in the store
	Relaxed Mode = "relaxed" // at once: a power failure may lose the last few milliseconds
)

// Prompts determines which messages of a request are kept.
type Prompts string

// The values of Prompts.
const (
	PromptsNone Prompts = "none"
	PromptsLast Prompts = "last" // the user's last message: the default
	PromptsAll  Prompts = "all"  // every message
)

// Options configure a gateway. Upstreams, Store and Journal are required.
type Options struct {
	Upstreams []Upstream
	Mappings  []ibid.Mapping // responses of providers of one's own
	Store     *store.Store
	Bus       *bus.Bus         // nil disables live updates
	Journal   *journal.Journal // closed by the caller after Run has returned
	Guard     *Guard           // nil admits every caller as [DefaultTenant]

	Capture     Mode          // default Strict
	CaptureWait time.Duration // how long the end of an answer is held back at most; 0 means [DefaultCaptureWait]
	Prompts     Prompts       // default PromptsLast
	// KeepEncoding forwards the client's Accept-Encoding. Otherwise captured routes request an uncompressed body,
	// because the end of a compressed one cannot be held back. No other request header is changed.
	KeepEncoding bool
	Limits       Limits
	// Backfill repeats the call if a stream ended without citations; nil disables that. Its own Store must be
	// [Gateway.Keep].
	Backfill *watch.Backfill
	// Attribution finds citations for answers that have none; nil disables that. Its own Store must be [Gateway.Keep].
	Attribution *watch.Attribution
	// Checks are offered each answer, and again with the citations found late. If they store answers, it must be by
	// [Gateway.Keep].
	Checks []Check
	// Tenants holds the settings of tenants that have their own, by name.
	Tenants map[string]Tenant
	// Alert reports something that needs attention. It must not block. Nil disables alerts.
	Alert func(*store.Alert)
	// Citing makes responses name the sources consulted for them; nil disables that.
	Citing *Citing
	// Damaged is the directory for records that the store rejects permanently; it is created when needed. If empty,
	// they are only logged and counted.
	Damaged string

	Proxy     func(*http.Request) (*url.URL, error) // the proxy for upstreams; nil means a direct connection
	Transport http.RoundTripper                     // to all upstreams; nil means [NewTransport] with Proxy

	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
	Tracer  trace.Tracer          // nil disables tracing
}

// Upstream is a provider that the gateway can reach.
type Upstream struct {
	// the first path segment of calls to it: lower-case letters, digits, '-' and '_'; see [Reserved]
	Name string
	// http or https, without user, query and fragment; the rest of a call's path is appended to its path
	URL      *url.URL
	Provider string // as in an answer document; selects the decoder. If empty, the format is recognised
	// Path is the end of the path of POST calls whose responses are answers, besides those of the provider and of APIs
	// modelled on others; empty for none.
	Path     string
	Policies *Policies // applied to its answers, besides the tenant's; may be nil
	// Transport reaches this upstream; nil means the gateway's transport.
	Transport http.RoundTripper
}

// DefaultCaptureWait is the default for how long the end of an answer is held back at most.
const DefaultCaptureWait = 250 * time.Millisecond

// Limits bound the resources that clients and upstreams can use. Zero fields mean the defaults. Header fields are
// bounded by the server: see [NewServer].
type Limits struct {
	Request int64 // bytes of a captured request's body; more is a 413. Default 32 MiB
	// bytes of memory that all requests and responses being processed may take: see [Gateway.Memory]; more is a 503. A
	// tenant may hold half of it, a token a quarter; more is a 429. What is left of a response that began to arrive is
	// not decoded, but passes. Default: half of the program's memory limit (GOMEMLIMIT), 1 GiB if it has none
	Memory int64
	// concurrent calls, shared likewise. Default 32,768
	Calls int64
	// time for the body of a captured request to arrive; longer is a 408. Default 2 minutes
	RequestTime time.Duration
	// time for each 32 KiB of that body to arrive; longer is a 408. Default [DefaultPace]
	RequestPace time.Duration
	// how long an upload, or a client that should read, may stall; detected within twice that. Default 2 minutes
	Idle time.Duration
	// bytes of captured answers kept in memory until they are in the store. Default 64 MiB
	Tail int64
	// bytes of a response that are decoded; a longer one passes without being captured. Default 32 MiB, half of
	// journal.MaxRecord
	Decoded int64
	Decode  ibid.Limits // limits for the decoder
}

const (
	answerPrefix = "ans_"
	runPrefix    = "run_"
)

// NewAnswerID returns a new answer id, which sorts after all that this process has created before.
func NewAnswerID() string { return answerPrefix + uuid.Must(uuid.NewV7()).String() } // crypto/rand never fails

// NewRunID returns a new id for a run that does not consist of one captured call.
func NewRunID() string { return runPrefix + uuid.Must(uuid.NewV7()).String() }
