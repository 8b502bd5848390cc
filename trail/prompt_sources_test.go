package trail_test

import (
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// Sources that ibid.PromptSources writes into a prompt are read back: ids, titles, addresses and each passage.
func TestSourcesFromPromptSources(t *testing.T) {
	prompt := ibid.PromptSources([]ibid.Source{
		{ID: "a", Filename: "a's & b.pdf", Chunks: []ibid.Chunk{{Content: "One <b> & two."}, {Content: "Three."}}},
		{ID: "b", Title: "Herons", URL: "https://heron.example/?a=1&b=2", Content: "They wade."},
		{ID: "empty"},
	}) + "\n\nAnswer from these."
	got := trail.SourcesFromPrompt("Use the sources.\n" + prompt)
	want := []trail.Source{
		{DocumentID: "a", Title: "a's & b.pdf", Content: "One <b> & two.", Rank: 1, Retrieved: true},
		{DocumentID: "a", Title: "a's & b.pdf", Content: "Three.", Rank: 1, Retrieved: true},
		{DocumentID: "b", Title: "Herons", URL: "https://heron.example/?a=1&b=2", Content: "They wade.", Rank: 2, Retrieved: true},
	}
	testenv.Equal(t, "", want, got)
}
