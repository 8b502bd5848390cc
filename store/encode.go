package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ibidhq/ibid"
)

// callRecord is what a [Call] is besides its answer, as JSON.
type callRecord struct {
	AnswerID     string        `json:"answer_id"`
	Tenant       string        `json:"tenant"`
	Upstream     string        `json:"upstream"`
	Route        string        `json:"route"`
	Conversation string        `json:"conversation,omitempty"`
	Run          string        `json:"run,omitempty"`
	Agent        string        `json:"agent,omitempty"`
	Step         Step          `json:"step"`
	Prompt       []Message     `json:"prompt,omitempty"`
	Status       int           `json:"status"`
	Started      time.Time     `json:"started"`
	FirstByte    time.Duration `json:"first_byte_ns"`
	Duration     time.Duration `json:"duration_ns"`
	Bytes        int64         `json:"bytes"`
	Refetch      bool          `json:"refetch,omitempty"`
	Of           string        `json:"of,omitempty"`
}

// Encode returns c as one line of JSON: {"call":{…},"document":{…}}. The document is the answer's, in UTF-8 bytes and with
// the provider's metadata, but without cited_text. The result is remembered and not to be changed.
func (c *Call) Encode() ([]byte, error) {
	if c.encoded != nil {
		return c.encoded, nil
	}
	b, err := c.encode()
	if err != nil {
		return nil, fmt.Errorf("encoding call %q: %w", c.AnswerID, err)
	}
	c.encoded = b
	return b, nil
}

func (c *Call) encode() ([]byte, error) {
	if c.Answer == nil {
		return nil, errors.New("it has no answer")
	}
	var b bytes.Buffer
	b.WriteString(`{"call":`)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&callRecord{
		c.AnswerID, c.Tenant, c.Upstream, c.Route, c.Conversation, c.Run, c.Agent, c.Step, c.Prompt,
		c.Status, c.Started.UTC().Round(0), c.FirstByte, c.Duration, c.Bytes, c.Refetch, c.Of,
	}); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - len("\n"))
	b.WriteString(`,"document":`)
	var fresh ibid.Numbering
	document := c.Answer.Document(&ibid.DocumentOptions{Bare: true, Raw: true, AnswerID: c.AnswerID, Numbering: &fresh})
	encoded, err := document.AppendJSON(b.Bytes())
	if err != nil {
		return nil, err
	}
	c.keys = inOrder(fresh)
	return append(encoded, '}'), nil
}

// inOrder returns the keys of a numbering by their numbers.
func inOrder(n ibid.Numbering) []string {
	keys := make([]string, len(n))
	for key, number := range n {
		keys[number-1] = key
	}
	return keys
}

// DecodeCall returns the call that was encoded as b. It keeps b. The answer has the same document as the one that was encoded,
// in any unit and style; what a document does not carry, such as ibid.Source.Raw, is lost.
func DecodeCall(b []byte) (*Call, error) {
	var record struct {
		Call     callRecord
		Document *ibid.Document
	}
	if err := json.Unmarshal(b, &record); err != nil {
		return nil, fmt.Errorf("decoding call: %w", err)
	}
	if record.Document == nil {
		return nil, errors.New("decoding call: it has no document")
	}
	answer, err := record.Document.Answer()
	if err != nil {
		return nil, fmt.Errorf("decoding call %q: %w", record.Call.AnswerID, err)
	}
	r := &record.Call
	return &Call{
		AnswerID: r.AnswerID, Tenant: r.Tenant, Upstream: r.Upstream, Route: r.Route, Conversation: r.Conversation, Run: r.Run,
		Agent: r.Agent, Step: r.Step, Prompt: r.Prompt, Status: r.Status, Started: r.Started, FirstByte: r.FirstByte,
		Duration: r.Duration, Bytes: r.Bytes, Refetch: r.Refetch, Of: r.Of, Answer: answer, encoded: b,
	}, nil
}

// Ended returns when the response had ended.
func (c *Call) Ended() time.Time { return c.Started.Add(c.Duration) }
