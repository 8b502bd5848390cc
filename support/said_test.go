package support

import (
	"strings"
	"testing"
)

// The floors of TestEvalSaid: what was measured on these pairs, which the rules were tuned on, less two points.
const (
	leastChangedFound = .72
	leastTrueFound    = .39
)

// TestEvalSaid asks the default checker about claims that paraphrase a passage, of which half have exactly one thing
// changed: what is changed should not be called supported, and what is true should.
func TestEvalSaid(t *testing.T) {
	table := evalSaid(t, "said.txt")
	if got := table.of("changed, not called supported"); got < leastChangedFound {
		t.Errorf("%.3f of what is changed is not called supported; want %v", got, leastChangedFound)
	}
	if got := table.of("true, called supported"); got < leastTrueFound {
		t.Errorf("%.3f of what is true is called supported; want %v", got, leastTrueFound)
	}
}

// TestEvalSaidHeld asks about claims that nobody looked at while the rules were made: free paraphrases, and claims close
// to the wording of their source. The floors are what was measured then, less two points.
func TestEvalSaidHeld(t *testing.T) {
	for name, least := range map[string][2]float64{"said-held.txt": {.72, .24}, "said-held-close.txt": {.53, .90}} {
		t.Run(name, func(t *testing.T) {
			table := evalSaid(t, name)
			if table.of("changed, not called supported") < least[0] || table.of("true, called supported") < least[1] {
				t.Errorf("want %v", least)
			}
		})
	}
}

// evalSaid counts what is found of the claims of a file.
func evalSaid(t *testing.T, name string) shares {
	t.Helper()
	table := shares{}
	for _, lines := range readCases(t, name) {
		for _, line := range lines[1:] {
			sign, rest, _ := strings.Cut(line, " ")
			kind, claim, _ := strings.Cut(rest, ": ")
			v := lexically(t, claim, &evalRow{Passages: lines[:1]})
			differs := len(Changed(claim, lines[0])) > 0
			if sign == "-" {
				table.count("changed, not called supported", v.Label != Supported)
				table.count("changed, not called supported: "+kind, v.Label != Supported)
				table.count("changed, differs", differs)
				table.count("changed, differs: "+kind, differs)
			} else {
				table.count("true, called supported", v.Label == Supported)
				table.count("true, called supported: "+kind, v.Label == Supported)
				table.count("true, differs", differs)
			}
			switch {
			case sign == "-" && !differs:
				t.Logf("MISS %s %s %.2f\n  %s\n  %s", kind, v.Label, *v.Score, claim, lines[0])
			case sign == "+" && differs:
				t.Logf("FALSE %s %s %.2f %s\n  %s\n  %s", kind, v.Label, *v.Score, Changed(claim, lines[0])[0].Note, claim, lines[0])
			}
		}
	}
	table.log(t)
	return table
}
