package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// The limits of [NewServer].
const (
	// MaxHeader is how many bytes the header of a request may have; more is a 431.
	MaxHeader = 64 << 10
	// headerTime is how long a client may take to send a request's header.
	headerTime = 20 * time.Second
	// idleTime is how long a connection is kept open between requests.
	idleTime = 3 * time.Minute
	// maxStreams is how many requests one HTTP/2 connection may make at a time.
	maxStreams = 1000
)

// lastMoment is how long calls have to end once their connections are closed.
const lastMoment = 2 * time.Second

// ServerOptions are the options of [NewServer].
type ServerOptions struct {
	TLS    *tls.Config  // nil: no TLS
	Logger *slog.Logger // hears about broken connections and panics of handlers; nil: nobody does
}

// NewServer returns a server for a handler that streams, at an address as net/http takes it. It speaks HTTP/1.1 and
// HTTP/2, the latter with TLS and, with prior knowledge, without. It bounds what a request's header may cost; how long
// a request may take is up to its handler.
func NewServer(address string, h http.Handler, o *ServerOptions) *http.Server {
	if o == nil {
		o = &ServerOptions{}
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &http.Server{
		Addr:              address,
		Handler:           h,
		TLSConfig:         o.TLS,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, SendPingTimeout: 30 * time.Second, WriteByteTimeout: 2 * time.Minute,
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Shutdown ends a server and the gateway behind it: it takes no more calls, lets those that are being served end, and
// waits until their answers are in the store. When ctx ends it breaks off what is left, whose partial answers go into
// the journal, and says so.
func Shutdown(ctx context.Context, s *http.Server, g *Gateway) error {
	err := s.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("shutting down: calls were broken off: %w", errors.Join(err, s.Close()))
	}
	return errors.Join(err, g.Close(ctx))
}
