package api

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ibidhq/ibid/gateway"
)

// showMetrics shows metrics as Prometheus reads them.
func (a *API) showMetrics(w http.ResponseWriter, r *request) error {
	if a.registry == nil {
		return &gateway.Problem{Status: http.StatusNotFound, Code: gateway.CodeNotFound, Detail: "there are no metrics"}
	}
	promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r.Request)
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
