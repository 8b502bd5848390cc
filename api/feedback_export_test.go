package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Feedback is exported with the retriever's own scores and ranks of the same sources, where these exist.
func TestFeedbackExport(t *testing.T) {
	n := newNode(t, nil)
	two := herons("https://heron.example/", "https://egret.example/")
	two.Citations[0].Refs = append(two.Citations[0].Refs, two.Citations[1].Refs...)
	score := 0.25
	two.Sources[1].Score, two.Sources[1].ScoreOrigin = &score, "provider"
	n.put(t, call("ans_1", two))
	n.post(t, 201, "/v1/runs", `{"run_id": "r"}`)
	n.post(t, 201, "/v1/runs/r/steps", `{"step_number": 1, "source_attributions": [
		{"document_id": "d1", "document_title": "One", "relevance_score": 0.75}, {"document_id": "d2", "document_title": "Two"}]}`)
	var answer struct{ Citations []struct{ ID string } }
	n.read(t, "/v1/answers/ans_1", &answer)
	for _, said := range []string{
		`{"by": "ann", "run": "r", "step": 1, "source": "d1", "relevance": 0.5}`,
		`{"by": "ann", "run": "r", "step": 1, "source": "d2", "relevance": 1, "note": "=1+1"}`,
		`{"by": "bob", "answer_id": "ans_1", "citation": "` + answer.Citations[0].ID + `", "verdict": "right", "note": "a, \"b\"\nc"}`,
		`{"answer_id": "ans_1", "verdict": "other"}`,
	} {
		if res := n.do(t, "POST", "/v1/feedback", said); res.StatusCode != 201 {
			t.Fatalf("%s: %s", said, res.body)
		}
	}

	res := n.get(t, "/v1/feedback?as=csv")
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || !strings.HasPrefix(got, "text/csv") {
		t.Fatalf("%d %s", res.StatusCode, got)
	}
	rows := testenv.Must(csv.NewReader(strings.NewReader(res.body)).ReadAll())(t)
	var got []string
	for _, row := range rows[1:] {
		got = append(got, fmt.Sprint(row[2:4], row[5:])) // without ids and times
	}
	want := []string{
		"[ ans_1] [run_ans_1       other  ]",
		"[bob ans_1] [run_ans_1 1 web:https://heron.example/ Herons of https://heron.example/    right  a, \"b\"\nc]",
		"[bob ans_1] [run_ans_1 1 web:https://egret.example/ Herons of https://egret.example/ 0.25 provider  right  a, \"b\"\nc]",
		"[ann ] [r 1 d2 Two     1 '=1+1]",
		"[ann ] [r 1 d1 One 0.75 retriever   0.5 ]",
	}
	testenv.Equal(t, fmt.Sprintf("%v\n", rows[0]), want, got)

	lines := strings.Split(strings.TrimSpace(n.get(t, "/v1/feedback?as=jsonl&run=r").body), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), lines)
	}
	var line map[string]any
	testenv.OK(t, json.Unmarshal([]byte(lines[1]), &line))
	for _, column := range rows[0] {
		if _, there := line[column]; !there {
			t.Errorf("JSON lines have no %s: %s", column, lines[1])
		}
	}
	if line["retriever_score"] != 0.75 || line["rank"] != nil || line["note"] != nil {
		t.Errorf("%v", line)
	}

	wantProblem(t, n.get(t, "/v1/feedback?as=xlsx"), 400)
	wantProblem(t, n.get(t, "/v1/feedback?as=csv&cursor=x"), 400)
	if got := n.do(t, "HEAD", "/v1/feedback?as=csv", ""); got.StatusCode != 200 || got.body != "" {
		t.Errorf("HEAD: %d %s", got.StatusCode, got.body)
	}
}

// All feedback is exported, however much there is.
func TestFeedbackExportPages(t *testing.T) {
	n := newNode(t, nil)
	n.post(t, 201, "/v1/runs", `{"run_id": "r"}`)
	const many = store.MaxLimit + 7
	half := 0.5
	for range many {
		testenv.OK(t, n.store.AddFeedback(t.Context(), store.DefaultTenant, &store.Feedback{Run: "r", Source: "d", Relevance: &half}))
	}
	if got := strings.Count(n.get(t, "/v1/feedback?as=jsonl").body, "\n"); got != many {
		t.Errorf("%d lines", got)
	}
	if got := strings.Count(n.get(t, "/v1/feedback?as=csv").body, "\n"); got != many+1 {
		t.Errorf("%d lines with the header", got)
	}
}

// No cell begins like a formula of a spreadsheet program.
func TestFormulas(t *testing.T) {
	for _, bad := range []string{"=", "+", "-", "@", "|", "%", "\t=", "\r=", "\n=", " =", "\u00a0=", "\ufeff=", "\"=", "＝", "＋", "－", "＠", "−"} {
		text := bad + `cmd|' /C calc'!A0`
		testenv.Equal(t, fmt.Sprintf("%q", bad), "'"+text, api.TextCell(&text))
	}
	for _, good := range []string{"", "words", "1-2", "é = 1", "'=1"} {
		testenv.Equal(t, good, good, api.TextCell(&good))
	}
}
