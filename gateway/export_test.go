package gateway

import (
	"context"
	"time"

	"github.com/ibidhq/ibid/store"
)

func ParseStep(s string) (store.Step, error) { return parseStep(s) }

const MaxLiveKept = maxLiveKept

// Hurry sets the time limit for checking policies.
func (g *Gateway) Hurry(d time.Duration) { g.policyTime = d }

func (g *Gateway) CountStored(ctx context.Context) { g.countStored(ctx) }

var Statuses = statuses

const MaxWithheld = maxWithheld

// Comparing uses up the caller's share of concurrent policy checks.
func (g *Gateway) Comparing(who Identity) {
	for g.judging.Hold(who, 1) == nil {
	}
}
