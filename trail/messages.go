package trail

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/passage"
)

// documentMembers are members of a run that may hold what it retrieved, if the run lists no steps.
var documentMembers = []string{
	"search_results", "retrieved_documents", "results", "documents", "sources", "source_documents", "citations",
	"context", "contexts", "passages", "chunks", "references", "source_nodes", "docs",
}

// readOther reads a run that lists no steps but a conversation as messages, as programs keep it for a model, or
// documents under another name. It reports what it read, since a name may mean something else, and what it could not.
func (t *Trail) readOther() {
	t.readConversation()
	t.readNames()
	t.readAnswers()
	for _, name := range documentMembers {
		raw := t.Extra[name]
		if len(t.Steps) > 0 || len(raw) == 0 || isEmptyValue(raw) {
			continue
		}
		r := passage.ReadJSON(raw)
		if raw[0] != '"' {
			r = &passage.Result{Passages: r.Passages}
		}
		if !t.readDocuments(name, r) {
			t.addIssue(issueUnread, name+": no documents were found in it")
		}
	}
	for _, name := range sortedNames(t.Extra) {
		if raw := t.Extra[name]; len(t.Steps) == 0 && name != invalidMembers && len(raw) > 0 &&
			(raw[0] == '[' || raw[0] == '{') && !slices.Contains(documentMembers, name) &&
			!slices.Contains(messageMembers, name) {
			t.readDocuments(name, &passage.Result{Passages: namedPassages(raw)})
		}
	}
	if len(t.Extra) == 0 {
		t.Extra = nil
	}
}

// isEmptyValue reports whether a JSON value is null, an empty list, an empty object or an empty text.
func isEmptyValue(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", "[]", "{}", `""`}, string(compact(raw)))
}

// readDocuments makes the documents of a member a step. It reports whether there were any.
func (t *Trail) readDocuments(name string, r *passage.Result) bool {
	s := Step{Number: 1, Question: t.Question}
	if s.addResult(r); len(s.Sources) == 0 {
		return false
	}
	t.Steps = []Step{s}
	t.addIssue(issueRead, fmt.Sprintf("%s: the documents in it are read as the sources of a step", name))
	return true
}

// messageMembers are members of a run that may hold a conversation.
var messageMembers = []string{
	"messages", "input", "output", "items", "new_items", "history", "chat_history", "conversation", "all_messages",
	"events",
}

// readConversation reads the messages of a run, or the input and the output of a model's last call.
func (t *Trail) readConversation() {
	name, raw := "messages", t.Extra["messages"]
	if len(raw) == 0 {
		at := slices.IndexFunc(messageMembers, func(name string) bool {
			return name != "output" && isConversation(t.Extra[name])
		})
		if at < 0 {
			return
		}
		name = messageMembers[at]
		raw = slices.Clone(t.Extra[name])
		if output := t.Extra["output"]; isConversation(output) {
			raw = append(append(raw[:len(raw)-1], ','), output[1:]...)
			delete(t.Extra, "output")
		}
	}
	if isEmptyValue(raw) {
		return
	}
	if raw[0] == '[' {
		t.readMessages(raw)
	}
	if len(t.Steps) == 0 && t.Answer == "" && t.Question == "" {
		t.addIssue(issueUnread, name+": no messages were found in it; "+
			`give a list of objects with "role" and "content"`)
		return
	}
	delete(t.Extra, name)
	t.addIssue(issueRead, fmt.Sprintf("%s: the conversation in it is read as %d steps", name, len(t.Steps)))
}

// isConversation reports whether a JSON value is a list of messages, of which none is a step.
func isConversation(raw json.RawMessage) bool {
	var list []map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(unwrapped(raw), &list) != nil || len(list) == 0 {
		return false
	}
	for _, m := range list {
		role, isRole := m["role"]
		kind := m["type"] // of an item without a role, such as a tool's output
		if (!isRole || len(role) == 0 || role[0] != '"') &&
			!strings.Contains(string(kind), "call") && !strings.Contains(string(kind), "function") &&
			!strings.Contains(string(kind), "reasoning") && !isMessage(m) {
			return false
		}
		if present(m, []string{"step_number", "intermediate_answer", "source_attributions"}) != "" {
			return false
		}
	}
	return true
}

func (t *Trail) addIssue(code, detail string) {
	t.Issues = append(t.Issues, ibid.Issue{Code: code, Detail: detail})
}

// readMessages reads a conversation: what tools returned are steps, the user's last message is the question and the
// model's last one the answer.
func (t *Trail) readMessages(raw json.RawMessage) {
	raw = unwrapped(raw)
	for _, r := range call.ReadMessages(raw) {
		s := Step{Number: len(t.Steps) + 1, ID: r.ID, Tool: r.Tool, Inputs: compact(r.Inputs)}
		s.AddResult(r.Content)
		t.Steps = append(t.Steps, s)
	}
	body, err := json.Marshal(map[string]json.RawMessage{"messages": raw})
	if err != nil {
		return
	}
	request, err := call.ReadRequest("", body)
	if err != nil {
		return
	}
	if last, ok := request.LastUser(); ok && t.Question == "" {
		t.Question = last.Text
	}
	if n := len(request.Messages); n > 0 && t.Answer == "" && request.Messages[n-1].Role == call.RoleAssistant {
		t.Answer = request.Messages[n-1].Text
		t.Steps = append(t.Steps, Step{Number: len(t.Steps) + 1, Answer: t.Answer})
	}
}

// unwrapped returns a list of messages without what programs put around each: Claude's Agent SDK {"type", "message"},
// Google's ADK {"author", "content": {"role", "parts"}}. AutoGen's, which have a source, become messages with roles.
func unwrapped(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	changed := false
	for _, element := range elementsOf(raw) {
		m := readObject(element)
		inner, content := readObject(m["message"]), readObject(m["content"])
		switch {
		case m["role"] != nil || m == nil:
			list = append(list, element)
			continue
		case inner["role"] != nil:
			list = append(list, m["message"])
		case content["parts"] != nil:
			list = append(list, m["content"])
		case m["source"] != nil && m["type"] != nil && m["content"] != nil:
			list = append(list, sourceMessages(m)...)
		default:
			list = append(list, element)
			continue
		}
		changed = true
	}
	if !changed {
		return raw
	}
	b, err := json.Marshal(list)
	if err != nil {
		return raw
	}
	return b
}

// sourceMessages returns a message of AutoGen as messages with roles.
func sourceMessages(m map[string]json.RawMessage) (list []json.RawMessage) {
	write := func(v any) {
		if b, err := json.Marshal(v); err == nil {
			list = append(list, b)
		}
	}
	parts := elementsOf(m["content"])
	switch kind := strings.Trim(string(m["type"]), `"`); {
	case kind == "ToolCallRequestEvent":
		write(map[string]any{"role": call.RoleAssistant, "tool_calls": parts})
	case kind == "ToolCallExecutionEvent":
		for _, raw := range parts {
			result := readObject(raw)
			if string(result["is_error"]) == "true" {
				continue
			}
			write(map[string]any{
				"role": call.RoleTool, "tool_call_id": result["call_id"], "name": result["name"],
				"content": result["content"],
			})
		}
	case m["content"][0] != '"' || strings.HasPrefix(kind, "ToolCall"): // a summary repeats what the tool returned
	case string(m["source"]) == `"user"`:
		write(map[string]any{"role": call.RoleUser, "content": m["content"]})
	default:
		write(map[string]any{"role": call.RoleAssistant, "content": m["content"]})
	}
	return list
}
