package trail_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// told describes a run in one line a step: its tool, the ids or addresses of its sources, and its answer.
func told(t *trail.Trail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", t.Question, t.Answer)
	for i := range t.Steps {
		s := &t.Steps[i]
		fmt.Fprintf(&b, "\n%d %s", s.Number, s.Tool)
		for k := range s.Sources {
			fmt.Fprintf(&b, " %s", s.Sources[k].Title)
		}
		if s.Answer != "" {
			fmt.Fprintf(&b, " = %s", s.Answer)
		}
	}
	return b.String()
}

// TestReadForeign reads runs as frameworks keep them. Every one is the same again after it was written.
func TestReadForeign(t *testing.T) {
	const (
		kiln    = `{"title":"Kiln","url":"https://velm.example/kiln","text":"The kiln was built in 1904."}`
		mill    = `{"title":"Mill","url":"https://velm.example/mill","text":"The mill burned down in 1911."}`
		search  = "When? In 1904, it is said.\n1 find Kiln\n2 look Mill"
		answers = "\n3  = In 1904, it is said."
		either  = "When? In 1904, it is said.\n1  Kiln Mill"
	)
	quote := func(s string) string { return string(testenv.Must(json.Marshal(s))(t)) }
	for name, test := range map[string]struct{ in, want string }{
		"ReAct": {
			`{"question":"When?","answer":"In 1904, it is said.","steps":[{"thought":"look","action":"find","action_input":"kiln","observation":` + quote("["+kiln+"]") + `},
				{"action":"look","action_input":{"q":1},"observation":[` + mill + `]},{"thought":"done","final_answer":"In 1904, it is said."}]}`,
			search + answers,
		},
		"LangChain": {
			`{"input":"When?","output":"In 1904, it is said.","intermediate_steps":[[{"tool":"find","tool_input":"kiln","log":"x"},` + quote(kiln) + `],[{"tool":"look","tool_input":{}},[` + mill + `]]]}`,
			search,
		},
		"LangChain in JavaScript": {
			`{"input":"When?","output":"In 1904, it is said.","intermediateSteps":[{"action":{"tool":"find","toolInput":"kiln","log":"x"},"observation":` + quote(kiln) + `},{"action":{"tool":"look","toolInput":{}},"observation":[` + mill + `]}]}`,
			search,
		},
		"Agno": {
			`{"query":"When?","content":"In 1904, it is said.","tools":[{"tool_call_id":"c1","tool_name":"find","tool_args":{"q":1},"result":` + quote("["+kiln+"]") + `},{"tool_name":"look","result":` + quote(mill) + `}]}`,
			search,
		},
		"AutoGen": {
			`{"run_id":"r","messages":[{"source":"user","type":"TextMessage","content":"When?"},{"source":"a","type":"ToolCallRequestEvent","content":[{"id":"c1","name":"find","arguments":"{}"},{"id":"c2","name":"look","arguments":"{}"}]},
				{"source":"a","type":"ToolCallExecutionEvent","content":[{"call_id":"c1","name":"find","content":` + quote(kiln) + `,"is_error":false},{"call_id":"c2","name":"look","content":` + quote(mill) + `}]},
				{"source":"a","type":"ToolCallSummaryMessage","content":"Kiln"},{"source":"a","type":"TextMessage","content":"In 1904, it is said."}]}`,
			search + answers,
		},
		"ADK": {
			`{"run_id":"r","events":[{"author":"user","content":{"role":"user","parts":[{"text":"When?"}]}},{"author":"a","content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"find","args":{}}},{"functionCall":{"id":"c2","name":"look","args":{}}}]}},
				{"author":"a","content":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"find","response":{"results":[` + kiln + `]}}},{"functionResponse":{"id":"c2","name":"look","response":{"results":[` + mill + `]}}}]}},
				{"author":"a","content":{"role":"model","parts":[{"text":"In 1904, it is said."}]}}]}`,
			search + answers,
		},
		"Claude's Agent SDK": {
			`{"run_id":"r","messages":[{"type":"user","message":{"role":"user","content":"When?"}},{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"find","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}]}},
				{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":` + quote(kiln) + `},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":` + quote(mill) + `}]}]}},
				{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"In 1904, it is said."}]}}]}`,
			search + answers,
		},
		"the AI SDK's messages": {
			`{"run_id":"r","messages":[{"role":"user","parts":[{"type":"text","text":"When?"}]},{"role":"assistant","parts":[{"type":"tool-find","toolCallId":"c1","state":"output-available","input":{},"output":[` + kiln + `]},
				{"type":"dynamic-tool","toolName":"look","toolCallId":"c2","state":"output-available","input":{},"output":` + mill + `},{"type":"text","text":"In 1904, it is said."}]}]}`,
			search + answers,
		},
		"LangGraph": {
			`{"run_id":"r","messages":[{"type":"human","content":"When?"},{"type":"ai","content":"","tool_calls":[{"name":"find","args":{},"id":"c1"}]},
				{"type":"tool","name":"find","tool_call_id":"c1","content":"Found one","artifact":[` + kiln + `]},
				{"type":"ai","content":"","tool_calls":[{"name":"look","args":{},"id":"c2"}]},{"type":"tool","name":"look","tool_call_id":"c2","content":` + quote(mill) + `},
				{"type":"ai","content":"In 1904, it is said."}]}`,
			search + answers,
		},
		"LangGraph, serialized": {
			`{"run_id":"r","messages":[{"type":"human","data":{"content":"When?"}},{"type":"ai","data":{"content":"","tool_calls":[{"name":"find","args":{},"id":"c1"},{"name":"look","args":{},"id":"c2"}]}},
				{"type":"tool","data":{"name":"find","tool_call_id":"c1","content":` + quote(kiln) + `}},{"type":"tool","data":{"tool_call_id":"c2","content":` + quote(mill) + `}},
				{"type":"ai","data":{"content":"In 1904, it is said."}}]}`,
			search + answers,
		},
		"pydantic-ai": {
			`{"run_id":"r","messages":[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"When?"}]},{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"find","args":"{}","tool_call_id":"c1"}]},
				{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"find","content":[` + kiln + `],"tool_call_id":"c1"}]},
				{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"look","content":[` + mill + `],"tool_call_id":"c2"}]},{"kind":"response","parts":[{"part_kind":"text","content":"In 1904, it is said."}]}]}`,
			search + answers,
		},
		"OpenAI Agents SDK": {
			`{"run_id":"r","items":[{"role":"user","content":"When?"},{"type":"function_call","call_id":"c1","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":` + quote(kiln) + `},
				{"type":"function_call","call_id":"c2","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":` + quote(mill) + `}]},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"In 1904, it is said."}]}]}`,
			search + answers,
		},
		"AI SDK": {
			`{"prompt":"When?","text":"In 1904, it is said.","steps":[{"toolResults":[{"toolCallId":"c1","toolName":"find","input":{},"output":[` + kiln + `]},{"toolName":"look","output":` + mill + `}],"text":""},
				{"toolResults":[],"text":"In 1904, it is said."}]}`,
			search + answers,
		},
		"DSPy": {
			`{"question":"When?","answer":"In 1904, it is said.","trajectory":{"thought_0":"t","tool_name_0":"find","tool_args_0":{},"observation_0":[` + kiln + `],"tool_name_1":"look","tool_args_1":{},"observation_1":` + quote(mill) + `}}`,
			search,
		},
		"smolagents": {
			`{"task":"When?","output":"In 1904, it is said.","steps":[{"step_number":1,"tool_calls":[{"id":"c1","function":{"name":"find","arguments":{}}}],"observations":"## Search Results\n\n[Kiln](https://velm.example/kiln)\nThe kiln was built in 1904."},
				{"step_number":2,"tool_calls":[{"id":"c2","function":{"name":"final_answer","arguments":{"answer":"In 1904, it is said."}}}],"observations":"In 1904, it is said."}]}`,
			"When? In 1904, it is said.\n1 find Kiln\n2 final_answer",
		},
		"LlamaIndex": {
			`{"query":"When?","response":"In 1904, it is said.","source_nodes":[{"node":` + kiln + `,"score":0.5},{"node":` + mill + `,"score":0.4}]}`, either,
		},
		"Haystack": {
			`{"query":"When?","answers":[{"data":"In 1904, it is said.","query":"When?","documents":[` + kiln + `,` + mill + `]}]}`, either,
		},
		"LangChain RAG": {
			`{"input":"When?","answer":"In 1904, it is said.","context":[` + kiln + `,` + mill + `]}`, either,
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := trail.Read([]byte(strings.Replace(test.in, "{", `{"run_id":"r",`, 1)))
			if strings.HasPrefix(test.in, `{"run_id"`) {
				run, err = trail.Read([]byte(test.in))
			}
			testenv.OK(t, err)
			if got := told(run); got != test.want {
				t.Errorf("%s\nwant %s\n%v", got, test.want, run.Issues)
			}
			again := &trail.Trail{}
			testenv.OK(t, json.Unmarshal(testenv.Must(json.Marshal(run))(t), again))
			if got := told(again); got != test.want {
				t.Errorf("written and read: %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestStepWithMembersOfARun checks that a step that has members of a run by another meaning is still a step after it was
// written: a store could not read it again.
func TestStepWithMembersOfARun(t *testing.T) {
	run := testenv.Must(trail.Read([]byte(`{"run_id":"r","steps":[{"step_number":1,"intermediate_answer":"a","final_answer":"b","steps":[1],"original_question":"c"}]}`)))(t)
	var s trail.Step
	testenv.OK(t, json.Unmarshal(testenv.Must(json.Marshal(run.Steps[0]))(t), &s))
	if s.Answer != "a" || string(s.Extra["final_answer"]) != `"b"` || string(s.Extra["steps"]) != "[1]" {
		t.Errorf("%+v", s)
	}
}
