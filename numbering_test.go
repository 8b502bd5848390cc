package ibid_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// TestWrittenNumbers tells which numbers an answer shows: those that its model wrote, if they can be kept.
func TestWrittenNumbers(t *testing.T) {
	prompt := "Answer from these passages and cite them with [n].\n\n[1] The ferry sails at six.\n\n[2] The harbour has forty berths.\n\n[3] High water is at noon.\n"
	for _, test := range []struct {
		name, prompt, text string
		known              ibid.Numbering
		which              ibid.Numbers
		want               string
		indexes            string // of the sources, in the order of first use and then of the prompt
		live               string // if Live shows other ones, as it cannot retract what it showed
	}{
		{"out of order", prompt, "Noon [3]. Six [1].", nil, "", "Noon.[3] Six.[1]", "[3 1 2]", ""},
		{"several in a mark", prompt, "Both [3, 1]. Forty [2].", nil, "", "Both.[1][3] Forty.[2]", "[3 1 2]", ""},
		{"again, with another", prompt, "Noon [3]. Both [2, 3].", nil, "", "Noon.[3] Both.[2][3]", "[3 2 1]", ""},
		{"one that is nowhere", prompt, "Noon [3]. Both [3, 7].", nil, "", "Noon.[3] Both.[3]", "[3 1 2]", ""},
		{"by first use", prompt, "Noon [3]. Six [1].", nil, ibid.NumbersUsed, "Noon.[1] Six.[2]", "[1 2 3]", ""},
		{"from zero", strings.NewReplacer("[1]", "[0]", "[2]", "[1]", "[3]", "[2]").Replace(prompt), "Noon [2]. Six [0].", nil, "", "Noon.[1] Six.[2]", "[1 2 3]", "Noon.[2] Six.[3]"},
		{"letters", strings.NewReplacer("[1]", "[doc-a]", "[2]", "[doc-b]", "[3]", "[doc-c]").Replace(prompt), "Noon [doc-c]. Six [doc-a].", nil, "", "Noon.[1] Six.[2]", "[1 2 3]", ""},
		{"after another answer", prompt, "Noon [3]. Six [1].", ibid.Numbering{"web:https://a.example/": 4}, "", "Noon.[3] Six.[1]", "[3 1 2]", ""},
		{"another source has one", prompt, "Noon [3]. Six [1].", ibid.Numbering{"web:https://a.example/": 1}, "", "Noon.[2] Six.[3]", "[2 3 4]", "Noon.[3] Six.[4]"},
		{"another source has one, asked for", prompt, "Noon [3]. Six [1].", ibid.Numbering{"web:https://a.example/": 1}, ibid.NumbersProvider, "Noon.[3] Six.[1]", "[3 1 2]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fmt.Sprintf(`{"object":"chat.completion","choices":[{"message":{"content":%q},"finish_reason":"stop"}]}`, test.text)
			request := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, test.prompt)
			var shown strings.Builder
			live := ibid.Live{W: &shown, Style: ibid.StylePlain, Numbering: numbering(test.known), Numbers: test.which}
			d := ibid.Decoder{Options: ibid.DecodeOptions{Request: []byte(request)}, OnEvent: live.Event}
			_, _ = d.Write([]byte(body))
			_ = d.Close()
			a, err := d.Answer()
			if err != nil {
				t.Fatal(err)
			}
			got := a.Render(&ibid.RenderOptions{Style: ibid.StylePlain, Numbering: numbering(test.known), Numbers: test.which})
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("Render (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(cmp.Or(test.live, test.want), strings.TrimSuffix(shown.String(), "\n")); diff != "" {
				t.Errorf("Live (-want +got):\n%s", diff)
			}
			var indexes []int
			for _, s := range a.Document(&ibid.DocumentOptions{Numbering: numbering(test.known), Numbers: test.which}).Sources {
				indexes = append(indexes, s.Index)
			}
			if got := fmt.Sprint(indexes); got != test.indexes {
				t.Errorf("indexes %s, want %s", got, test.indexes)
			}
		})
	}
}

// numbering returns a copy of a numbering for one use; nil for none.
func numbering(n ibid.Numbering) *ibid.Numbering {
	if n == nil {
		return nil
	}
	n = maps.Clone(n)
	return &n
}
