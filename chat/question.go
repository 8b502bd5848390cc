package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	calls "github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
)

// Question is a question for a provider.
type Question struct {
	Provider string    // its Upstream; empty for the first one
	Model    string    // empty for the provider's
	Messages []Message // oldest first; messages after the user's newest are not sent
	// To answer from; for a provider that accepts none they become a message before the newest.
	Documents    []ibid.Source
	Tools        []json.RawMessage // in the provider's own format; nil for the provider's default
	Citations    string            // fast, accurate or off; empty for the provider's default. Most have no choice
	Conversation string            // that it belongs to; may be empty
	Run          string            // that it belongs to; empty for one of its own
	Agent        string            // who asks; may be empty
	Step         string            // of the run, as in [gateway.StepHeader]; empty for the next one
	Publish      string            // as in [gateway.PublishHeader]; empty for the token's default
	Follows      string            // as in [gateway.FollowsHeader]; empty for the answer before
}

// Message is one message of a conversation.
type Message struct {
	Role string // system, user or assistant
	Text string
}

// body is a question as it is sent: by ibid's own clients, or as additional data of useChat.
type body struct {
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Messages     []bodyMessage     `json:"messages"`
	Documents    json.RawMessage   `json:"documents"`
	Tools        []json.RawMessage `json:"tools"`
	Citations    string            `json:"citations"`
	Conversation string            `json:"conversation"`
	Run          string            `json:"run"`
	Agent        string            `json:"agent"`
}

type bodyMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of text parts
	Text    *string         `json:"text"`    // as a conversation of ours has it
}

// readContent reads a message's content: a string, or a list of parts as in the providers' own APIs, all of which must
// be text.
func readContent(data json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(data, &parts) != nil {
		return "", errors.New("content is neither a string nor a list of parts")
	}
	var texts []string
	for i, p := range parts {
		if !strings.HasSuffix(p.Type, "text") { // each API has its own prefix
			return "", fmt.Errorf("part %d of a content is not text: %.80q", i, p.Type)
		}
		if p.Text == nil {
			return "", fmt.Errorf("part %d of a content has no text", i)
		}
		texts = append(texts, *p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// readQuestion reads the body of a request, and reports whether useChat sent it. The error is a problem.
func readQuestion(data []byte, h http.Header) (*Question, bool, error) {
	request, isUI, err := uimessage.ReadRequest(data)
	if err != nil {
		return nil, isUI, httpx.BadRequest(err.Error(), "see docs/chat.md for the format of a question")
	}
	var b body
	if isUI {
		b, err = readBeside(data)
	} else {
		err = readStrictly(data, &b)
	}
	if err != nil {
		return nil, isUI, err
	}
	q := &Question{
		Provider:     b.Provider,
		Model:        b.Model,
		Tools:        b.Tools,
		Citations:    b.Citations,
		Conversation: b.Conversation,
		Run:          b.Run,
		Agent:        b.Agent,
		Step:         h.Get(gateway.StepHeader),
		Publish:      h.Get(gateway.PublishHeader),
	}
	for name, value := range map[string]*string{
		gateway.ConversationHeader: &q.Conversation, gateway.RunHeader: &q.Run, gateway.AgentHeader: &q.Agent,
	} {
		if *value == "" {
			*value = h.Get(name)
		}
	}
	if isUI {
		q.takeMessages(request)
	} else if err := q.readMessages(b.Messages); err != nil {
		return nil, isUI, err
	}
	if raw := bytes.TrimSpace(b.Documents); len(raw) > 0 {
		if q.Documents, err = ibid.ReadDocuments(raw); err != nil {
			return nil, isUI, httpx.BadRequest(
				err.Error(), "documents are strings, flat objects, or objects of id and data")
		}
	}
	return q, isUI, nil
}

// readStrictly reads a body in our own format: a misspelt member must not be dropped silently.
func readStrictly(data []byte, b *body) error {
	const hint = "it has provider, model, messages (role, content), documents, " +
		"tools, citations, conversation, run and agent"
	var members struct {
		all  map[string]json.RawMessage
		Each []map[string]json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(data, &members.all) // errors are reported below
	_ = json.Unmarshal(data, &members)
	name, ok := unknown(members.all, bodyMembers)
	for i := 0; ok && i < len(members.Each); i++ {
		name, ok = unknown(members.Each[i], []string{"role", "content", "text"})
	}
	if !ok {
		return httpx.BadRequest("a question has no member "+strconv.Quote(name), hint)
	}
	if err := json.Unmarshal(data, b); err != nil {
		return httpx.BadRequest(unreadable(err), hint)
	}
	return nil
}

var bodyMembers = strings.Fields("provider model messages documents tools citations conversation run agent")

// unknown returns the first member that is not allowed; ok is true if there is none. Unlike encoding/json, it is
// case-sensitive.
func unknown(members map[string]json.RawMessage, allowed []string) (name string, ok bool) {
	const most = 80 // bytes of a name that are quoted
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(allowed, name) {
			return strings.ToValidUTF8(name[:min(len(name), most)], ""), false
		}
	}
	return "", true
}

// unreadable returns what is wrong with a body without naming our types.
func unreadable(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return uimessage.WrongType(wrong)
	}
	return "the request cannot be read"
}

// readBeside reads our members of a useChat body. Other members belong to the front-end and are ignored.
func readBeside(data []byte) (body, error) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members) // it is an object: it was read before
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return name == "messages" || !slices.Contains(bodyMembers, name) // messages, with their parts, were read before
	})
	rest, _ := json.Marshal(members) // what was read can be written
	var b body
	if err := json.Unmarshal(rest, &b); err != nil {
		return body{}, httpx.BadRequest(unreadable(err), "see docs/chat.md for the format of a question")
	}
	return b, nil
}

func (q *Question) takeMessages(r *uimessage.Request) {
	if q.Conversation == "" {
		q.Conversation = r.ID
	}
	if r.Trigger == "regenerate-message" || r.MessageID != "" { // the client has taken back what followed
		q.Follows = gateway.FollowsNone
		for _, m := range slices.Backward(r.Messages) {
			if m.Role == uimessage.RoleAssistant {
				q.Follows = m.ID
				break
			}
		}
		if gateway.CheckID(q.Follows) != "" {
			q.Follows = "" // it is not one of ours
		}
	}
	for i := range r.Messages {
		q.Messages = append(q.Messages, Message{r.Messages[i].Role, r.Messages[i].Words()})
	}
}

const messageHint = `a message is {"role": "user", "content": "…"}`

func (q *Question) readMessages(list []bodyMessage) error {
	for i, m := range list {
		text := m.Text
		why := " has no content"
		if len(m.Content) > 0 && string(m.Content) != "null" {
			words, err := readContent(m.Content)
			if text = &words; err != nil {
				text, why = nil, ": "+err.Error()
			}
		}
		if text == nil {
			return httpx.BadRequest(fmt.Sprintf("messages: message %d%s", i, why), messageHint)
		}
		q.Messages = append(q.Messages, Message{m.Role, *text})
	}
	return nil
}

// check returns what is wrong with a question, except for what the provider checks. The error is a problem.
func (q *Question) check() error {
	switch q.Citations {
	case "", calls.CitationsFast, calls.CitationsAccurate, calls.CitationsOff:
	default:
		return httpx.BadRequest(
			"citations: it is not one of fast, accurate, off", "leave it out for the provider's default",
		)
	}
	for i, m := range q.Messages {
		switch m.Role {
		case calls.RoleSystem, calls.RoleUser, calls.RoleAssistant:
		default:
			return httpx.BadRequest(
				fmt.Sprintf("messages: message %d: its role is not system, user or assistant", i),
				"results of tools belong to the provider's own API",
			)
		}
	}
	if !slices.ContainsFunc(q.Messages, func(m Message) bool { return m.Role == calls.RoleUser && m.Text != "" }) {
		return httpx.BadRequest("messages: there is no message of the user with text", messageHint)
	}
	if why := gateway.CheckName(q.Agent); why != "" {
		return httpx.BadRequest(
			"header "+gateway.AgentHeader+": "+why, "see docs/http.md for the values of the Ibid- headers")
	}
	if why := gateway.CheckID(q.Conversation); why != "" {
		return httpx.BadRequest("conversation: "+why, "with useChat it is the id of the chat")
	}
	if why := gateway.CheckID(q.Run); why != "" {
		return httpx.BadRequest("run: "+why, "leave it out for a run of its own")
	}
	return nil
}
