package support

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestChanged(t *testing.T) {
	if got := Changed("", ""); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	texts := map[string]string{}
	for _, lines := range readCases(t, "changed.txt") {
		if strings.HasPrefix(lines[0], "@") {
			texts[lines[0]] = lines[1]
			continue
		}
		claim, evidence, want := lines[1], cmp.Or(texts[lines[2]], lines[2]), lines[3:]
		t.Run(lines[0], func(t *testing.T) {
			got := []string{}
			for _, f := range Changed(claim, evidence) {
				got = append(got, fmt.Sprintf("%s: %s, %s", f.Kind, claim[f.A.Value.Start:f.A.Value.End], evidence[f.B.Value.Start:f.B.Value.End]))
				if f.A.Passage != -1 || f.A.Text != claim[f.A.Span.Start:f.A.Span.End] || f.B.Text != evidence[f.B.Span.Start:f.B.Span.End] {
					t.Errorf("excerpts are not in the texts: %+v", f)
				}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedReadsUpToItsLimits(t *testing.T) {
	padding := strings.Repeat("é ", maxChangedEvidence)
	if got := Changed("The bridge is 1,460 m long.", padding+"The bridge is 1,420 m long."); got != nil {
		t.Errorf("evidence beyond the limit: %v", got)
	}
	if got := Changed(strings.Repeat("é ", maxChangedClaim)+"The bridge is 1,460 m long.", "The bridge is 1,420 m long."); got != nil {
		t.Errorf("claim beyond the limit: %v", got)
	}
	claim := strings.Repeat("It is 7 cats. ", maxChangedValues) + "The bridge is 1,460 m long."
	for _, f := range Changed(claim, "The bridge is 1,420 m long.") {
		if f.Kind == ConflictNumber && strings.Contains(f.Note, "1,460") {
			t.Errorf("value beyond the limit: %s", f.Note)
		}
	}
}

// However often the texts repeat something, comparing them takes no more than a moment.
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
		if took := time.Since(start); took > time.Minute { // less than a second on a quiet machine
			t.Errorf("%q, %q: %v", c[0], c[1], took)
		}
	}
}
