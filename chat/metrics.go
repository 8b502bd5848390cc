package chat

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of a question, as the metric has them.
const (
	resultAnswered = "answered" // whole
	resultBroken   = "broken"   // it began, and did not end well
	resultRefused  = "refused"  // there was no answer
)

type metrics struct {
	asked *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, l *talks) (*metrics, error) {
	m := &metrics{asked: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ibid_chat_questions_total",
		Help: "Questions that were put by /v1/chat or the page, by upstream and what came of them.",
	}, []string{"upstream", "result"})}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_chat_open", Help: "Questions that are being answered now.",
	}, func() float64 { return float64(l.count()) })
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.asked, open} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register its metrics: %w", err)
		}
	}
	return m, nil
}
