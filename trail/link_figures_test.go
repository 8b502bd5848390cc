package trail_test

import (
	"slices"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// A figure that rounds the passage's is the same; a sentence with two figures rests on the passages that have them
// between them; and a ratio of what the sentence before says rests on the passage with both figures, or on none.
func TestLinkFigures(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		passages     []string
		want         [][]string // the passages of each sentence, by their first letters
	}{
		{
			"rounded", "The dam holds 17 million cubic metres of water.",
			[]string{"a: The dam at Orle holds 16.8 million cubic metres of water.", "b: The dam was painted green."},
			[][]string{{"a"}},
		},
		{
			"not rounded", "The dam holds 17 million cubic metres of water.",
			[]string{"a: The dam at Orle holds 15.8 million cubic metres of water."},
			[][]string{{"a differs"}},
		},
		{
			"a conflict told", "The strike lasted 12 days according to the union, but 9 according to the port.",
			[]string{"a: The union counts that the strike lasted 12 days in all.", "b: For the port, the strike lasted 9 days."},
			[][]string{{"a", "b"}},
		},
		{
			"ratios", "The port handled 6 million tonnes in 2023. That is half as much again. This is a fifth more than the year before.",
			[]string{"a: The port handled 6.0 million tonnes in 2023 and 5.0 million tonnes in 2022.", "b: The year before the crane was sold."},
			[][]string{{"a"}, nil, {"a"}},
		},
		{
			"a ratio of nothing", "Orle has 40 boats. That is twice as many as the year before.",
			[]string{"a: Orle has 40 boats and a harbour.", "b: The year before, the boats of Orle were painted."},
			[][]string{{"a"}, nil},
		},
	} {
		run := &trail.Trail{Answer: test.answer}
		for i, p := range test.passages {
			run.Steps = append(run.Steps, trail.Step{
				Number: i + 1, Sources: []trail.Source{{DocumentID: p[:1], Used: true, Content: p[3:]}},
			})
		}
		links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
		var got [][]string
		for _, s := range links.Sentences {
			var on []string
			for _, p := range s.Passages {
				if p.Differs != "" {
					p.DocumentID += " differs"
				}
				on = append(on, p.DocumentID)
			}
			slices.Sort(on)
			got = append(got, on)
		}
		testenv.Equal(t, test.name, test.want, got)
	}
}
