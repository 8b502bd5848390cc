package trail

import (
	"encoding/json"
	"fmt"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/passage"
)

// documentMembers are members of a run that may hold what it retrieved, if the run lists no steps.
var documentMembers = []string{
	"search_results", "retrieved_documents", "results", "documents", "sources", "source_documents", "citations",
	"context", "contexts", "passages", "chunks", "references",
}

// readOther reads a run that lists no steps but a conversation as messages, as programs keep it for a model, or
// documents under another name. It reports what it read, since a name may mean something else.
func (t *Trail) readOther() {
	if raw := t.Extra["messages"]; len(raw) > 0 && raw[0] == '[' {
		t.readMessages(raw)
		if len(t.Steps) > 0 || t.Answer != "" {
			delete(t.Extra, "messages")
			t.addIssue(issueRead, fmt.Sprintf("messages: read as the question, %d steps and the answer", len(t.Steps)))
		} else {
			t.addIssue(issueUnread, "messages: it has neither results of tools nor an answer")
		}
	}
	for _, name := range documentMembers {
		raw := t.Extra[name]
		if len(t.Steps) > 0 || len(raw) == 0 || raw[0] != '[' && raw[0] != '{' {
			continue
		}
		s := Step{Number: 1, Question: t.Question}
		if s.addResult(&passage.Result{Passages: passage.ReadJSON(raw).Passages}); len(s.Sources) == 0 {
			t.addIssue(issueUnread, name+": no documents were found in it")
			continue
		}
		t.Steps = []Step{s}
		t.addIssue(issueRead, fmt.Sprintf("%s: read as the %d sources of a step", name, len(s.Sources)))
	}
	if len(t.Extra) == 0 {
		t.Extra = nil
	}
}

func (t *Trail) addIssue(code, detail string) {
	t.Issues = append(t.Issues, ibid.Issue{Code: code, Detail: detail})
}

// readMessages reads a conversation: what tools returned are steps, the user's last message is the question and the
// model's last one the answer.
func (t *Trail) readMessages(raw json.RawMessage) {
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
