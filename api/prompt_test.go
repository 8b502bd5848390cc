package api_test

import (
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
		`{}`: 400, `[]`: 400, `{"documents":7}`: 400, `{"sources":["https://nobody.example/"]}`: 404, `{"sources":["nobody"]}`: 404,
	} {
		if res := n.do(t, "POST", "/v1/prompt", body); res.StatusCode != status {
			t.Errorf("%s: %d %s", body, res.StatusCode, res.body)
		}
	}
}
