package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// Call is one captured call: who made it, what was asked, what was answered.
//
// A Call must not be changed once it was encoded or put, because it caches its encoding. Calls that the store returns
// belong to the caller.
type Call struct {
	AnswerID     string `json:"answer_id"` // minted before the call; unique within the tenant
	Tenant       string `json:"tenant"`
	Upstream     string `json:"upstream"`               // the name of the gateway's upstream
	Route        string `json:"route"`                  // method and path without query: "POST /v1/responses"
	Conversation string `json:"conversation,omitempty"` // empty if in none
	Run          string `json:"run,omitempty"`          // empty if in none; then it has no events
	Agent        string `json:"agent,omitempty"`
	// Follows is set if a front-end asked again: the AnswerID of the last answer of the conversation that it kept, or
	// empty if it kept none. This call replaces the ones after that. Nil means that the call follows the one before it.
	Follows *string `json:"follows,omitempty"`
	// name@version of what attributes the run's answers to sources; empty if nothing does
	Strategy string    `json:"strategy,omitempty"`
	Step     Step      `json:"step"`
	Prompt   []Message `json:"prompt,omitempty"` // the messages that may be kept
	// Results are the steps of the run that the request shows: what tools returned to the model since its last answer.
	// A result that a call of the run before had, too, is the same step.
	Results   []trail.Step  `json:"results,omitempty"`
	Status    int           `json:"status"` // of the HTTP response
	Started   time.Time     `json:"started"`
	FirstByte time.Duration `json:"first_byte_ns"` // from Started to the response's first byte
	Duration  time.Duration `json:"duration_ns"`   // from Started to the response's end
	Bytes     int64         `json:"bytes"`         // of the response's body
	// Refetch marks the GET of an earlier answer. Its answer replaces the one stored under tenant, upstream and the
	// provider's id, which keeps everything else, its AnswerID too. The call is dropped if there is none, or if it
	// would replace a complete answer by an incomplete one or by one without its citations.
	Refetch bool `json:"refetch,omitempty"`
	// Of is the AnswerID of the call whose answer this is a later state of, where citations were found after it had
	// ended. It is stored like a refetch, but under that id instead of the provider's, and reported as an
	// [EventBackfill]. It is empty in calls that the store returns.
	Of string `json:"of,omitempty"`
	// Publish requests that a manifest of the answer be published. See [Store.DuePublications]. It is ignored in a
	// later state of another answer: that is published if the other one is.
	Publish bool         `json:"publish,omitempty"`
	Body    *CallBody    `json:"body,omitempty"` // what the client received; nil if unknown
	Answer  *ibid.Answer `json:"-"`              // never nil in a Call that is encoded or put

	encoded []byte
	keys    []string // the keys of its sources in numbering order; nil until encoded
}

// CallBody identifies the octets of a response's body, so that a manifest can be bound to them.
type CallBody struct {
	// "sha256:" and 64 lower-case hexadecimal digits, of the body without content codings
	Hash      string `json:"hash"`
	MediaType string `json:"media_type,omitempty"`
}

// Step is the position of a call in its run.
type Step struct {
	Number int    `json:"number"`         // from 1; 0 in a Call to be put means the run's next
	Tool   string `json:"tool,omitempty"` // the tool that the step is
	// the steps that it builds on; nil for the one with the number before its own, empty for none
	After []int `json:"after"`
}

// Message is one message of a prompt.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Encode returns c as one line of JSON: {"call":{…},"document":{…},"sum":"…"}. The document is the answer's, in UTF-8
// bytes and with the provider's metadata, but without cited_text and what is null, false, zero or empty. The sum covers
// what precedes it, to detect a damaged disk. The result is cached and must not be changed.
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
	head := *c
	head.Started = c.Started.UTC()
	var b bytes.Buffer
	b.WriteString(`{"call":`)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&head); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1) // the line break
	b.WriteString(`,"document":`)
	var fresh ibid.Numbering
	document := c.Answer.Document(&ibid.DocumentOptions{Bare: true, Raw: true, AnswerID: c.AnswerID, Numbering: &fresh})
	unverified(document)
	encoded, err := document.AppendCompact(b.Bytes())
	if err != nil {
		return nil, err
	}
	c.keys = inOrder(fresh)
	return fmt.Appendf(encoded, sumFormat, crc32.Checksum(encoded, castagnoli)), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFormat is the end of an encoded call, with the CRC-32C of all before it in hexadecimal digits.
const (
	sumFormat = `,"sum":"%08x"}`
	sumBytes  = len(`,"sum":"01234567"}`)
)

// checkSum fails if an encoded call has a sum that does not match.
func checkSum(b []byte) error {
	if len(b) < sumBytes || !bytes.HasSuffix(b, []byte(`"}`)) { // older than sums
		return nil
	}
	whole, end := b[:len(b)-sumBytes], b[len(b)-sumBytes:]
	if !bytes.Equal(end, fmt.Appendf(nil, sumFormat, crc32.Checksum(whole, castagnoli))) {
		return errors.New("it has changed since it was written")
	}
	return nil
}

// unverified removes the results of checks from a document's citations: the pins hold those, and they may change.
func unverified(d *ibid.Document) {
	for i := range d.Citations {
		d.Citations[i].Verification = nil
	}
}

// inOrder returns the keys of a numbering, ordered by number.
func inOrder(n ibid.Numbering) []string {
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return n[a] - n[b] })
}

// DecodeCall decodes a call from b, which it retains. The answer has the same document as the one that was encoded, in
// any unit and style; what a document does not carry, such as ibid.Source.Raw, is lost, and so are the results of
// checks.
func DecodeCall(b []byte) (*Call, error) {
	if err := checkSum(b); err != nil {
		return nil, fmt.Errorf("decoding call: %w", err)
	}
	var record struct {
		Call     Call
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
	c := &record.Call
	c.Answer, c.encoded = answer, b
	return c, nil
}

// WithAnswer returns a copy of the call with another answer.
func (c *Call) WithAnswer(a *ibid.Answer) *Call {
	other := *c
	other.Answer, other.encoded, other.keys = a, nil, nil
	return &other
}

// Ended returns when the response ended.
func (c *Call) Ended() time.Time { return c.Started.Add(c.Duration) }
