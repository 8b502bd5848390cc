package gateway_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

// toolRequest is the second call of an agent's loop, with what its tool returned.
const toolRequest = `{"model":"gpt-test","messages":[{"role":"user","content":"How?"},
	{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"q\":\"nests\"}"}}]},
	{"role":"tool","tool_call_id":"c1","content":"[{\"title\":\"Nests\",\"url\":\"https://heron.example/nests\",\"text\":\"Herons nest in tall alders.\"}]"}]}`

// TestResultsWithoutPrompts checks that what tools returned is read whatever is kept of prompts: if nothing is, the
// addresses, titles and hashes of its passages are kept, their words are not, and the run says so.
func TestResultsWithoutPrompts(t *testing.T) {
	const words = "Herons nest in tall alders."
	for keep, kept := range map[gateway.Prompts]bool{
		gateway.PromptsNone: false, gateway.PromptsLast: true, gateway.PromptsAll: true,
	} {
		t.Run(string(keep), func(t *testing.T) {
			w := newWorld(t, answerJSON(chatBody("In alders.")), &setup{options: gateway.Options{Prompts: keep}})
			res, _ := w.do(t, w.request(t, "POST", chat, strings.NewReader(toolRequest)))
			stored := w.stored(t, res.Header.Get("Ibid-Answer"))
			if len(stored.Results) != 1 || len(stored.Results[0].Sources) != 1 {
				t.Fatalf("%+v", stored.Results)
			}
			step := stored.Results[0]
			s := step.Sources[0]
			if step.Tool != "find" || s.Title != "Nests" || s.URL != "https://heron.example/nests" {
				t.Errorf("%+v", step)
			}
			if kept {
				if s.Content != words || len(step.Issues) > 0 {
					t.Errorf("content %q, issues %v", s.Content, step.Issues)
				}
				return
			}
			if s.Content != "" || s.Excerpt != "" || step.Inputs != nil ||
				s.Version != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(words))) {
				t.Errorf("%+v", step)
			}
			if len(step.Issues) != 1 || step.Issues[0].Code != "passages-not-kept" {
				t.Errorf("issues %v", step.Issues)
			}
			for _, a := range stored.Answer.Sources {
				if strings.Contains(fmt.Sprint(a), "alders") {
					t.Errorf("a source of the answer has the words: %+v", a)
				}
			}
		})
	}
}

// TestTraceparentGroups checks that calls with the same trace and no run of their own are one run, whose id is the
// trace's, and that a named run goes before it.
func TestTraceparentGroups(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("In alders.")), nil)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ask := func(parent, run string) string {
		r := w.request(t, "POST", chat, strings.NewReader(chatRequest))
		for name, value := range map[string]string{"Traceparent": parent, "Ibid-Run": run} {
			if value != "" {
				r.Header = r.Header.Clone()
				r.Header.Set(name, value)
			}
		}
		res, _ := w.do(t, r)
		return w.stored(t, res.Header.Get("Ibid-Answer")).Run
	}
	one, two := ask("00-"+trace+"-b7ad6b7169203331-01", ""), ask("00-"+trace+"-00f067aa0ba902b7-01", "")
	testenv.Equal(t, "the first call", trace, one)
	testenv.Equal(t, "the second call", trace, two)
	testenv.Equal(t, "a named run", "mine", ask("00-"+trace+"-00f067aa0ba902b7-01", "mine"))
	for _, none := range []string{"", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "00-" + trace[:30] + "-b7ad6b7169203331-01"} {
		if run := ask(none, ""); run == trace || run == "" {
			t.Errorf("%q: run %q", none, run)
		}
	}
}
