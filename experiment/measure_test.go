package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// harbour is a run whose answer has four sentences that claim something: one the provider cited rightly, one it cited
// wrongly, one that a retrieved passage supports and one that nothing does.
func harbour(t *testing.T) *trail.Trail {
	t.Helper()
	const text = "The Port of Valparaíso moved 9.8 million tonnes of cargo in 2019. The breakwater was extended by 120 metres in 2008. " +
		"The customs house was built of red brick in 1901. Dolphins race the pilot boats every spring morning."
	a := &ibid.Answer{Text: text, Complete: true, Sources: []ibid.Source{
		{ID: "s1", Kind: ibid.DocumentKind, Title: "Traffic", Content: "The Port of Valparaíso moved 9.8 million tonnes of cargo in 2019, a record."},
		{ID: "s2", Kind: ibid.DocumentKind, Title: "Menu", Content: "The canteen serves soup, bread and stewed apples on weekdays."},
	}}
	for i, words := range []string{"The Port of Valparaíso moved 9.8 million tonnes of cargo in 2019", "The breakwater was extended by 120 metres in 2008"} {
		at := strings.Index(text, words)
		testenv.OK(t, a.Cite(ibid.Span{Start: at, End: at + len(words)}, ibid.Ref{Source: a.Sources[i].ID, Quote: a.Sources[i].Content}))
		a.Citations[i].Origin = ibid.OriginProvider
	}
	return &trail.Trail{
		ID: "run_harbour", Question: "What is known of the port?", Answer: text, Final: a, Strategy: "provider@1",
		Steps: []trail.Step{{Number: 1, Tool: "search", After: []int{}, Sources: []trail.Source{
			{DocumentID: "d1", Title: "Buildings", Retrieved: true, Used: true, Content: "The customs house of the port was built in 1901, of red brick."},
		}}},
	}
}

func TestMeasure(t *testing.T) {
	list := experiment.Builtin()
	for name, want := range map[string]experiment.Outcome{
		"provider": {Run: "run_harbour", Strategy: "provider@1", Sentences: 4, Cited: 2, Checked: 2, Supported: 1},
		"balanced": {Run: "run_harbour", Strategy: "balanced@2", Sentences: 4, Cited: 3, Checked: 2, Supported: 1},
	} {
		s := testenv.Must(experiment.Find(list, name))(t)
		got := testenv.Must(experiment.Measure(t.Context(), harbour(t), &s, nil))(t)
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// A judge is not asked about citations that it found itself, and what was not judged has no share.
func TestMeasureOwnJudge(t *testing.T) {
	run := harbour(t)
	run.Final = nil
	s := experiment.Builtin()[1]
	got, err := experiment.Measure(t.Context(), run, &s, nil)
	if err != nil || got.Cited == 0 || got.Checked != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	r := experiment.Compare([]experiment.Outcome{*got}, []experiment.Outcome{*got})
	if r.A.Supported.Value != nil || r.Difference.Supported.Value != nil {
		t.Errorf("supported: %+v", r.A.Supported)
	}
	got, err = experiment.Measure(t.Context(), run, &s, &experiment.MeasureOptions{Judge: &other{}})
	if err != nil || got.Checked == 0 {
		t.Errorf("by another judge: %+v, %v", got, err)
	}
}

// other is a checker with another name.
type other struct{ support.Lexical }

func (*other) Info() support.Info { return support.Info{ID: "other", Version: "1"} }

// A source that could not be read does not count as fetched.
func TestObserveUnread(t *testing.T) {
	for _, status := range []string{"robots-disallowed", "unreachable", "gone", "hash-mismatch", "nothing-recorded"} {
		run := harbour(t)
		run.Final.Citations[0].Verification = &ibid.Verification{Status: status}
		got := testenv.Must(experiment.Observe(t.Context(), run, experiment.Feedback{}, nil))(t)
		if got.Fetched != 0 || got.Verified != 0 {
			t.Errorf("%s: %d fetched, %d verified", status, got.Fetched, got.Verified)
		}
	}
}

// Observe counts what was fetched again and what people judged, without attributing again.
func TestObserve(t *testing.T) {
	run := harbour(t)
	run.Final.Citations[0].Verification = &ibid.Verification{Status: "source-drifted-excerpt-intact", CheckedAt: time.Unix(0, 0)}
	run.Final.Citations[1].Verification = &ibid.Verification{Status: "excerpt-missing", CheckedAt: time.Unix(0, 0)}
	got := testenv.Must(experiment.Observe(t.Context(), run, experiment.Feedback{Judged: 3, Right: 2}, nil))(t)
	want := &experiment.Outcome{
		Run: "run_harbour", Strategy: "provider@1", Sentences: 4, Cited: 2, Checked: 2, Supported: 1, Fetched: 2, Verified: 1, Judged: 3, Right: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An answer that the agent wrote itself was not attributed while the run was live, and tells nothing about the
// strategy.
func TestObserveElsewhere(t *testing.T) {
	run := harbour(t)
	run.Final = nil
	if _, err := experiment.Observe(t.Context(), run, experiment.Feedback{}, nil); !errors.Is(err, experiment.ErrElsewhere) {
		t.Errorf("Observe: %v; want ErrElsewhere", err)
	}
}

func TestMeasureEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := experiment.Measure(ctx, harbour(t), &experiment.Builtin()[1], nil); err == nil || !strings.Contains(err.Error(), "run_harbour") {
		t.Errorf("Measure with a cancelled context: %v", err)
	}
}
