package page_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// The front page names runs by their question. Single answers, each of which is a run, are not listed as runs.
func TestLatestRuns(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	var calls []*store.Call
	for i := range 8 {
		calls = append(calls, &store.Call{
			AnswerID: fmt.Sprintf("ans_%d", i), Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Run: fmt.Sprintf("run_%d", i), Status: 200,
			Started: time.Now().Add(time.Duration(i) * time.Second), Prompt: []store.Message{{Role: store.RoleUser, Text: fmt.Sprintf("Question %d?", i)}},
			Answer: &ibid.Answer{Provider: "openai", Complete: true, Text: "It is so."},
		})
	}
	w.put(t, calls...)
	var got []string
	for n := range sound(t, w.get(t, "/").body).Descendants() {
		if n.Data == "a" && len(attribute(n, "href")) > len("/ui/runs/") && attribute(n, "href")[:len("/ui/runs/")] == "/ui/runs/" {
			got = append(got, wordsOf(n))
		}
	}
	testenv.Equal(t, "", []string{"How high do grey herons nest, and how many eggs do they lay?"}, got)
}
