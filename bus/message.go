package bus

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// Message is what a listener hears: exactly one of its fields is set.
type Message struct {
	// Event happened to the run. It may come twice, and one may be missing before it: go by Seq.
	Event *store.Event
	// Live is a piece of an answer on its way.
	Live *Live
	// Wake says to read the store: there may be events that came in no message. It comes when the connection was lost,
	// when an event was too large, and every [WakeEvery].
	Wake bool
}

// Live is a piece of an answer on its way.
type Live struct {
	Kind     string          `json:"kind"`      // text, source, citation …
	AnswerID string          `json:"answer_id"` // to which answer of the run it belongs
	Step     int             `json:"step"`
	At       int             `json:"at"` // where in the answer's text Data begins, in UTF-8 bytes
	Data     json.RawMessage `json:"data,omitempty"`
}

// eventMessage is an event on the wire. Without data it wakes its listeners only.
type eventMessage struct {
	Tenant string          `json:"tenant"`
	Run    string          `json:"run"`
	ID     int64           `json:"id"`
	Seq    int64           `json:"seq"`
	Kind   string          `json:"kind"`
	At     time.Time       `json:"at"`
	Data   json.RawMessage `json:"data,omitempty"`
	Cut    bool            `json:"cut,omitempty"` // Data was too large to be sent
}

// liveMessage is a live delta on the wire.
type liveMessage struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
	Live
}

// encodeEvent writes an event in at most limit bytes, without its data if it must be. Only the two names are unbounded,
// and whoever cannot be told by name wakes up in time.
func encodeEvent(e *store.Event, limit int) []byte {
	m := eventMessage{Tenant: e.Tenant, Run: e.Run, ID: e.ID, Seq: e.Seq, Kind: e.Kind, At: e.At, Data: e.Data}
	b, err := json.Marshal(m)
	if err == nil && len(b) <= limit {
		return b
	}
	m.Data, m.Cut = nil, true
	if b, err = json.Marshal(m); err != nil || len(b) > limit {
		return nil
	}
	return b
}

// decode reads a message about the run. The names in it must be the run's own: whatever else is published under its
// subject is none of its listeners' business.
func decode(k runKey, subject string, data []byte) (Message, error) {
	if strings.HasSuffix(subject, liveSuffix) {
		var m liveMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return Message{}, fmt.Errorf("reading a live message: %w", err)
		}
		if (runKey{m.Tenant, m.Run}) != k {
			return Message{}, fmt.Errorf("reading a live message: it is about another run")
		}
		return Message{Live: &m.Live}, nil
	}
	var m eventMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, fmt.Errorf("reading an event: %w", err)
	}
	if (runKey{m.Tenant, m.Run}) != k {
		return Message{}, fmt.Errorf("reading an event: it is about another run")
	}
	if m.Cut {
		return Message{Wake: true}, nil
	}
	return Message{Event: &store.Event{
		ID: m.ID, Tenant: m.Tenant, Run: m.Run, Seq: m.Seq, Kind: m.Kind, At: m.At, Data: m.Data,
	}}, nil
}
