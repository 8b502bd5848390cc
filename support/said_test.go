package support

import (
	"strings"
	"testing"
)

// suites are files of claims, each with the least share of changed claims that are not called supported, and of true
// ones that are: the measured values less two points.
type suites map[string][2]float64

// TestEvalSaid checks claims half of which have exactly one thing changed: the changed ones should not be called
// supported, and the true ones should. The rules were tuned on them.
func TestEvalSaid(t *testing.T) {
	suites{"said.txt": {.98, 0}, "said-close.txt": {.98, 0}, "said-context.txt": {1, 1}}.eval(t)
}

// TestEvalSaidHeld checks claims that were not looked at while the rules were made: free paraphrases, and claims close
// to the wording of their source.
func TestEvalSaidHeld(t *testing.T) {
	suites{"said-held.txt": {.98, 0}, "said-held-close.txt": {.98, 0}, "said-held-last.txt": {.98, 0}}.eval(t)
}

func (s suites) eval(t *testing.T) {
	t.Helper()
	for name, least := range s {
		t.Run(name, func(t *testing.T) {
			table := evalSaid(t, name)
			if table.of("changed, not called supported") < least[0] || table.of("true, called supported") < least[1] {
				t.Errorf("want %v", least)
			}
		})
	}
}

// evalSaid counts the verdicts on the claims of a file.
func evalSaid(t *testing.T, name string) shares {
	t.Helper()
	table := shares{}
	for _, lines := range readCases(t, name) {
		for _, line := range lines[1:] {
			sign, rest, _ := strings.Cut(line, " ")
			kind, claim, _ := strings.Cut(rest, ": ")
			v := checkLexical(t, claim, &evalRow{Passages: lines[:1]})
			differs := len(differencesOf(claim, lines[0])) > 0
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
			case sign == "-" && v.Label == Supported && !strings.Contains(name, "held"):
				t.Logf("MISS %s %s %.2f\n  %s\n  %s", kind, v.Label, *v.Closeness, claim, lines[0])
			case sign == "+" && differs && !strings.Contains(name, "held"):
				t.Logf("FALSE %s %s %.2f %s\n  %s\n  %s", kind, v.Label, *v.Closeness, differencesOf(claim, lines[0])[0].Note, claim, lines[0])
			}
		}
	}
	table.log(t)
	return table
}
