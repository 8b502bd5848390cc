package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ibidhq/ibid/gateway"
)

// checkFor bounds how long readiness waits for each check.
const checkFor = 2 * time.Second

// alive answers as long as the program does.
func (a *API) alive(w http.ResponseWriter, r *request) error {
	return writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether calls can be captured now, which is what a gateway is ready for. A store or a bus that is away is told
// and changes nothing: calls succeed, and what they answered waits in the journal. A load balancer that took the gateway
// out for it would make an outage of it.
func (a *API) ready(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkFor)
	defer cancel()
	status, body := http.StatusOK, readiness{"ready", map[string]string{}}
	check := func(name string, err error, bad string) bool {
		body.Checks[name] = "ok"
		if err != nil {
			body.Status, body.Checks[name] = "degraded", bad
			// The error may name hosts and files, and whoever asks has shown no token.
			a.logger.LogAttrs(ctx, slog.LevelWarn, "not all is well", slog.String("check", name), slog.Any("error", err))
		}
		return err == nil
	}
	check("store", a.store.Ping(ctx), "it does not answer")
	check("bus", a.bus.Healthy(), "it reaches no other node; live events are late")
	if a.gateway != nil && !check("journal", a.gateway.Ready(), "answers cannot be captured") {
		status, body.Status = http.StatusServiceUnavailable, "not ready"
		w.Header().Set("Retry-After", "2")
	}
	return writeJSON(w, r, status, body)
}

// readiness is the answer to the question whether a gateway is ready.
type readiness struct {
	Status string            `json:"status"` // ready, degraded, not ready
	Checks map[string]string `json:"checks"`
}

// showMetrics shows metrics as Prometheus reads them.
func (a *API) showMetrics(w http.ResponseWriter, r *request) error {
	if a.registry == nil {
		return &gateway.Problem{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Detail: "there are no metrics"}
	}
	promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r.Request)
	return nil
}

// index names what there is.
func (a *API) index(w http.ResponseWriter, r *request) error {
	text := fmt.Sprintf(`ibid %s

Put a provider's name before its own path, and use its SDK as ever:
  POST /openai/v1/responses     POST /gemini/v1beta/models/…     POST /cohere/v2/chat     POST /anthropic/v1/messages

What was answered, with citations:
  GET  /v1/answers              GET /v1/answers/ID               GET /v1/sources?url=
  GET  /v1/conversations        GET /v1/conversations/ID
  GET  /v1/runs                 GET /v1/runs/ID                  GET /v1/runs/ID/events
  POST /v1/decode               a provider's response in, its answer document out

  GET  /healthz                 GET /readyz                      GET /metrics

https://github.com/ibidhq/ibid/blob/main/docs/http.md
`, a.version)
	write(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(text))
	return nil
}

// metrics are the API's own. Nil counts nothing.
type metrics struct {
	requests *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, l *listeners) (*metrics, error) {
	if registry == nil {
		return nil, nil //nolint:nilnil // documented
	}
	m := &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ibid_api_requests_total", Help: "Requests of the API, by route, method and status.",
	}, []string{"route", "method", "status"})}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_api_event_streams", Help: "Event streams of runs that are open now.",
	}, func() float64 { return float64(l.total()) })
	for _, c := range []prometheus.Collector{m.requests, open} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the API's metrics: %w", err)
		}
	}
	return m, nil
}

// count counts a request. Methods that clients make up are one.
func (m *metrics) count(route, method string, status int) {
	if m == nil {
		return
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
}

// listeners counts the event streams of each tenant.
type listeners struct {
	mu   sync.Mutex
	open map[string]int
	sum  int
}

// add counts one more, unless the tenant has as many as it may.
func (l *listeners) add(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[tenant] >= MaxStreams {
		return false
	}
	if l.open == nil {
		l.open = map[string]int{}
	}
	l.open[tenant]++
	l.sum++
	return true
}

func (l *listeners) remove(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum--
	if l.open[tenant]--; l.open[tenant] == 0 {
		delete(l.open, tenant)
	}
}

func (l *listeners) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}
