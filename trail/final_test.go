package trail_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// An answer that the agent wrote itself cites only what its sentences rest on, wherever in the run that was read.
func TestFinalAnswer(t *testing.T) {
	ferry := trail.Source{DocumentID: "timetable", Title: "Timetable", URL: "https://ferry.example/timetable", Content: "The ferry does not sail in fog."}
	nests := trail.Source{DocumentID: "census", Content: "The colony at the lake counted 412 nests this year."}
	run := &trail.Trail{
		Answer: "The ferry does not sail in fog. The colony at the lake counted 412 nests this year. Bring good shoes and a warm coat.",
		Steps: []trail.Step{
			{Number: 1, Tool: "search", Sources: []trail.Source{ferry}},
			{Number: 2, Tool: "agent", Nested: &trail.Trail{Steps: []trail.Step{{Number: 1, Sources: []trail.Source{nests}}}}},
		},
	}
	a := testenv.Must(run.FinalAnswer(t.Context(), nil, nil))(t)
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	got := map[string][2]string{}
	for _, c := range a.Citations {
		if c.Origin != ibid.OriginInferred || len(c.Refs) != 1 {
			t.Errorf("citation %+v", c)
		}
		got[a.Text[c.Span.Start:c.Span.End]] = [2]string{a.Source(c.Refs[0].Source).URL, c.Refs[0].Quote}
	}
	want := map[string][2]string{
		"The ferry does not sail in fog.":                     {"https://ferry.example/timetable", "The ferry does not sail in fog."},
		"The colony at the lake counted 412 nests this year.": {}, // no quote, since the document has no address
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a, err := (&trail.Trail{}).FinalAnswer(t.Context(), nil, nil); a != nil || err != nil {
		t.Errorf("without an answer: %v, %v", a, err)
	}
}

func TestFinalID(t *testing.T) {
	final, same, other := &ibid.Answer{Text: "Yes."}, &ibid.Answer{Text: "Yes."}, &ibid.Answer{Text: "No."}
	step := func(n int, id string, a *ibid.Answer) trail.Step {
		return trail.Step{Number: n, Answers: []trail.StepAnswer{{ID: id, Answer: a}}}
	}
	for _, test := range []struct {
		name  string
		final *ibid.Answer
		steps []trail.Step
		want  string
	}{
		{"itself", final, []trail.Step{step(1, "ans_1", final), step(2, "ans_2", same)}, "ans_1"},
		{"the last with the same text", final, []trail.Step{step(1, "ans_1", same), step(2, "ans_2", same), step(3, "ans_3", other)}, "ans_2"},
		{"without an id", final, []trail.Step{step(1, "", same)}, ""},
		{"only its text is known", nil, []trail.Step{step(1, "ans_1", same)}, ""},
		{"another text", final, []trail.Step{step(1, "ans_1", other)}, ""},
	} {
		if got := (&trail.Trail{Final: test.final, Steps: test.steps}).FinalID(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
