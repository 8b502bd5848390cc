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

// A bare list of messages, the items of a Responses call and documents under any name are read; what cannot be read is
// an issue.
func TestReadOtherShapes(t *testing.T) {
	t.Parallel()
	const document = `[{"url": "https://m.example/", "title": "M", "content": "The mill grinds rye."}]`
	for _, test := range []struct{ name, body, want string }{
		{"messages", `[{"role": "user", "content": "What?"}, {"role": "tool", "tool_call_id": "c", "content": "The mill grinds rye."}, {"role": "assistant", "content": "Rye."}]`, "The mill grinds rye."},
		{"items", `{"run_id": "r", "input": [{"role": "user", "content": "What?"}, {"type": "function_call_output", "call_id": "c", "output": "The mill grinds rye."}]}`, "The mill grinds rye."},
		{"another name", `{"run_id": "r", "hits": ` + document + `}`, "The mill grinds rye."},
		{"text", `{"run_id": "r", "results": "The mill grinds rye."}`, "The mill grinds rye."},
		{"numbers", `{"run_id": "r", "results": [1, 2]}`, "result-unread"},
		{"no messages", `{"run_id": "r", "messages": "What?"}`, "result-unread"},
	} {
		run := readRun(t, test.body)
		got := fmt.Sprint(run.Issues)
		if len(run.Steps) > 0 {
			got += strings.Join(listed(&run.Steps[0]), "; ")
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %q", test.name, got, test.want)
		}
	}
}

// What a sentence rests on is not known if a result could not be read; documents that the answer rests on are primary.
func TestUnreadIsNotNone(t *testing.T) {
	t.Parallel()
	run := readRun(t, `{"final_answer": "The mill grinds rye. It has closed on Mondays since the flood.", "reasoning_steps": [
		{"step_number": 1, "tool": "archive", "outputs": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]},
		{"step_number": 2, "tool": "search", "search_results": [
			{"document_id": "mill", "content": "The mill grinds rye.", "score": 0.1},
			{"document_id": "barn", "content": "Owls sleep in the old barn.", "score": 0.9}]}]}`)
	links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
	if s := links.Sentences[1]; s.NoSources() || s.Skipped != trail.SkipUnread {
		t.Errorf("skipped %q", s.Skipped)
	}
	if *links.Uncited != 0 {
		t.Errorf("uncited %v", *links.Uncited)
	}
	s := run.Summary(nil)
	s.SetLinks(links)
	if len(s.Primary) != 1 || s.Primary[0].DocumentID != "mill" {
		t.Errorf("primary sources %v", s.Primary)
	}
	if !strings.Contains(fmt.Sprint(s.Issues), "what archive returned has parts that cannot be read as a source: image") {
		t.Error(s.Issues)
	}
}
