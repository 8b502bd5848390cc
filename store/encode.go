package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	Strategy     string        `json:"strategy,omitempty"`
	Step         Step          `json:"step"`
	Prompt       []Message     `json:"prompt,omitempty"`
	Status       int           `json:"status"`
	Started      time.Time     `json:"started"`
	FirstByte    time.Duration `json:"first_byte_ns"`
	Duration     time.Duration `json:"duration_ns"`
	Bytes        int64         `json:"bytes"`
	Refetch      bool          `json:"refetch,omitempty"`
	Of           string        `json:"of,omitempty"`
	Publish      bool          `json:"publish,omitempty"`
	Body         *CallBody     `json:"body,omitempty"`
}

// appendRecord appends {"call":{…} to b, without the end of it: what encoding/json makes of a callRecord, in a tenth of
// the time.
func (c *Call) appendRecord(b []byte) ([]byte, error) {
	started := c.Started.UTC()
	if year := started.Year(); year < 0 || year > 9999 {
		return nil, fmt.Errorf("it began in the year %d", year)
	}
	b = appendMember(b, `{"call":{"answer_id":`, c.AnswerID)
	b = appendMember(b, `,"tenant":`, c.Tenant)
	b = appendMember(b, `,"upstream":`, c.Upstream)
	b = appendMember(b, `,"route":`, c.Route)
	b = appendSaid(b, `,"conversation":`, c.Conversation)
	b = appendSaid(b, `,"run":`, c.Run)
	b = appendSaid(b, `,"agent":`, c.Agent)
	b = appendSaid(b, `,"strategy":`, c.Strategy)
	b = strconv.AppendInt(append(b, `,"step":{"number":`...), int64(c.Step.Number), 10)
	b = appendSaid(b, `,"tool":`, c.Step.Tool)
	b = append(appendSteps(append(b, `,"after":`...), c.Step.After), '}')
	for i, m := range c.Prompt {
		b = append(b, [...]string{`,"prompt":[`, `,`}[min(i, 1)]...)
		b = append(appendMember(appendMember(b, `{"role":`, m.Role), `,"text":`, m.Text), '}')
	}
	if len(c.Prompt) > 0 {
		b = append(b, ']')
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(c.Status), 10)
	b = append(started.AppendFormat(append(b, `,"started":"`...), time.RFC3339Nano), '"')
	b = strconv.AppendInt(append(b, `,"first_byte_ns":`...), int64(c.FirstByte), 10)
	b = strconv.AppendInt(append(b, `,"duration_ns":`...), int64(c.Duration), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), c.Bytes, 10)
	if c.Refetch {
		b = append(b, `,"refetch":true`...)
	}
	b = appendSaid(b, `,"of":`, c.Of)
	if c.Publish {
		b = append(b, `,"publish":true`...)
	}
	if c.Body != nil {
		b = append(
			appendSaid(appendMember(b, `,"body":{"hash":`, c.Body.Hash), `,"media_type":`, c.Body.MediaType),
			'}',
		)
	}
	return append(b, '}'), nil
}

func appendSteps(b []byte, steps []int) []byte {
	if steps == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, n := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

// appendSaid appends a member that is left out when it is empty.
func appendSaid(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendMember(b, name, s)
}

// appendMember appends a member's name, as it must be written, and s as its value.
func appendMember(b []byte, name, s string) []byte {
	b = append(b, name...)
	if strings.ContainsFunc(s, isOdd) {
		var odd bytes.Buffer
		enc := json.NewEncoder(&odd)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s) // there is no error that a string could have
		return append(b, bytes.TrimSuffix(odd.Bytes(), []byte("\n"))...)
	}
	b = append(b, '"')
	begin := 0
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(append(b, s[begin:i]...), '\\', c)
			begin = i + 1
		case '\n':
			b = append(append(b, s[begin:i]...), `\n`...)
			begin = i + 1
		}
	}
	return append(append(b, s[begin:]...), '"')
}

// isOdd reports whether r needs a seldom escape in JSON, or is no character at all.
func isOdd(r rune) bool {
	return r < ' ' && r != '\n' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// Encode returns c as one line of JSON: {"call":{…},"document":{…}}. The document is the answer's, in UTF-8 bytes and
// with the provider's metadata, but without cited_text. The result is remembered and not to be changed.
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
	b, err := c.appendRecord(make([]byte, 0, 1<<10))
	if err != nil {
		return nil, err
	}
	b = append(b, `,"document":`...)
	var fresh ibid.Numbering
	document := c.Answer.Document(&ibid.DocumentOptions{Bare: true, Raw: true, AnswerID: c.AnswerID, Numbering: &fresh})
	unverified(document)
	encoded, err := document.AppendJSON(b)
	if err != nil {
		return nil, err
	}
	c.keys = inOrder(fresh)
	return append(encoded, '}'), nil
}

// unverified takes out of a document what came of checking its citations: that is the pins' to say, and may change.
func unverified(d *ibid.Document) {
	for i := range d.Citations {
		d.Citations[i].Verification = nil
	}
}

// inOrder returns the keys of a numbering by their numbers.
func inOrder(n ibid.Numbering) []string {
	keys := make([]string, len(n))
	for key, number := range n {
		keys[number-1] = key
	}
	return keys
}

// DecodeCall returns the call that was encoded as b. It keeps b. The answer has the same document as the one that was
// encoded, in any unit and style; what a document does not carry, such as ibid.Source.Raw, is lost, and so is what came
// of checking its citations.
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
		AnswerID:     r.AnswerID,
		Tenant:       r.Tenant,
		Upstream:     r.Upstream,
		Route:        r.Route,
		Conversation: r.Conversation,
		Run:          r.Run,
		Agent:        r.Agent,
		Strategy:     r.Strategy,
		Step:         r.Step,
		Prompt:       r.Prompt,
		Status:       r.Status,
		Started:      r.Started,
		FirstByte:    r.FirstByte,
		Duration:     r.Duration,
		Bytes:        r.Bytes,
		Refetch:      r.Refetch,
		Of:           r.Of,
		Publish:      r.Publish,
		Body:         r.Body,
		Answer:       answer,
		encoded:      b,
	}, nil
}

// Ended returns when the response had ended.
func (c *Call) Ended() time.Time { return c.Started.Add(c.Duration) }
