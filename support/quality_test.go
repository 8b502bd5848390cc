package support

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestHostClasses(t *testing.T) {
	for _, test := range testenv.Table[struct {
		URL  string
		Want HostClass
	}](t, "testdata/host-classes.txt") {
		url, want := test.URL, test.Want
		if q := AssessSource(&QualityInput{URL: url}); q.Host != want {
			t.Errorf("%s is %s, want %s", url, q.Host, want)
		}
	}
}

func TestUnknownQuality(t *testing.T) {
	for _, in := range []*QualityInput{nil, {}, {URL: "file.txt"}, {Agreement: &Tally{}}, {Feedback: &Tally{Good: -1}}, {Published: time.Unix(0, 0)}} {
		if q := AssessSource(in); q.Score != nil || len(q.Parts) != 0 || q.Known != 0 {
			t.Errorf("%+v: %+v", in, q)
		}
	}
	if q := AssessSource(&QualityInput{URL: "https://example.com/"}); q.Score == nil || *q.Score != .5 || q.Known != 0 {
		t.Errorf("a page about which only https is known: %+v", q)
	}
}

func TestQualityParts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := AssessSource(&QualityInput{
		URL: "http://www.cdc.gov/", Modified: now.AddDate(0, 0, -5*365), Published: now.AddDate(-20, 0, 0), Now: now, Read: true,
		License: "CC BY", Agreement: &Tally{Good: 3, Bad: 1}, History: &Tally{Good: 1000},
	})
	want := []Part{
		{Kind: partPrior, Value: .5, Weight: 3, Note: "nothing is known"},
		{Kind: partHost, Value: .95, Weight: 4, Note: "host class official (suffix gov)"},
		{Kind: partHTTPS, Value: 0, Weight: .5, Note: "http"},
		{Kind: partAge, Value: 1, Weight: .3, Note: "changed 2021-01-02"},
		{Kind: partAuthor, Value: 0, Weight: .5, Note: "names no author"},
		{Kind: partLicence, Value: 1, Weight: .3, Note: "names a licence"},
		{Kind: partAgreement, Value: .6, Weight: 5, Note: "statements shared, possible conflicts: 3, 1"},
		{Kind: partHistory, Value: 1, Weight: 20, Note: "citations verified, failed: 1000, 0"},
	}
	testenv.Equal(t, "", want, q.Parts)
}

// A score rises with signals for a source and falls with signals against it, whatever else is known.
func TestQualityRisesAndFalls(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, url := range []string{"https://example.com/", "https://www.cdc.gov/", "https://www.reddit.com/r/x"} {
		base := QualityInput{URL: url, Now: now, Agreement: &Tally{Good: 1, Bad: 1}}
		for name, c := range map[string]struct {
			change func(*QualityInput)
			up     bool
		}{
			"author":     {func(in *QualityInput) { in.Authors = []string{"A"} }, true},
			"no author":  {func(in *QualityInput) { in.Read = true }, false},
			"licence":    {func(in *QualityInput) { in.License = "CC0" }, true},
			"date":       {func(in *QualityInput) { in.Published = now.AddDate(-1, 0, 0) }, true},
			"old":        {func(in *QualityInput) { in.Published = now.AddDate(-15, 0, 0) }, false},
			"http":       {func(in *QualityInput) { in.URL = strings.Replace(url, "https", "http", 1) }, false},
			"agreed":     {func(in *QualityInput) { in.Agreement = &Tally{Good: 2, Bad: 1} }, true},
			"in dispute": {func(in *QualityInput) { in.Agreement = &Tally{Good: 1, Bad: 2} }, false},
			"verified":   {func(in *QualityInput) { in.History = &Tally{Good: 1} }, true},
			"failed":     {func(in *QualityInput) { in.History = &Tally{Bad: 1} }, false},
			"up":         {func(in *QualityInput) { in.Feedback = &Tally{Good: 1} }, true},
			"down":       {func(in *QualityInput) { in.Feedback = &Tally{Bad: 1} }, false},
		} {
			in := base
			c.change(&in)
			before, after := AssessSource(&base), AssessSource(&in)
			if (*after.Score > *before.Score) != c.up || *after.Score == *before.Score || after.Known <= before.Known {
				t.Errorf("%s, %s: %.3f (known %.3f), before %.3f (%.3f)", url, name, *after.Score, after.Known, *before.Score, before.Known)
			}
		}
	}
}

// testdata/sources.txt has sources in the order that a librarian gave them. Each line has a rank, which several may
// share, the address of a host of its kind, a name, and what is known about it.
func TestQualityOrder(t *testing.T) {
	f := testenv.Must(os.Open("testdata/sources.txt"))(t)
	defer f.Close()
	type source struct {
		rank  int
		name  string
		score float64
	}
	var all []source
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		in := &QualityInput{URL: fields[1], Now: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)}
		for _, said := range fields[3:] {
			name, value, _ := strings.Cut(said, "=")
			pair := &Tally{}
			fmt.Sscanf(value, "%d/%d", &pair.Good, &pair.Bad)
			switch name {
			case "author":
				in.Read = true
				if value == "yes" {
					in.Authors = []string{"A"}
				}
			case "licence":
				in.License = value
			case "date":
				in.Published, _ = time.Parse(time.DateOnly, value)
			case "agreement":
				in.Agreement = pair
			case "history":
				in.History = pair
			case "feedback":
				in.Feedback = pair
			default:
				t.Fatalf("%q: unknown signal %s", line, name)
			}
		}
		rank, _ := strconv.Atoi(fields[0])
		all = append(all, source{rank, fields[2], *AssessSource(in).Score})
	}
	right, pairs := 0, 0
	for _, a := range all {
		for _, b := range all {
			if a.rank < b.rank {
				pairs++
				if a.score > b.score {
					right++
				} else if b.rank-a.rank > 1 {
					t.Logf("%s (rank %d) has %.2f, %s (rank %d) %.2f", a.name, a.rank, a.score, b.name, b.rank, b.score)
				}
			}
		}
	}
	t.Logf("%d of %d pairs of %d sources are in the right order", right, pairs, len(all))
	if len(all) < 30 || 20*right < 19*pairs {
		t.Errorf("%d of %d pairs are in order, want 95 of 100", right, pairs)
	}
}
