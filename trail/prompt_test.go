package trail_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// pasted has the members of a source from a prompt that are compared.
type pasted struct{ ID, Title, URL, Content string }

func TestSourcesFromPrompt(t *testing.T) {
	tests := append(testenv.Cases(t, "testdata/prompts.txt", 2),
		[]string{"tags that never close", strings.Repeat("<doc><source>", 20_000)})
	for _, row := range tests {
		t.Run(row[0], func(t *testing.T) {
			var got, want []pasted
			for s := range slices.Chunk(row[2:], 4) {
				want = append(want, pasted{s[0], s[1], s[2], s[3]})
			}
			for _, s := range trail.SourcesFromPrompt(row[1]) {
				if s.Counted() != (s.Key != "") {
					t.Errorf("%s: key %q; a source that is only counted needs one made from its words", s.DocumentID, s.Key)
				}
				if !s.Retrieved {
					t.Errorf("%s: a document of the prompt should count as retrieved", s.DocumentID)
				}
				got = append(got, pasted{s.DocumentID, s.Title, s.URL, s.Content})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzSourcesFromPrompt(f *testing.F) {
	f.Add("[1] a\n[2] b")
	f.Add("<doc id=1><title>x</title><text>y</text></doc>")
	f.Add(`[{"text":"x"}]`)
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, s := range trail.SourcesFromPrompt(prompt) {
			if s.Content == "" {
				t.Error("a document without words")
			}
		}
	})
}
