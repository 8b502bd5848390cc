package bus

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/ibidhq/ibid/store"
)

// Message is received by a listener. Exactly one of its fields is set. Listeners of one process may share what it
// points to, and must not change it.
type Message struct {
	// Event is an event of the run. It may arrive twice, and earlier ones may be missing: check Seq.
	Event *store.Event
	// Live is part of an answer that is still arriving.
	Live *Live
	// Wake means that the store may have events that arrived in no message. It is sent when the connection was lost,
	// when an event was too large, and every 15 seconds.
	Wake bool
}

// Live is part of an answer that is still arriving.
type Live struct {
	Kind     string          `json:"kind"`      // text, source, citation …
	AnswerID string          `json:"answer_id"` // the answer that it belongs to
	Step     int             `json:"step"`
	At       int             `json:"at"` // offset of Data in the answer's text, in UTF-8 bytes
	Data     json.RawMessage `json:"data,omitempty"`
}

// runKey identifies a run.
type runKey struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// subject returns the common prefix of the run's subjects.
func (k runKey) subject() string { return runPrefix + hashToken(k.Tenant) + "." + hashToken(k.Run) }

// hashToken maps any string to a subject token of fixed length without dots, blanks or wildcards. 192 bits of a hash
// suffice to make collisions infeasible.
func hashToken(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// envelope is a message on the wire. Without Event and Live, it only wakes the run's listeners.
type envelope struct {
	runKey

	Event *store.Event `json:"event,omitempty"`
	Live  *Live        `json:"live,omitempty"`
}

// encodeEvent encodes an event in at most limit bytes, or else only the fact that there is one. The two names are of
// any length: if even they are too long, the result is nil, and the listeners find the event when they are next woken.
func encodeEvent(e *store.Event, limit int) []byte {
	m := envelope{runKey: runKey{e.Tenant, e.Run}, Event: e}
	data, err := json.Marshal(m)
	if err == nil && len(data) <= limit {
		return data
	}
	m.Event = nil
	if data, err = json.Marshal(m); err != nil || len(data) > limit {
		return nil
	}
	return data
}

// decode decodes a message about the run. It rejects anything else published under the run's subject, by the names in
// it.
func decode(k runKey, data []byte) (Message, error) {
	var m envelope
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, err
	}
	switch {
	case m.runKey != k || m.Event != nil && (runKey{m.Event.Tenant, m.Event.Run}) != k:
		return Message{}, errors.New("the message is about another run")
	case m.Event != nil:
		return Message{Event: m.Event}, nil
	case m.Live != nil:
		return Message{Live: m.Live}, nil
	}
	return Message{Wake: true}, nil
}
