package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// longRun returns a run of 200 steps with 500 sources, three in each step and some in several, and an answer of 20
// sentences.
func longRun() string {
	var steps, answer []string
	for i := range 200 {
		var sources []string
		for k := range 3 {
			d := (i*3 + k) % 500
			sources = append(sources, fmt.Sprintf(
				`{"document_id": "d%d", "title": "Report %d of the survey of lakes", "url": "https://lakes.example/report/%d", "score": 0.%d, "content": "%s"}`,
				d, d, d, 10+d%90, strings.Repeat(fmt.Sprintf("In %d the volunteers of station %d counted %d nests of herons at the northern shore. ", 1500+d, d, d*3+7), 5)))
		}
		steps = append(steps, fmt.Sprintf(`{"step_number": %d, "tool": "search_reports", "question": "What was counted at station %d?", "search_results": [%s]}`,
			i+1, i*3, strings.Join(sources, ",")))
		if i%10 == 0 {
			answer = append(answer, fmt.Sprintf("In %d the volunteers of station %d counted %d nests of herons.", 1500+i, i, i*3+7))
		}
	}
	return fmt.Sprintf(`{"run_id": "long", "original_question": "What was counted?", "final_answer": "%s", "reasoning_steps": [%s]}`,
		strings.Join(answer, " "), strings.Join(steps, ","))
}

// The summary of a long run is a page of at most 200 kB, with the answer and its sentences. BenchmarkLongRun measures
// its time.
func TestLongRun(t *testing.T) {
	n := newNode(t, nil)
	n.post(t, 201, "/v1/runs", longRun())
	if res := n.get(t, "/v1/runs/long/summary"); res.StatusCode != 200 || len(res.body) > 200_000 {
		t.Errorf("status %d, %d bytes", res.StatusCode, len(res.body))
	}
	var summary struct {
		Answer    string `json:"final_answer"`
		Sentences []struct{ Passages []any }
		Page      struct {
			Steps, Sources int
			Unused         int  `json:"unused_sources"`
			Next           *int `json:"next_step"`
		}
	}
	n.read(t, "/v1/runs/long/summary", &summary)
	if p := summary.Page; len(summary.Sentences) != 20 || summary.Answer == "" || p.Steps != 200 || p.Sources+p.Unused != 500 || p.Next == nil {
		t.Errorf("%d sentences, %+v", len(summary.Sentences), p)
	}
	for i, s := range summary.Sentences {
		if len(s.Passages) == 0 {
			t.Errorf("sentence %d rests on nothing", i)
		}
	}
}

func BenchmarkLongRun(b *testing.B) {
	n := newNode(b, nil)
	n.post(b, 201, "/v1/runs", longRun())
	size := 0
	for i := 0; b.Loop(); i++ {
		question := &trail.Trail{Question: fmt.Sprint("Question ", i)} // so that it is made anew
		testenv.Must(n.store.Record(b.Context(), store.DefaultTenant, &store.Recording{Run: "long", Trail: question}))(b)
		size = len(n.get(b, "/v1/runs/long/summary").body)
	}
	b.ReportMetric(float64(size), "B/summary")
}
