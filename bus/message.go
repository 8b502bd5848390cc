package bus

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/ibidhq/ibid/store"
)

// The subjects. Their version changes if nodes could otherwise misread each other's messages.
const (
	runPrefix     = "ibid.v1.run."
	replaySubject = "ibid.v1.replay"

	eventSuffix = ".event"
	liveSuffix  = ".live"
	allSuffixes = ".*"
)

const (
	// maxMessage is the largest message, in bytes of JSON. A larger event only wakes its listeners, who find it in the
	// store; a larger live delta is not sent. A server with a smaller limit sets the limit.
	maxMessage = 64 << 10

	// maxLiveQueue is how many live deltas may wait to be sent. Further ones are dropped: nats.go can block while it
	// connects, and an answer never waits for its listeners.
	maxLiveQueue = 1024
)

// Message is received by a listener. Exactly one of its fields is set.
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

// liveMessage is a delta waiting to be sent.
type liveMessage struct {
	run   runKey
	delta Live
}

// Tell sends a live delta to the run's listeners. It never blocks and guarantees nothing; combine text so that an
// answer sends at most ten deltas a second. A delta of more than 64 KiB of JSON, or one sent while NATS is slow or
// unreachable, is lost; listeners notice by Live.At. m.Data must not change afterwards.
func (b *Bus) Tell(tenant, run string, m Live) {
	select {
	case b.live <- liveMessage{runKey{tenant, run}, m}:
	default:
	}
}

func (b *Bus) publishLive(m *liveMessage) {
	data, err := json.Marshal(envelope{runKey: m.run, Live: &m.delta})
	if err == nil && len(data) <= b.limit() {
		err = b.conn.Publish(m.run.subject()+liveSuffix, data)
	}
	if err != nil {
		b.log.Debug("lost a live delta", slog.Any("error", err))
	}
}

// limit returns the largest size of a message.
func (b *Bus) limit() int {
	if limit := b.conn.MaxPayload(); limit > 0 && limit < maxMessage {
		return int(limit)
	}
	return maxMessage
}

// OnReplay registers replay to be called whenever a listener, on any node, has started listening to the run, until stop
// is called. It should send again, by [Bus.Tell], what is known of an answer that is still arriving, and must return at
// once. A request may be lost or arrive twice.
func (b *Bus) OnReplay(tenant, run string, replay func()) (stop func()) {
	k := runKey{tenant, run}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.replays[k] == nil {
		b.replays[k] = map[*func()]struct{}{}
	}
	b.replays[k][&replay] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.replays[k], &replay)
		if len(b.replays[k]) == 0 {
			delete(b.replays, k)
		}
	}
}

// requestReplay asks all nodes to replay the run's unfinished answers.
func (b *Bus) requestReplay(conn *nats.Conn, k runKey) {
	data, err := json.Marshal(k)
	if err == nil {
		err = conn.Publish(replaySubject, data)
	}
	if err != nil {
		b.log.Debug("cannot ask for a replay", slog.Any("error", err))
	}
}

// answerReplay passes a request on to the senders of the run's answers on this node.
func (b *Bus) answerReplay(m *nats.Msg) {
	var k runKey
	if err := json.Unmarshal(m.Data, &k); err != nil {
		b.log.Debug("cannot read a request for a replay", slog.Any("error", err))
		return
	}
	b.mu.Lock()
	var replays []func()
	for replay := range b.replays[k] {
		replays = append(replays, *replay)
	}
	b.mu.Unlock()
	for _, replay := range replays {
		replay()
	}
}
