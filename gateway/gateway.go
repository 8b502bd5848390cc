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
	"github.com/ibidhq/ibid/watch"
)

// Gateway passes calls through to providers and keeps their answers. Its methods may be called at the same time.
//
// Three things make one work: ServeHTTP behind a server ([NewServer]), [Gateway.Run], and at the end [Gateway.Close].
type Gateway struct {
	upstreams map[string]*upstream
	names     []string // of the upstreams, sorted
	options   Options  // with its defaults filled in
	log       *slog.Logger
	metrics   *metrics
	buffers   buffers
	patience  sync.Pool // of *patience

	active    atomic.Int64 // calls that are being served
	closing   atomic.Bool
	away      atomic.Pointer[error] // why the store took no answers; nil: it did
	idle      chan struct{}         // 1: the last call has ended while closing
	inside    *http.Transport
	lates     sync.Map // *LateSearch by the name that a call from inside has for it
	lateNames atomic.Uint64
	stop      context.Context
	cut       context.CancelFunc // ends what outlives its server: tunnels

	bodies   *Budget // bytes of requests
	packer   *unpack.Packer
	calls    *Budget // calls that are served
	decoding *Budget // bytes of responses that are being decoded

	policed    bool          // there are policies
	judging    *Budget       // answers that are compared with policies
	policyTime time.Duration // PolicyTime
	texts      snapshot.Texts
	quotas     map[string]*quota // by tenant; it does not change

	tail    tail
	last    atomic.Uint64 // the last position that was appended
	indexed progress
	running atomic.Bool  // Run runs
	oldest  atomic.Int64 // when the oldest answer that the indexer works at had ended, in Unix nanoseconds; 0: none
}

// New returns a gateway. It starts nothing: see [Gateway.Run].
func New(options *Options) (_ *Gateway, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making a gateway: %w", err)
		}
	}()
	if options == nil || len(options.Upstreams) == 0 || options.Store == nil || options.Journal == nil {
		return nil, errors.New("it needs upstreams, a store and a journal")
	}
	g := &Gateway{
		upstreams: map[string]*upstream{}, options: *options, idle: make(chan struct{}, 1),
		log:     cmp.Or(options.Logger, slog.New(slog.DiscardHandler)),
		judging: NewBudget("comparisons", maxJudged, 1), policyTime: PolicyTime, quotas: map[string]*quota{},
		// For requests, which are kept while their streams are open: for minutes, and by the thousand.
		packer: unpack.NewPacker(zstd.SpeedDefault, 128<<10, math.MaxInt),
	}
	g.patience.New = func() any { return new(patience) }
	g.stop, g.cut = context.WithCancel(context.Background())
	o := &g.options
	o.Capture, o.Prompts = cmp.Or(o.Capture, Strict), cmp.Or(o.Prompts, PromptsLast)
	switch {
	case !slices.Contains([]Mode{Strict, Stored, Relaxed}, o.Capture):
		return nil, fmt.Errorf("capture %q: it is strict, store or relaxed", o.Capture)
	case !slices.Contains([]Prompts{PromptsNone, PromptsLast, PromptsAll}, o.Prompts):
		return nil, fmt.Errorf("prompts %q: they are none, last or all", o.Prompts)
	case o.Citing != nil && (o.Citing.Level < 1 || o.Citing.Level > 3):
		return nil, errors.New("the level of publishing is none of 1, 2 and 3")
	case o.Citing != nil && o.Citing.Level > 1 && (o.Citing.Origin == "" || o.Citing.Pub == nil):
		return nil, errors.New("publishing: from level 2 on manifests need an address")
	}
	o.CaptureWait = cmp.Or(max(o.CaptureWait, 0), DefaultCaptureWait)
	if o.Transport == nil {
		o.Transport = NewTransport(o.Proxy)
	}
	limits := &o.Limits
	limits.Request = cmp.Or(max(limits.Request, 0), 32<<20)
	limits.InFlight = cmp.Or(max(limits.InFlight, 0), 512<<20)
	limits.Calls = cmp.Or(max(limits.Calls, 0), 32<<10)
	limits.Decoding = cmp.Or(max(limits.Decoding, 0), 1<<30)
	limits.RequestPace = cmp.Or(max(limits.RequestPace, 0), DefaultPace)
	limits.RequestTime = cmp.Or(max(limits.RequestTime, 0), 2*time.Minute)
	limits.Idle = cmp.Or(max(limits.Idle, 0), 2*time.Minute)
	limits.Tail = cmp.Or(max(limits.Tail, 0), 64<<20)
	limits.Decoded = cmp.Or(max(limits.Decoded, 0), 32<<20)
	g.bodies = NewBudget("bytes of requests", limits.InFlight, limits.Request+1)
	g.calls = NewBudget("calls", limits.Calls, 1)
	g.decoding = NewBudget("bytes of responses", limits.Decoding, limits.Decoded)
	for name, tenant := range o.Tenants {
		if err := tenant.Policies.check(); err != nil {
			return nil, fmt.Errorf("tenant %q: %w", name, err)
		}
		g.policed = g.policed || tenant.Policies != nil
		if tenant.Quota > 0 {
			g.quotas[name] = &quota{most: tenant.Quota}
		}
	}
	g.inside = g.newInside()
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
			return nil, fmt.Errorf("two upstreams are called %q", u.Name)
		}
		g.metrics.addUpstream(u.Name)
		u.tunnel = g.newTunnel(u)
		g.upstreams[u.Name] = u
		g.names = append(g.names, u.Name)
	}
	slices.Sort(g.names)
	return g, nil
}

// ServeHTTP passes a call through to the upstream that the first segment of its path names. It must get the path as the
// client sent it, which an [http.ServeMux] would clean. The request is the gateway's from here on: it changes its
// header.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.handle(w, r, nil) //nolint:contextcheck // the request has the context
}

// handle serves a call. Nil: the guard says who makes it.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request, who *Identity) {
	g.active.Add(1)
	defer g.leave()
	if g.closing.Load() {
		g.refuse(w, r, Unavailable("ibid is shutting down"))
		return
	}
	e := &exchange{g: g, w: w, in: r, inside: who != nil}
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

// Decoding returns the budget of bytes of responses that are being decoded: whoever else decodes holds them too.
func (g *Gateway) Decoding() *Budget { return g.decoding }

// refuse answers with a problem. A client that does not read it in time loses its connection.
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

// MissingUpstream returns the problem of a call whose path is a provider's own, without the name of an upstream before
// it, as a client makes it whose base URL lacks that; nil: the path is no provider's.
func (g *Gateway) MissingUpstream(r *http.Request) *Problem {
	path := r.URL.EscapedPath()
	if _, ok := call.FindRoute("", r.Method, path); !ok {
		return nil
	}
	var fit []string
	for _, name := range g.names {
		if _, ok := call.FindRoute(g.upstreams[name].Provider, r.Method, path); ok {
			fit = append(fit, name)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	name := fit[0]
	if slices.Contains(fit, "openai") { // whose path the others copied
		name = "openai"
	}
	p := NewProblem(CodeNotFound, "the path is a provider's, without the name of an upstream before it",
		"put the name into the base URL: "+r.Method+" /"+name+path)
	if len(fit) > 1 {
		p.Hint += "; upstreams with this path are " + strings.Join(fit, ", ")
	}
	return p
}

// Find returns an answer that was captured and is perhaps not in the store yet. Whoever reads answers by id asks here
// first, then the store. The call is not to be changed.
func (g *Gateway) Find(tenant, answerID string) (*store.Call, bool) {
	return g.tail.find(tailKey{tenant, answerID})
}

// CatchUp returns when everything that was captured before is in the store, so that lists show what their reader has
// just seen arrive. It needs [Gateway.Run] to be running. The error is ctx's.
func (g *Gateway) CatchUp(ctx context.Context) error {
	return g.indexed.wait(ctx, journal.Position(g.last.Load()))
}

// Ready says why answers are not captured now, or not stored: the journal is full or cannot be written, or
// [Gateway.Run] is not running. A store that is down is no reason: the journal takes what it will get.
func (g *Gateway) Ready() error {
	if !g.running.Load() {
		return errors.New("the indexer is not running")
	}
	if err := g.options.Journal.Stats().Err; err != nil {
		return fmt.Errorf("answers cannot be kept: %w", err)
	}
	return nil
}

// StoreAway says why the store does not take the answers that it is given, which wait in the journal; nil: it does, or
// there are none.
func (g *Gateway) StoreAway() error {
	if err := g.away.Load(); err != nil {
		return *err
	}
	return nil
}

// Close ends the gateway's work: it refuses new calls, waits for those that are being served, and for their answers to
// be in the store. Shut the server down first ([Shutdown] does both). When ctx ends it closes the tunnels, gives what
// is left another moment, and returns ctx's error; what is not in the store then is in the journal. Then end Run's
// context.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.Store(true)
	err := g.drain(ctx)
	g.cut()
	g.inside.CloseIdleConnections()
	if err != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
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

// drain waits until no call is being served.
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

// Mode says when a client may see the end of an answer.
type Mode string

// The modes of capture. In all of them the client's call succeeds even where the capture does not.
const (
	Strict  Mode = "strict"  // when the answer is on disk, in the journal: the default
	Stored  Mode = "store"   // when it is in the store too
	Relaxed Mode = "relaxed" // at once: a power cut may lose the last few milliseconds
)

// Prompts says what is kept of a request.
type Prompts string

// What is kept of a request.
const (
	PromptsNone Prompts = "none"
	PromptsLast Prompts = "last" // the user's last message: the default
	PromptsAll  Prompts = "all"  // every message
)

// Options says what a gateway is made of. Upstreams, Store and Journal are needed.
type Options struct {
	Upstreams []Upstream
	Store     *store.Store
	Bus       *bus.Bus         // nil: nobody is told anything live
	Journal   *journal.Journal // the caller closes it, after Run has returned
	Guard     *Guard           // nil: everybody is let in, as [DefaultTenant]

	Capture     Mode          // empty: Strict
	CaptureWait time.Duration // how long the end of an answer is held back at most; 0: [DefaultCaptureWait]
	Prompts     Prompts       // empty: PromptsLast
	// KeepEncoding sends the client's Accept-Encoding to the upstream. Otherwise captured routes ask for an
	// uncompressed body, the only header of a request that is changed: the end of a compressed one cannot be held back.
	KeepEncoding bool
	Limits       Limits
	// Backfill asks again where a stream ended without citations; nil: nobody does. Its own Store is to be
	// [Gateway.Keep].
	Backfill *watch.Backfill
	// Attribution finds citations for answers that came without; nil: nobody does. Its own Store is to be
	// [Gateway.Keep].
	Attribution *watch.Attribution
	// Tenants are those about whose answers something is special, by name.
	Tenants map[string]Tenant
	// Alert tells of what somebody should look at, without waiting; nil: nobody is told.
	Alert func(*store.Alert)
	// Citing makes responses say what was consulted for them; nil: they do not.
	Citing *Citing
	// Damaged is the directory for records that the store refuses whatever else it takes; it is made when it is needed.
	// Empty: they are only logged and counted.
	Damaged string

	Proxy     func(*http.Request) (*url.URL, error) // the way to upstreams; nil: straight
	Transport http.RoundTripper                     // to all upstreams; nil: one made by [NewTransport] with Proxy

	Logger  *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
	Tracer  trace.Tracer          // nil: no spans
}

// Upstream is a provider as the gateway reaches it.
type Upstream struct {
	// the first segment of the paths that lead to it: lower-case letters, digits, '-' and '_'; see [Reserved]
	Name string
	// http or https, without user, query and fragment; what follows the name in a path is appended to its path
	URL      *url.URL
	Provider string    // as in an answer document, which says how to read it; empty: it is recognised
	Policies *Policies // what is done about its answers; nil: nothing, unless the tenant's say so
	// Transport is the way to this upstream; nil: the gateway's.
	Transport http.RoundTripper
}

// DefaultCaptureWait is how long the end of an answer is held back at most, unless told otherwise.
const DefaultCaptureWait = 250 * time.Millisecond

// Limits bounds what clients and upstreams can cost. Zero fields mean the defaults. Header fields are bounded by the
// server: see [NewServer].
type Limits struct {
	Request int64 // bytes of the body of a captured request; more is a 413. Default 32 MiB
	// bytes of the bodies of all captured requests that are held; more is a 503. A tenant may have half of them, a
	// token a quarter; more is a 429. Default 512 MiB
	InFlight int64
	// calls that are served at the same time, shared likewise. Default 32,768
	Calls int64
	// bytes of responses that are being decoded, by captures and by POST /v1/decode, shared likewise. What is more is
	// not decoded; a captured response passes all the same. Default 1 GiB
	Decoding int64
	// in which the body of a captured request has to arrive; longer is a 408. Default 2 minutes
	RequestTime time.Duration
	// in which each next 32 KiB of it have to arrive; longer is a 408. Default [DefaultPace]
	RequestPace time.Duration
	// for which an upload, or a client that should read, may stand still; seen within twice that. Default 2 minutes
	Idle time.Duration
	// bytes of captured answers that are kept in memory until they are in the store. Default 64 MiB
	Tail int64
	// bytes of a response that are decoded; more pass without being captured. Default 32 MiB; journal.MaxRecord is
	// twice that
	Decoded int64
	Decode  ibid.Limits // of what is decoded
}

const (
	answerPrefix = "ans_"
	runPrefix    = "run_"
)

// newAnswerID mints the id of an answer, which is over all that this process has minted before.
func newAnswerID() string { return answerPrefix + uuid.Must(uuid.NewV7()).String() } // crypto/rand never fails

// NewRunID mints the id of a run that is not that of a captured call.
func NewRunID() string { return runPrefix + uuid.Must(uuid.NewV7()).String() }
