package support

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChanged(t *testing.T) {
	const bridge = "The Verrin Bridge, designed by Clara Osgood, opened on 26 June 1980. It is 1,420 m long and cost about $35 million. " +
		"It was damaged by the storm of 1999."
	const (
		harbourZH = "悉尼海港大桥于1932年3月19日开放。它的拱跨长504米。"
		fujiDE    = "Die Höhe des Berges Fuji beträgt 3776 Meter. Der letzte Ausbruch war im Jahr 1707. Der Vulkan gilt als aktiv und wird jedes " +
			"Jahr von 300.000 Menschen bestiegen."
		fujiFR = "Le mont Fuji culmine à 3 776 mètres. La dernière éruption a eu lieu en 1707. Il ne compte pas parmi les volcans éteints."
		trial  = "In the trial, 412 patients received the drug and 398 received placebo. Nausea occurred in 44.2% of treated patients. " +
			"No deaths were attributed to treatment. The drug was approved by the FDA in June 2021."
	)
	for _, c := range []struct {
		name, claim, evidence string
		want                  []string
	}{
		{"as it is", "The Verrin Bridge opened on June 26, 1980.", bridge, nil},
		{"less exact date", "The Verrin Bridge opened in June 1980.", bridge, nil},
		{"a digit of a year", "The Verrin Bridge opened on June 26, 1981.", bridge, []string{"date: June 26, 1981, 26 June 1980"}},
		{"a month", "The Verrin Bridge opened on 26 July 1980.", bridge, []string{"date: 26 July 1980, 26 June 1980"}},
		{"a digit", "The Verrin Bridge is 1,460 m long.", bridge, []string{"number: 1,460 m, 1,420 m"}},
		{"rounded", "The Verrin Bridge is about 1,400 m long.", bridge, nil},
		{"another unit", "The Verrin Bridge is 1.42 km long.", bridge, nil},
		{"feet", "The Verrin Bridge is about 4,660 feet long.", bridge, nil},
		{"the figure in another unit", "The Verrin Bridge is 1,420 feet long.", bridge, []string{"unit: 1,420 feet, 1,420 m"}},
		{"a name", "The Verrin Bridge was designed by Clara Tarnow.", bridge, []string{"name: Clara Tarnow, Clara Osgood"}},
		{"a negation", "The Verrin Bridge was not damaged by the storm.", bridge, []string{"negation: not damaged by the storm, damaged by the storm"}},
		{"a negation taken away", "The bridge was damaged by the storm.", "The bridge was not damaged by the storm.", []string{"negation: damaged by the storm, not damaged by the storm"}},
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

		{"Chinese", "悉尼海港大桥于1933年3月19日开放。", harbourZH, []string{"date: 1933年3月19日, 1932年3月19日"}},
		{"Chinese length", "它的拱跨长600米。", harbourZH, []string{"number: 600米, 504米"}},
		{"Chinese as it is", "悉尼海港大桥于1932年开放，拱跨长0.504公里。", harbourZH, nil},
		{"Japanese", "富士山の標高は3,767メートルです。", "富士山の標高は3,776メートルで、日本で最も高い山です。", []string{"number: 3,767メートル, 3,776メートル"}},
		{"fullwidth", "高さは１４６０メートルです。", "高さは1420メートルです。", []string{"number: １４６０メートル, 1420メートル"}},
		{"fullwidth as it is", "高さは１４２０メートルです。", "高さは1420メートルです。", nil},
		{"German names", "Die Gipfelhöhe des Fuji beträgt 3776 Meter.", fujiDE, nil},
		{"German negation", "Der Vulkan ist nicht erloschen.", fujiDE, nil},
		{"German number", "Der Vulkan wird jedes Jahr von 400.000 Menschen bestiegen.", fujiDE, []string{"number: 400.000, 300.000"}},
		{"German grouping", "Der Vulkan wird jedes Jahr von 300 000 Menschen bestiegen.", fujiDE, nil},
		{"German date", "Die Brücke wurde am 19. April 1932 eröffnet.", "Die Brücke wurde am 19. März 1932 eröffnet.", []string{"date: 19. April 1932, 19. März 1932"}},
		{"French number", "Le mont Fuji culmine à 3 767 mètres.", fujiFR, []string{"number: 3 767 mètres, 3 776 mètres"}},
		{"French spaces", "Le mont Fuji culmine à 3\u202f776 m.", fujiFR, nil},

		{"time of day", "The store closes at 9 a.m. today.", "The store closes at 9 p.m. today.", []string{"number: 9 a.m., 9 p.m."}},
		{"clock", "The store closes at 09:00 today.", "The store closes at 9 p.m. today.", []string{"number: 09:00, 9 p.m."}},
		{"evening", "The store closes at 21:00.", "The store closes at 9 p.m. today.", nil},
		{"a clock of twelve hours", "The store closes at 9:30.", "The store closes at 9:30 p.m. today.", nil},
		{"version", "Version 1.10 adds retries.", "Version 1.1 adds retries.", []string{"number: 1.10, 1.1"}},
		{"version with a letter", "v3.3 adds retries.", "v3.2 adds retries.", []string{"number: 3.3, 3.2"}},
		{"less of a version", "Version 3 adds retries.", "Version 3.2 adds retries.", nil},
		{"the figure in another unit, among others", "The arch weighs 39,000 kg.", "Steel weighs 52,800 tonnes in all, of which the arch weighs 39,000 tonnes.", []string{"unit: 39,000 kg, 39,000 tonnes"}},
		{"what the claim has too", "The tour runs from 10:30 to 11:45.", "The tour runs from 10:30 to 12:45.", []string{"number: 11:45, 12:45"}},
		{"a denial in other words", "No patients died because of the treatment.", trial, nil},
		{"rose", "Net income rose to $310 million from $355 million.", "Net income fell to $310 million from $355 million.", []string{"antonym: rose, fell"}},
		{"lowered", "The default timeout was lowered from 60 to 30 seconds.", "The default timeout was raised from 30 to 60 seconds.", []string{"antonym: lowered, raised"}},
		{"rejected", "The drug was rejected by the FDA in June 2021.", trial, []string{"antonym: rejected, approved"}},
		{"northern", "The lake lies in northern Siberia.", "It lies in southern Siberia and is a deep lake.", []string{"antonym: northern, southern"}},
		{"first and final", "The show first aired on July 27, 1997.", "The show aired on July 27, 1997; its final episode aired in 2007.", nil},
		{"a difference", "Net income fell by $45 million.", "Net income fell to $310 million from $355 million.", nil},
		{"lowered, where something else drops", "The default timeout was lowered to 60 seconds.", "It drops Python 3.7. The default timeout was raised to 60 seconds.", []string{"antonym: lowered, raised"}},
		{"a denial of what has an opposite", "The flag is not required in production.", "The flag is required in production.", []string{"negation: not required in production, required in production"}},
		{"an opposite of something else", "The revenue of the company rose.", "The share price of the company fell. Its revenue was $5 million.", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Changed(c.claim, c.evidence) {
				got = append(got, fmt.Sprintf("%s: %s, %s", f.Kind, c.claim[f.A.Value.Start:f.A.Value.End], c.evidence[f.B.Value.Start:f.B.Value.End]))
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
	padding := strings.Repeat("é ", maxChangedEvidence)
	if got := Changed("The bridge is 1,460 m long.", padding+"The bridge is 1,420 m long."); got != nil {
		t.Errorf("evidence behind the limit: %v", got)
	}
	if got := Changed(strings.Repeat("é ", maxChangedClaim)+"The bridge is 1,460 m long.", "The bridge is 1,420 m long."); got != nil {
		t.Errorf("claim behind the limit: %v", got)
	}
	claim := strings.Repeat("It is 7 cats. ", maxChangedValues) + "The bridge is 1,460 m long."
	for _, f := range Changed(claim, "The bridge is 1,420 m long.") {
		if f.Kind == ConflictNumber && strings.Contains(f.Note, "1,460") {
			t.Errorf("value behind the limit: %s", f.Note)
		}
	}
}

// Whatever stands there how often, comparing takes no more than a moment.
func TestChangedIsBounded(t *testing.T) {
	for _, c := range [][2]string{
		{"John Smith met Bob Jones. ", "Dr. "},
		{"Of Xavier bridge and heron. ", "Dr. "},
		{"heron bridge and ", "not heron "},
		{"heron bridge. ", "not heron bridge. "},
		{"[1", "[2 zz 5 km."},
	} {
		claim, evidence := strings.Repeat(c[0], 3000), strings.Repeat(c[1], maxChangedEvidence/len(c[1]))
		start := time.Now()
		Changed(claim, evidence)
		if took := time.Since(start); took > 8*time.Second { // a tenth on a quiet machine
			t.Errorf("%q, %q: %v", c[0], c[1], took)
		}
	}
}
