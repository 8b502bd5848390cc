package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
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

// A summary is made once for each revision of a run, whatever changes it.
func TestSummaryKept(t *testing.T) {
	n := newNode(t, nil)
	ctx, tenant := t.Context(), store.DefaultTenant
	record := func(r *trail.Trail) {
		t.Helper()
		testenv.Must(n.store.Record(ctx, tenant, &store.Recording{Run: "r1", Trail: r}))(t)
	}
	record(&trail.Trail{Answer: "Herons nest in trees.", Steps: []trail.Step{{Number: 1, ID: "s1", Sources: []trail.Source{{
		DocumentID: "book", URL: "https://book.example/", Content: "Herons nest in trees.", Used: true,
	}}}}})
	last := testenv.Must(n.api.Summary(ctx, tenant, "r1"))(t)
	for _, test := range []struct {
		what   string
		change func()
	}{
		{"nothing", nil},
		{"a step", func() { record(&trail.Trail{Steps: []trail.Step{{Number: 2, ID: "s2", Answer: "They do."}}}) }},
		{"a step again", func() { record(&trail.Trail{Steps: []trail.Step{{Number: 1, ID: "s1", Answer: "Trees."}}}) }},
		{"the question", func() { record(&trail.Trail{Question: "Where do herons nest?"}) }},
		{"feedback", func() {
			testenv.OK(t, n.store.AddFeedback(ctx, tenant, &store.Feedback{Run: "r1", Step: 1, Source: "book", Relevance: new(1.0)}))
		}},
		{"an answer", func() {
			call := &store.Call{Tenant: tenant, AnswerID: "ans_1", Run: "r1", Answer: &ibid.Answer{Text: "Yes.", Complete: true}}
			call.Step.Number = 3
			testenv.OK(t, n.store.Put(ctx, []*store.Call{call}))
		}},
		{"a check", func() {
			pin := store.Pin{Run: "r1", AnswerID: "ans_1", URL: "https://book.example/", Citation: "c", ClaimID: "1", SourceID: "1"}
			testenv.OK(t, n.store.AddPins(ctx, tenant, []store.Pin{pin}))
			pins := testenv.Must(n.store.Pins(ctx, tenant, "https://book.example/"))(t)
			testenv.OK(t, n.store.SetStatuses(ctx, tenant, []store.PinStatus{{
				ID: pins[0].ID, Status: verify.Verified, Counts: verify.CountPass, CheckedAt: time.Now(),
			}}))
		}},
		{"an answer less", func() { _ = n.store.Delete(ctx, tenant, "ans_1") }},
	} {
		if test.change == nil {
			if again := testenv.Must(n.api.Summary(ctx, tenant, "r1"))(t); again != last {
				t.Error("it is made again")
			}
			continue
		}
		test.change()
		again := testenv.Must(n.api.Summary(ctx, tenant, "r1"))(t)
		if again == last {
			t.Errorf("%s: it is the old one", test.what)
		}
		last = again
	}
}
