package support

import (
	"strings"
	"testing"
)

// A figure in another form is held; one that is not so is missing, or a conflict.
func TestFigures(t *testing.T) {
	const (
		report = "Acme Corp reported revenue of $4.2 billion for the quarter ended March 31, 2024, up 8% from a year earlier. " +
			"Net income fell to $310 million from $355 million."
		dough = "To make the dough, mix:\n\n- 500 g flour\n- 325 ml water\n- 10 g salt\n\nKnead for 10 minutes. Bake at 250 °C for 20 minutes."
		tower = "The radio tower on the hill is 504 m high. A dozen people work there. Its transmitter reached 1,512,340 people in 2019."
		lake  = "Lake Baikal is the deepest lake in the world, with a maximum depth of 1,642 metres."
		trial = "The share of the patients who recovered was 0.95."
	)
	for _, test := range []struct {
		claim, passage string
		held           bool
	}{
		{"Acme Corp's revenue was $4,200 million in the quarter.", report, true},
		{"Acme Corp's revenue was $4,300 million in the quarter.", report, false},
		{"The quarter ended on 2024-03-31.", report, true},
		{"The quarter ended on 2024-03-30.", report, false},
		{"The quarter ended March 30, 2024.", report, false},
		{"The dough needs half a kilogram of flour.", dough, true},
		{"The dough needs half a kilogram of salt.", dough, false},
		{"Bake the dough at 482 °F for 20 minutes.", dough, true},
		{"Bake the dough at 450 °F for 20 minutes.", dough, false},
		{"The radio tower is 0.504 km high.", tower, true},
		{"The radio tower is 0.6 km high.", tower, false},
		{"12 people work at the radio tower.", tower, true},
		{"13 people work at the radio tower.", tower, false},
		{"Its transmitter reached 1.5 million people in 2019.", tower, true},
		{"Its transmitter reached 1.9 million people in 2019.", tower, false},
		{"Lake Baikal has a maximum depth of 1.642 km.", lake, true},
		{"Lake Baikal has a maximum depth of 5,387 feet.", lake, true},
		{"Lake Baikal has a maximum depth of 1,754 feet.", lake, false},
		{"95 % of the patients recovered.", trial, true},
		{"85 % of the patients recovered.", trial, false},
	} {
		v := check(t, Pair{Claim: test.claim, Passages: passages(test.passage)})[0]
		missing := false
		for _, m := range v.Missing {
			missing = missing || strings.ContainsAny(m.Text, "0123456789") || m.Text == "half" || m.Text == "kilogram"
		}
		if test.held && (missing || v.Changed || v.Label != Supported) || !test.held && v.Label == Supported {
			t.Errorf("%s (%.2f), changed %t, missing %v: %s", v.Label, *v.Score, v.Changed, v.Missing, test.claim)
		}
	}
}
