package experiment

import "slices"

// Outcome is what one strategy made of one run, in numbers.
type Outcome struct {
	Run       string `json:"run"`
	Strategy  string `json:"strategy"`  // Strategy.ID
	Sentences int    `json:"sentences"` // of the final answer, those that claim something
	Cited     int    `json:"cited"`     // of Sentences: those that rest on a source
	Checked   int    `json:"checked"`   // of Cited: those that a checker gave a verdict on
	Supported int    `json:"supported"` // of Checked
	Fetched   int    `json:"fetched"`   // citations whose source was fetched again and could be read
	Verified  int    `json:"verified"`  // of Fetched: those whose source still says it
	Judged    int    `json:"judged"`    // citations that people judged
	Right     int    `json:"right"`     // of Judged
}

// Shares are what a strategy, or the difference of two, comes to.
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

// Report compares two strategies. Of a difference whose interval holds zero nothing can be said.
type Report struct {
	// Paired says that both sides were measured on the same runs, so that what the runs have in common does not blur
	// the difference.
	Paired     bool   `json:"paired"`
	A          Arm    `json:"a"`
	B          Arm    `json:"b"`
	Difference Shares `json:"difference"` // B minus A
}

// Compare makes a report of the outcomes of two strategies. Where both have the same runs, in any order, it compares
// run by run. It changes neither list.
func Compare(a, b []Outcome) *Report {
	byRun := func(x, y Outcome) int {
		switch {
		case x.Run < y.Run:
			return -1
		case x.Run > y.Run:
			return 1
		}
		return 0
	}
	a, b = slices.SortedStableFunc(slices.Values(a), byRun), slices.SortedStableFunc(slices.Values(b), byRun)
	r := &Report{A: arm(a), B: arm(b)}
	r.Paired = len(a) > 0 && slices.EqualFunc(a, b, func(x, y Outcome) bool { return x.Run == y.Run })
	r.Difference = Shares{
		Coverage:  difference(counts(a, coverage), counts(b, coverage), r.Paired),
		Supported: difference(counts(a, supported), counts(b, supported), r.Paired),
		Verified:  difference(counts(a, verified), counts(b, verified), r.Paired),
		Feedback:  difference(counts(a, feedback), counts(b, feedback), r.Paired),
	}
	return r
}

func arm(list []Outcome) Arm {
	a := Arm{Runs: len(list), Shares: Shares{
		Coverage:  estimate(counts(list, coverage)),
		Supported: estimate(counts(list, supported)),
		Verified:  estimate(counts(list, verified)),
		Feedback:  estimate(counts(list, feedback)),
	}}
	if len(list) > 0 {
		a.Strategy = list[0].Strategy
	}
	return a
}

func counts(list []Outcome, of func(*Outcome) count) []count {
	all := make([]count, len(list))
	for i := range list {
		all[i] = of(&list[i])
	}
	return all
}

func coverage(o *Outcome) count  { return count{o.Cited, o.Sentences} }
func supported(o *Outcome) count { return count{o.Supported, o.Checked} }
func verified(o *Outcome) count  { return count{o.Verified, o.Fetched} }
func feedback(o *Outcome) count  { return count{o.Right, o.Judged} }
