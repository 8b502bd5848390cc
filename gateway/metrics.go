package gateway

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
)

// The reasons why an answer was not captured, as label values.
const (
	failedEncode = "encode"
	failedAppend = "append"    // the journal is full or rejects the record
	failedSize   = "too-large" // the record is larger than journal.MaxRecord
	failedSync   = "sync"      // the disk failed to write it
	failedQuota  = "quota"     // the tenant's quota is used up
)

// otherRoute is the label for all routes that are not captured, in metrics and logs.
const otherRoute = "other"

// metrics are the gateway's metrics.
type metrics struct {
	calls     *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	answers   *prometheus.CounterVec
	citations *prometheus.CounterVec
	sources   *prometheus.CounterVec
	nothing   *prometheus.CounterVec
	teeOff    *prometheus.CounterVec
	waited    prometheus.Histogram
	failures  *prometheus.CounterVec
	policies  *prometheus.CounterVec

	late, indexed, setAside, retries, liveDropped, panics prometheus.Counter
}

// newMetrics creates the metrics and registers them unless r is nil.
func newMetrics(g *Gateway, r prometheus.Registerer) (*metrics, error) {
	var all []prometheus.Collector
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: "ibid", Subsystem: "gateway", Name: name, Help: help}, labels)
		all = append(all, c)
		return c
	}
	counter := func(name, help string) prometheus.Counter { return counters(name, help).WithLabelValues() }
	gauge := func(name, help string, read func() float64) {
		all = append(all, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "ibid", Subsystem: "gateway", Name: name, Help: help}, read))
	}
	m := &metrics{
		calls: counters(
			"calls_total", "Calls, by upstream, route and status class.", "upstream", "route", "class"),
		bytes:     counters("response_bytes_total", "Bytes of response bodies that upstreams sent.", "upstream"),
		answers:   counters("answers_total", "Captured answers.", "upstream", "complete"),
		citations: counters("citations_total", "Citations of captured answers.", "upstream"),
		sources:   counters("sources_total", "Sources of captured answers.", "upstream"),
		nothing:   counters("empty_responses_total", "Responses of captured routes without an answer.", "upstream"),
		teeOff: counters("tee_off_total", "Responses that were not decoded to their end: too large, in an unknown "+
			"encoding, too slow to decode, or because of a bug in ibid.", "upstream"),
		failures: counters("capture_failures_total", "Answers that could not be kept, by reason.", "reason"),
		policies: counters("policies_total", "Answers that violate a policy, by action; and those that were "+
			"not-checked.", "policy", "action"),
		late: counter("capture_late_total", "Answers whose end was sent before they were known to be durable, "+
			"because that took too long."),
		indexed:     counter("indexed_total", "Answers moved from the journal into the store."),
		setAside:    counter("set_aside_total", "Journal records that the store rejects."),
		retries:     counter("store_retries_total", "Failed attempts to store a batch of answers."),
		liveDropped: counter("live_dropped_total", "Live deltas that were not sent because there were too many."),
		panics: counter("panics_total",
			"Panics while an answer was decoded or kept. Its response was still passed on."),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "ibid", Subsystem: "gateway", Name: "end_mark_wait_seconds",
			Help:    "How long the ends of answers were held back.",
			Buckets: []float64{.0001, .00025, .0005, .001, .002, .004, .008, .016, .032, .064, .128, .25, .5},
		}),
	}
	gauge("in_flight", "Calls being served.", func() float64 { return float64(g.active.Load()) })
	gauge(
		"held_bytes", "Bytes of memory reserved for requests and responses being processed.",
		func() float64 { return float64(g.memory.Held()) },
	)
	gauge("journal_bytes", "Size of the journal.", func() float64 { return float64(g.options.Journal.Stats().Bytes) })
	gauge(
		"journal_records", "Answers in the journal that are not in the store.",
		func() float64 { return float64(g.options.Journal.Stats().Records) },
	)
	gauge(
		"journal_damaged_records", "Journal records lost to damage.",
		func() float64 { return float64(g.options.Journal.Stats().Damaged) },
	)
	gauge("indexer_lag_seconds", "Age of the oldest answer that the indexer is about to store.", func() float64 {
		oldest := g.oldest.Load()
		if oldest == 0 {
			return 0
		}
		return max(0, time.Since(time.Unix(0, oldest)).Seconds())
	})
	for _, reason := range []string{failedEncode, failedAppend, failedSize, failedSync, failedQuota} {
		m.failures.WithLabelValues(reason)
	}
	for _, c := range append(all, m.waited) {
		if r == nil {
			break
		}
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) failed(why string) { m.failures.WithLabelValues(why).Inc() }

// addUpstream makes the counters of an upstream start at 0.
func (m *metrics) addUpstream(name string) {
	for _, c := range []*prometheus.CounterVec{m.bytes, m.citations, m.sources, m.nothing, m.teeOff} {
		c.WithLabelValues(name)
	}
	m.answers.WithLabelValues(name, "true")
	m.answers.WithLabelValues(name, "false")
}

// count counts a call by upstream, route and status class.
func (m *metrics) count(upstream, pattern string, status int) {
	class := "none"
	if status >= 100 && status < 600 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.calls.WithLabelValues(upstream, pattern, class).Inc()
}

// captured counts a captured answer.
func (m *metrics) captured(upstream string, a *ibid.Answer, waited time.Duration) {
	m.answers.WithLabelValues(upstream, strconv.FormatBool(a.Complete)).Inc()
	m.citations.WithLabelValues(upstream).Add(float64(len(a.Citations)))
	m.sources.WithLabelValues(upstream).Add(float64(len(a.Sources)))
	m.waited.Observe(waited.Seconds())
}
