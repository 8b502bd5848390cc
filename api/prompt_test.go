package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// Documents, and sources of stored answers by their address, become the XML block of a prompt.
func TestPrompt(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	res := n.do(t, "POST", "/v1/prompt", `{"documents":[{"id":"a","title":"Tide & moon","text":"Twice a day."}],"sources":["https://heron.example/"]}`)
	for _, want := range []string{
		`<sources><result file_id='a' filename='Tide &amp; moon'><content>Twice a day.</content></result><result file_id=`,
		`url='https://heron.example/'>`,
	} {
		if res.StatusCode != 200 || !strings.Contains(res.body, want) {
			t.Errorf("%d %s", res.StatusCode, res.body)
		}
	}
	for body, status := range map[string]int{
		`{"sources":[""]}`: 400, `{"sources":["https://"]}`: 404,
		`{"documents":["a"],"source":["b"]}`: 400, `{"documents":["a"]} {}`: 400,
		`{}`: 400, `[]`: 400, `{"documents":7}`: 400, `{"sources":["https://nobody.example/"]}`: 404, `{"sources":["nobody"]}`: 404,
	} {
		if res := n.do(t, "POST", "/v1/prompt", body); res.StatusCode != status {
			t.Errorf("%s: %d %s", body, res.StatusCode, res.body)
		}
	}
}

// Sources of different answers that these call the same have ids of their own in one prompt; a source that is asked for
// twice, by its address and by its key, is there once.
func TestPromptIDs(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	n.put(t, call("ans_2", herons("https://egret.example/")))
	res := n.do(t, "POST", "/v1/prompt",
		`{"sources":["https://heron.example/","https://egret.example/","web:https://heron.example/"]}`)
	var got struct{ Prompt string }
	if err := json.Unmarshal([]byte(res.body), &got); err != nil || strings.Count(got.Prompt, "<result ") != 2 {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	ids := regexp.MustCompile(`file_id='([^']*)'`).FindAllStringSubmatch(got.Prompt, -1)
	if ids[0][1] == ids[1][1] {
		t.Errorf("two sources have the id %s: %s", ids[0][1], got.Prompt)
	}
	if res := n.do(t, "POST", "/v1/prompt", `{"document":["a"]}`); !strings.Contains(res.body, `\"document\"`) {
		t.Errorf("a misspelt member: %d %s", res.StatusCode, res.body)
	}
}
