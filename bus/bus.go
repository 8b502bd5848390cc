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

// Embedded is the address of a NATS server inside this process.
const Embedded = "embedded"

const (
	maxUnsent     = 1 << 20 // bytes buffered while the server is unreachable
	connectWait   = 2 * time.Second
	reconnectWait = time.Second
	pingEvery     = 5 * time.Second // after two without an answer the connection is dead
	flushWait     = 2 * time.Second
)

var errClosed = errors.New("the bus is closed")

// Bus connects the listeners and writers of runs. It is safe for concurrent use.
type Bus struct {
	log    *slog.Logger
	server *server.Server // nil if the server is elsewhere
	conn   *nats.Conn

	wake        chan struct{} // capacity 1: Relay has work to do
	live        chan liveMessage
	orphanAfter time.Duration // orphanAge; shorter in tests

	mu        sync.Mutex // guards the following fields
	listeners map[*Listener]struct{}
	replays   map[runKey]map[*func()]struct{} // callbacks registered with OnReplay
	closed    bool

	done chan struct{} // closed by Close
	gone chan struct{} // closed when the connection is closed
	wg   sync.WaitGroup
}

// Open connects to NATS: for [Embedded] to a server started in this process, else to one at the given addresses,
// separated by commas: nats://host:4222, or tls:// to require TLS, with user:password@ or token@ if the server needs
// credentials. A nil logger disables logging. Close the bus after use.
//
// An unreachable server is no error: the bus keeps trying as long as it is open, and [Bus.Healthy] reports it. Errors
// never contain an address.
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
		log:         cmp.Or(logger, slog.New(slog.DiscardHandler)),
		wake:        make(chan struct{}, 1),
		live:        make(chan liveMessage, maxLiveQueue),
		listeners:   map[*Listener]struct{}{},
		replays:     map[runKey]map[*func()]struct{}{},
		done:        make(chan struct{}),
		gone:        make(chan struct{}),
		orphanAfter: orphanAge,
	}
}

// startServer starts a NATS server that is only reachable from this process. Without a system account and monitoring,
// it uses about 3 MB of memory.
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

// stopServer stops the server in this process, if there is one.
func (b *Bus) stopServer() {
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
}

// run sends live deltas and wakes the listeners periodically.
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

// checkAddress rejects addresses that nats.go would reject with an error that contains them, including the password.
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
		// Messages were lost because a queue of nats.go was full, or the server refused something.
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

// connected is called for every new connection: messages sent before it are lost.
func (b *Bus) connected(conn *nats.Conn) {
	if b.server == nil { // not worth a line for a server in this process
		b.log.Info("connected to NATS")
	}
	b.Wake()
	for _, l := range b.openListeners() {
		b.requestReplay(conn, l.key)
		l.deliver(Message{Wake: true})
	}
}

// Healthy returns the reason why the bus cannot reach other nodes at present, or nil if it can. Meanwhile nothing is
// lost, only delayed.
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

// Close closes all listeners and returns when everything that the bus started has ended. Relay returns by itself.
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

// flush waits until the server has received what was sent so far. Without a connection it returns at once.
func (b *Bus) flush(ctx context.Context) error {
	if !b.conn.IsConnected() {
		return nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	return b.conn.FlushWithContext(ctx)
}
