package interop

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// The API behaves as described, whatever schemathesis requests, whether it exists or not, and rejects what the
// description does not allow. The fixed seed makes runs repeatable. IBID_EXAMPLES limits the number of requests for
// each operation. Event streams are described here and tested elsewhere.
func TestOpenAPI(t *testing.T) {
	program := filepath.Join(filepath.Dir(testenv.Python(t)), "schemathesis")
	base, ids := serveDescribed(t)
	description, requests := describe(t, base, ids), 0
	for _, args := range [][]string{
		{"--mode", "positive"},
		{"--mode", "negative"},
	} {
		requests += ask(t, program, append(args, description, "--url", base)...)
	}
	if requests < 500 {
		t.Errorf("%d requests were made", requests)
	}
	t.Logf("%d requests", requests)
}

// ask makes schemathesis make requests, and returns their number.
func ask(t *testing.T, program string, args ...string) int {
	t.Helper()
	config := testenv.Must(filepath.Abs(filepath.Join("python", "schemathesis.toml")))(t)
	cmd := exec.CommandContext(t.Context(), program,
		append([]string{
			"--config-file", config, "run",
			"--include-path-regex", "^/v1", "--exclude-path", "/v1/runs/{id}/events", "--exclude-path", "/v1/chat/{id}/stream",
			"--phases", "examples,fuzzing", "--max-examples", cmp.Or(os.Getenv("IBID_EXAMPLES"), "20"), "--seed", "1",
			"--continue-on-failure", "--generation-database", "none", "--warnings", "off",
		}, args...)...)
	cmd.Dir = t.TempDir() // it leaves files behind
	out, err := cmd.CombinedOutput()
	said := regexp.MustCompile(`(?m)^ *(\d+) generated`).FindSubmatch(out)
	if said == nil {
		t.Fatalf("schemathesis: %v\n%s", err, out)
	}
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, out)
	}
	n, _ := strconv.Atoi(string(said[1])) // the pattern only matches digits
	return n
}

// describe returns a file with the description that a server serves, in which ids in paths and id filters are existing
// ids as often as any others.
func describe(t *testing.T, base string, ids map[string][]string) string {
	t.Helper()
	data, err := fetch(t.Context(), base+"/v1/openapi.json")
	testenv.OK(t, err)
	var document map[string]any
	testenv.OK(t, json.Unmarshal(data, &document))
	for path, methods := range document["paths"].(map[string]any) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), "/")
		for _, operation := range methods.(map[string]any) {
			parameters, _ := operation.(map[string]any)["parameters"].([]any)
			for _, p := range parameters {
				p := p.(map[string]any)
				known := ids[p["name"].(string)]
				if p["in"] == "path" {
					known = ids[kind]
				}
				if known != nil {
					p["schema"] = map[string]any{"anyOf": []any{map[string]any{"enum": known}, p["schema"]}}
				}
			}
		}
	}
	if data, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "openapi.json")
	testenv.OK(t, os.WriteFile(name, data, 0o666))
	return name
}

// serveDescribed starts a server that has at least one of everything. It returns the server's URL and the existing ids,
// by the first word of their paths and by the parameters that filter by them.
func serveDescribed(t *testing.T) (base string, ids map[string][]string) {
	t.Helper()
	w := servertest.Start(t, &servertest.Setup{
		Upstream: withKey(replay.New(nil)), Providers: []string{"openai", "gemini"},
	})
	post := func(path, body string) []byte {
		t.Helper()
		r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		testenv.OK(t, err)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %s %v %s", path, res.Status, err, answer)
		}
		return answer
	}
	var answers []string
	for _, provider := range []string{"openai", "gemini"} {
		var d ibid.Document
		data := post("/v1/chat?stream=no", `{"provider": "`+provider+`", "conversation": "c1", "run": "r1",
			"messages": [{"role": "user", "content": "When did the pond freeze?"}]}`)
		if err := json.Unmarshal(data, &d); err != nil || d.AnswerID == nil {
			t.Fatalf("%v: %s", err, data)
		}
		answers = append(answers, *d.AnswerID)
	}
	post("/v1/runs", `{"run_id": "r2", "original_question": "How high is Ararat?", "final_answer": "5,137 m",
		"reasoning_steps": [{"step_number": 1, "tool": "search", "intermediate_answer": "Ararat is 5,137 m high.",
		"source_attributions": [{"document_id": "d1", "excerpt": "Ararat, 5,137 m", "relevance_score": 0.9, "used": true}]}]}`)
	post("/v1/feedback", `{"by": "ann", "run": "r2", "step": 1, "source": "d1", "relevance": 0.5}`)
	post("/v1/verify", `{"url": "http://127.0.0.1:9/answer"}`)
	return w.URL, map[string][]string{
		"answers": answers, "answer": answers, "conversations": {"c1"}, "conversation": {"c1"},
		"runs": {"r1", "r2"}, "run": {"r1", "r2"},
	}
}
