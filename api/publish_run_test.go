package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// An agent that calls its models itself records its run, and has a manifest of its final answer that anybody can verify.
func TestPublishRecorded(t *testing.T) {
	p := newPress(t, 3, loopback)
	p.post(t, 201, "/v1/runs/r1/steps", asJSON(t, map[string]any{
		"step_number": 1, "tool": "search", "question": "herons", "retrieved_documents": []map[string]any{
			{"document_id": "d1", "url": p.pages.set("/herons", eggs), "title": "Herons", "content": quote + "."},
		},
	}))
	p.post(t, 200, "/v1/runs/r1/finish", asJSON(t, map[string]any{"final_answer": quote + "."}))
	p.build(t, "r1", 1)
	var at where
	p.read(t, "/v1/runs/r1/manifest", &at)
	if !strings.HasSuffix(at.Path, "/cite") || at.State != "built" || p.get(t, at.Path).StatusCode != 200 {
		t.Fatalf("%+v: %d", at, p.get(t, at.Path).StatusCode)
	}
	r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"manifest": at.URL, "trust": []string{strings.TrimPrefix(p.URL, "http://")}}))
	if r.State != verify.Trusted || len(r.Claims) != 1 || r.Claims[0].Sources[0].Result.Status != verify.Verified {
		t.Errorf("%s: %v, %+v", r.State, r.Why(), r.Claims)
	}
	p.post(t, 200, "/v1/runs/r1/finish", `{"final_answer": "Nobody knows."}`)
	if p.read(t, "/v1/runs/r1/manifest", &at); !strings.HasSuffix(at.Path, "/cite.2") || at.State != "pending" {
		t.Errorf("with another answer: %+v", at)
	}
}

// Whether a run that was recorded is published, its header says, else the token; not what its calls have kept back.
func TestPublishRecordedWhich(t *testing.T) {
	const run, end = "/v1/runs", `{"final_answer": "Four."}`
	p := newPress(t, 3)
	low := newPress(t, 1)
	kept := call("ans_1", cites("https://heron.example/", quote))
	kept.Run = "kept"
	p.put(t, kept)
	p.post(t, 201, run, `{"run_id": "begun"}`)
	for _, test := range []struct {
		about, path, body, header string
		at                        *press
		published                 bool
	}{
		{"by its end", "/r1/finish", end, "", p, true},
		{"asked for", "/r2/finish", end, "yes", p, true},
		{"asked not to", "/r3/finish", end, "no", p, false},
		{"whole", "", `{"run_id": "r4", "final_answer": "Four."}`, "", p, true},
		{"whole, asked not to", "", `{"run_id": "r5", "final_answer": "Four."}`, "no", p, false},
		{"without an answer", "/begun/finish", "", "", p, false},
		{"of a call that was kept back", "/kept/finish", "", "", p, false},
		{"of a call that was kept back, asked for", "/kept/finish", "", "yes", p, true},
		{"where only headers are sent", "/r6/finish", end, "yes", low, false},
	} {
		var fields []string
		if test.header != "" {
			fields = []string{gateway.PublishHeader, test.header}
		}
		res := test.at.do(t, "POST", run+test.path, test.body, fields...)
		if res.StatusCode/100 != 2 {
			t.Fatalf("%s: %d %s", test.about, res.StatusCode, res.body)
		}
		due, err := test.at.store.DuePublications(t.Context(), 0, 1<<40)
		if err != nil || len(due) > 1 || (len(due) == 1) != test.published {
			t.Errorf("%s: %+v, %v", test.about, due, err)
		}
	}
	wantProblem(t, p.do(t, "POST", run+"/r7/finish", end, gateway.PublishHeader, "perhaps"), 400)
	p = newPress(t, 3)
	secret := p.token(t, store.DefaultTenant, store.ScopeWrite)
	wantProblem(t, p.do(t, "POST", run+"/r7/finish", end, gateway.PublishHeader, "yes", "Authorization", "Bearer "+secret), 403)
	if res := p.do(t, "POST", run+"/r7/finish", end, bearer(secret)...); res.StatusCode != 201 {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if due, err := p.store.DuePublications(t.Context(), 0, 1<<40); err != nil || len(due) != 0 {
		t.Errorf("by a token that does not publish: %s, %v", fmt.Sprint(due), err)
	}
}
