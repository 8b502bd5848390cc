package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/store"
)

// recorded is what recording answers.
type recorded struct {
	ID      string
	Created bool
	Steps   []recordedStep
	Issues  []struct{ Code, Detail string }
}

type recordedStep struct {
	Number   *int `json:"step_number"`
	ID       *string
	Created  bool
	Replaced bool
}

// post posts body and returns what came back, which must have that status.
func (n *node) post(t *testing.T, status int, path, body string, fields ...string) recorded {
	t.Helper()
	res := n.do(t, "POST", path, body, fields...)
	var got recorded
	if err := json.Unmarshal([]byte(res.body), &got); err != nil || res.StatusCode != status {
		t.Fatalf("POST %s: %d %s (%v), want %d", path, res.StatusCode, res.body, err, status)
	}
	return got
}

// What an agent says of a run can be read again, whatever the order in which it comes.
func TestRecordRun(t *testing.T) {
	n := newNode(t, nil)
	run := n.post(t, 201, "/v1/runs", `{"agent": "birder", "original_question": "Do herons build?", "started_at": "2026-11-21T10:00:00Z", "strategy": "bm25@2", "mood": "calm"}`)
	if !strings.HasPrefix(run.ID, "run_") || !run.Created || run.Steps == nil || run.Issues == nil {
		t.Fatalf("%+v", run)
	}
	path := "/v1/runs/" + run.ID
	if got := n.post(t, 200, "/v1/runs", `{"run_id": "`+run.ID+`", "parent_run_id": "outer"}`); got.Created || got.ID != run.ID {
		t.Errorf("merged: %+v", got)
	}
	goldenJSON(t, "recorded.json", n.do(t, "POST", "/v1/runs/r1/steps", `{"step_number": 1}`).body)
	step := `{"step_number": 1, "id": "s1", "tool": "search", "question": "herons", "started_at": "2026-11-21T10:00:00Z", "execution_time": 0.5,
		"retrieved_documents": [{"document_id": "d1", "title": "Herons", "score": 0.92, "content": "Herons build nests of sticks.", "chunk_index": 0}]}`
	for _, test := range []struct {
		status int
		body   string
		want   string // number, id, created, replaced
	}{
		{201, step, "1 s1 true false"},
		{200, step, "1 s1 false false"},
		{200, strings.Replace(step, "0.92", "0.93", 1), "1 s1 false true"},
		{201, `[{"question": "which"}, {"step_number": 4, "question": "how"}]`, "5 - true false, 4 - true false"},
		{201, `{"id": "s9", "question": "nine"}` + "\n" + `{"step_number": 4, "question": "how?", "no_sources": true}` + "\n", "- s9 true false, 4 - false true"},
		{200, `{"id": "s9", "step_number": 9, "question": "nine"}`, "9 s9 false true"},
	} {
		got := n.post(t, test.status, path+"/steps", test.body)
		var steps []string
		for _, s := range got.Steps {
			number, id := "-", "-"
			if s.Number != nil {
				number = fmt.Sprint(*s.Number)
			}
			if s.ID != nil {
				id = *s.ID
			}
			steps = append(steps, fmt.Sprint(number, " ", id, " ", s.Created, " ", s.Replaced))
		}
		if diff := cmp.Diff(test.want, strings.Join(steps, ", ")); diff != "" || got.ID != run.ID {
			t.Errorf("%s (-want +got):\n%s", test.body, diff)
		}
	}
	n.post(t, 200, path+"/finish", `{"final_answer": "Herons build nests of sticks.", "finished_at": "2026-11-21T10:01:00Z"}`)
	n.post(t, 200, path+"/finish", "")
	body := n.get(t, path).body
	goldenJSON(t, "run-recorded.json", strings.ReplaceAll(body, run.ID, "run_1"))

	var summary struct {
		ID       string `json:"run_id"`
		Question string `json:"original_question"`
		Answer   string `json:"final_answer"`
		Mood     string
		Display  struct {
			Total int `json:"total_sources"`
		}
		Sentences []struct {
			Text     string
			Steps    []int
			Passages []struct {
				DocumentID string `json:"document_id"`
			}
		}
		Steps []struct {
			Number int `json:"step_number"`
		} `json:"reasoning_steps"`
	}
	n.read(t, path+"/summary", &summary)
	if summary.ID != run.ID || summary.Question != "Do herons build?" || summary.Answer != "Herons build nests of sticks." || summary.Mood != "calm" ||
		summary.Display.Total != 1 || len(summary.Steps) != 4 || len(summary.Sentences) != 1 {
		t.Errorf("%+v", summary)
	}
	for _, form := range []string{"prov", "otlp"} {
		var members map[string]json.RawMessage
		n.read(t, path+"/summary?as="+form, &members)
		if len(members) == 0 {
			t.Errorf("%s is empty", form)
		}
	}
}

// The parameters of a summary do what they say.
func TestSummaryParameters(t *testing.T) {
	n := newNode(t, nil)
	n.post(t, 201, "/v1/runs", `{"run_id": "r", "final_answer": "A.", "reasoning_steps": [{"step_number": 1, "confidence_score": 0.5, "source_attributions": [
		{"document_id": "a", "relevance_score": 0.95, "excerpt": "first words and more"}, {"document_id": "b", "relevance_score": 0.8, "excerpt": "second"},
		{"document_id": "c", "relevance_score": 0.75, "excerpt": "third"}, {"document_id": "d", "relevance_score": 0.2, "excerpt": "fourth"}]}]}`)
	for params, want := range map[string]string{
		"": "a 0.95 first words and more, b 0.8 second, c 0.75 third", "?threshold=0.9": "a 0.95 first words and more",
		"?top=1": "a 0.95 first words and more", "?threshold=0&top=10&excerpt=0": "a 0.95 , b 0.8 , c 0.75 , d 0.2 ",
		"?adjust=true&threshold=0.4": "a 0.48 first words and more", "?excerpt=12&top=1": "a 0.95 first words…",
	} {
		var summary struct {
			Display struct {
				Primary []struct {
					ID        string `json:"document_id"`
					Relevance float64
					Excerpt   *string
				} `json:"primary_sources"`
			}
		}
		n.read(t, "/v1/runs/r/summary"+params, &summary)
		var got []string
		for _, p := range summary.Display.Primary {
			excerpt := ""
			if p.Excerpt != nil {
				excerpt = *p.Excerpt
			}
			got = append(got, fmt.Sprint(p.ID, " ", p.Relevance, " ", excerpt))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", params, diff)
		}
	}
}

// What cannot be recorded is refused with a reason, and changes nothing.
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
		{"/v1/runs/r/steps", many, 413, "may have 10000"},
		{"/v1/runs/r/steps", `{"step_number": 3, "intermediate_answer": "` + strings.Repeat("x", store.MaxRecord) + `"}`, 413, "step 3: "},
		{"/v1/runs/r/steps", `{"step_number": 3, "source_attributions": [` + sources + `]}`, 413, "1001 sources"},
		{"/v1/runs/r/finish", `{"final_answer": "` + strings.Repeat("x", store.MaxRecord) + `"}`, 413, "the run itself"},
		{"/v1/runs", strings.Repeat(" ", 32<<20+1), 413, "33554432 bytes"},
	} {
		res := n.do(t, "POST", test.path, test.body)
		wantProblem(t, res, test.status)
		if !strings.Contains(res.body, test.says) {
			t.Errorf("%s %.60s does not say %q: %s", test.path, test.body, test.says, res.body)
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

// What is odd about a run is kept and told, at once and whenever the run is read.
func TestRecordOdd(t *testing.T) {
	n := newNode(t, nil)
	long := strings.Repeat("word ", 50_000)
	got := n.post(t, 201, "/v1/runs/odd/steps", `[
		{"step_number": 1, "after": [2], "confidence_score": 7, "source_attributions": [{"excerpt": ""}, {"excerpt": "`+long+`"}]},
		{"step_number": 2, "after": [1, 9], "execution_time": "soon", "started_at": "2026-11-21T12:00:00Z", "source_attributions": [{"document_id": "d", "relevance_score": "high"}]}]`)
	if len(got.Issues) == 0 {
		t.Errorf("%+v", got)
	}
	if got := n.post(t, 200, "/v1/runs", "{\"run_id\": \"odd\", \"agent\": \"\xff\"}"); len(got.Issues) != 1 || got.Issues[0].Code != "invalid-utf8" {
		t.Errorf("%+v", got)
	}
	n.post(t, 200, "/v1/runs/odd/finish", `{"final_answer": "Words.", "finished_at": "2026-11-21T11:00:00Z"}`)
	var summary struct {
		Issues []struct{ Code string }
		Steps  []struct {
			Sources []struct{ Excerpt *string } `json:"source_attributions"`
		} `json:"reasoning_steps"`
	}
	n.read(t, "/v1/runs/odd/summary", &summary)
	codes := map[string]bool{}
	for _, issue := range summary.Issues {
		codes[issue.Code] = true
	}
	for _, code := range []string{"cyclic-after", "dangling-after", "score-out-of-range", "wrong-type", "source-without-id", "step-after-finish", "invalid-utf8"} {
		if !codes[code] {
			t.Errorf("no issue %s: %v", code, summary.Issues)
		}
	}
	if len(*summary.Steps[0].Sources[1].Excerpt) != len(long) {
		t.Error("an excerpt was cut")
	}
}

// Runs of the same name are two with two tenants.
func TestRecordTenants(t *testing.T) {
	n := newNode(t, nil)
	own, other := "Bearer "+n.token(t, "acme", store.Scopes()...), "Bearer "+n.token(t, "evil", store.Scopes()...)
	n.post(t, 201, "/v1/runs", `{"run_id": "r", "original_question": "secret"}`, "Authorization", own)
	wantProblem(t, n.get(t, "/v1/runs/r/summary", "Authorization", other), 404)
	wantProblem(t, n.do(t, "POST", "/v1/feedback", `{"run": "r", "source": "d", "relevance": 1}`, "Authorization", other), 404)
	n.post(t, 201, "/v1/runs/r/steps", `{"step_number": 1}`, "Authorization", other)
	if body := n.get(t, "/v1/runs/r/summary", "Authorization", other).body; strings.Contains(body, "secret") {
		t.Error(body)
	}
	if body := n.get(t, "/v1/runs/r", "Authorization", own).body; strings.Contains(body, `"number":1`) {
		t.Error(body)
	}
}

// A run's captured calls and its recorded steps are one trail, and who listens hears of both.
func TestRecordWithCalls(t *testing.T) {
	n := newNode(t, nil)
	n.relay()
	talk(t, n)
	n.bus.Wake()
	l := n.listen(t, "/v1/runs/r1/events")
	l.wantAnswer(1, "ans_1")
	l.wantAnswer(2, "ans_2")
	n.post(t, 201, "/v1/runs/r1/steps", `{"step_number": 1, "question": "What do herons do?", "confidence_score": 0.5}`)
	if got, want := l.next(), `id: 3
event: step
data: {"step":1,"id":null,"tool":null,"sources":0,"cited":0,"error":false,"replaced":false}
`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n.post(t, 200, "/v1/runs/r1/finish", `{"answer_id": "ans_1"}`)
	if got, want := l.next(), "id: 4\nevent: finish\ndata: {\"answer_id\":\"ans_1\",\"answered\":true}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var summary struct {
		Answer string `json:"final_answer"`
		Steps  []struct {
			Question string
			Answer   string `json:"intermediate_answer"`
			Tool     string
		} `json:"reasoning_steps"`
		Sentences []struct {
			Steps    []int
			Passages []struct {
				DocumentID string `json:"document_id"`
				Evidence   string
			}
		}
	}
	n.read(t, "/v1/runs/r1/summary", &summary)
	if len(summary.Steps) != 2 || summary.Steps[0].Question != "What do herons do?" || summary.Steps[0].Tool != "search" || summary.Steps[0].Answer != summary.Answer {
		t.Errorf("%+v", summary)
	}
	body := n.get(t, "/v1/runs/r1/summary").body
	for text, want := range map[string]int{`"answer_id":"ans_1"`: 3, `"answer_id":"ans_2"`: 2, `"answer_id":null`: 0} { // the final one stands twice
		if got := strings.Count(body, text); got != want {
			t.Errorf("%d times %s: %s", got, text, body)
		}
	}
	for _, s := range summary.Sentences {
		if len(s.Passages) != 1 || s.Passages[0].DocumentID != "https://heron.example/" || s.Passages[0].Evidence != "herons do" {
			t.Errorf("a sentence lacks the answer's citation: %+v", s)
		}
	}
}

// A summary has the excerpts of passages, and their words if they are asked for. Who asks at the same time gets the same.
func TestSummaryContent(t *testing.T) {
	n := newNode(t, nil)
	words := strings.TrimSpace(strings.Repeat("many words ", 100))
	n.post(t, 201, "/v1/runs", `{"run_id": "r", "final_answer": "A.", "reasoning_steps": [{"step_number": 1, "nested_run": {"reasoning_steps": [{"retrieved_documents": [{"document_id": "e", "content": "`+words+`"}]}]},
		"retrieved_documents": [{"document_id": "d", "content": "`+words+`"}]}]}`)
	for params, want := range map[string]int{"": 0, "?content=true": 2, "?content=false": 0, "?content=true&excerpt=0": 0} {
		if got := strings.Count(n.get(t, "/v1/runs/r/summary"+params).body, words); got != want {
			t.Errorf("%q: %d times", params, got)
		}
	}
	var group sync.WaitGroup
	want := n.get(t, "/v1/runs/r/summary").body
	for range 8 {
		group.Go(func() {
			if res := n.get(t, "/v1/runs/r/summary"); res.StatusCode != 200 || res.body != want {
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
		})
	}
	group.Wait()
	wantProblem(t, n.get(t, "/v1/runs/none/summary"), 404)
}

// A run may have ten thousand steps, and is read and linked in seconds.
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
	}
	if n.read(t, "/v1/runs/many/summary", &summary); summary.Display.Total != 700 { // after 20 seconds it would be a 503
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
