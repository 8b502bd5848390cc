package uimessage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Request is the body of a request of useChat (DefaultChatTransport).
type Request struct {
	ID        string    // of the chat
	Messages  []Message // oldest first: the whole conversation
	Trigger   string    // submit-message or regenerate-message
	MessageID string    // of the message to regenerate; empty for the last one, or for none
}

// Words returns the text of a message. Text parts of an answer are joined by nothing, as they are pieces of one text,
// those of other roles by line breaks.
func (m *Message) Words() string {
	var texts []string
	for i := range m.Parts {
		if m.Parts[i].Type == typeText && m.Parts[i].Text != "" {
			texts = append(texts, m.Parts[i].Text)
		}
	}
	if m.Role == RoleAssistant {
		return strings.Join(texts, "")
	}
	return strings.Join(texts, "\n")
}

// rawRequest is a Request as it is sent. The parts differ between front-ends: unless they are text, only their type is
// read.
type rawRequest struct {
	ID       string `json:"id"`
	Messages []struct {
		ID      string            `json:"id"`
		Role    string            `json:"role"`
		Parts   []json.RawMessage `json:"parts"`
		Content *string           `json:"content"` // of an older client's message; used if there are no parts
	} `json:"messages"`
	Trigger   string `json:"trigger"`
	MessageID string `json:"messageId"`
}

// ReadRequest reads the body of a request and reports whether it is one of useChat, which is the case if one of its
// messages has parts. If not, the Request is nil, and so is the error unless the body is not a JSON object. Unknown
// members are ignored.
//
// The error also reports parts of a useChat body that cannot be sent to a model: a message of another role, or a file.
func ReadRequest(body []byte) (*Request, bool, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) || !json.Valid(body) {
		return nil, false, errors.New("reading the request: it is not a JSON object")
	}
	if !hasParts(body) {
		return nil, false, nil
	}
	var raw rawRequest
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, true, fmt.Errorf("reading the request of a chat: %w", jsonError(err))
	}
	r := &Request{ID: raw.ID, Trigger: raw.Trigger, MessageID: raw.MessageID}
	for i := range raw.Messages {
		from := &raw.Messages[i]
		m := Message{ID: from.ID, Role: from.Role, Parts: make([]Part, 0, len(from.Parts))}
		switch m.Role {
		case RoleSystem, RoleUser, RoleAssistant:
		default:
			return nil, true, fmt.Errorf(
				"reading the request of a chat: message %d: its role is not system, user or assistant", i,
			)
		}
		if from.Parts == nil && from.Content != nil {
			m.Parts = append(m.Parts, Part{Type: typeText, Text: *from.Content})
		}
		for _, raw := range from.Parts {
			p, err := readPart(raw)
			if err == nil && p.Type == "file" && m.Role == RoleUser {
				err = errors.New("a file cannot be sent: only text, and documents beside the messages")
			}
			if err != nil {
				return nil, true, fmt.Errorf("reading the request of a chat: message %d: %w", i, err)
			}
			m.Parts = append(m.Parts, p)
		}
		r.Messages = append(r.Messages, m)
	}
	return r, true, nil
}

func readPart(raw json.RawMessage) (Part, error) {
	var p struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return Part{}, fmt.Errorf("a part: %w", jsonError(err))
	}
	part := Part{Type: p.Type}
	if p.Type == typeText && len(p.Text) > 0 {
		if err := json.Unmarshal(p.Text, &part.Text); err != nil {
			return Part{}, errors.New("the text of a part is not a string")
		}
	}
	return part, nil
}

// hasParts reports whether a message of the body has parts.
func hasParts(body []byte) bool {
	var look struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(body, &look) // as far as it can be read
	for _, m := range look.Messages {
		if parts := bytes.TrimSpace(m["parts"]); len(parts) > 0 && parts[0] == '[' {
			return true
		}
	}
	return false
}

// partsMember matches the beginning of a list of parts in a body.
var partsMember = regexp.MustCompile(`"parts"\s*:\s*\[`)

// HasParts reports whether the beginning of a body looks like a request of useChat, see [ReadRequest].
func HasParts(head []byte) bool { return partsMember.Match(head) }

// jsonError returns what is wrong with JSON without naming our types.
func jsonError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New(WrongType(wrong))
	}
	return err
}

// WrongType says, without naming Go types, that a value in a body has the wrong type.
func WrongType(e *json.UnmarshalTypeError) string {
	kind, _, _ := strings.Cut(e.Value, " ") // "number 1.5" says more than is needed
	article := "a "
	if kind == "array" || kind == "object" {
		article = "an "
	}
	return cmp.Or(e.Field, "it") + " may not be " + article + kind
}
