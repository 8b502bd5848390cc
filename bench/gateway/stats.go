package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// estimate is a median with its bootstrap interval.
type estimate struct{ median, low, high float64 }

func (e estimate) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", e.median, e.low, e.high) }

func medianOf(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// estimateOf returns the median of v and the interval that contains 95 % of the medians of samples drawn from it. The
// same values give the same interval.
func estimateOf(v []float64) estimate {
	if len(v) == 0 {
		return estimate{}
	}
	const draws = 4000
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // statistics need no secrecy
	medians := make([]float64, draws)
	sample := make([]float64, len(v))
	for i := range medians {
		for k := range sample {
			sample[k] = v[random.IntN(len(v))]
		}
		medians[i] = medianOf(sample)
	}
	slices.Sort(medians)
	return estimate{medianOf(v), medians[draws*25/1000], medians[draws*975/1000]}
}

// ratios divides value by value: both were measured in the same round.
func ratios(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x / y })
}

// differences subtracts value by value.
func differences(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x - y })
}

func pairs(a, b []float64, f func(x, y float64) float64) []float64 {
	var v []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			v = append(v, f(a[i], b[i]))
		}
	}
	return v
}
