package support

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Meter counts what judges are asked, and limits it. Judges may share one. The zero value counts and does not limit.
type Meter struct {
	PerHour   int // the most requests in any hour; 0 means no limit
	PerAnswer int // the most requests of one Check, which is one answer's claims; 0 means no limit
	// The price of a million tokens sent and received, in any currency; 0 if unknown.
	PriceIn, PriceOut float64

	mu    sync.Mutex
	spent Spent
	hour  []time.Time // of the requests of the last hour, if there is a limit
}

// Spent is what judges were asked.
type Spent struct {
	Claims    int      // that were sent
	Cached    int      // claims whose verdict was known
	Requests  int      // tries included
	TokensIn  int      // as counted by the server
	TokensOut int      //
	Cost      *float64 // nil if no price is configured
}

// errOverBudget is the error of claims that a budget left out.
var errOverBudget = errors.New("the budget is spent")

// Spent returns the counts so far.
func (m *Meter) Spent() Spent {
	if m == nil {
		return Spent{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.spent
	if m.PriceIn > 0 || m.PriceOut > 0 {
		cost := (float64(u.TokensIn)*m.PriceIn + float64(u.TokensOut)*m.PriceOut) / 1e6
		u.Cost = &cost
	}
	return u
}

// request counts a request, unless the budget of an hour does not allow it.
func (m *Meter) request() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.PerHour > 0 {
		now := time.Now()
		old := 0
		for old < len(m.hour) && now.Sub(m.hour[old]) >= time.Hour {
			old++
		}
		if m.hour = m.hour[old:]; len(m.hour) >= m.PerHour {
			return fmt.Errorf("%w: %d requests an hour", errOverBudget, m.PerHour)
		}
		m.hour = append(m.hour, now)
	}
	m.spent.Requests++
	return nil
}

// add counts claims and tokens.
func (m *Meter) add(claims, cached, in, out int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.Claims += claims
	m.spent.Cached += cached
	m.spent.TokensIn += in
	m.spent.TokensOut += out
}

// allowed returns how many of n requests the budget of one Check allows.
func (m *Meter) allowed(n int) int {
	if m == nil || m.PerAnswer <= 0 {
		return n
	}
	return min(n, m.PerAnswer)
}

// overAnswer is the error of claims over the budget of one Check.
func (m *Meter) overAnswer() error {
	return fmt.Errorf("%w: %d requests for one answer", errOverBudget, m.PerAnswer)
}

// metered posts a body, and counts it.
func (e *endpoint) metered(ctx context.Context, m *Meter, body []byte) ([]byte, error) {
	if err := m.request(); err != nil {
		return nil, err
	}
	return e.post(ctx, body)
}
