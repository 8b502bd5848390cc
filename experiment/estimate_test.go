package experiment

import (
	"math"
	"math/rand/v2"
	"testing"
)

// About 95 % of the 95 % intervals contain the true value: for runs with many and with few sentences, similar or not,
// and near the ends of the scale.
func TestIntervalCoverage(t *testing.T) {
	for _, tt := range []struct {
		name        string
		runs, of    int
		p, between  float64 // the true value, and the standard deviation of runs around it on the logit scale
		least, most float64
	}{
		{name: "independent", runs: 40, of: 15, p: 0.7, least: 0.93, most: 0.985},
		{name: "runs differ", runs: 60, of: 15, p: 0.7, between: 1, least: 0.92, most: 0.985},
		{name: "few runs", runs: 12, of: 10, p: 0.5, between: 0.5, least: 0.93, most: 0.99},
		{name: "five runs", runs: 5, of: 12, p: 0.6, between: 1, least: 0.93, most: 1},
		{name: "three runs", runs: 3, of: 12, p: 0.6, between: 1, least: 0.93, most: 1},
		{name: "two runs", runs: 2, of: 12, p: 0.6, between: 0.5, least: 0.93, most: 1},
		{name: "near one", runs: 50, of: 10, p: 0.97, between: 0.5, least: 0.92, most: 1},
		{name: "one unit each", runs: 30, of: 1, p: 0.4, least: 0.92, most: 0.98},
	} {
		t.Run(tt.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			const rounds = 4000
			held, heldPaired := 0, 0
			truth := mean(tt.p, tt.between)
			for range rounds {
				a, b := make([]count, tt.runs), make([]count, tt.runs)
				for i := range a {
					own := logistic(logit(tt.p) + tt.between*random.NormFloat64())
					a[i], b[i] = draw(random, own, tt.of), draw(random, own, tt.of)
				}
				if e := estimate(a); *e.Low <= truth && truth <= *e.High {
					held++
				}
				if d := difference(a, b, true); *d.Low <= 0 && 0 <= *d.High {
					heldPaired++
				}
			}
			share, paired := float64(held)/rounds, float64(heldPaired)/rounds
			t.Logf("held: %.3f, difference of pairs: %.3f", share, paired)
			if share < tt.least || share > tt.most {
				t.Errorf("the interval contains the true value in %.3f of cases; want %.2f to %.3f", share, tt.least, tt.most)
			}
			if paired < 0.92 {
				t.Errorf("the interval of the difference contains 0 in %.3f of cases", paired)
			}
		})
	}
}

func draw(random *rand.Rand, p float64, of int) count {
	c := count{of: of}
	for range of {
		if random.Float64() < p {
			c.yes++
		}
	}
	return c
}

func logit(p float64) float64    { return math.Log(p / (1 - p)) }
func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// mean returns the mean share of runs that are spread on the logit scale, by numerical integration.
func mean(p, between float64) float64 {
	sum, weight := 0.0, 0.0
	for x := -5.0; x <= 5; x += 0.01 {
		w := math.Exp(-x * x / 2)
		sum, weight = sum+w*logistic(logit(p)+between*x), weight+w
	}
	return sum / weight
}

func TestEstimateOfFew(t *testing.T) {
	if e := estimate(nil); e.Value != nil || e.Low != nil || e.Of != 0 {
		t.Errorf("no runs: %+v", e)
	}
	if e := estimate([]count{{}, {}}); e.Value != nil || e.Runs != 0 {
		t.Errorf("runs without units: %+v", e)
	}
	if e := estimate([]count{{3, 4}}); *e.Value != 0.75 || e.Low != nil || e.High != nil {
		t.Errorf("one run: %+v", e)
	}
	if e := estimate([]count{{4, 4}, {4, 4}, {4, 4}}); *e.High != 1 || *e.Low > 0.5 {
		t.Errorf("three runs that are all right are worth three units: %+v", e)
	}
	if d := difference([]count{{1, 2}}, nil, false); d.Value != nil {
		t.Errorf("against no runs: %+v", d)
	}
}
