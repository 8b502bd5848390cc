package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// slowRun returns a run whose summary takes a while: each sentence of its answer resembles each passage of its steps.
func slowRun() *trail.Trail {
	t := &trail.Trail{Answer: strings.Repeat("Herons nest high up in the tall trees near the water. ", 60)}
	for i := range 12 {
		step := trail.Step{Number: i + 1, Tool: "search", Answer: t.Answer}
		for k := range 10 {
			step.Sources = append(step.Sources, trail.Source{
				DocumentID: strings.Repeat("d", 1+i*10+k), Content: t.Answer[:20*(k+1)] + strings.Repeat(" birds", i+1), Used: true,
			})
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

// A request whose reader leaves ends early, whatever it is doing.
func TestReaderLeaves(t *testing.T) {
	n := newNode(t, nil)
	testenv.Must(n.store.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "r1", Trail: slowRun(), Finish: true}))(t)
	slow := strings.Repeat("* > [a](b) *c* `d` <e> [1] &amp; **f\n", 10_000)
	for _, test := range []struct{ method, path, body string }{
		{"POST", "/v1/decode?as=html", slow},
		{"POST", "/v1/decode?as=latex", slow},
		{"POST", "/v1/decode?style=footnotes", slow},
		{"GET", "/v1/runs/r1/summary", ""},
		{"GET", "/v1/runs/r1/summary?as=prov", ""},
	} {
		serve := func(ctx context.Context) time.Duration {
			r := httptest.NewRequestWithContext(ctx, test.method, n.URL+test.path, strings.NewReader(test.body))
			r.Header.Set("Content-Type", "application/octet-stream")
			begun := time.Now()
			rec := httptest.NewRecorder()
			n.api.ServeHTTP(rec, r)
			if ctx.Err() == nil && rec.Code != http.StatusOK {
				t.Errorf("%s: %d %.300s", test.path, rec.Code, rec.Body)
			}
			return time.Since(begun)
		}
		whole := serve(t.Context())
		ended := whole
		for range 5 { // other programs may keep it from ending
			ctx, leave := context.WithTimeout(t.Context(), whole/5)
			ended = min(ended, serve(ctx))
			leave()
			if ended < whole/2 {
				break
			}
		}
		t.Logf("%s: %v of %v", test.path, ended, whole)
		if ended >= whole/2 {
			t.Errorf("%s: ended after %v of %v, though its reader left after %v", test.path, ended, whole, whole/5)
		}
	}
}
