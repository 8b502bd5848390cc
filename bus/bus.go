package bus

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Embedded is the address of a NATS server in this process.
const Embedded = "embedded"

const (
	// MaxMessage is how many bytes of JSON a message may have. An event that needs more wakes its listeners, who find
	// it in the store; a live delta that needs more is not sent. A server that allows less sets the limit.
	MaxMessage = 64 << 10

	maxUnsent     = 1 << 20 // bytes kept for a server that is away
	connectWait   = 2 * time.Second
	reconnectWait = time.Second
	pingEvery     = 20 * time.Second // two without an answer: the connection is dead
	flushWait     = 2 * time.Second
)

var errClosed = errors.New("the bus is closed")

// Options are the options of [Open].
type Options struct {
	Name   string       // what NATS shows as the connection's name; empty: ibid
	Logger *slog.Logger // nil: nothing is logged
}

// Bus joins the listeners and the writers of runs. Its methods may be called at the same time.
type Bus struct {
	node   string // names this bus to the others
	log    *slog.Logger
	server *server.Server // nil: elsewhere
	conn   *nats.Conn

	wake     chan struct{} // 1: Relay has something to do
	live     chan liveMessage
	notices  chan *nats.Msg // what other nodes say of their listeners
	online   chan struct{}  // 1: the connection is there, again
	interest interest
	orphan   time.Duration // orphanAge; tests have less patience

	mu     sync.Mutex // guards what follows; nothing is sent while it is held but the start of a subscription
	topics map[runKey]*topic
	closed bool

	announcing sync.Mutex    // keeps what is said of a run in the order of what is true of it
	done       chan struct{} // closed by Close
	gone       chan struct{} // closed when the connection is
	wg         sync.WaitGroup
}

// runKey names a run.
type runKey struct{ tenant, run string }

// Open connects to NATS: to a server of its own in this process for [Embedded], else to one of those at the given
// addresses, separated by commas: nats://host:4222, or tls:// to insist on TLS, with user:password@ or token@ where the
// server wants one. Close it after use.
//
// A server that cannot be reached is no error: the bus goes on trying as long as it is open, and [Bus.Healthy] tells.
// Errors never contain an address.
func Open(ctx context.Context, address string, o *Options) (*Bus, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("opening the bus: %w", err)
	}
	b := newBus(o)
	var err error
	if address == Embedded {
		if b.server, err = startServer(); err == nil {
			err = b.connect("", o, nats.InProcessServer(b.server))
		}
	} else if err = checkAddress(address); err == nil {
		err = b.connect(address, o)
	}
	if err != nil {
		b.stopServer()
		return nil, fmt.Errorf("opening the bus: %w", err)
	}
	b.wg.Go(b.keep)
	b.wg.Go(b.sendLive)
	return b, nil
}

func newBus(o *Options) *Bus {
	b := &Bus{
		node:    rand.Text(),
		log:     slog.New(slog.DiscardHandler),
		wake:    make(chan struct{}, 1),
		live:    make(chan liveMessage, maxLiveQueue),
		notices: make(chan *nats.Msg, maxNotices),
		online:  make(chan struct{}, 1),
		topics:  map[runKey]*topic{},
		done:    make(chan struct{}),
		gone:    make(chan struct{}),
		orphan:  orphanAge,
	}
	if o != nil && o.Logger != nil {
		b.log = o.Logger
	}
	return b
}

// checkAddress finds what nats.go would complain about with the address, password and all, in its error.
func checkAddress(address string) error {
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil:
			return errors.New("an address of NATS is not a URL")
		case u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss":
			return fmt.Errorf("an address of NATS begins with nats:// or tls://, or is %q", Embedded)
		case u.Hostname() == "":
			return errors.New("an address of NATS has no host")
		}
	}
	return nil
}

func (b *Bus) connect(address string, o *Options, more ...nats.Option) error {
	name := "ibid"
	if o != nil {
		name = cmp.Or(o.Name, name)
	}
	conn, err := nats.Connect(address, append([]nats.Option{
		nats.Name(name),
		nats.Timeout(connectWait),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(maxUnsent),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(b.connected),
		nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(b.disconnected),
		nats.ErrorHandler(b.asyncError),
		nats.ClosedHandler(func(*nats.Conn) { close(b.gone) }),
	}, more...)...)
	if err != nil {
		return fmt.Errorf("connecting to NATS: %w", err)
	}
	b.conn = conn
	if _, err := conn.ChanSubscribe(listenSubject, b.notices); err != nil {
		conn.Close()
		return fmt.Errorf("subscribing to %s: %w", listenSubject, err)
	}
	return nil
}

func (b *Bus) connected(*nats.Conn) {
	if b.server == nil { // else it is in this process, which nobody need be told
		b.log.Info("connected to NATS")
	}
	b.Wake()
	select {
	case b.online <- struct{}{}:
	default:
	}
}

func (b *Bus) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		b.log.Warn("lost the connection to NATS", slog.Any("error", err))
	}
}

// asyncError hears of messages that were lost because a queue of ours was full, and of what the server refuses.
func (b *Bus) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	b.log.Warn("NATS reports an error", slog.Any("error", err))
}

// Healthy returns why the bus reaches no other node at present; nil: it does. Nothing is lost meanwhile, only late.
func (b *Bus) Healthy() error {
	switch status := b.conn.Status(); {
	case status == nats.CONNECTED:
		return nil
	case status == nats.CLOSED:
		return fmt.Errorf("checking the bus: %w", errClosed)
	case b.conn.LastError() != nil:
		return fmt.Errorf("checking the bus: not connected to NATS: %w", b.conn.LastError())
	default:
		return errors.New("checking the bus: not connected to NATS")
	}
}

// Close ends all listeners, tells the other nodes, and returns when everything that the bus started has ended. Relay
// returns by itself.
func (b *Bus) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.gone
		return nil
	}
	b.closed = true
	for _, t := range b.topics {
		for l := range t.listeners {
			b.leave(l)
		}
	}
	b.mu.Unlock()
	close(b.done)
	b.wg.Wait()
	b.announce(&notice{Bye: true})
	_ = b.flush(context.Background()) // where it is in vain, the others find out
	b.conn.Close()
	<-b.gone
	b.stopServer()
	return nil
}

// flush waits until the server has what was sent so far. Without a connection there is nothing to wait for.
func (b *Bus) flush(ctx context.Context) error {
	if !b.conn.IsConnected() {
		return nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	return b.conn.FlushWithContext(ctx)
}

// limit is how many bytes a message may have.
func (b *Bus) limit() int {
	if most := b.conn.MaxPayload(); most > 0 && most < MaxMessage {
		return int(most)
	}
	return MaxMessage
}
