package trail_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// A mark behind a full stop ends the sentence that it belongs to, if it means something.
func TestLinkMarksEndSentences(t *testing.T) {
	run := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Sources: []trail.Source{{DocumentID: "mill", Used: true}, {DocumentID: "census-2024", Used: true}}},
		{Number: 2, Sources: []trail.Source{{DocumentID: "book", Used: true}}},
	}}
	for _, row := range testenv.Cases(t, "testdata/mark_ends.txt", 2) {
		answer, want := row[0], row[1:]
		run.Answer = answer
		links, err := run.Link(t.Context(), nil, &trail.LinkOptions{NoInference: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range links.Sentences {
			if s.Text != answer[s.Span.Start:s.Span.End] {
				t.Errorf("%q is not where its span is", s.Text)
			}
			got = append(got, s.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", answer, diff)
		}
	}
	run.Answer = "The mill closed in 1966. [mill] Owls sleep in the barn."
	links, got := link(t, run, nil)
	want := []linked{{"The mill closed in 1966. [mill]", []int{1}, []string{"marker mill via []"}}, {Text: "Owls sleep in the barn."}}
	if diff := cmp.Diff(want, got); diff != "" || *links.Uncited != .5 {
		t.Errorf("uncited %v (-want +got):\n%s", *links.Uncited, diff)
	}
}

// A sentence may rest on two passages, or on a passage and the answer of a step, of which none says it alone.
func TestLinkTogether(t *testing.T) {
	run := &trail.Trail{
		Answer: "It is 1,149 metres long, which is less than half the length of the Golden Gate Bridge (2,737 metres).\n\n" +
			"The Sydney Harbour Bridge opened in 1937, and the Golden Gate Bridge opened in 1932.",
		Steps: []trail.Step{
			{Number: 1, Sources: []trail.Source{{DocumentID: "sydney", Used: true, Content: "The Sydney Harbour Bridge is 1,149 metres long and its arch span is 503 metres. It carries eight lanes of road traffic. It opened in 1932."}}},
			{Number: 2, After: []int{}, Sources: []trail.Source{{DocumentID: "gate", Used: true, Content: "The Golden Gate Bridge opened on 27 May 1937. It is 2,737 metres long with a main span of 1,280 metres."}}},
		},
	}
	want := []linked{{run.Answer[:101], []int{1, 2}, []string{"inferred gate via []", "inferred sydney via []"}}, {run.Answer[103:], []int{1, 2}, []string{"inferred gate via []", "inferred sydney via []"}}}
	links, got := link(t, run, nil)
	if on := links.Sentences[1].Passages; on[0].Differs != "27 May 1937" || on[1].Differs != "1932" {
		t.Errorf("years exchanged: %+v", on)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two passages (-want +got):\n%s", diff)
	}
	run.Steps[1].Answer, run.Steps[1].Sources[0].Content = "The Golden Gate Bridge is 2,737 metres long.", "golden gate bridge, length: 2,737 metres"
	run.Steps[1].Sources[0].DocumentID = "table"
	run.Steps[1].Sources[0].Cited = true
	_, got = link(t, run, nil)
	if got[0].Steps == nil || len(got[0].On) != 2 {
		t.Errorf("a passage and an answer: %+v", got[0])
	}
}

// unscored is a judge that gives labels only.
type unscored struct{ support.Lexical }

func (u *unscored) Check(ctx context.Context, in []support.Pair) ([]support.Verdict, error) {
	list, err := u.Lexical.Check(ctx, in)
	for i := range list {
		list[i].Score, list[i].Threshold = nil, 0
	}
	return list, err
}

func TestLinkWithoutScores(t *testing.T) {
	for _, threshold := range []float64{0, .9} {
		links, err := herons().Link(t.Context(), &unscored{}, &trail.LinkOptions{Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		s := links.Sentences[1]
		if len(s.Passages) != 1 || s.Passages[0].DocumentID != "book" || s.Passages[0].Score != nil || s.Passages[0].Threshold != 0 {
			t.Errorf("%q rests on %+v", s.Text, s.Passages)
		}
		if !links.Sentences[4].NoSources() {
			t.Errorf("%q rests on %+v", links.Sentences[4].Text, links.Sentences[4].Passages)
		}
	}
}
