package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

const (
	// catchUp bounds how long a list waits for what was just captured.
	catchUp = 500 * time.Millisecond
	// askStore bounds how long one call may take the store.
	askStore = 20 * time.Second
)

// Options are what an API works with.
type Options struct {
	Store   *store.Store     // needed
	Guard   *gateway.Guard   // needed
	Gateway *gateway.Gateway // what it captured and did not store yet is found too; nil: there is none
	Bus     *bus.Bus         // needed
	Logger  *slog.Logger     // nil: nothing is logged
	// Metrics is what /metrics shows, and where the API's own metrics are registered. Nil: there is no /metrics.
	Metrics *prometheus.Registry
	Version string // of the program, for the index
	// Strategies are those by which a summary can be linked; a run's own is found here by its name.
	Strategies []experiment.Strategy
	// Choose returns the strategy of a run that is recorded, as it does of one whose calls are captured; nil: it has
	// none.
	Choose func(run string) *experiment.Strategy
	// Publisher serves what is published, and Store keeps its manifests. Nil: nothing is published.
	Publisher *manifest.Publisher
	// Verifier returns a new verifier for what a tenant asks; it is changed to what the request says, and closed. Nil:
	// nothing is verified.
	Verifier func(tenant string) *verify.Verifier
}

// API answers everything but calls to providers. Its methods may be called at the same time.
type API struct {
	store      *store.Store
	guard      *gateway.Guard
	gateway    *gateway.Gateway
	bus        *bus.Bus
	logger     *slog.Logger
	registry   *prometheus.Registry
	version    string
	strategies []experiment.Strategy
	choose     func(run string) *experiment.Strategy
	publisher  *manifest.Publisher // nil: nothing is published
	public     http.Handler        // the publisher's; nil likewise
	verifier   func(tenant string) *verify.Verifier
	mux        *http.ServeMux
	metrics    *metrics
	listeners  listeners
	decodes    *semaphore.Weighted // of the bytes that are being decoded
	summaries  *semaphore.Weighted // of the stored bytes that summaries are being made of
	flights    flights             // of these summaries
	verifying  *semaphore.Weighted // of the verifications that are being made
	closing    context.Context     // what Close ends
	close      context.CancelFunc
}

// New returns the API.
func New(o *Options) (*API, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.Bus == nil {
		return nil, errors.New("make the API: it needs a store, a guard and a bus")
	}
	a := &API{
		store:      o.Store,
		guard:      o.Guard,
		gateway:    o.Gateway,
		bus:        o.Bus,
		logger:     o.Logger,
		registry:   o.Metrics,
		version:    o.Version,
		strategies: o.Strategies,
		choose:     o.Choose,
		decodes: semaphore.NewWeighted(
			maxDecoding,
		),
		summaries: semaphore.NewWeighted(maxSummarised),
		verifying: semaphore.NewWeighted(maxVerifying),
		verifier:  o.Verifier,
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	err := a.openPublisher(o.Publisher)
	if err != nil {
		return nil, err
	}
	if a.metrics, err = newMetrics(o.Metrics, &a.listeners); err != nil {
		return nil, err
	}
	a.closing, a.close = context.WithCancel(context.Background())
	a.mux = http.NewServeMux()
	for pattern, methods := range a.routes() {
		a.mux.Handle(pattern, a.serve(pattern, methods))
	}
	a.mux.Handle("/", a.serve("/", nil))
	return a, nil
}

// Close ends the event streams, which would hold up a server that shuts down: hand it to
// http.Server.RegisterOnShutdown. New streams end at once; everything else goes on.
func (a *API) Close() { a.close() }

// handler answers a request of somebody who may make it. An error is answered as a problem, so that nothing must have
// been written before.
type handler func(w http.ResponseWriter, r *request) error

// request is a request with what is known of it.
type request struct {
	*http.Request

	who    gateway.Identity
	id     string // of the request, for the log
	route  string // the pattern that it is for
	begun  time.Time
	params params
}

// endpoint is one method of one path.
type endpoint struct {
	access access
	scope  string
	params []string // the query parameters that there are
	handle handler
}

// access says what an endpoint asks of its callers.
type access int

const (
	byToken  access = iota // the scope
	byStream               // the scope, or a stream token
	open                   // nothing
	public                 // nothing, not even a name of ours or a page of ours: it is published
)

// routes returns the endpoints by pattern and method.
func (a *API) routes() map[string]map[string]endpoint {
	read, write, admin := store.ScopeRead, store.ScopeWrite, store.ScopeAdmin
	page := []string{"cursor", "limit"}
	show := []string{"unit", "style"}
	all := map[string]map[string]endpoint{
		"/v1/decode": {
			"POST": {scope: read, params: []string{"format", "unit", "as", "style"}, handle: a.decode},
		},
		"/v1/answers": {
			"GET": {
				scope:  read,
				params: slices.Concat([]string{"q", "source", "conversation", "run", "verification"}, page, show),
				handle: a.answers,
			},
		},
		"/v1/answers/{id}": {
			"GET":    {scope: read, params: append([]string{"as"}, show...), handle: a.answer},
			"DELETE": {scope: write, handle: a.deleteAnswer},
		},
		"/v1/conversations": {
			"GET": {scope: read, params: page, handle: a.conversations},
		},
		"/v1/conversations/{id}": {
			"GET": {scope: read, params: slices.Concat([]string{"as"}, page, show), handle: a.conversation},
		},
		"/v1/sources": {
			"GET": {scope: read, params: append([]string{"url", "id"}, page...), handle: a.sources},
		},
		tracesPath: {
			"POST": {scope: write, handle: a.traces},
		},
		"/v1/stream-token": {
			"POST": {scope: read, handle: a.streamToken},
		},
		"/v1/tokens": {
			"GET":  {scope: admin, handle: a.tokens},
			"POST": {scope: admin, handle: a.newToken},
		},
		"/v1/tokens/{id}": {
			"DELETE": {scope: admin, handle: a.revokeToken},
		},
		"/healthz": {"GET": {access: open, handle: a.alive}},
		"/readyz":  {"GET": {access: open, handle: a.ready}},
		"/metrics": {"GET": {access: open, handle: a.showMetrics}},
		"/v1":      {"GET": {access: open, handle: a.index}},
		"/{$}":     {"GET": {access: open, handle: a.index}}, // where no page is served, and for programs
	}
	maps.Copy(all, a.runRoutes())
	maps.Copy(all, a.proofRoutes())
	maps.Copy(all, a.publicRoutes())
	return all
}

// runRoutes returns those of the endpoints that are about runs.
func (a *API) runRoutes() map[string]map[string]endpoint {
	read, write := store.ScopeRead, store.ScopeWrite
	page := []string{"cursor", "limit"}
	return map[string]map[string]endpoint{
		"/v1/runs": {
			"GET":  {scope: read, params: page, handle: a.runs},
			"POST": {scope: write, handle: a.newRun},
		},
		"/v1/runs/{id}": {
			"GET": {scope: read, params: append([]string{"unit", "style"}, page...), handle: a.run},
		},
		"/v1/runs/{id}/steps": {
			"POST": {scope: write, handle: a.newSteps},
		},
		"/v1/runs/{id}/finish": {
			"POST": {scope: write, handle: a.finishRun},
		},
		"/v1/runs/{id}/summary": {
			"GET": {
				scope:  read,
				params: []string{"as", "threshold", "top", "excerpt", "adjust", "strategy", "content"},
				handle: a.summary,
			},
		},
		"/v1/runs/{id}/events": {
			"GET": {access: byStream, scope: read, params: []string{"after", "access_token"}, handle: a.events},
		},
		"/v1/feedback": {
			"GET": {
				scope:  read,
				params: append([]string{"as", "answer", "run", "source", "strategy"}, page...),
				handle: a.feedback,
			},
			"POST": {scope: write, handle: a.newFeedback},
		},
	}
}

// proofRoutes returns those that are about what citations rest on, and whether it is so.
func (a *API) proofRoutes() map[string]map[string]endpoint {
	read := store.ScopeRead
	page := []string{"cursor", "limit"}
	return map[string]map[string]endpoint{
		"/v1/verify": {
			"POST": {
				scope:  store.ScopeVerify,
				params: []string{"url", "trust", "offline", "max_age", "require_level", "judge"},
				handle: a.verify,
			},
		},
		"/v1/incidents": {
			"GET": {
				scope:  read,
				params: append([]string{"manifest", "source", "status", "answer"}, page...),
				handle: a.incidents,
			},
		},
		"/v1/sources/versions": {
			"GET": {scope: read, params: append([]string{"url"}, page...), handle: a.versions},
		},
		"/v1/copies/{hash}": {
			"GET": {scope: read, params: []string{"as"}, handle: a.copyOf},
		},
		"/v1/answers/{id}/manifest": {
			"GET": {scope: read, handle: a.answerManifest},
		},
		"/v1/runs/{id}/manifest": {
			"GET": {scope: read, handle: a.runManifest},
		},
	}
}

// serve answers the requests for one pattern; without methods, those for no pattern at all.
func (a *API) serve(pattern string, methods map[string]endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		out := &reply{ResponseWriter: w}
		r := &request{Request: hr, id: newRequestID(), route: pattern, begun: time.Now()}
		defer a.finish(hr.Context(), out, r)
		if methods["GET"].access != public { // that has its own headers, and only those
			setHeaders(out.Header(), r.id)
			if a.guard.CORS(out, hr) {
				return
			}
		}
		if err := a.answerRequest(out, r, methods); err != nil {
			a.fail(hr.Context(), out, r, err)
		}
	})
}

func (a *API) answerRequest(w http.ResponseWriter, r *request, methods map[string]endpoint) error {
	if methods == nil {
		// What is not there is nobody's secret, but a foreign web page need not know what answers here.
		if err := a.guard.Local(r.Request); err != nil {
			return err
		}
		return &gateway.Problem{
			Status: http.StatusNotFound, Code: gateway.CodeNotFound, Detail: "there is no such path",
			Hint: "GET /v1 lists what there is; providers are called by their name: /openai/v1/responses",
		}
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	e, ok := methods[method]
	if !ok {
		return wrongMethod(methods)
	}
	var err error
	switch e.access {
	case public:
	case open:
		err = a.guard.Local(r.Request)
	case byStream:
		r.who, err = a.guard.Stream(r.Request, r.PathValue("id"))
	case byToken:
		r.who, err = a.guard.API(r.Request, e.scope)
	}
	if err != nil {
		return err
	}
	if e.access != open && e.access != public { // who scrapes or probes may say what they like
		if r.params, err = readParams(r.URL.RawQuery, e.params); err != nil {
			return err
		}
	}
	return e.handle(w, r)
}

func wrongMethod(methods map[string]endpoint) error {
	allowed := slices.Sorted(maps.Keys(methods))
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	list := strings.Join(allowed, ", ")
	return &gateway.Problem{
		Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethod, Detail: "this path does not have the method",
		Hint: "it has " + list, Header: http.Header{"Allow": {list}},
	}
}

// ServeHTTP answers the paths of docs/http.md but the providers'. Other paths get a 404.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The mux would answer a path with dots, or with two slashes in a row, with a redirect in HTML. It is one that is
	// not there.
	path := r.URL.EscapedPath()
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.Contains(path+"/", "/./") ||
		strings.Contains(path+"/", "/../") {
		a.serve("/", nil).ServeHTTP(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// within returns the context for what a request asks the store.
func within(r *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), askStore)
}

// settle waits, for a moment, until what was captured before is in the store, and reports whether it is.
func (a *API) settle(ctx context.Context) bool {
	if a.gateway == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if err := a.gateway.CatchUp(ctx); err != nil {
		a.logger.LogAttrs(ctx, slog.LevelDebug, "a list may lack the latest answers", slog.Any("error", err))
		return false
	}
	return true
}

// storeError says what could not be done with the store. That the store is away is the client's to know; the rest is
// for the log.
func storeError(doing string, err error) error {
	if store.IsTemporary(err) {
		return fmt.Errorf("%s: %w: %w", doing, gateway.Unavailable("the store does not answer"), err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
