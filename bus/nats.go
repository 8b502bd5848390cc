package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

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

	maxUnsent     = 1 << 20 // bytes buffered while the server is unreachable
	connectWait   = 2 * time.Second
	reconnectWait = time.Second
	pingEvery     = 5 * time.Second // after two without an answer the connection is dead
	flushWait     = 2 * time.Second
)

// natsLink is a bus's connection to the other nodes.
type natsLink struct {
	bus  *Bus
	conn *nats.Conn
	live chan liveMessage
	gone chan struct{} // closed when the connection is closed
}

// liveMessage is a delta waiting to be sent.
type liveMessage struct {
	run   runKey
	delta Live
}

func connect(b *Bus, address string) (*natsLink, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	n := &natsLink{bus: b, live: make(chan liveMessage, maxLiveQueue), gone: make(chan struct{})}
	conn, err := nats.Connect(address,
		nats.Name("ibid"),
		nats.Timeout(connectWait),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(maxUnsent),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(n.connected),
		nats.ReconnectHandler(n.connected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("lost the connection to NATS", slog.Any("error", err))
			}
		}),
		// Messages were lost because a queue of nats.go was full, or the server refused something.
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("NATS reports an error", slog.Any("error", err))
			b.wakeAll()
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(n.gone) }),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	n.conn = conn
	if _, err := conn.Subscribe(replaySubject, n.answerReplay); err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribing to %s: %w", replaySubject, err)
	}
	return n, nil
}

// checkAddress rejects addresses that nats.go would reject with an error that contains them, including the password.
func checkAddress(address string) error {
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil:
			return errors.New("an address of NATS is not a URL")
		case u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss":
			return errors.New("an address of NATS begins with nats:// or tls://")
		case u.Hostname() == "":
			return errors.New("an address of NATS has no host")
		}
	}
	return nil
}

// connected is called for every new connection: messages sent before it are lost.
func (n *natsLink) connected(conn *nats.Conn) {
	n.bus.log.Info("connected to NATS")
	n.bus.signal()
	for _, l := range n.bus.openListeners() {
		n.askReplay(conn, l.key)
		l.deliver(Message{Wake: true})
	}
}

func (n *natsLink) healthy() error {
	switch {
	case n.conn.Status() == nats.CONNECTED:
		return nil
	case n.conn.LastError() != nil:
		return fmt.Errorf("checking the bus: not connected to NATS: %w", n.conn.LastError())
	default:
		return errors.New("checking the bus: not connected to NATS")
	}
}

func (n *natsLink) close() {
	n.conn.Close()
	<-n.gone
}

// subscribe delivers the messages of a listener's run to it.
func (n *natsLink) subscribe(l *Listener) (*nats.Subscription, error) {
	return n.conn.Subscribe(l.key.subject()+allSuffixes, func(m *nats.Msg) {
		if message, err := decode(l.key, m.Data); err == nil {
			l.deliver(message)
		} else {
			n.bus.log.Debug("cannot read a message", slog.Any("error", err))
		}
	})
}

// unsubscribe ends a subscription.
func (n *natsLink) unsubscribe(sub *nats.Subscription) {
	if err := sub.Unsubscribe(); err != nil && n.conn.IsConnected() {
		n.bus.log.Debug("cannot end a subscription", slog.Any("error", err))
	}
}

// flush waits until the server has received what was sent so far. Without a connection it returns at once.
func (n *natsLink) flush(ctx context.Context) error {
	if !n.conn.IsConnected() {
		return nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	return n.conn.FlushWithContext(ctx)
}

func (n *natsLink) publishEvent(k runKey, e *store.Event) error {
	data := encodeEvent(e, n.limit())
	if data == nil {
		return nil // its listeners are woken later
	}
	return n.conn.Publish(k.subject()+eventSuffix, data)
}

func (n *natsLink) tell(k runKey, m Live) {
	select {
	case n.live <- liveMessage{k, m}:
	default:
	}
}

// sendLive sends live deltas until the bus is closed.
func (n *natsLink) sendLive() {
	for {
		select {
		case <-n.bus.done:
			return
		case m := <-n.live:
			data, err := json.Marshal(envelope{runKey: m.run, Live: &m.delta})
			if err == nil && len(data) <= n.limit() {
				err = n.conn.Publish(m.run.subject()+liveSuffix, data)
			}
			if err != nil {
				n.bus.log.Debug("lost a live delta", slog.Any("error", err))
			}
		}
	}
}

// limit returns the largest size of a message.
func (n *natsLink) limit() int {
	if limit := n.conn.MaxPayload(); limit > 0 && limit < maxMessage {
		return int(limit)
	}
	return maxMessage
}

func (n *natsLink) requestReplay(k runKey) { n.askReplay(n.conn, k) }

func (n *natsLink) askReplay(conn *nats.Conn, k runKey) {
	data, err := json.Marshal(k)
	if err == nil {
		err = conn.Publish(replaySubject, data)
	}
	if err != nil {
		n.bus.log.Debug("cannot ask for a replay", slog.Any("error", err))
	}
}

// answerReplay passes another node's request on.
func (n *natsLink) answerReplay(m *nats.Msg) {
	var k runKey
	if err := json.Unmarshal(m.Data, &k); err != nil {
		n.bus.log.Debug("cannot read a request for a replay", slog.Any("error", err))
		return
	}
	n.bus.replay(k)
}
