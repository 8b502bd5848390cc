package experiment

import (
	"cmp"
	"math"
	"slices"
)

// Outcome is the result of one strategy on one run, in numbers.
type Outcome struct {
	Run       string `json:"run"`
	Strategy  string `json:"strategy"`  // Strategy.ID
	Sentences int    `json:"sentences"` // of the final answer, those that claim something
	Cited     int    `json:"cited"`     // of Sentences: those that rest on a source
	Checked   int    `json:"checked"`   // of Cited: those that a checker gave a verdict on
	Supported int    `json:"supported"` // of Checked
	Fetched   int    `json:"fetched"`   // citations whose source was fetched again and could be read
	Verified  int    `json:"verified"`  // of Fetched: those whose source still has the cited words
	Judged    int    `json:"judged"`    // citations that people judged
	Right     int    `json:"right"`     // of Judged
}

// Shares are the shares of a strategy, or the differences between two.
type Shares struct {
	Coverage  Estimate `json:"coverage"`
	Supported Estimate `json:"supported"`
	Verified  Estimate `json:"verified"`
	Feedback  Estimate `json:"feedback"`
}

// Arm is one side of a comparison.
type Arm struct {
	Strategy string `json:"strategy"` // Strategy.ID
	Runs     int    `json:"runs"`
	Shares
}

// Report compares two strategies. A difference whose interval contains zero is not significant.
type Report struct {
	// Paired means that both sides were measured on the same runs, so that differences between runs do not blur the
	// result.
	Paired     bool   `json:"paired"`
	A          Arm    `json:"a"`
	B          Arm    `json:"b"`
	Difference Shares `json:"difference"` // B minus A
}

// Compare makes a report from the outcomes of two strategies. If both have the same runs, in any order, it compares run
// by run. It does not change the lists.
func Compare(a, b []Outcome) *Report {
	byRun := func(x, y Outcome) int { return cmp.Compare(x.Run, y.Run) }
	a, b = slices.SortedStableFunc(slices.Values(a), byRun), slices.SortedStableFunc(slices.Values(b), byRun)
	r := &Report{A: arm(a), B: arm(b)}
	r.Paired = len(a) > 0 && slices.EqualFunc(a, b, func(x, y Outcome) bool { return x.Run == y.Run })
	r.Difference = shares(func(of part) Estimate { return difference(of.counts(a), of.counts(b), r.Paired) })
	return r
}

func arm(list []Outcome) Arm {
	a := Arm{Runs: len(list), Shares: shares(func(of part) Estimate { return estimate(of.counts(list)) })}
	if len(list) > 0 {
		a.Strategy = list[0].Strategy
	}
	return a
}

// part selects what one share counts.
type part func(*Outcome) count

func shares(estimate func(part) Estimate) Shares {
	return Shares{
		Coverage:  estimate(func(o *Outcome) count { return count{o.Cited, o.Sentences} }),
		Supported: estimate(func(o *Outcome) count { return count{o.Supported, o.Checked} }),
		Verified:  estimate(func(o *Outcome) count { return count{o.Verified, o.Fetched} }),
		Feedback:  estimate(func(o *Outcome) count { return count{o.Right, o.Judged} }),
	}
}

func (of part) counts(list []Outcome) []count {
	all := make([]count, len(list))
	for i := range list {
		all[i] = of(&list[i])
	}
	return all
}

// z is the standard normal quantile of a 95 % interval.
const z = 1.959963984540054

// Estimate is a share with its 95 % confidence interval.
//
// The interval is Wilson's, for the effective sample size: units of one run resemble each other, so n of them are worth
// n divided by the design effect, which is the variance of the share between runs (the ratio estimator's) divided by
// that of n independent units. If the share is 0 or 1, that variance is unknown, and a run counts as one unit. Since
// the variance is itself estimated from the runs, the size is reduced for few of them, by the square of the normal
// quantile divided by Student's (Korn and Graubard).
type Estimate struct {
	Value *float64 `json:"value"` // nil if there was nothing to count
	Low   *float64 `json:"low"`   // nil if Value is, or if there is only one run
	High  *float64 `json:"high"`
	Of    int      `json:"of"`   // number of units
	Runs  int      `json:"runs"` // number of runs with units
}

// count is a part of the units of one run.
type count struct{ yes, of int }

// estimate returns the share of yes over all runs.
func estimate(runs []count) Estimate {
	yes, of, clusters := 0, 0, 0
	for _, c := range runs {
		yes, of = yes+c.yes, of+c.of
		if c.of > 0 {
			clusters++
		}
	}
	e := Estimate{Of: of, Runs: clusters}
	if of == 0 {
		return e
	}
	p := float64(yes) / float64(of)
	e.Value = &p
	if clusters > 1 {
		low, high := wilson(p, effectiveSize(runs, p, of, clusters))
		e.Low, e.High = &low, &high
	}
	return e
}

// effectiveSize returns how many independent units the units of all runs are worth, at most their number.
func effectiveSize(runs []count, p float64, of, clusters int) float64 {
	simple := p * (1 - p) / float64(of)
	if simple == 0 {
		return float64(clusters)
	}
	var squares float64
	for _, c := range runs {
		d := float64(c.yes) - p*float64(c.of)
		squares += d * d
	}
	k := float64(clusters)
	between := squares * k / (k - 1) / (float64(of) * float64(of))
	few := z / student(clusters-1)
	return float64(of) / max(1, between/simple) * few * few
}

// student returns the quantile of Student's distribution for a 95 % interval, with n degrees of freedom. Above 30 it is
// exact to within 0.001, by the first terms of the expansion (Abramowitz and Stegun, 26.7.5).
func student(n int) float64 {
	table := [...]float64{
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
		2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
		2.0452, 2.0423,
	}
	if n <= len(table) {
		return table[max(n, 1)-1]
	}
	v := float64(n)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v)
}

// wilson returns the score interval of a share p of n units.
func wilson(p, n float64) (low, high float64) {
	z2 := z * z
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// difference returns B's share minus A's. If both have the same runs in the same order, they are compared run by run;
// otherwise, or if no run differs, the interval is derived from both intervals (Newcombe's).
func difference(a, b []count, paired bool) Estimate {
	ea, eb := estimate(a), estimate(b)
	e := Estimate{Of: ea.Of + eb.Of, Runs: ea.Runs + eb.Runs}
	if paired {
		e.Of, e.Runs = min(ea.Of, eb.Of), min(ea.Runs, eb.Runs)
	}
	if ea.Value == nil || eb.Value == nil {
		return e
	}
	d := *eb.Value - *ea.Value
	e.Value = &d
	if ea.Low == nil || eb.Low == nil {
		return e
	}
	low, high := newcombe(&ea, &eb)
	if paired {
		if e, runs := pairedError(a, b, &ea, &eb); e > 0 {
			half := student(runs-1) * e
			low, high = max(-1, d-half), min(1, d+half)
		}
	}
	e.Low, e.High = &low, &high
	return e
}

// newcombe returns the interval of a difference from the intervals of its sides.
func newcombe(a, b *Estimate) (low, high float64) {
	d := *b.Value - *a.Value
	low = d - math.Hypot(*b.Value-*b.Low, *a.High-*a.Value)
	high = d + math.Hypot(*b.High-*b.Value, *a.Value-*a.Low)
	return max(-1, low), min(1, high)
}

// pairedError returns the standard error of the difference of two shares measured on the same runs, that of the runs'
// linearised differences, and the number of runs.
func pairedError(a, b []count, ea, eb *Estimate) (err float64, runs int) {
	var squares float64
	for i := range a {
		if a[i].of == 0 && b[i].of == 0 {
			continue
		}
		runs++
		d := (float64(b[i].yes)-*eb.Value*float64(b[i].of))/float64(eb.Of) -
			(float64(a[i].yes)-*ea.Value*float64(a[i].of))/float64(ea.Of)
		squares += d * d
	}
	if runs < 2 {
		return 0, runs
	}
	k := float64(runs)
	return math.Sqrt(squares * k / (k - 1)), runs
}
