package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// Options configure an API.
type Options struct {
	Store   *store.Store     // required
	Guard   *gateway.Guard   // required
	Gateway *gateway.Gateway // to find captured answers that are not stored yet; nil if there is none
	Bus     *bus.Bus         // required
	Logger  *slog.Logger     // nil disables logging
	// Metrics is what /metrics serves, and where the API registers its own metrics. Nil disables both.
	Metrics *prometheus.Registry
	Version string // of the program, shown in the index
	// Strategies are the strategies that can link a summary, including the runs' own.
	Strategies []experiment.Strategy
	// Mappings describe responses of providers of one's own.
	Mappings []ibid.Mapping
	// Choose returns the strategy of a recorded run; the same function should serve captured calls. Nil means no
	// strategy.
	Choose func(run string) *experiment.Strategy
	// Pending returns the unfinished calls of a conversation, with prompts but without answers, oldest first. Nil means
	// there are none.
	Pending func(tenant, conversation string) []*store.Call
	// Crowded returns the reason why new clients wait to connect, or nil. It may be nil itself.
	Crowded func() error
	// Publisher serves published data, from manifests in Store. Nil disables publishing.
	Publisher *manifest.Publisher
	// Verifier returns a new verifier for a tenant, which the API configures from the request, and closes. Nil disables
	// verification.
	Verifier func(tenant string) *verify.Verifier
}

// API serves every endpoint but the providers'. It is safe for concurrent use.
type API struct {
	o         Options
	store     *store.Store
	logger    *slog.Logger
	publisher *manifest.Publisher // nil disables publishing
	public    http.Handler        // the publisher's handler; nil if publisher is
	mux       *httpx.Mux
	reader    httpx.Reader
	bodies    *httpx.Bodies       // memory for request bodies
	listeners httpx.Quota         // open event streams per tenant
	summaries *httpx.Runs         // memory for runs being summarised
	flights   httpx.Flights       // summaries in progress
	known     summaries           // the latest of them
	verifying *semaphore.Weighted // limits verifications of all tenants
	verifiers httpx.Quota         // and those of each
	checker   support.Checker     // of claims that requests contain
	closing   context.Context     // ends on Close
	close     context.CancelFunc
}

// New returns the API.
func New(o *Options) (*API, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.Bus == nil {
		return nil, errors.New("create the API: a store, a guard and a bus are required")
	}
	a := &API{
		o: *o, store: o.Store, logger: o.Logger,
		bodies:    httpx.NewBodies(o.Gateway, maxDecode),
		listeners: httpx.Quota{Most: maxStreams},
		summaries: httpx.NewRuns(),
		verifying: semaphore.NewWeighted(maxVerifying),
		verifiers: httpx.Quota{Most: maxVerifying / 2},
		checker:   &support.Lexical{},
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.reader = httpx.Reader{Store: o.Store, Gateway: o.Gateway, Logger: a.logger}
	if p := o.Publisher; p != nil && p.Level > 0 {
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("create the API: %w", err)
		}
		a.publisher, a.public = p, p.Handler()
	}
	count, err := a.registerMetrics()
	if err != nil {
		return nil, err
	}
	a.closing, a.close = context.WithCancel(context.Background())
	a.mux = httpx.NewMux(a.routes(), &httpx.Options{
		Guard: o.Guard, Logger: a.logger, Count: count,
		NotFound: gateway.NewProblem(gateway.CodeNotFound, "there is no such path",
			"GET /v1 lists the endpoints; call a provider by its name: /openai/v1/responses"),
	})
	return a, nil
}

// Close ends the open event streams, which would delay a server's shutdown: pass it to http.Server.RegisterOnShutdown.
// New streams end at once; everything else keeps working.
func (a *API) Close() { a.close() }

// ServeHTTP serves the paths of docs/http.md except the providers'. Other paths are a 404.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// checkTime bounds each readiness check.
const checkTime = 2 * time.Second

// readiness is the response of GET /readyz.
type readiness struct {
	Status string            `json:"status"` // ready, degraded or not ready
	Checks map[string]string `json:"checks"`
}

// ready reports whether calls can be captured. An unavailable store or bus only degrades the status: calls succeed, and
// their answers wait in the journal. If a load balancer removed the gateway for that, it would turn it into an outage.
func (a *API) ready(w *httpx.Reply, r *httpx.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	status, body := http.StatusOK, readiness{"ready", map[string]string{}}
	check := func(name string, err error, bad string) bool {
		body.Checks[name] = "ok"
		if err != nil {
			body.Status, body.Checks[name] = "degraded", bad
			// The error may name hosts and files, and the caller has not shown a token.
			a.logger.LogAttrs(
				ctx, slog.LevelWarn, "readiness check failed", slog.String("check", name), slog.Any("error", err),
			)
		}
		return err == nil
	}
	stored := a.store.Ping(ctx)
	bad := "it does not answer"
	if errors.Is(stored, store.ErrFile) {
		bad = "its file was deleted, replaced or damaged; answers wait in the journal, and the log says how to recover"
	}
	check("store", stored, bad)
	check("bus", a.o.Bus.Healthy(), "it reaches no other node; live events are delayed")
	if a.o.Crowded != nil {
		if err := a.o.Crowded(); err != nil {
			check("connections", err, "all are in use; new clients wait")
		}
	}
	if a.o.Gateway != nil && !check("journal", a.o.Gateway.Ready(), "answers cannot be captured") {
		status, body.Status = http.StatusServiceUnavailable, "not ready"
		w.Header().Set("Retry-After", "2")
	}
	return w.JSON(status, body)
}

// showMetrics serves the metrics in the Prometheus text format.
func (a *API) showMetrics(w *httpx.Reply, r *httpx.Request) error {
	if a.o.Metrics == nil {
		return gateway.NewProblem(gateway.CodeNotFound, "metrics are disabled", "")
	}
	promhttp.HandlerFor(a.o.Metrics, promhttp.HandlerOpts{}).ServeHTTP(w, r.Request)
	return nil
}

// registerMetrics registers the API's own metrics and returns the function that counts a request, nil if metrics are
// disabled.
func (a *API) registerMetrics() (count func(route, method string, status int), err error) {
	if a.o.Metrics == nil {
		return nil, nil
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ibid_api_requests_total", Help: "Requests of the API, by route, method and status.",
	}, []string{"route", "method", "status"})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_api_event_streams", Help: "Open event streams of runs.",
	}, func() float64 { return float64(a.listeners.Total()) })
	for _, c := range []prometheus.Collector{requests, open} {
		if err := a.o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register the API's metrics: %w", err)
		}
	}
	return func(route, method string, status int) {
		if !slices.Contains([]string{"GET", "HEAD", "POST", "DELETE", "OPTIONS"}, method) {
			method = "other" // bounds the label's values
		}
		requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	}, nil
}

// index lists the endpoints.
func (a *API) index(w *httpx.Reply, _ *httpx.Request) error {
	text := fmt.Sprintf(`ibid %s

Put a provider's name before its own path, and use its SDK as usual:
  POST /openai/v1/responses     POST /gemini/v1beta/models/…     POST /cohere/v2/chat     POST /anthropic/v1/messages

Answers, with citations:
  GET  /v1/answers              GET /v1/answers/ID               GET /v1/sources?url=
  POST /v1/answers              stores an answer of your own
  GET  /v1/conversations        GET /v1/conversations/ID
  GET  /v1/runs                 GET /v1/runs/ID                  GET /v1/runs/ID/events
  GET  /v1/runs/ID/summary      the sources behind each sentence of a run's answer
  POST /v1/runs                 POST /v1/runs/ID/steps           POST /v1/runs/ID/finish
  POST /v1/traces               an agent's spans, by OTLP/HTTP
  POST /v1/feedback             GET /v1/feedback
  POST /v1/decode               a provider's response in, its answer document out
  POST /v1/prompt               documents or stored sources in, the XML for a prompt out
  POST /v1/check                claims and passages in, what the passages say of each out
  POST /v1/attribute            an answer and texts in, the answer with citations of these out
  POST /v1/trail                a run in, its summary out      POST /v1/render: a document in, another form out
  POST /v1/chat                 asks a provider: server-sent events, or ?stream=ui for useChat

Verification:
  POST /v1/verify               a URL, a manifest or a response in, a report out
  GET  /v1/incidents            GET /v1/answers?verification=failed
  GET  /v1/alerts               POST /v1/alerts/ID               what needs attention
  GET  /v1/sources/versions?url=                                 GET /v1/copies/HASH
  GET  /v1/answers/ID/manifest  GET /v1/runs/ID/manifest

  GET  /                        the page                         POST /mcp: tools for agents
  GET  /healthz                 GET /readyz                      GET /metrics
  GET  /v1/openapi.json         all of this as OpenAPI

https://github.com/ibidhq/ibid/blob/main/docs/http.md
`, a.o.Version)
	w.Body(http.StatusOK, "text/plain; charset=utf-8", []byte(text))
	return nil
}
