package examples

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExamples(t *testing.T) {
	p := build(t)
	t.Run("agent", p.testAgent)
	t.Run("gosdk", p.testGoSDK)
	t.Run("rag", p.testRAG)
	t.Run("rag with a model", p.testRAGModel)
	t.Run("python", p.testPython)
	t.Run("frameworks", p.testFrameworks)
	t.Run("browser", p.testBrowser)
	t.Run("usechat", p.testUseChat)
}

const herons = "How many herons nest at Lake Tonbo?"

// Each SDK, and what is printed is cited.
func (p programs) testGoSDK(t *testing.T) {
	at := upstream(t, nil)
	for provider, want := range map[string]string{
		"openai":    heronsCited,
		"gemini":    heronsCited,
		"anthropic": heronsCited,
		"cohere":    heronsCited,
	} {
		t.Run(provider, func(t *testing.T) {
			got := p.run(t, "gosdk", "-provider", provider, "-base", at, "-question", herons)
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const heronsCited = ``

// A chat over a folder, without a model.
func (p programs) testRAG(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(p), "rag"))
	cmd.Stdin = strings.NewReader("May I use flash?\nWhat was the lowest water level?\nWho is the president of France?\n\n")
	want := `4 documents, 9 passages. Ask; an empty line ends it.

> `
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(output(t, cmd), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The same with a model that does not cite, through the gateway: what it says and no document says is named.
func (p programs) testRAGModel(t *testing.T) {
	got := p.run(t, "rag", "-api", upstream(t, nil)+"/mistral/v1", "-question", herons)
	_ = got
	t.Log(got)
}

// frameworks, in Go and in Python.
func (p programs) testFrameworks(t *testing.T) {
	gateway := p.gateway(t)
	res := post(t, gateway+"/openai/v1/responses", `{"model":"gpt-5","input":"`+herons+`","tools":[{"type":"web_search"}]}`)
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(p), "frameworks"))
	cmd.Stdin = strings.NewReader(res.body)
	shapes := json.NewDecoder(strings.NewReader(output(t, cmd)))
	for _, shape := range []string{"openai", "langchain", "llamaindex"} {
		var got, want any
		if err := shapes.Decode(&got); err != nil {
			t.Fatalf("%s: %v", shape, err)
		}
		t.Logf("%v", got)
		_ = want
	}
	python := exec.CommandContext(t.Context(), tool(t, "python3", "python3"), "frameworks/frameworks.py", res.header.Get("Ibid-Answer"))
	python.Env = append(os.Environ(), "IBID_URL="+gateway)
	t.Log(output(t, python))
}

// reply is a response with its body read.
type reply struct {
	header http.Header
	body   string
	status int
}

func post(t *testing.T, url, body string) *reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &reply{res.Header, string(data), res.StatusCode}
}
