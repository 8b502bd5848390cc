package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

const givenRun = `{"run_id": "r9", "original_question": "How high is Ararat?", "final_answer": "Ararat is 5,137 m high.",
 "reasoning_steps": [{"step_number": 1, "tool": "search", "source_attributions": [
  {"document_id": "d1", "document_title": "Peaks", "url": "https://peaks.example/", "excerpt": "Ararat is 5,137 m high.", "relevance_score": 0.9, "used": true}]}]}`

// A run in the body has the summary that it has when it is recorded, and is not stored.
func TestTrail(t *testing.T) {
	n := newNode(t, nil)
	for _, query := range []string{"", "?as=prov", "?as=otlp", "?as=bibtex", "?as=markdown", "?as=html", "?as=latex", "?top=1&excerpt=3"} {
		given := n.do(t, "POST", "/v1/trail"+query, givenRun)
		if given.StatusCode != 200 {
			t.Fatalf("%s: %d %s", query, given.StatusCode, given.body)
		}
		if query == "" {
			wantProblem(t, n.do(t, "GET", "/v1/runs/r9", ""), 404)
			n.do(t, "POST", "/v1/runs", givenRun)
		}
		stored := n.do(t, "GET", "/v1/runs/r9/summary"+query, "")
		if query == "?as=prov" || query == "?as=otlp" { // they have the time at which it was recorded
			continue
		}
		testenv.Equal(t, query+" type", stored.Header.Get("Content-Type"), given.Header.Get("Content-Type"))
		if query == "" || strings.HasPrefix(query, "?top") {
			testenv.Equal(t, query, memberOf(t, stored.body, "display"), memberOf(t, given.body, "display"))
			testenv.Equal(t, query, memberOf(t, stored.body, "sentences"), memberOf(t, given.body, "sentences"))
			continue
		}
		testenv.Equal(t, query, stored.body, given.body)
	}
	if got := n.do(t, "POST", "/v1/trail?as=markdown", givenRun).body; !strings.HasPrefix(got, "Ararat is 5,137 m high.[1](https://peaks.example/") {
		t.Errorf("%s", got)
	}
	lines := "{\"step_number\":1,\"question\":\"a\"}\n{\"step_number\":2,\"question\":\"b\"}\n"
	if res := n.do(t, "POST", "/v1/trail", lines, "Content-Type", "application/jsonl"); !strings.Contains(res.body, `"step_2"`) {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

// memberOf returns a member of an object.
func memberOf(t *testing.T, object, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	testenv.OK(t, json.Unmarshal([]byte(object), &members))
	return string(members[name])
}

func TestTrailRefuses(t *testing.T) {
	n := newNode(t, nil)
	for body, status := range map[string]int{
		"": 400, "text": 400, "7": 400, `{"resourceSpans": []}`: 400, `{"resourceSpans": 7}`: 400,
		strings.Repeat(" ", 32<<20+1): 413,
	} {
		wantProblem(t, n.do(t, "POST", "/v1/trail", body), status)
	}
	wantProblem(t, n.do(t, "POST", "/v1/trail?as=markdown", `{"reasoning_steps": [{"step_number": 1}]}`), 422)
	wantProblem(t, n.do(t, "POST", "/v1/trail?strategy=none@1", givenRun), 400)
	wantProblem(t, n.do(t, "POST", "/v1/trail?as=docx", givenRun), 400)
}
