package support

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHostClasses(t *testing.T) {
	for url, want := range map[string]HostClass{
		"https://www.cdc.gov/flu":              hostOfficial,
		"https://www.gov.uk/tax":               hostOfficial,
		"https://www.economie.gouv.fr/":        hostOfficial,
		"https://www.stat.go.jp/":              hostOfficial,
		"https://www.mit.edu/x":                hostAcademic,
		"https://www.ox.ac.uk/":                hostAcademic,
		"https://pubmed.ncbi.nlm.nih.gov/1":    hostAcademic,
		"https://plato.stanford.edu/entries/":  hostEncyclopedia,
		"https://en.wikipedia.org/wiki/Bridge": hostEncyclopedia,
		"https://www.reuters.com/world":        hostNews,
		"https://old.reddit.com/r/x":           hostForum,
		"https://REDDIT.com./r/x":              hostForum,
		"https://example.com/":                 hostUnknown,
		"https://notreuters.com/":              hostUnknown,
		"https://gov.example.com/":             hostUnknown,
		"https://go.com/":                      hostUnknown,
		"https://192.0.2.1/":                   hostUnknown,
		"https://[2001:db8::1]/":               hostUnknown,
		"https://localhost/":                   hostUnknown,
		"urn:ibid:src:1":                       hostUnknown,
		"":                                     hostUnknown,
		"https://%zz":                          hostUnknown,
	} {
		if q := AssessSource(&QualityInput{URL: url}); q.Host != want {
			t.Errorf("%s is %s, want %s", url, q.Host, want)
		}
	}
}

func TestQualityOfNothingIsUnknown(t *testing.T) {
	for _, in := range []*QualityInput{nil, {}, {URL: "file.txt"}, {Agreement: &Tally{}}, {Feedback: &Tally{Good: -1}}, {Published: time.Unix(0, 0)}} {
		if q := AssessSource(in); q.Score != nil || len(q.Parts) != 0 || q.Known != 0 {
			t.Errorf("%+v: %+v", in, q)
		}
	}
}

func TestQualityLeavesOutWhatIsUnknown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := &QualityInput{URL: "http://www.cdc.gov/", Modified: now.AddDate(0, 0, -5*365), Now: now}
	q := AssessSource(in)
	want := []Part{
		{Kind: partHost, Value: .9, Weight: .2, Note: "host class official (suffix gov)"},
		{Kind: partHTTPS, Value: 0, Weight: .05, Note: "http"},
		{Kind: partAge, Value: .5, Weight: .1, Note: "changed 2021-01-02"},
	}
	if diff := cmp.Diff(want, q.Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := *q.Score, (.9*.2+.5*.1)/.35; math.Abs(got-want) > 1e-9 {
		t.Errorf("score %v, want %v", got, want)
	}
	if math.Abs(q.Known-.35) > 1e-9 {
		t.Errorf("known %v", q.Known)
	}
	in.Read = true
	if more := AssessSource(in); len(more.Parts) != 5 || *more.Score >= *q.Score {
		t.Errorf("a document that names no author: %+v", more)
	}
}

func TestQualityKnowsAllParts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := AssessSource(&QualityInput{
		URL: "https://arxiv.org/abs/1", Published: now.AddDate(1, 0, 0), Now: now, Authors: []string{"A"}, License: "CC BY",
		Agreement: &Tally{Good: 9, Bad: 1}, History: &Tally{Good: 100}, Feedback: &Tally{Bad: 3},
	})
	if math.Abs(q.Known-1) > 1e-9 || len(q.Parts) != 8 {
		t.Errorf("known %v, %d parts", q.Known, len(q.Parts))
	}
	for _, part := range q.Parts {
		if part.Value < 0 || part.Value > 1 || part.Note == "" {
			t.Errorf("%+v", part)
		}
	}
}

func TestWilsonLower(t *testing.T) {
	for _, c := range []struct {
		good, bad int
		want      float64
	}{
		// Computed with R's prop.test(correct = FALSE) formula, to four places.
		{0, 0, 0}, {0, 10, 0}, {10, 0, .7225}, {1, 0, .2065}, {50, 50, .4038}, {-1, -1, 0},
	} {
		if got := wilsonLower(c.good, c.bad); math.Abs(got-c.want) > 5e-5 {
			t.Errorf("WilsonLower(%d, %d) = %.5f, want %v", c.good, c.bad, got, c.want)
		}
	}
}
