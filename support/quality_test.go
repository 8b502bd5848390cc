package support_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/support"
)

func TestHostClasses(t *testing.T) {
	for url, want := range map[string]support.HostClass{
		"https://www.cdc.gov/flu":              support.HostOfficial,
		"https://www.gov.uk/tax":               support.HostOfficial,
		"https://www.economie.gouv.fr/":        support.HostOfficial,
		"https://www.stat.go.jp/":              support.HostOfficial,
		"https://www.mit.edu/x":                support.HostAcademic,
		"https://www.ox.ac.uk/":                support.HostAcademic,
		"https://pubmed.ncbi.nlm.nih.gov/1":    support.HostAcademic,
		"https://plato.stanford.edu/entries/":  support.HostEncyclopedia,
		"https://en.wikipedia.org/wiki/Bridge": support.HostEncyclopedia,
		"https://www.reuters.com/world":        support.HostNews,
		"https://old.reddit.com/r/x":           support.HostForum,
		"https://REDDIT.com./r/x":              support.HostForum,
		"https://example.com/":                 support.HostUnknown,
		"https://notreuters.com/":              support.HostUnknown,
		"https://gov.example.com/":             support.HostUnknown,
		"https://go.com/":                      support.HostUnknown,
		"https://192.0.2.1/":                   support.HostUnknown,
		"https://[2001:db8::1]/":               support.HostUnknown,
		"https://localhost/":                   support.HostUnknown,
		"urn:ibid:src:1":                       support.HostUnknown,
		"":                                     support.HostUnknown,
		"https://%zz":                          support.HostUnknown,
	} {
		if q := support.AssessSource(&support.QualityInput{URL: url}); q.Host != want {
			t.Errorf("%s is %s, want %s", url, q.Host, want)
		}
	}
}

func TestQualityOfNothingIsUnknown(t *testing.T) {
	for _, in := range []*support.QualityInput{nil, {}, {URL: "file.txt"}, {Agreement: &support.Tally{}}, {Feedback: &support.Tally{Good: -1}}, {Published: time.Unix(0, 0)}} {
		if q := support.AssessSource(in); q.Score != nil || len(q.Parts) != 0 || q.Known != 0 {
			t.Errorf("%+v: %+v", in, q)
		}
	}
}

func TestQualityLeavesOutWhatIsUnknown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := &support.QualityInput{URL: "http://www.cdc.gov/", Modified: now.AddDate(0, 0, -5*365), Now: now}
	q := support.AssessSource(in)
	want := []support.Part{
		{Kind: support.PartHost, Value: .9, Weight: .2, Note: "host class official (suffix gov)"},
		{Kind: support.PartHTTPS, Value: 0, Weight: .05, Note: "http"},
		{Kind: support.PartAge, Value: .5, Weight: .1, Note: "changed 2021-01-02"},
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
	if more := support.AssessSource(in); len(more.Parts) != 5 || *more.Score >= *q.Score {
		t.Errorf("a document that names no author: %+v", more)
	}
}

func TestQualityKnowsAllParts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := support.AssessSource(&support.QualityInput{
		URL: "https://arxiv.org/abs/1", Published: now.AddDate(1, 0, 0), Now: now, Authors: []string{"A"}, License: "CC BY",
		Agreement: &support.Tally{Good: 9, Bad: 1}, History: &support.Tally{Good: 100}, Feedback: &support.Tally{Bad: 3},
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
		if got := support.WilsonLower(c.good, c.bad); math.Abs(got-c.want) > 5e-5 {
			t.Errorf("WilsonLower(%d, %d) = %.5f, want %v", c.good, c.bad, got, c.want)
		}
	}
}

func TestAgreementOf(t *testing.T) {
	found, _ := support.Conflicts(passages("The Verrin Bridge is 1,420 m long.", "The Verrin Bridge is 1,510 m long.", "The Verrin Bridge is 1,420 m long."), nil)
	if len(found) != 2 {
		t.Fatalf("%d conflicts", len(found))
	}
	got := support.AgreementOf("b", []string{"a", "b", "c"}, 3, found)
	if diff := cmp.Diff(&support.Tally{Good: 3, Bad: 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := support.AgreementOf("a", []string{"a", "a"}, 0, found[:1]); got.Bad != 0 {
		t.Errorf("a source in conflict with itself: %+v", got)
	}
}
