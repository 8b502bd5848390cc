package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/ibidhq/ibid/gateway"
)

const (
	// keptDescriptors are reserved for the database, the journal, NATS and short reads.
	keptDescriptors = 64
	// fewestConnections are accepted however few descriptors there are.
	fewestConnections = 8
)

// boundConnections limits client connections by the available file descriptors: a call uses one for its client and one
// for its provider.
func (s *Server) boundConnections(ctx context.Context, hs *http.Server, l net.Listener) net.Listener {
	limit := descriptors()
	if limit == 0 {
		return l
	}
	most := max(fewestConnections, (limit-keptDescriptors)/2)
	ctx = context.WithoutCancel(ctx)
	attrs := []slog.Attr{
		slog.Int("connections", most), slog.Int("descriptors", limit),
		slog.String("hint", "a higher limit of open files (ulimit -n, LimitNOFILE=) allows more connections"),
	}
	c := gateway.NewCrowd(hs, most, func(full bool) {
		if full {
			s.log.LogAttrs(ctx, slog.LevelWarn, "all connections are in use: new clients wait", attrs...)
		} else {
			s.log.LogAttrs(ctx, slog.LevelInfo, "connections for new clients are available again", attrs...)
		}
	})
	s.crowd.Store(c)
	return c.Listener(l)
}

// crowded returns an error while new clients wait.
func (s *Server) crowded() error {
	if c := s.crowd.Load(); c != nil && c.Full() {
		return errors.New("all connections are in use")
	}
	return nil
}
