// Package mcp has the official MCP clients call the tools of ibid: the SDKs for Python and JavaScript, over stdio and
// over HTTP.
package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// call is a call of a tool, and what must come of it.
type call struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`

	says string // in the text of the result, or in the error
	ends ending
}

type ending int

const (
	succeeds ending = iota
	refused         // by the tool, in a result
	fails           // as an error of the protocol
)

// came is what came of a call.
type came struct {
	Texts      []string
	Structured map[string]any
	Refused    bool
	Failure    string
}

// clients are the programs that make calls; each is followed by a server's URL or command.
func clients(t *testing.T) map[string][]string {
	testenv.NodeModules(t, "interop/mcp")
	node, python := testenv.Tool(t, "node"), testenv.Python(t)
	return map[string][]string{
		"JavaScript SDK 1": {node, "client.mjs", "1"},
		"JavaScript SDK 2": {node, "client.mjs", "2"},
		"Python SDK":       {python, "client.py", "auto"},
		"Python SDK, old":  {python, "client.py", "legacy"},
	}
}

func calls(ids []string) []call {
	source := map[string]any{"title": "Herons", "text": "Herons eat fish and frogs."}
	return []call{
		{"check", map[string]any{"claim": "Herons eat fish.", "passages": []any{source}}, "supported", succeeds},
		{"check", map[string]any{"claim": 7, "passages": []any{source}}, "claim: must be a string", refused},
		{"check", map[string]any{"claim": "x", "passages": []any{"a", 5}}, "passages: element 1", refused},
		{"attribute", map[string]any{"answer": "Herons eat fish.", "sources": []any{source}}, "[1]", succeeds},
		{"attribute", map[string]any{"answer": "Herons eat fish.", "sources": "herons"}, "sources", refused},
		{"cite", map[string]any{"response": `{"choices":[{"message":{"role":"assistant","content":"Herons eat fish [1]."}}]}`, "documents": []any{source}}, "Herons", succeeds},
		{"cite", map[string]any{"response": ""}, "response", refused},
		{"verify", map[string]any{"manifest": map[string]any{}, "offline": true}, "hint", refused},
		{"find_runs", map[string]any{"limit": 1}, "repeat the call with cursor", succeeds},
		{"find_runs", map[string]any{"cursor": "no"}, "cursor", refused},
		{"run_sources", map[string]any{"run": ids[0]}, "Herons", succeeds},
		{"run_sources", map[string]any{"run": "none"}, "find_runs", refused},
		{"find_answers", map[string]any{}, "answer", succeeds},
		{"find_answers", map[string]any{"limit": 1000}, "limit", refused},
		{"no_such_tool", map[string]any{}, "no_such_tool", fails},
	}
}

func TestClients(t *testing.T) {
	all := clients(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "ibid")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/ibid")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := servertest.Start(t, &servertest.Setup{Providers: []string{"openai"}})
	ids := []string{"heron-1", "heron-2"}
	for _, id := range ids {
		run := fmt.Sprintf(`{"run_id": %q, "original_question": "What do herons eat?", "final_answer": "Herons eat fish.",
			"reasoning_steps": [{"step_number": 1, "tool": "search", "search_results": [{"title": "Herons", "content": "Herons eat fish and frogs."}]}]}`, id)
		res := testenv.Must(http.Post(w.URL+"/v1/runs", "application/json", strings.NewReader(run)))(t) //nolint:noctx // it ends with the server
		testenv.OK(t, res.Body.Close())
		if res.StatusCode != http.StatusCreated {
			t.Fatal(res.Status)
		}
	}
	servers := map[string][]string{
		"stdio": {program, "mcp"}, // without a database, so without what is recorded
		"HTTP":  {w.URL + "/mcp"},
	}
	for client, command := range all {
		for way, server := range servers {
			t.Run(client+"/"+way, func(t *testing.T) {
				t.Parallel()
				var list []call
				for _, c := range calls(ids) {
					if way == "HTTP" || !strings.Contains(c.Tool, "find_") && !strings.HasPrefix(c.Tool, "run_") {
						list = append(list, c)
					}
				}
				cmd := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], server...)...)
				cmd.Stdin = bytes.NewReader(testenv.Must(json.Marshal(list))(t))
				var log strings.Builder
				cmd.Stderr = &log
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, &log)
				}
				var got struct {
					Name    string
					Tools   []json.RawMessage
					Results []came
				}
				testenv.OK(t, json.Unmarshal(out, &got))
				if got.Name != "ibid" || len(got.Results) != len(list) || len(got.Tools) != 4 && len(got.Tools) != 7 {
					t.Fatalf("%s: %d tools, %d results", got.Name, len(got.Tools), len(got.Results))
				}
				for i := range list {
					list[i].check(t, &got.Results[i])
				}
			})
		}
	}
}

// maxText is the most bytes of a text for a model.
const maxText = 2 << 10

// check checks what came of a call.
func (c *call) check(t *testing.T, got *came) {
	t.Helper()
	text := strings.Join(got.Texts, "\n") + got.Failure
	if (got.Failure != "") != (c.ends == fails) || got.Refused != (c.ends == refused) || !strings.Contains(text, c.says) ||
		(got.Structured != nil) != (c.ends == succeeds) {
		t.Errorf("%s %v: %+v, want %q", c.Tool, c.Args, got, c.says)
	}
	for _, one := range got.Texts {
		if len(one) > maxText {
			t.Errorf("%s: a text of %d bytes", c.Tool, len(one))
		}
	}
}
