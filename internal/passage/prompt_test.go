package passage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/testenv"
)

// line returns a passage as the cases of testdata/prompts.txt show it.
func line(p *passage.Passage) string {
	return fmt.Sprintf("%s|%s|%s|%s|%s", p.Label, p.Title+p.Filename, p.Page, p.URL, p.Text)
}

func TestReadPrompt(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/prompts.txt", 2) {
		t.Run(row[0], func(t *testing.T) {
			got := []string{}
			found := passage.ReadPrompt(row[1], strings.HasPrefix(row[0], "a tool"))
			for i := range found.Passages {
				got = append(got, line(&found.Passages[i]))
			}
			if diff := cmp.Diff(append([]string{}, row[2:]...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzReadPrompt reads any prompt. Every passage has words, which are in the prompt unless they were unescaped.
func FuzzReadPrompt(f *testing.F) {
	for _, row := range testenv.Cases(f, "testdata/prompts.txt", 2) {
		f.Add(row[1])
	}
	f.Add(strings.Repeat("<doc><source>", 1000))
	f.Add(strings.Repeat("[CONTEXT 1]: a\n", 1000))
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, p := range passage.ReadPrompt(prompt, false).Passages {
			if strings.TrimSpace(p.Text) == "" {
				t.Error("a passage without words")
			}
		}
	})
}

// TestReadPromptIsLinear reads hostile prompts: none may take more than a moment.
func TestReadPromptIsLinear(t *testing.T) {
	for _, unit := range []string{
		"[CONTEXT 1]: a\n", "<doc><source>", "<context><documents>", "[1] a\n", "1. a\nURL: b\n", "the following context\n",
		"--- a.pdf ---\n", "# Context\n## a\n", "Title: a\nContent: b\n", "```json\n[{", "{\n", "Source 1: a\n\n", "[a-1] b\n", "(1) ",
		"[a](https://b.example)\nwords that are long enough\n", "[a](https://b",
		"[1] a\n```\n", "file: a\n\nSource 1:\nb\n\n", "{\"reference_id\":\"1\",\"content\":\"a\"}\n", "ID: 1\nTitle: a\n", "a.pdf: b\n",
		"---A---\nid|text\n1|a\nb\n", "a: b\n\n", "Context:\n- words that are long enough (from a)\n", "Which?\n[1] words that are long\n",
	} {
		start := time.Now()
		passage.ReadPrompt(strings.Repeat(unit, (1<<18)/len(unit))+"\nQuestion:", false)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
	}
}
