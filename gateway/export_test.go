package gateway

import "github.com/ibidhq/ibid/store"

// ParseStep is parseStep, for tests.
func ParseStep(s string) (store.Step, error) { return parseStep(s) }

// MaxLiveKept is maxLiveKept, for tests.
const MaxLiveKept = maxLiveKept
