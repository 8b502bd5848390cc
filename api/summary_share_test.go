package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// The page gets the same summary in the process as GET /v1/runs/{id}/summary serves.
func TestSummaryInProcess(t *testing.T) {
	n := newNode(t, nil)
	run := &trail.Trail{
		Question: "Where do herons nest?", Answer: "Herons nest high up in tall trees. They never sing at all.",
		Steps: []trail.Step{{Number: 1, Tool: "search", Answer: "Herons nest high up in tall trees.", Sources: []trail.Source{
			{DocumentID: "book", Title: "The Heron Book", Content: "Herons nest high up in tall trees near water.", Used: true},
		}}},
	}
	testenv.Must(n.store.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "r1", Trail: run, Finish: true}))(t)
	testenv.OK(t, n.store.AddFeedback(t.Context(), store.DefaultTenant, &store.Feedback{Run: "r1", Step: 1, Source: "book", Relevance: new(1.0)}))
	s := testenv.Must(n.api.Summary(t.Context(), store.DefaultTenant, "r1"))(t)
	var got, want any
	raw := testenv.Must(json.Marshal(s))(t)
	testenv.OK(t, json.Unmarshal(raw, &got))
	n.read(t, "/v1/runs/r1/summary", &want)
	testenv.Equal(t, "", want, got)
	if !strings.Contains(string(raw), `"feedback"`) {
		t.Error("the ratings are missing")
	}
	for _, as := range []string{"json", "prov", "otlp"} {
		body := testenv.Must(n.api.ExportRun(t.Context(), store.DefaultTenant, "r1", as))(t)
		res := n.get(t, "/v1/runs/r1/summary?as="+as)
		if res.StatusCode != 200 || !json.Valid(body) || as != "otlp" && strings.TrimSpace(res.body) != strings.TrimSpace(string(body)) {
			t.Errorf("%q: %d %.300s\n%.300s", as, res.StatusCode, res.body, body)
		}
	}
	if _, err := n.api.ExportRun(t.Context(), store.DefaultTenant, "r1", "pdf"); err == nil {
		t.Error("an unknown form is accepted")
	}
	if _, err := n.api.Summary(t.Context(), "others", "r1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
}

// Concurrent requests share one summary, including those over HTTP.
func TestSummaryShared(t *testing.T) {
	n := newNode(t, nil)
	testenv.Must(n.store.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "r1", Trail: &trail.Trail{Answer: "Herons nest in trees."}, Finish: true}))(t)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			switch i % 3 {
			case 0:
				if s, err := n.api.Summary(t.Context(), store.DefaultTenant, "r1"); err != nil || s.Run.Answer == "" {
					t.Error(s, err)
				}
			case 1:
				if b, err := n.api.ExportRun(t.Context(), store.DefaultTenant, "r1", ""); err != nil || len(b) == 0 {
					t.Error(b, err)
				}
			default:
				if res := n.get(t, "/v1/runs/r1/summary"); res.StatusCode != 200 {
					t.Error(res.StatusCode)
				}
			}
		})
	}
	group.Wait()
}
