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

// The subjects. Their version changes when a node could misread another's messages.
const (
	runPrefix     = "ibid.v1.run."
	replaySubject = "ibid.v1.replay"

	eventSuffix = ".event"
	liveSuffix  = ".live"
	allSuffixes = ".*"
)

const (
	// maxMessage is how many bytes of JSON a message may have. An event that needs more wakes its listeners, who find
	// it in the store; a live delta that needs more is not sent. A server that allows less sets the limit.
	maxMessage = 64 << 10

	// maxLiveQueue is how many live deltas wait to be sent. More are not sent at all: nats.go can block while it
	// connects, and an answer never waits for its listeners.
	maxLiveQueue = 1024
)

// Message is what a listener hears: exactly one of its fields is set.
type Message struct {
	// Event happened to the run. It may come twice, and one may be missing before it: go by Seq.
	Event *store.Event
	// Live is a piece of an answer on its way.
	Live *Live
	// Wake says to read the store: there may be events that came in no message. It comes when the connection was lost,
	// when an event was too large, and every 15 seconds.
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

// runKey names a run.
type runKey struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// subject returns the common beginning of the run's subjects.
func (k runKey) subject() string { return runPrefix + hashToken(k.Tenant) + "." + hashToken(k.Run) }

// hashToken makes one token of a subject out of any string: of one length, and without dots, blanks and wildcards. 192
// bits of a hash are enough that nobody finds two strings with one token.
func hashToken(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// envelope is a message on the wire: that something happened to a run, which may be all there is to say.
type envelope struct {
	runKey

	Event *store.Event `json:"event,omitempty"`
	Live  *Live        `json:"live,omitempty"`
}

// encodeEvent writes an event in at most limit bytes, or else only that there is one. Only the two names are unbounded:
// the result is nil where even these are too long, and the listeners wake up in time.
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

// decode reads a message about the run. The names in it must be the run's own: anything else that is published under
// its subject is refused.
func decode(k runKey, data []byte) (Message, error) {
	var m envelope
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, err
	}
	switch {
	case m.runKey != k || m.Event != nil && (runKey{m.Event.Tenant, m.Event.Run}) != k:
		return Message{}, errors.New("it is about another run")
	case m.Event != nil:
		return Message{Event: m.Event}, nil
	case m.Live != nil:
		return Message{Live: m.Live}, nil
	}
	return Message{Wake: true}, nil
}

// liveMessage is a delta that waits to be sent.
type liveMessage struct {
	run   runKey
	delta Live
}

// Tell sends a live delta to whoever listens to the run. It never blocks and promises nothing; join text so that an
// answer sends at most ten deltas a second. A delta of more than 64 KiB as JSON, or that comes while NATS is slow or
// away, is lost; the listener sees that by Live.At. m.Data must not change afterwards.
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

// limit is how many bytes a message may have.
func (b *Bus) limit() int {
	if most := b.conn.MaxPayload(); most > 0 && most < maxMessage {
		return int(most)
	}
	return maxMessage
}

// OnReplay has replay called whenever somebody, on any node, has begun to listen to the run, until stop is called: to
// send again, by [Bus.Tell], what is known of an answer that is on its way. replay must return at once. A request may
// be lost, or come twice.
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

// requestReplay asks all nodes for what was said of the run's answers so far.
func (b *Bus) requestReplay(conn *nats.Conn, k runKey) {
	data, err := json.Marshal(k)
	if err == nil {
		err = conn.Publish(replaySubject, data)
	}
	if err != nil {
		b.log.Debug("cannot ask for a replay", slog.Any("error", err))
	}
}

// answerReplay hands a request on to those who send answers of the run here.
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
