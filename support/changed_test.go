package support_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/support"
)

func TestChanged(t *testing.T) {
	const bridge = "The Verrin Bridge, designed by Clara Osgood, opened on 26 June 1980. It is 1,420 m long and cost about $35 million. " +
		"It was damaged by the storm of 1999."
	for _, c := range []struct {
		name, claim, evidence string
		want                  []string
	}{
		{"as it is", "The Verrin Bridge opened on June 26, 1980.", bridge, nil},
		{"less exact date", "The Verrin Bridge opened in June 1980.", bridge, nil},
		{"a digit of a year", "The Verrin Bridge opened on June 26, 1981.", bridge, []string{"date: June 26, 1981, 1980"}},
		{"a month", "The Verrin Bridge opened on 26 July 1980.", bridge, []string{"date: 26 July 1980, 26 June 1980"}},
		{"a digit", "The Verrin Bridge is 1,460 m long.", bridge, []string{"number: 1,460 m, 1,420"}},
		{"rounded", "The Verrin Bridge is about 1,400 m long.", bridge, nil},
		{"another unit", "The Verrin Bridge is 1.42 km long.", bridge, nil},
		{"feet", "The Verrin Bridge is about 4,660 feet long.", bridge, nil},
		{"the figure in another unit", "The Verrin Bridge is 1,420 feet long.", bridge, []string{"unit: 1,420 feet, 1,420 m"}},
		{"a name", "The Verrin Bridge was designed by Clara Tarnow.", bridge, []string{"name: Clara Tarnow, Clara Osgood"}},
		{"a negation", "The Verrin Bridge was not damaged by the storm.", bridge, []string{"negation: not"}},
		{"a negation taken away", "The bridge was damaged by the storm.", "The bridge was not damaged by the storm.", []string{"negation: The bridge was damaged by the storm."}},
		{"what the evidence lacks", "The Verrin Bridge has 6 lanes.", bridge, nil},
		{"miles", "The race is about 5 km long.", "The length of the race is 3.1 miles.", nil},
		{"thousands", "The town has 1,200 inhabitants.", "The town has 1.2 thousand inhabitants.", nil},
		{"shares", "48 % of the voters agreed.", "0.48 of the voters agreed.", nil},
		{"half", "Nearly half of the voters agreed.", "48% of the voters agreed.", nil},
		{"days and months swapped", "It opened on 3/4/1999.", "It opened on April 3, 1999.", nil},
		{"a surname alone", "Osgood designed the bridge.", bridge, nil},
		{"a country's other name", "The disease is common in the U.S. today.", "The disease is common in the United States today.", nil},
		{"digits of a name", "The vaccine protects against COVID-13.", "The vaccine protects against COVID-19.", []string{"name: COVID-13, COVID-19"}},
		{"negation in other words", "The mayor did not sign the letter.", "The mayor refused to sign the letter.", nil},
		{"nothing", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range support.Changed(c.claim, c.evidence) {
				note := f.Note
				if f.Kind == support.ConflictNegation {
					note, _, _ = strings.Cut(note, ", ")
				}
				got = append(got, note)
				if f.A.Passage != -1 || f.A.Text != c.claim[f.A.Span.Start:f.A.Span.End] || f.B.Text != c.evidence[f.B.Span.Start:f.B.Span.End] {
					t.Errorf("excerpts do not stand in the texts: %+v", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedReadsUpToItsLimits(t *testing.T) {
	padding := strings.Repeat("é ", support.MaxChangedEvidence)
	if got := support.Changed("The bridge is 1,460 m long.", padding+"The bridge is 1,420 m long."); got != nil {
		t.Errorf("evidence behind the limit: %v", got)
	}
	if got := support.Changed(strings.Repeat("é ", support.MaxChangedClaim)+"The bridge is 1,460 m long.", "The bridge is 1,420 m long."); got != nil {
		t.Errorf("claim behind the limit: %v", got)
	}
	claim := strings.Repeat("It is 7 cats. ", support.MaxChangedValues) + "The bridge is 1,460 m long."
	for _, f := range support.Changed(claim, "The bridge is 1,420 m long.") {
		if f.Kind == support.ConflictNumber && strings.Contains(f.Note, "1,460") {
			t.Errorf("value behind the limit: %s", f.Note)
		}
	}
}
