package support

import (
	"slices"
	"testing"
)

func TestAgrees(t *testing.T) {
	for _, c := range []struct {
		claim, evidence string
		want            bool
	}{
		{"The arch spans 0.504 km.", "The arch spans 504 m.", true},
		{"Revenue was $4,200 million.", "Revenue of $4.2 billion", true},
		{"Bake at 482 °F.", "Bake at 250 °C for 20 minutes.", true},
		{"A dozen eggs are needed.", "Take 12 eggs.", true},
		{"It was built in the 12th century.", "It was built in 1156.", true},
		{"The chance is 95 %.", "with p = 0.95", true},
		{"It needs half a kilogram of flour.", "- 500 g flour", true},
		{"It rises for half a day.", "Let it rise for 12 hours.", true},
		{"Half a million people live there.", "500,000 people live there.", true},
		{"It lasted two and a half hours.", "It lasted 150 minutes.", true},
		{"The quarter ended on 2024-03-31.", "the quarter ended March 31, 2024,", true},
		{"The city has 1.5 million inhabitants.", "1,512,340 people live in the city.", true},
		{"The timeout is one minute.", "The timeout was raised to 60 seconds.", true},
		{"It holds nearly a quarter of the water.", "It holds 23% of the water.", true},
		{"More than 300 patients were treated.", "412 patients were treated.", true},
		{"It opened in June 1980 at 504 m.", "It opened on 26 June 1980 at 504 m.", true},
		{"412 patients were treated.", "More than 300 patients were treated.", false},
		{"It is 7 km long.", "It is 5 to 10 km long.", false},
		{"It opened on 26 June 1980.", "It opened in 1980.", false},
		{"It is 1.7 km deep.", "It is 1,642 metres deep.", false},
		{"It cost €4.2 billion.", "It cost $4.2 billion.", false},
	} {
		said, others := figuresOf(c.claim, "en"), figuresOf(c.evidence, "en")
		got := slices.ContainsFunc(said, func(v Value) bool {
			return slices.ContainsFunc(others, func(e Value) bool { return v.agrees(&e) })
		})
		if got != c.want {
			t.Errorf("%s | %s: %t", c.claim, c.evidence, got)
		}
	}
}
