package gateway

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/journal"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

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
	Provider string // as in an answer document, which says how to read it; empty: it is recognised
	// Transport is the way to this upstream; nil: the gateway's.
	Transport http.RoundTripper
}

// DefaultCaptureWait is how long the end of an answer is held back at most, unless told otherwise.
const DefaultCaptureWait = 250 * time.Millisecond

// Limits bounds what clients and upstreams can cost. Zero fields mean the defaults. Header fields are bounded by the
// server: see [NewServer].
type Limits struct {
	Request int64 // bytes of the body of a captured request; more is a 413. Default 32 MiB
	// bytes of the bodies of all captured requests that are held; more is a 503. Default 512 MiB
	InFlight int64
	// in which the body of a captured request has to arrive; longer is a 408. Default 2 minutes
	RequestTime time.Duration
	// for which an upload, or a client that should read, may stand still; seen within twice that. Default 2 minutes
	Idle time.Duration
	// bytes of captured answers that are kept in memory until they are in the store. Default 64 MiB
	Tail int64
	// bytes of a response that are decoded; more pass without being captured. Default 32 MiB; journal.MaxRecord is
	// twice that
	Decoded int64
	Decode  ibid.Limits // of what is decoded
}

func (l Limits) withDefaults() Limits {
	l.Request = cmp.Or(max(l.Request, 0), 32<<20)
	l.InFlight = cmp.Or(max(l.InFlight, 0), 512<<20)
	l.RequestTime = cmp.Or(max(l.RequestTime, 0), 2*time.Minute)
	l.Idle = cmp.Or(max(l.Idle, 0), 2*time.Minute)
	l.Tail = cmp.Or(max(l.Tail, 0), 64<<20)
	l.Decoded = cmp.Or(max(l.Decoded, 0), 32<<20)
	return l
}
