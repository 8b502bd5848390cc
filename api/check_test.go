package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
)

// report decodes a line of a response.
func report(t *testing.T, line string) (r support.ClaimVerdict) {
	t.Helper()
	testenv.OK(t, json.Unmarshal([]byte(line), &r))
	return r
}

// One claim gives one result, and evidence in a source has its place in the source's text.
func TestCheckOne(t *testing.T) {
	n := newNode(t, nil)
	for _, test := range []struct{ body, want, source string }{
		{`{"claim": "Herons eat fish.", "passages": ["Herons eat fish."]}`, "supported", ""},
		{"\ufeff{\n \"id\": 7, \"claim\": \"Herons eat 9 fish.\",\n \"passages\": [{\"page_content\": \"Herons eat 8 fish.\"}]\n}\n", "differs", ""},
		{`{"claim": "Herons eat fish.", "passages": []}`, "unchecked", ""},
		{`{"claim": "Herons eat fish.", "sources": ["Ferns grow.", {"id": "h", "text": "# Birds\n\nOwls hunt. Herons eat fish."}]}`, "supported", "h"},
		{`{"claim": "Herons eat fish.", "passages": ["Ferns."], "sources": [{"url": "https://h.example/", "text": "Herons eat fish."}]}`, "supported", "https://h.example/"},
	} {
		res := n.do(t, "POST", "/v1/check", test.body, "Content-Type", "application/x-www-form-urlencoded")
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %s", test.body, res.StatusCode, res.body)
		}
		got := report(t, res.body)
		if string(got.Label) != test.want || got.Line != 0 || got.Error != nil || got.Issues == nil {
			t.Errorf("%s: %s", test.body, res.body)
		}
		if test.source == "" {
			continue
		}
		e := got.Evidence[0]
		if e.Source == nil || *e.Source != test.source || !strings.HasSuffix(test.body, `"}]}`) || e.Text != "Herons eat fish." {
			t.Errorf("%s: %s", test.body, res.body)
		}
	}
	same := report(t, n.do(t, "POST", "/v1/check", `{"claim":"Herons eat fish.","passages":["Ferns."],"others":["Herons eat fish."]}`).body)
	if same.WrongSource == nil || same.WrongSource.Text != "Herons eat fish." {
		t.Errorf("%+v", same)
	}
}

// Lines give lines, in order; a bad one has an error.
func TestCheckLines(t *testing.T) {
	n := newNode(t, nil)
	body := `{"id": "a", "claim": "Herons eat fish.", "passages": ["Herons eat fish."], "column": 1}

{"id": {"b": 2}, "claim": "Herons eat fish."}
nothing
{"id": null, "claim": "Herons eat 9 fish.", "sources": [{"title": "T", "text": "Herons eat 8 fish."}]}`
	res := n.do(t, "POST", "/v1/check", body, "Content-Type", "application/jsonl")
	lines := strings.Split(strings.TrimSuffix(res.body, "\n"), "\n")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/jsonl" || len(lines) != 4 {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	var got []string
	for _, line := range lines {
		r := report(t, line)
		code := ""
		if r.Error != nil {
			code = r.Error.Code
		}
		got = append(got, fmt.Sprintf("%s %d %s %s", r.ID, r.Line, r.Label, code))
	}
	testenv.Equal(t, "lines", []string{
		`"a" 1 supported `, `{"b":2} 3 unchecked unreadable`, `null 4 unchecked unreadable`, `null 5 differs `,
	}, got)
	if r := report(t, lines[3]); *r.Evidence[0].Source != "T" {
		t.Errorf("%s", lines[3])
	}
}

func TestCheckRefuses(t *testing.T) {
	n := newNode(t, nil)
	for body, want := range map[string]string{
		"": "empty", " \n": "empty", "{}": "claim: missing", `{"claim": "x"}`: "passages: missing",
		`{"claim": 7, "passages": []}`: "claim: must not be a JSON number", `[{"claim":"x","passages":["x"]}]`: "a claim: must not be a JSON array",
		`{"claim": "x", "passages": [7]}`:           "passages: element 0 must not be a JSON number",
		`{"claim": "x", "sources": [{"id": "7"}]}`:  "sources: element 0 has no text",
		`{"claim": "x", "passages": [], "typo": 1}`: `unknown field "typo"`,
		`{"claim": "x"`: "not JSON", "nothing\nat all": "no line",
		`{"claim": "x", "passages": [` + strings.Repeat(`"",`, support.MaxGivenTexts) + `""]}`:      "more than 100000",
		"{\"claim\":\"x\",\"passages\":[]}\n{\"claim\":\"x\",\"passages\":[],\"id\":\"\xff\"}\n\n{": "",
	} {
		res := n.do(t, "POST", "/v1/check", body)
		if want == "" {
			if res.StatusCode != 200 {
				t.Errorf("%q: %d %s", body, res.StatusCode, res.body)
			}
			continue
		}
		wantProblem(t, res, 400)
		if !strings.Contains(res.body, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%.80q: %s, want %s", body, res.body, want)
		}
	}
	line := `{"claim":"x","passages":[]}` + "\n"
	if res := n.do(t, "POST", "/v1/check", strings.Repeat(line, 10_000)); res.StatusCode != http.StatusOK {
		t.Errorf("%d %.200s", res.StatusCode, res.body)
	}
	wantProblem(t, n.do(t, "POST", "/v1/check", strings.Repeat(line, 10_001)), 413)
	wantProblem(t, n.do(t, "POST", "/v1/check", strings.Repeat(" ", 16<<20+1)), 413)
	wantProblem(t, n.do(t, "POST", "/v1/check?as=json", line), 400)
	wantProblem(t, n.do(t, "POST", "/v1/check", line, "Content-Encoding", "lzw"), 415)
}
