package bus

import (
	"cmp"
	"context"
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
	maxUnsent     = 1 << 20 // bytes kept for a server that is away
	connectWait   = 2 * time.Second
	reconnectWait = time.Second
	pingEvery     = 5 * time.Second // two without an answer: the connection is dead
	flushWait     = 2 * time.Second
)

var errClosed = errors.New("the bus is closed")

// Bus joins the listeners and the writers of runs. Its methods may be called at the same time.
type Bus struct {
	log    *slog.Logger
	server *server.Server // nil: elsewhere
	conn   *nats.Conn

	wake   chan struct{} // 1: Relay has something to do
	live   chan liveMessage
	orphan time.Duration // orphanAge; tests have less patience

	mu        sync.Mutex // guards what follows
	listeners map[*Listener]struct{}
	replays   map[runKey]map[*func()]struct{} // what OnReplay was told
	closed    bool

	done chan struct{} // closed by Close
	gone chan struct{} // closed when the connection is
	wg   sync.WaitGroup
}

// Open connects to NATS: to a server of its own in this process for [Embedded], else to one of those at the given
// addresses, separated by commas: nats://host:4222, or tls:// to insist on TLS, with user:password@ or token@ where the
// server wants one. Nil: nothing is logged. Close it after use.
//
// A server that cannot be reached is no error: the bus goes on trying as long as it is open, and [Bus.Healthy] tells.
// Errors never contain an address.
func Open(ctx context.Context, address string, logger *slog.Logger) (*Bus, error) {
	b := newBus(logger)
	err := ctx.Err()
	switch {
	case err != nil:
	case address == Embedded:
		if b.server, err = startServer(); err == nil {
			err = b.connect("", nats.InProcessServer(b.server))
		}
	default:
		if err = checkAddress(address); err == nil {
			err = b.connect(address)
		}
	}
	if err != nil {
		b.stopServer()
		return nil, fmt.Errorf("opening the bus: %w", err)
	}
	b.wg.Go(b.run)
	return b, nil
}

func newBus(logger *slog.Logger) *Bus {
	return &Bus{
		log:       cmp.Or(logger, slog.New(slog.DiscardHandler)),
		wake:      make(chan struct{}, 1),
		live:      make(chan liveMessage, maxLiveQueue),
		listeners: map[*Listener]struct{}{},
		replays:   map[runKey]map[*func()]struct{}{},
		done:      make(chan struct{}),
		gone:      make(chan struct{}),
		orphan:    orphanAge,
	}
}

// startServer starts a NATS server that is reachable from this process only. It costs about 3 MB of memory: without an
// account for the system's own messages, and with nothing to monitor it by.
func startServer() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName:      "ibid",
		DontListen:      true,
		NoSigs:          true,
		NoLog:           true,
		NoSystemAccount: true,
		MaxPayload:      maxMessage,
	})
	if err != nil {
		return nil, fmt.Errorf("starting NATS in this process: %w", err)
	}
	s.Start()
	return s, nil
}

// stopServer ends the server in this process, if there is one.
func (b *Bus) stopServer() {
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
}

// run sends live deltas, and wakes the listeners from time to time.
func (b *Bus) run() {
	wake := time.NewTicker(wakeEvery)
	defer wake.Stop()
	for {
		select {
		case <-b.done:
			return
		case m := <-b.live:
			b.publishLive(&m)
		case <-wake.C:
			b.wakeAll()
		}
	}
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

func (b *Bus) connect(address string, more ...nats.Option) error {
	conn, err := nats.Connect(address, append([]nats.Option{
		nats.Name("ibid"),
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
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("lost the connection to NATS", slog.Any("error", err))
			}
		}),
		// Messages were lost because a queue of nats.go was full, or the server refuses something.
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("NATS reports an error", slog.Any("error", err))
			b.wakeAll()
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(b.gone) }),
	}, more...)...)
	if err != nil {
		return fmt.Errorf("connecting to NATS: %w", err)
	}
	b.conn = conn
	if _, err := conn.Subscribe(replaySubject, b.answerReplay); err != nil {
		conn.Close()
		return fmt.Errorf("subscribing to %s: %w", replaySubject, err)
	}
	return nil
}

// connected is called with every new connection: whatever was said before it is lost.
func (b *Bus) connected(conn *nats.Conn) {
	if b.server == nil { // else it is in this process, which nobody need be told
		b.log.Info("connected to NATS")
	}
	b.Wake()
	for _, l := range b.openListeners() {
		b.requestReplay(conn, l.key)
		l.deliver(Message{Wake: true})
	}
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

// Close ends all listeners, and returns when everything that the bus started has ended. Relay returns by itself.
func (b *Bus) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if first {
		for _, l := range b.openListeners() {
			l.Close()
		}
		close(b.done)
		b.wg.Wait()
		b.conn.Close()
	}
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
