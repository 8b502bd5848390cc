package trail_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// listed returns "id|title|content" of a step's sources.
func listed(s *trail.Step) (all []string) {
	for i := range s.Sources {
		f := &s.Sources[i]
		all = append(all, strings.Join([]string{f.DocumentID, f.Title, f.Content}, "|"))
	}
	return all
}

func readRun(t *testing.T, text string) *trail.Trail {
	t.Helper()
	return testenv.Must(trail.Read([]byte(text)))(t)
}

func TestToolResults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, step, want string }{
		{
			"documents", `"outputs": {"content": [{"type": "text", "text": "{\"id\": \"m\", \"text\": \"The mill grinds rye.\"}"}]}`,
			"m||The mill grinds rye.",
		},
		{"prose", `"outputs": "The mill grinds rye."`, "result of archive (step 2)"},
		{
			"another name", `"hits": [{"url": "https://m.example/", "body": "The mill grinds rye."}]`,
			"https://m.example/||The mill grinds rye.",
		},
		{"an error", `"outputs": "no such mill", "error": "404"`, ""},
		{"a handover", `"outputs": {"assistant": "miller"}`, ""},
	} {
		run := readRun(t, `{"run_id": "r", "reasoning_steps": [{"step_number": 2, "tool": "archive", `+test.step+`}]}`)
		if got := strings.Join(listed(&run.Steps[0]), "; "); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: sources %q, want %q", test.name, got, test.want)
		}
	}
}

// A conversation is read as the steps that it shows.
func TestReadMessages(t *testing.T) {
	t.Parallel()
	run := readRun(t, `{"run_id": "r", "messages": [{"role": "user", "content": "What does it grind?"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "function": {"name": "archive", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "[{\"id\": \"m\", \"text\": \"The mill grinds rye.\"}]"},
		{"role": "assistant", "content": "Rye."}]}`)
	if run.Question != "What does it grind?" || run.Answer != "Rye." || len(run.Steps) != 2 || run.Steps[0].Tool != "archive" {
		t.Fatalf("read %q %q %d steps", run.Question, run.Answer, len(run.Steps))
	}
	if diff := cmp.Diff([]string{"m||The mill grinds rye."}, listed(&run.Steps[0])); diff != "" {
		t.Error(diff)
	}
}

// What an earlier step answered is no source of a later one, although it was in its context.
func TestEarlierAnswersAreNoSources(t *testing.T) {
	t.Parallel()
	run := readRun(t, `{"reasoning_steps": [
		{"step_number": 1, "context_used": ["id:m The mill grinds rye."], "intermediate_answer": "It grinds rye, not wheat."},
		{"step_number": 2, "context_used": ["Step 1: It grinds rye, not wheat.", "Rye keeps for a year."], "intermediate_answer": "So it keeps."}]}`)
	if diff := cmp.Diff([]string{"context_1||Rye keeps for a year."}, listed(&run.Steps[1])); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryPage(t *testing.T) {
	t.Parallel()
	run := &trail.Trail{ID: "long", Answer: "Words of 7."}
	for n := 1; n <= 30; n++ {
		s := trail.Step{Number: n, Tool: "archive"}
		s.AddSources(trail.SourcesFromResults([]trail.Result{{DocumentID: fmt.Sprint("d", n), Content: fmt.Sprintf("Words of %d.", n)}})...)
		run.Steps = append(run.Steps, s)
	}
	links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
	all := run.Summary(nil)
	all.Links = links
	seen := map[string]bool{}
	next, pages := 0, 0
	for {
		part := all.Page(next, 10)
		b := testenv.Must(json.Marshal(part))(t)
		if !json.Valid(b) || !strings.Contains(string(b), `"page"`) {
			t.Fatalf("page %d is %.100s", pages, b)
		}
		for i := range part.Sources {
			seen[part.Sources[i].DocumentID] = true
		}
		pages++
		if next = part.NextStep(); next == 0 {
			break
		}
	}
	if pages != 3 || len(seen) != 30 {
		t.Errorf("%d pages with %d sources, want 3 with 30", pages, len(seen))
	}
}
