package gateway

import (
	"context"
	"time"

	"github.com/ibidhq/ibid/store"
)

// ParseStep is parseStep, for tests.
func ParseStep(s string) (store.Step, error) { return parseStep(s) }

// MaxLiveKept is maxLiveKept, for tests.
const MaxLiveKept = maxLiveKept

// Hurry gives the comparison with policies so much time.
func (g *Gateway) Hurry(d time.Duration) { g.policyTime = d }

// CountStored is countStored.
func (g *Gateway) CountStored(ctx context.Context) { g.countStored(ctx) }

// Statuses is statuses, for tests.
var Statuses = statuses

// MaxWithheld is maxWithheld, for tests.
const MaxWithheld = maxWithheld

// Comparing begins comparisons of answers with policies that never end, as long as there is room for them.
func (g *Gateway) Comparing(who Identity) {
	for g.judging.Hold(who, 1) == nil {
	}
}
