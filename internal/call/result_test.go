package call_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/call"
)

// Only what the model did not know yet are results, in the formats of all providers.
func TestReadResults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, body, want string }{
		{"chat", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"a","arguments":"{\"q\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"old"},
			{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"b","arguments":"{\"q\":2}"}}]},{"role":"tool","tool_call_id":"2","content":"new"}]}`, `2 b {"q":2} "new"`},
		{
			"messages", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}]}]}]}`,
			`1 a {} [{"type":"text","text":"x"}]`,
		},
		{"items", `{"input":[{"role":"user","content":"?"},{"type":"function_call","call_id":"1","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}]}`, `1 a {} "x"`},
		{"contents", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"x":1}}}]}]}`, ` a  {"x":1}`},
		{"converse", `{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"a","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"json":{}}]}}]}]}`, `1 a {} [{"json":{}}]`},
		{"an error", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"x"}]}]}`, ""},
		{"answered", `{"messages":[{"role":"tool","tool_call_id":"1","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`, ""},
		{"damaged", `{"messages":[{"role":"tool","tool_call_id":"1","content":"x`, ""},
	} {
		var got []string
		for _, r := range call.ReadResults([]byte(test.body)) {
			got = append(got, strings.Join([]string{r.ID, r.Tool, string(r.Inputs), string(r.Content)}, " "))
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
