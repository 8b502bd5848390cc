package trail_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// A mark after a full stop ends the sentence that it belongs to, if it names something.
func TestLinkMarksEndSentences(t *testing.T) {
	run := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Sources: []trail.Source{{DocumentID: "mill", Used: true}, {DocumentID: "census-2024", Used: true}}},
		{Number: 2, Sources: []trail.Source{{DocumentID: "book", Used: true}}},
	}}
	for _, row := range testenv.Cases(t, "testdata/mark_ends.txt", 2) {
		answer, want := row[0], row[1:]
		run.Answer = answer
		links := testenv.Must(run.Link(t.Context(), nil, &trail.LinkOptions{NoInference: true}))(t)
		var got []string
		for _, s := range links.Sentences {
			if s.Text != answer[s.Span.Start:s.Span.End] {
				t.Errorf("%q is not where its span is", s.Text)
			}
			got = append(got, s.Text)
		}
		testenv.Equal(t, fmt.Sprintf("%q", answer), want, got)
	}
	run.Answer = "The mill closed in 1966. [mill] Owls sleep in the barn."
	links, got := link(t, run, nil)
	want := []linked{{"The mill closed in 1966. [mill]", []int{1}, []string{"marker mill via []"}}, {Text: "Owls sleep in the barn."}}
	if diff := cmp.Diff(want, got); diff != "" || *links.Uncited != .5 {
		t.Errorf("uncited %v (-want +got):\n%s", *links.Uncited, diff)
	}
}

// A sentence may rest on two passages, or on a passage and the answer of a step, none of which says it alone. It does
// not rest on two whose values it exchanges.
func TestLinkTogether(t *testing.T) {
	run := &trail.Trail{
		Answer: "It is 1,149 metres long, which is less than half the length of the Golden Gate Bridge (2,737 metres).\n\n" +
			"The Sydney Harbour Bridge opened in 1937, and the Golden Gate Bridge opened in 1932.",
		Steps: []trail.Step{
			{Number: 1, Sources: []trail.Source{{DocumentID: "sydney", Used: true, Content: "The Sydney Harbour Bridge is 1,149 metres long and its arch span is 503 metres. It carries eight lanes of road traffic. It opened in 1932."}}},
			{Number: 2, After: []int{}, Sources: []trail.Source{{DocumentID: "gate", Used: true, Content: "The Golden Gate Bridge opened on 27 May 1937. It is 2,737 metres long with a main span of 1,280 metres."}}},
		},
	}
	want := []linked{{run.Answer[:101], []int{1, 2}, []string{"inferred gate via []", "inferred sydney via []"}}, {Text: run.Answer[103:]}}
	_, got := link(t, run, nil)
	testenv.Equal(t, "two passages", want, got)
	run.Steps[1].Answer, run.Steps[1].Sources[0].Content = "The Golden Gate Bridge is 2,737 metres long.", "golden gate bridge, length: 2,737 metres"
	run.Steps[1].Sources[0].DocumentID = "table"
	run.Steps[1].Sources[0].Cited = true
	_, got = link(t, run, nil)
	if got[0].Steps == nil || len(got[0].On) != 2 {
		t.Errorf("a passage and an answer: %+v", got[0])
	}
}

// unscored is a checker that returns labels without scores.
type unscored struct{ support.Lexical }

func (u *unscored) Check(ctx context.Context, in []support.Pair) ([]support.Verdict, error) {
	list, err := u.Lexical.Check(ctx, in)
	for i := range list {
		list[i].Closeness = nil
	}
	return list, err
}

func TestLinkWithoutScores(t *testing.T) {
	for _, threshold := range []float64{0, .9} {
		links := testenv.Must(herons().Link(t.Context(), &unscored{}, &trail.LinkOptions{Threshold: threshold}))(t)
		s := links.Sentences[1]
		if len(s.Passages) != 1 || s.Passages[0].DocumentID != "book" || s.Passages[0].Score != nil || s.Passages[0].Threshold != 0 {
			t.Errorf("%q rests on %+v", s.Text, s.Passages)
		}
		if !links.Sentences[4].NoSources() {
			t.Errorf("%q rests on %+v", links.Sentences[4].Text, links.Sentences[4].Passages)
		}
	}
}

// A value that a step calculated from those of earlier steps is that step's, and does not differ from them; one that no
// step calculated does.
func TestLinkCalculated(t *testing.T) {
	const fares = `{"answer": "The ferry costs 40 euros.", "after": [], "sources": [{"id": "f", "content": "A ferry trip costs 40 euros."}]},
		{"answer": "The bus costs 50 euros.", "after": [], "sources": [{"id": "b", "content": "A bus trip costs 50 euros."}]}`
	const lakes = `{"answer": "Lake Ora holds 100 fish.", "after": [], "sources": [{"id": "ora", "content": "Lake Ora holds 100 fish and is 10 metres deep."}]},
		{"answer": "Lake Bel holds 200 fish.", "after": [], "sources": [{"id": "bel", "content": "Lake Bel holds 200 fish and is 20 metres deep."}]}`
	for name, c := range map[string]struct {
		steps, sentence, rest string
		want                  linked
		differs               string
	}{
		"sum in the final answer": {steps: fares, sentence: "The trip costs 90 euros in total.", want: linked{Steps: []int{3}}},
		"sum of a step before": {
			lakes + `, {"after": [1, 2], "answer": "Together the two lakes hold 300 fish."}`,
			"Together the two lakes hold 300 fish.", " The mean depth is 15 metres.",
			linked{Steps: []int{3}},
			"",
		},
		"mean": {steps: lakes, sentence: "The mean depth is 15 metres.", want: linked{Steps: []int{3}}},
		"product, next to a figure of something else": {
			`{"answer": "It carries 40 cars and 200 people.", "sources": [{"id": "ship", "content": "The Vessa ferry can take 40 cars and 200 passengers."}]},
			{"answer": "It sails six times a day in summer.", "after": [], "sources": [{"id": "tt", "content": "Summer: six sailings a day."}]},
			{"after": [1, 2], "answer": "Forty cars times six sailings is about 240 cars a day in summer."}`,
			"In total it carries about 240 cars a day in summer.", "",
			linked{Steps: []int{3}},
			"",
		},
		"slip": {lakes, "Lake Bel is 26 metres deep.", "", linked{Steps: []int{2}, On: []string{"inferred bel via []"}}, "20"},
	} {
		number := strings.Count(c.steps, `"answer"`) + 1
		run := testenv.Must(trail.Read(fmt.Appendf(nil, `{"final_answer": %q, "steps": [%s, {"step": %d, "answer": %[1]q}]}`,
			c.sentence+c.rest, c.steps, number)))(t)
		run.Steps[number-1].After = []int{1, 2}
		if number == 4 {
			run.Steps[3].After = []int{3}
		}
		links, got := link(t, run, nil)
		c.want.Text = c.sentence
		if diff := cmp.Diff(c.want, got[0]); diff != "" || links.Sentences[0].Differs() != c.differs {
			t.Errorf("%s: differs %q (-want +got):\n%s", name, links.Sentences[0].Differs(), diff)
		}
	}
}

// A sentence whose only passage has another value counts as uncited.
func TestUncitedCountsDiffering(t *testing.T) {
	run := &trail.Trail{Answer: "It is 72 metres high. It opened in 1989.", Steps: []trail.Step{{Number: 1, Sources: []trail.Source{
		{DocumentID: "a", Content: "It is 62 metres high.", Used: true}, {DocumentID: "b", Content: "It opened in 1989.", Used: true},
	}}}}
	links, _ := link(t, run, nil)
	if s := links.Sentences[0]; s.Differs() != "62" || links.Uncited == nil || *links.Uncited != .5 {
		t.Errorf("%q differs from %q; uncited %v, want a half", s.Text, s.Differs(), links.Uncited)
	}
}
