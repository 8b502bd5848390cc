package gateway_test

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/ibidhq/ibid/gateway"
)

// What is accepted as a step is one that the store takes: earlier steps only, each once.
func FuzzParseStep(f *testing.F) {
	for _, s := range []string{"3", `3;tool="summarize";after="1,2"`, `3;after=""`, `3;tool="a\"b\\"`, `3; tool="x`, `9999999999999999999999`, ";"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		step, err := gateway.ParseStep(s)
		if err != nil {
			if step.Number != 0 || step.Tool != "" || step.After != nil {
				t.Errorf("%q: an error and %+v", s, step)
			}
			return
		}
		if step.Number < 1 || len(step.Tool) > gateway.MaxName {
			t.Errorf("%q: %+v", s, step)
		}
		seen := slices.Clone(step.After)
		slices.Sort(seen)
		if len(slices.Compact(seen)) != len(step.After) || len(seen) > 0 && (seen[0] < 1 || slices.Max(step.After) >= step.Number) {
			t.Errorf("%q: %+v", s, step)
		}
	})
}

// Whatever a request line and a header say, the gateway answers.
func FuzzServe(f *testing.F) {
	for _, path := range []string{"/", "/up", "/up/v1/%2F", "//up", "/u%70/x", "/up/../x", "/up?%zz", "/up/v1/chat/completions"} {
		f.Add(path, "run", "1")
	}
	w := newWorld(f, answerJSON("{}"), nil)
	f.Fuzz(func(t *testing.T, path, run, step string) {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := r.URL.Parse(path)
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		r.Header.Set(gateway.RunHeader, run)
		r.Header.Set(gateway.StepHeader, step)
		res := httptest.NewRecorder()
		w.gateway.ServeHTTP(res, r)
		if res.Code != 200 && res.Code != 400 && res.Code != 404 {
			t.Errorf("%q: %d %s", path, res.Code, res.Body)
		}
	})
}
