package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/store"
)

// recorded is the response to a recording.
type recorded struct {
	ID      string
	Created bool
	Steps   []any
	Issues  []struct{ Code, Detail string }
}

// post posts body and returns the response, which must have the status.
func (n *node) post(tb testing.TB, status int, path, body string, fields ...string) recorded {
	tb.Helper()
	res := n.do(tb, "POST", path, body, fields...)
	var got recorded
	if err := json.Unmarshal([]byte(res.body), &got); err != nil || res.StatusCode != status {
		tb.Fatalf("POST %s: %d %s (%v), want %d", path, res.StatusCode, res.body, err, status)
	}
	return got
}

// Input that cannot be recorded is refused with a reason and changes nothing.
func TestRecordRefused(t *testing.T) {
	n := newNode(t, nil)
	n.post(t, 201, "/v1/runs/r/steps", `[{"step_number": 1, "id": "a"}, {"step_number": 2}]`)
	many := strings.Repeat(`{"question":"q"}`+"\n", store.MaxSteps-1)
	sources := strings.TrimSuffix(strings.Repeat(`{"document_id":"d"},`, store.MaxSources+1), ",")
	for _, test := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/v1/runs/r/steps", many, 413, "the limit is 10000"},
		{"/v1/runs/r/steps", `{"step_number": 3, "intermediate_answer": "` + strings.Repeat("x", store.MaxRecord) + `"}`, 413, "step 3: "},
		{"/v1/runs/r/steps", `{"step_number": 3, "source_attributions": [` + sources + `]}`, 413, "1001 sources"},
		{"/v1/runs/r/finish", `{"final_answer": "` + strings.Repeat("x", store.MaxRecord) + `"}`, 413, "the run itself"},
		{"/v1/runs", strings.Repeat(" ", 32<<20+1), 413, "33554432 bytes"},
		{"/v1/runs", `{"foo": 1, "bar": []}`, 400, "none of these members: bar, foo"},
		{"/v1/tokens", `{"name": "` + strings.Repeat("x", 70<<10) + `"}`, 413, ""},
	} {
		res := n.do(t, "POST", test.path, test.body)
		wantProblem(t, res, test.status)
		if !strings.Contains(res.body, test.says) {
			t.Errorf("%s %.60s lacks %q: %s", test.path, test.body, test.says, res.body)
		}
		if len(res.body) > 2000 {
			t.Errorf("%s: a problem of %d bytes", test.path, len(res.body))
		}
	}
	var run struct{ Steps []any }
	if n.read(t, "/v1/runs/r", &run); len(run.Steps) != 2 {
		t.Errorf("%d steps", len(run.Steps))
	}
	wantProblem(t, n.do(t, "POST", "/v1/runs", "x", "Content-Encoding", "lzma"), 415)
	packed := gzipped(t, []byte(`{"run_id": "packed"}`))
	if got := n.post(t, 201, "/v1/runs", packed, "Content-Encoding", "gzip"); got.ID != "packed" {
		t.Errorf("%+v", got)
	}
}

// A run with ten thousand steps is read and linked in seconds.
func TestRecordManySteps(t *testing.T) {
	n := newNode(t, nil)
	var b strings.Builder
	for i := range store.MaxSteps {
		fmt.Fprintf(&b, `{"step_number": %d, "question": "Question %d?", "intermediate_answer": "Lake %d has %d nests.", "source_attributions": [
			{"document_id": "d%d", "relevance_score": 0.%d, "excerpt": "At lake %d volunteers counted %d nests of herons."}]}`+"\n", i+1, i, i, i%50, i%700, 1+i%9, i, i%50)
	}
	lines := slices.Collect(strings.Lines(strings.ReplaceAll(b.String(), "\n\t", "")))
	for part := range slices.Chunk(lines, store.MaxSteps/4) {
		if got := n.post(t, 201, "/v1/runs/many/steps", strings.Join(part, "")); len(got.Steps) != len(part) {
			t.Fatalf("%d steps", len(got.Steps))
		}
	}
	n.post(t, 200, "/v1/runs/many/steps", strings.Join(lines[:100], ""))
	var answer strings.Builder
	for i := range 50 {
		fmt.Fprintf(&answer, "Lake %d has %d nests. ", i*37, i*37%50)
	}
	n.post(t, 200, "/v1/runs/many/finish", `{"final_answer": "`+answer.String()+`"}`)
	var summary struct {
		Display struct {
			Total int `json:"total_sources"`
		}
		Page struct {
			Sources int
			Next    *int `json:"next_step"`
		}
	}
	n.read(t, "/v1/runs/many/summary", &summary) // after 20 seconds it would be a 503
	if p := summary.Page; p.Sources != 700 || p.Next == nil || summary.Display.Total >= 700 {
		t.Errorf("not a page of 700 sources: %+v", summary)
	}
	if n.read(t, "/v1/runs/many/summary?all=true", &summary); summary.Display.Total != 700 {
		t.Errorf("%d sources", summary.Display.Total)
	}
	var run struct {
		Steps      []any
		NextCursor *string `json:"next_cursor"`
	}
	if n.read(t, "/v1/runs/many?limit=3", &run); len(run.Steps) != 3 || run.NextCursor == nil {
		t.Errorf("%+v", run)
	}
}

// TestSummaryPages follows a run's summary page by page: each step and each source is on one of them, and the answer with
// its sentences on the first.
func TestSummaryPages(t *testing.T) {
	n := newNode(t, nil)
	var steps []string
	for i := range 23 {
		steps = append(steps, fmt.Sprintf(`{"step_number": %d, "tool": "find", "search_results": [
			{"document_id": "d%d", "title": "Lake %d", "content": "At lake %d volunteers counted %d nests."}]}`, i+1, i, i, i, i+40))
	}
	n.post(t, 201, "/v1/runs", `{"run_id": "r", "final_answer": "At lake 21 volunteers counted 61 nests.", "reasoning_steps": [`+
		strings.Join(steps, ",")+`]}`)
	type summary struct {
		Answer    string `json:"final_answer"`
		Sentences []struct {
			Passages []struct {
				DocumentID string `json:"document_id"`
			}
		}
		Steps []struct {
			Number int `json:"step_number"`
		} `json:"reasoning_steps"`
		Sources struct {
			All []struct {
				DocumentID string `json:"document_id"`
			} `json:"all_sources"`
		} `json:"source_summary"`
		Page struct {
			From, To int
			Next     *int `json:"next_step"`
			Steps    int
		}
	}
	var numbers []int
	sources := map[string]bool{}
	from, pages := 0, 0
	for next := &from; next != nil; pages++ {
		var page summary
		n.read(t, fmt.Sprintf("/v1/runs/r/summary?limit=5&from_step=%d", *next), &page)
		for _, s := range page.Steps {
			numbers = append(numbers, s.Number)
		}
		for _, s := range page.Sources.All {
			sources[s.DocumentID] = true
		}
		first := pages == 0
		if (page.Answer != "") != first || (len(page.Sentences) == 1) != first || page.Page.Steps != 23 {
			t.Errorf("page %d: answer %q, %d sentences, %+v", pages, page.Answer, len(page.Sentences), page.Page)
		}
		if first && (len(page.Sentences[0].Passages) == 0 || page.Sentences[0].Passages[0].DocumentID != "d21" ||
			!sources["d21"]) {
			t.Errorf("the first page lacks the source of the answer: %+v", page)
		}
		next = page.Page.Next
	}
	if len(numbers) != 23 || !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != 23 || len(sources) != 23 || pages != 5 {
		t.Errorf("%d pages, steps %v, %d sources", pages, numbers, len(sources))
	}
}

func TestFeedback(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	var answer struct{ Citations []struct{ ID string } }
	n.read(t, "/v1/answers/ans_1", &answer)
	citation := answer.Citations[0].ID
	for _, body := range []string{
		`{"by": "ann", "answer_id": "ans_1", "citation": "` + citation + `", "verdict": "right"}`,
		`{"by": "ann", "answer_id": "ans_1", "citation": "` + citation + `", "verdict": "wrong-source", "note": "It is about owls."}`,
		`{"run": "run_ans_1", "step": 1, "source": "https://heron.example/", "relevance": 0.5}`,
	} {
		if res := n.do(t, "POST", "/v1/feedback", body); res.StatusCode != 201 {
			t.Errorf("%s: %d %s", body, res.StatusCode, res.body)
		}
	}
	var list struct {
		Feedback []map[string]any
	}
	body := n.get(t, "/v1/feedback?run=run_ans_1").body
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Feedback) != 3 {
		t.Fatalf("%v %s", err, body)
	}
	for i, f := range list.Feedback {
		body = strings.Replace(strings.Replace(body, f["id"].(string), fmt.Sprint("fb_", i), 1), f["at"].(string), "2026-11-21T10:00:00Z", 1)
	}
	goldenJSON(t, "feedback.json", body)
}
