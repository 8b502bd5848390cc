package trail

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/passage"
)

// The members that other programs give a run's question and its answer, best first. Only texts count.
var (
	questionMembers = strings.Fields("query input task prompt user_query user_input user_msg")
	answerMembers   = strings.Fields("output response result final_output final_result text raw content")
)

// readNames reads the question and the answer under the names that other programs give them.
func (t *Trail) readNames() {
	for _, of := range []struct {
		text  *string
		names []string
	}{{&t.Question, questionMembers}, {&t.Answer, answerMembers}} {
		if *of.text != "" || of.text == &t.Answer && t.Final != nil {
			continue
		}
		for _, name := range of.names {
			raw := t.Extra[name]
			if len(raw) > len(`""`) && raw[0] == '"' && json.Unmarshal(raw, of.text) == nil {
				delete(t.Extra, name)
				break
			}
		}
	}
	if len(t.Extra) == 0 {
		t.Extra = nil
	}
}

// stepMembers are the members that other programs give the parts of a step, by this package's names, best first.
var stepMembers = []struct {
	name   string
	others []string
}{
	{"tool", strings.Fields("action tool_name toolName")},
	{"inputs", strings.Fields("action_input tool_input toolInput args arguments")},
	{"outputs", strings.Fields("observation observations tool_output tool_result")},
	{"reasoning_trace", []string{"thought"}},
	{"intermediate_answer", []string{"final_answer"}},
}

// foreignSteps returns the steps that an element of a run's list is: itself, its parts by this package's names. If it
// holds the results of several tools, each is a step before it.
func foreignSteps(members map[string]json.RawMessage) []map[string]json.RawMessage {
	called := present(members, resultLists) != ""
	steps := resultSteps(members)
	addOnlyCall(members)
	for _, m := range stepMembers {
		if present(members, []string{m.name}) != "" {
			continue
		}
		for _, other := range m.others {
			raw := members[other]
			if len(raw) == 0 || string(raw) == null || raw[0] != '"' && m.name != "inputs" && m.name != "outputs" {
				continue
			}
			members[m.name] = raw
			delete(members, other)
			break
		}
	}
	if text := members["text"]; called && members["intermediate_answer"] == nil && len(text) > len(`""`) {
		members["intermediate_answer"] = text // of the AI SDK
		delete(members, "text")
	}
	if len(steps) > 0 && present(members, stepNames) == "" {
		return steps
	}
	return append(steps, members)
}

// resultLists are the members that hold the results of several tools.
var resultLists = []string{"toolResults", "tool_results"}

// resultSteps returns the results of several tools, each as a step, and takes their list out of the element.
func resultSteps(members map[string]json.RawMessage) (steps []map[string]json.RawMessage) {
	for _, name := range resultLists {
		for _, raw := range elementsOf(members[name]) {
			result := readObject(raw)
			step := map[string]json.RawMessage{}
			for _, m := range []struct {
				to   string
				from []string
			}{
				{"tool", []string{"toolName", "tool_name", "name"}},
				{"id", []string{"toolCallId", "tool_call_id", "id"}},
				{"inputs", []string{"input", "args", "arguments"}},
				{"outputs", []string{"output", "result", "content"}},
			} {
				if from := present(result, m.from); from != "" {
					step[m.to] = result[from]
				}
			}
			if step["tool"] != nil && step["outputs"] != nil {
				steps = append(steps, step)
			}
		}
		if len(steps) > 0 {
			delete(members, name)
			return steps
		}
	}
	return nil
}

// addOnlyCall gives a step the name and the arguments of its only call of a tool.
func addOnlyCall(members map[string]json.RawMessage) {
	calls := elementsOf(members["tool_calls"])
	if len(calls) != 1 || members["tool"] != nil {
		return
	}
	call := readObject(calls[0])
	if of := readObject(call["function"]); of != nil {
		call = of
	}
	if name := call["name"]; len(name) > 0 && name[0] == '"' {
		members["tool"] = name
		if from := present(call, []string{"arguments", "args"}); from != "" && members["inputs"] == nil {
			members["inputs"] = call[from]
		}
	}
}

// otherSteps are members of a run that hold its steps in another form, and what reads them.
var otherSteps = []struct {
	name string
	read func(json.RawMessage) []map[string]json.RawMessage
}{
	{"intermediate_steps", readPairs},
	{"intermediateSteps", readPairs},
	{"tools", readExecutions},
	{"trajectory", readTrajectory},
}

// takeOtherSteps takes the steps of a run from the members of other programs. They are read like its own.
func (t *Trail) takeOtherSteps() (steps []json.RawMessage) {
	for _, other := range otherSteps {
		list := other.read(t.Extra[other.name])
		if len(list) == 0 {
			continue
		}
		for _, members := range list {
			raw, err := json.Marshal(members)
			if err != nil {
				return nil
			}
			steps = append(steps, raw)
		}
		delete(t.Extra, other.name)
		t.addIssue(issueRead, fmt.Sprintf("%s: it is read as %d steps", other.name, len(steps)))
		return steps
	}
	return nil
}

// readExecutions reads Agno's list of tools that were called, each with what it returned.
func readExecutions(raw json.RawMessage) (list []map[string]json.RawMessage) {
	for _, element := range elementsOf(raw) {
		of := readObject(element)
		if of["tool_name"] == nil || of["result"] == nil {
			continue
		}
		step := map[string]json.RawMessage{"tool": of["tool_name"], "outputs": of["result"]}
		for to, from := range map[string]string{"inputs": "tool_args", "id": "tool_call_id"} {
			if v := of[from]; v != nil {
				step[to] = v
			}
		}
		list = append(list, step)
	}
	return list
}

// readPairs reads LangChain's list of pairs: an action, and what it returned. In JavaScript they are objects.
func readPairs(raw json.RawMessage) (list []map[string]json.RawMessage) {
	for _, pair := range elementsOf(raw) {
		parts := elementsOf(pair)
		if of := readObject(pair); of["action"] != nil && of["observation"] != nil {
			parts = []json.RawMessage{of["action"], of["observation"]}
		}
		if len(parts) != 2 {
			return nil
		}
		action := readObject(parts[0])
		if action == nil {
			return nil
		}
		step := map[string]json.RawMessage{"outputs": parts[1]}
		for to, from := range map[string][]string{
			"tool": {"tool"}, "inputs": {"tool_input", "toolInput"}, "id": {"tool_call_id", "toolCallId"},
		} {
			if name := present(action, from); name != "" {
				step[to] = action[name]
			}
		}
		list = append(list, step)
	}
	return list
}

// readTrajectory reads DSPy's object, whose members have the numbers of steps: tool_name_0, tool_args_0, observation_0.
func readTrajectory(raw json.RawMessage) (list []map[string]json.RawMessage) {
	members := readObject(raw)
	for i := range len(members) {
		tool := members[fmt.Sprintf("tool_name_%d", i)]
		if tool == nil || string(tool) == `"finish"` { // which only ends it
			break
		}
		step := map[string]json.RawMessage{"tool": tool}
		for to, from := range map[string]string{
			"inputs": "tool_args", "outputs": "observation", "reasoning_trace": "thought",
		} {
			if v := members[fmt.Sprintf("%s_%d", from, i)]; v != nil {
				step[to] = v
			}
		}
		list = append(list, step)
	}
	return list
}

// isForeignRun reports whether an object is a run as another program keeps it, although it has members of a step.
func isForeignRun(members map[string]json.RawMessage) bool {
	if present(members, []string{
		"intermediate_steps", "intermediateSteps", "trajectory", "source_nodes",
	}) != "" {
		return true
	}
	list := elementsOf(members["answers"])
	return len(list) > 0 && readObject(list[0])["documents"] != nil
}

// readAnswers reads Haystack's list of answers, of which the first counts, with its documents.
func (t *Trail) readAnswers() {
	list := elementsOf(t.Extra["answers"])
	if len(list) == 0 {
		return
	}
	first := readObject(list[0])
	if from := present(first, []string{"data", "answer", "text"}); from != "" && t.Answer == "" {
		var text string
		if json.Unmarshal(first[from], &text) == nil {
			t.Answer = text
		}
	}
	if documents := first["documents"]; documents != nil &&
		t.readDocuments("answers", &passage.Result{Passages: passage.ReadJSON(documents).Passages}) {
		delete(t.Extra, "answers")
	}
}

// isMessage reports whether a JSON object is a message of LangChain or of pydantic-ai, which have no role.
func isMessage(m map[string]json.RawMessage) bool {
	kind := strings.Trim(string(m["type"]), `"`)
	return slices.Contains([]string{"human", "ai", "tool", "system"}, kind) &&
		present(m, []string{"content", "data"}) != "" ||
		slices.Contains([]string{`"request"`, `"response"`}, string(m["kind"])) && m["parts"] != nil
}
