package support

import "testing"

// A passage denies what it repeats if the denial governs the statement, in the languages whose words are known.
func TestDenies(t *testing.T) {
	for _, test := range []struct{ claim, text, want string }{
		{"The well is poisoned.", "There is no evidence that the well is poisoned, says the laboratory.", "no evidence"},
		{"The well is poisoned.", "Contrary to rumours that the well is poisoned, people drink from it.", "Contrary to"},
		{"The well is poisoned.", "“The well is poisoned” is a myth.", "myth"},
		{"The well is poisoned.", "The claim that the well is poisoned was false.", "false"},
		{"The well is poisoned.", "The owner denies the well is poisoned.", "denies"},
		{"The well is poisoned.", "The owner does not deny that the well is poisoned.", ""},
		{"The well is poisoned.", "The owner was wrong about the pump, but the well is poisoned.", ""},
		{"The well is poisoned.", "That was false. The well is poisoned.", ""},
		{"The well is poisoned.", "The well is poisoned. That is false, says its owner.", ""},
		{"Der Brunnen ist vergiftet.", "Die Gemeinde bestreitet, dass der Brunnen ist vergiftet.", "bestreitet"},
		{"El pozo está cerrado.", "Es falso que el pozo está cerrado, dice el alcalde.", "falso"},
		{"The fountain is poisoned.", "The fountain is not poisoned.", "is not poisoned"},
	} {
		got := ""
		if c := Denies(test.claim, test.text); c != nil {
			got = c.B.ValueText()
		}
		if got != test.want {
			t.Errorf("%q in %q: %q, want %q", test.claim, test.text, got, test.want)
		}
	}
}
