package gateway

import "github.com/ibidhq/ibid/store"

// ParseStep is parseStep, for tests.
func ParseStep(s string) (store.Step, error) { return parseStep(s) }
