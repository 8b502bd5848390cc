package store

import (
	"slices"

	"github.com/ibidhq/ibid"
)

// The roles of messages that mean something to a conversation.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Turn is one call of a conversation: what was said to the model since the call before it, and the answer.
type Turn struct {
	Asked []Message
	Call  *Call
}

// Turns returns the calls of a page of a conversation with what each of them says that the one before did not: see
// [Call.Asked].
func (c *Conversation) Turns() []Turn {
	turns := make([]Turn, 0, len(c.Calls))
	before := c.Before
	for _, call := range c.Calls {
		turns = append(turns, Turn{call.Asked(before), call})
		before = call
	}
	return turns
}

// Asked returns what a call says that the call before it in its conversation did not: a client sends all messages again
// each time, the instructions with every question, and after a tool's result once more the same question. Nil: there is
// no call before it.
func (c *Call) Asked(before *Call) []Message {
	messages := sinceAnswer(c.Prompt)
	if before == nil {
		return messages
	}
	for _, said := range sinceAnswer(before.Prompt) {
		isAgain := len(messages) > 0 && messages[0] == said
		if !isAgain || said.Role == RoleUser && before.Answer.Finish != ibid.FinishTool {
			break
		}
		messages = messages[1:]
	}
	return messages
}

// sinceAnswer returns the messages after the model's last one.
func sinceAnswer(prompt []Message) []Message {
	for i, m := range slices.Backward(prompt) {
		if m.Role == RoleAssistant {
			return prompt[i+1:]
		}
	}
	return prompt
}
