package ibid

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/wire"
)

// Of several parts with the same key, find returns the first, unless the last part has that key.
func TestFindPart(t *testing.T) {
	c := candidate{fold: &fold{limits: Limits{}.withDefaults(), left: budgetBase}}
	part := func(i int) wire.Part { return wire.Part{Message: i} }
	c.open(part(0))
	c.open(part(1))
	c.open(part(0)) // place 2
	for i := 3; i < 9; i++ {
		c.open(part(i))
		for k := range 9 {
			want := k
			if k == 2 || k > i {
				want = -1
			}
			if got := c.find(part(k)); got != want {
				t.Fatalf("with %d parts, part %d is at %d, want %d", i+1, k, got, want)
			}
		}
	}
}

// The claim of a link in a separate paragraph is the sentence above it, if the text is short enough to be parsed as
// markdown; in a longer text it is the link itself, and there is an issue.
func TestStructureLimit(t *testing.T) {
	const link, url = "[a.example](https://a.example/)", "https://a.example/"
	for more, want := range []string{"It rains.", link} {
		text := "It rains.\n\n" + link
		text = strings.Repeat("\n", maxStructure-len(text)+more) + text
		body, err := json.Marshal(map[string]any{"object": "chat.completion", "choices": []any{map[string]any{
			"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text, "annotations": []any{
				map[string]any{"type": "url_citation", "url_citation": map[string]any{
					"start_index": len(text) - len(link), "end_index": len(text), "url": url,
				}},
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Decode(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		claim := a.Citations[0].Claim
		if got := a.Text[claim.Start:claim.End]; got != want || len(a.Issues) != more {
			t.Errorf("%d bytes: claim %q, want %q; issues %v", len(text), got, want, a.Issues)
		}
	}
}
