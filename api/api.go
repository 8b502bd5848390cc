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

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
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
	// Pending returns the calls of a conversation that are being answered, with their prompts and without answers,
	// oldest first; nil: nobody knows of any.
	Pending func(tenant, conversation string) []*store.Call
	// Crowded says why new clients wait to connect; nil: none ever do.
	Crowded func() error
	// Publisher serves what is published, and Store keeps its manifests. Nil: nothing is published.
	Publisher *manifest.Publisher
	// Verifier returns a new verifier for what a tenant asks; it is changed to what the request says, and closed. Nil:
	// nothing is verified.
	Verifier func(tenant string) *verify.Verifier
}

// API answers everything but calls to providers. Its methods may be called at the same time.
type API struct {
	o         Options
	store     *store.Store
	logger    *slog.Logger
	publisher *manifest.Publisher // nil: nothing is published
	public    http.Handler        // the publisher's; nil likewise
	mux       *httpx.Mux
	reader    httpx.Reader
	bodies    *httpx.Bodies       // that are being decoded, recorded and verified
	listeners httpx.Quota         // event streams
	summaries *httpx.Runs         // that summaries are being made of
	flights   flights             // of these summaries
	verifying *semaphore.Weighted // of the verifications that are being made
	verifiers httpx.Quota         // and of each tenant's
	closing   context.Context     // what Close ends
	close     context.CancelFunc
}

// New returns the API.
func New(o *Options) (*API, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.Bus == nil {
		return nil, errors.New("make the API: it needs a store, a guard and a bus")
	}
	a := &API{
		o: *o, store: o.Store, logger: o.Logger,
		bodies:    httpx.NewBodies(maxDecoding, maxDecode),
		listeners: httpx.Quota{Most: maxStreams},
		summaries: httpx.NewRuns(),
		verifying: semaphore.NewWeighted(maxVerifying),
		verifiers: httpx.Quota{Most: maxVerifying / 2},
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.reader = httpx.Reader{Store: o.Store, Gateway: o.Gateway, Logger: a.logger}
	if p := o.Publisher; p != nil && p.Level > 0 {
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("make the API: %w", err)
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
			"GET /v1 lists what there is; providers are called by their name: /openai/v1/responses"),
	})
	return a, nil
}

// Close ends the event streams, which would hold up a server that shuts down: hand it to
// http.Server.RegisterOnShutdown. New streams end at once; everything else goes on.
func (a *API) Close() { a.close() }

// ServeHTTP answers the paths of docs/http.md but the providers'. Other paths get a 404.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// checkTime bounds how long readiness waits for each check.
const checkTime = 2 * time.Second

// readiness is the answer to the question whether a gateway is ready.
type readiness struct {
	Status string            `json:"status"` // ready, degraded, not ready
	Checks map[string]string `json:"checks"`
}

// ready says whether calls can be captured now, which is what a gateway is ready for. A store or a bus that is away is
// told and changes nothing: calls succeed, and what they answered waits in the journal. A load balancer that took the
// gateway out for it would make an outage of it.
func (a *API) ready(w *httpx.Reply, r *httpx.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	status, body := http.StatusOK, readiness{"ready", map[string]string{}}
	check := func(name string, err error, bad string) bool {
		body.Checks[name] = "ok"
		if err != nil {
			body.Status, body.Checks[name] = "degraded", bad
			// The error may name hosts and files, and whoever asks has shown no token.
			a.logger.LogAttrs(
				ctx, slog.LevelWarn, "not all is well", slog.String("check", name), slog.Any("error", err),
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
	check("bus", a.o.Bus.Healthy(), "it reaches no other node; live events are late")
	if a.o.Crowded != nil {
		if err := a.o.Crowded(); err != nil {
			check("connections", err, "all are taken; new clients wait")
		}
	}
	if a.o.Gateway != nil && !check("journal", a.o.Gateway.Ready(), "answers cannot be captured") {
		status, body.Status = http.StatusServiceUnavailable, "not ready"
		w.Header().Set("Retry-After", "2")
	}
	return w.JSON(status, body)
}

// showMetrics shows metrics as Prometheus reads them.
func (a *API) showMetrics(w *httpx.Reply, r *httpx.Request) error {
	if a.o.Metrics == nil {
		return gateway.NewProblem(gateway.CodeNotFound, "there are no metrics", "")
	}
	promhttp.HandlerFor(a.o.Metrics, promhttp.HandlerOpts{}).ServeHTTP(w, r.Request)
	return nil
}

// registerMetrics registers the API's own metrics, and returns what counts a request; nil: nothing does.
func (a *API) registerMetrics() (count func(route, method string, status int), err error) {
	if a.o.Metrics == nil {
		return nil, nil
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ibid_api_requests_total", Help: "Requests of the API, by route, method and status.",
	}, []string{"route", "method", "status"})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_api_event_streams", Help: "Event streams of runs that are open now.",
	}, func() float64 { return float64(a.listeners.Total()) })
	for _, c := range []prometheus.Collector{requests, open} {
		if err := a.o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register the API's metrics: %w", err)
		}
	}
	return func(route, method string, status int) {
		if !slices.Contains([]string{"GET", "HEAD", "POST", "DELETE", "OPTIONS"}, method) {
			method = "other" // clients may make them up
		}
		requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	}, nil
}

// index lists the endpoints.
func (a *API) index(w *httpx.Reply, _ *httpx.Request) error {
	text := fmt.Sprintf(`ibid %s

Put a provider's name before its own path, and use its SDK as ever:
  POST /openai/v1/responses     POST /gemini/v1beta/models/…     POST /cohere/v2/chat     POST /anthropic/v1/messages

What was answered, with citations:
  GET  /v1/answers              GET /v1/answers/ID               GET /v1/sources?url=
  GET  /v1/conversations        GET /v1/conversations/ID
  GET  /v1/runs                 GET /v1/runs/ID                  GET /v1/runs/ID/events
  GET  /v1/runs/ID/summary      what each sentence of a run's answer rests on
  POST /v1/runs                 POST /v1/runs/ID/steps           POST /v1/runs/ID/finish
  POST /v1/traces               the spans of an agent, by OTLP/HTTP
  POST /v1/feedback             GET /v1/feedback
  POST /v1/decode               a provider's response in, its answer document out
  POST /v1/prompt               documents or stored sources in, the XML for a prompt out
  POST /v1/chat                 asks a provider: server-sent events, or ?stream=ui for useChat

Whether it is so:
  POST /v1/verify               a URL, a manifest or a response in, a report out
  GET  /v1/incidents            GET /v1/answers?verification=failed
  GET  /v1/alerts               POST /v1/alerts/ID               what the operator should look at
  GET  /v1/sources/versions?url=                                 GET /v1/copies/HASH
  GET  /v1/answers/ID/manifest  GET /v1/runs/ID/manifest

  GET  /                        the page                         POST /mcp: tools for agents
  GET  /healthz                 GET /readyz                      GET /metrics
  GET  /v1/openapi.json         all of this for programs

https://github.com/ibidhq/ibid/blob/main/docs/http.md
`, a.o.Version)
	w.Body(http.StatusOK, "text/plain; charset=utf-8", []byte(text))
	return nil
}
