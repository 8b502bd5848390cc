package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

const (
	heronsClaims = `The colony at Lake Tonbo has 41 nests this year. [1]
It began with a single pair in 1968, after the mill had closed. [2]
When the water is low, the birds fish on the northern shore. [1][3]
`
	heronsSources = `[1] Heron census at Lake Tonbo
[2] The lake and its birds
[3] Water levels, station 7
`
	heronsPlain = "The colony at Lake Tonbo has 41 nests this year. " +
		"It began with a single pair in 1968, after the mill had closed. " +
		"When the water is low, the birds fish on the northern shore. Nobody knows why they avoid the island.\n"
	censusLink   = "([birds.example](https://birds.example/tonbo/census?utm_source=openai))"
	heronsOpenAI = "The colony at Lake Tonbo has 41 nests this year. " + censusLink +
		" It began with a single pair in 1968, after the mill had closed. " +
		"([lake.example](https://lake.example/history?utm_source=openai)) " +
		"When the water is low, the birds fish on the northern shore. " + censusLink +
		" ([water.example](https://water.example/levels?station=7&utm_source=openai)) " +
		"Nobody knows why they avoid the island.\n"
)

// Python with the standard library and with each SDK, whole and streamed, and traced agents.
func (p programs) testPython(t *testing.T) {
	gateway := p.gateway(t)
	env := append(offline(t), "IBID_URL="+gateway)
	run := func(t *testing.T, python string, args ...string) string {
		t.Helper()
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Env = env
		return output(t, cmd)
	}
	t.Run("plain", func(t *testing.T) {
		compare(t, run(t, testenv.Tool(t, "python3"), "python/plain.py", herons), heronsClaims+heronsSources)
	})
	for name, once := range map[string]string{
		"openai_sdk": heronsOpenAI + heronsClaims + heronsSources,
		// Its titles are host names.
		"google_sdk": heronsPlain + heronsClaims +
			"[1] birds.example\n[2] lake.example\n[3] water.example\n",
		"anthropic_sdk": heronsPlain + heronsClaims + heronsSources,
		"cohere_sdk": heronsPlain + heronsClaims +
			"[1] Heron census\n[2] The lake and its birds\n[3] Water levels, station 7\n",
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, run(t, testenv.Python(t), "python/"+name+".py"), once+once)
		})
	}
	t.Run("types", func(t *testing.T) {
		got := run(t, testenv.Python(t), "-m", "mypy", "--strict", "--cache-dir", t.TempDir(), "python/answer.py")
		compare(t, got, "Success: no issues found in 1 source file\n")
	})
	t.Run("langgraph_agent", func(t *testing.T) {
		compare(t, run(t, testenv.Python(t), "python/langgraph_agent.py"), heronsOpenAI)
		compare(t, steps(t, gateway, "heron-agent"), `heron-agent: How many herons nest at Lake Tonbo?
1 [] Notes: Heron census (retrieved, used); The lake and its birds (retrieved, used)
2 [1] gpt-5: Heron census (used); The lake and its birds (used)
`+heronsOpenAI)
	})
	t.Run("openai_agent", func(t *testing.T) {
		compare(t, run(t, testenv.Python(t), "python/openai_agent.py"), heronsOpenAI)
		compare(t, steps(t, gateway, "Agent workflow"), `birder: Call a tool: how many herons nest at Lake Tonbo?
1 [] gpt-5:
2 [1] count_nests: result of count_nests (step 2) (retrieved, used)
3 [2] gpt-5: result of count_nests (step 2) (used)
`+heronsOpenAI)
	})
}

// offline returns an environment with keys, in which contacting any other machine fails the test.
func offline(t *testing.T) []string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a program contacts the internet: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	env := slices.DeleteFunc(environment(), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToLower(v), "=")
		return strings.HasSuffix(name, "_proxy")
	})
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+proxy.URL, strings.ToLower(name)+"="+proxy.URL)
	}
	return append(env, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
}

// steps returns what the gateway has recorded of the only run listed under a name: agent and question, the steps with
// the documents that they retrieved or used, and the answer.
func steps(t *testing.T, gateway, name string) string {
	t.Helper()
	var list struct {
		Runs []struct{ ID, Agent string }
	}
	decode(t, get(t, gateway+"/v1/runs"), &list)
	var found []string
	for _, r := range list.Runs {
		if r.Agent == name {
			found = append(found, r.ID)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%q has the runs %q, want one, of %+v", name, found, list.Runs)
	}
	var run struct {
		Agent    string
		Question string `json:"original_question"`
		Answer   string `json:"final_answer"`
		Steps    []struct {
			Number  int `json:"step_number"`
			After   []int
			Tool    string
			Model   string
			Sources []struct {
				Title           string `json:"document_title"`
				Retrieved, Used bool
			} `json:"source_attributions"`
		} `json:"reasoning_steps"`
	}
	decode(t, get(t, gateway+"/v1/runs/"+found[0]+"/summary"), &run)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", run.Agent, run.Question)
	for _, s := range run.Steps {
		fmt.Fprintf(&b, "%d %v %s:", s.Number, s.After, s.Tool+s.Model)
		for i, d := range s.Sources {
			how := "used"
			if d.Retrieved {
				how = "retrieved, used"
				if !d.Used {
					how = "retrieved"
				}
			}
			fmt.Fprintf(&b, "%s %s (%s)", strings.Repeat(";", min(i, 1)), d.Title, how)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, run.Answer)
	return b.String()
}

func decode(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}
