package trail_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// Measures derived from words do not replace the retriever's relevance.
func TestWeigh(t *testing.T) {
	score := 0.2
	run := &trail.Trail{Steps: []trail.Step{
		{
			Number: 1, Answer: "Grey herons nest in tall trees. Their eggs are pale blue.",
			Sources: []trail.Source{
				{DocumentID: "nests", Content: "Grey herons nest in colonies in tall trees near water.", Relevance: &score, Origin: ibid.ScoreRetriever},
				{DocumentID: "trams", Content: "The tram line was closed in spring for repairs."},
				{DocumentID: "bare"},
			},
		},
		{Number: 2, Question: "What do herons eat?", Sources: []trail.Source{{DocumentID: "food", Excerpt: "Herons eat fish."}}},
	}}
	testenv.OK(t, run.Weigh(t.Context(), nil))
	nests, trams, bare, food := &run.Steps[0].Sources[0], &run.Steps[0].Sources[1], &run.Steps[0].Sources[2], &run.Steps[1].Sources[0]
	if *nests.Relevance != 0.2 || nests.Origin != ibid.ScoreRetriever || trams.Relevance != nil {
		t.Errorf("the relevance changed: %v, %v", nests.Relevance, trams.Relevance)
	}
	if nests.Overlap == nil || *nests.Overlap <= 0.2 || *nests.Overlap > 1 || trams.Overlap == nil || *trams.Overlap > 0.05 {
		t.Errorf("overlap of the right source %v, of another %v", nests.Overlap, trams.Overlap)
	}
	if nests.Usage == nil || *nests.Usage < 0.3 || *nests.Usage > 0.8 || trams.Usage == nil || *trams.Usage != 0 {
		t.Errorf("usage of the source of one of two sentences %v, of the source of none %v", nests.Usage, trams.Usage)
	}
	if bare.Overlap != nil || bare.Usage != nil {
		t.Error("a source without words was measured")
	}
	if food.Overlap == nil || *food.Overlap <= 0 || food.Usage != nil {
		t.Errorf("step without an answer: overlap %v, usage %v", food.Overlap, food.Usage)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Weigh(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
