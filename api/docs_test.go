package api

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// sections returns the parts of docs/http.md by their headings.
func sections(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	heading := ""
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "##") {
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
		found[heading] += line
	}
	return found
}

// docs/http.md has every path with its methods, parameters and scope, and no others.
func TestDocs(t *testing.T) {
	page := sections(t)
	for _, rt := range (&API{}).routes() {
		name := cmp.Or(rt.Method, "GET") + " " + strings.TrimSuffix(rt.Pattern, "{$}")
		text, found := page[name]
		if !found {
			t.Errorf("docs/http.md has no section %q", name)
			continue
		}
		delete(page, name)
		for _, p := range rt.Params {
			if !strings.Contains(text, "`"+p.Name+"`") {
				t.Errorf("%s: the parameter %s is missing", name, p.Name)
			}
		}
		if rt.Scope != "" && !strings.Contains(text, "cope `"+rt.Scope+"`") {
			t.Errorf("%s: the scope %s is missing", name, rt.Scope)
		}
	}
	for _, elsewhere := range []string{"POST /v1/chat", "GET /v1/chat/{id}/stream", "DELETE /v1/chat/{id}/stream", "POST /mcp"} { // in other packages
		if _, found := page[elsewhere]; !found {
			t.Errorf("docs/http.md has no section %q", elsewhere)
		}
		delete(page, elsewhere)
	}
	for heading := range page {
		if strings.Contains(heading, " /") {
			t.Errorf("docs/http.md has %q, which is not there", heading)
		}
	}
}

// The shapes that docs/http.md shows are those that come.
func TestDocsShapes(t *testing.T) {
	page := sections(t)
	for section, file := range map[string]string{
		"GET /v1/answers": "answers.json", "GET /v1/answers/{id}": "answer.json", "GET /v1/conversations": "conversations.json",
		"GET /v1/conversations/{id}": "conversation.json", "GET /v1/sources": "sources.json", "GET /v1/runs": "runs.json",
		"GET /v1/runs/{id}": "run.json", "GET /v1/feedback": "feedback.json", "POST /v1/runs/{id}/steps": "recorded.json",
		"GET /healthz": "healthz.json", "GET /v1/sources/versions": "versions.json",
	} {
		_, example, _ := strings.Cut(page[section], "```json\n")
		example, _, _ = strings.Cut(example, "```")
		golden, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(shape(t, golden), shape(t, []byte(example))); diff != "" {
			t.Errorf("%s (-what comes +what is shown):\n%s", section, diff)
		}
	}
}

// shape returns the members of JSON, without those of an answer document, which docs/answer.md tells, and of a call that
// is not shown.
func shape(t *testing.T, data []byte) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	var members []string
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			_, document := v["text_sha256"]
			for name, value := range v {
				switch {
				case document && name == "call" && at == "":
					walk(".call", value)
				case document || name == "call" && at != "" || name == "version" || strings.HasSuffix(at, "numbering"):
				case name == "answer_id" && (strings.HasSuffix(at, "answer") || strings.HasSuffix(at, "answers")):
				default:
					members = append(members, at+"."+name)
					walk(at+"."+name, value)
				}
			}
		case []any:
			for _, value := range v {
				walk(at, value)
			}
		}
	}
	walk("", v)
	members = slices.DeleteFunc(members, func(m string) bool { return m == ".call" })
	slices.Sort(members)
	return slices.Compact(members)
}
