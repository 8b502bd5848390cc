package bus

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// startServer starts a NATS server that is reachable from this process only. It costs about 3 MB of memory: without an
// account for the system's own messages, and with nothing to monitor it by.
func startServer() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName:      "ibid",
		DontListen:      true,
		NoSigs:          true,
		NoLog:           true,
		NoSystemAccount: true,
		MaxPayload:      MaxMessage,
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
