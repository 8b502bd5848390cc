package snapshot

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// What a transport may hold.
const (
	maxHeader   = 64 << 10 // of a response, in bytes
	idleConns   = 128
	idleSeconds = 30
)

// newTransport makes what all connections go through. There is no proxy: it would connect for us to wherever we say.
func newTransport(o *FetchOptions, l *FetchLimits, g *guard) *http.Transport {
	d := &net.Dialer{
		Timeout: l.Connect, Resolver: o.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return g.check(network, address) },
	}
	t := &http.Transport{
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    l.Connect,
		ResponseHeaderTimeout:  l.Header,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // we do it, within bounds
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    l.PerHost,
		IdleConnTimeout:        idleSeconds * time.Second,
		ReadBufferSize:         32 << 10, // most pages in one piece
	}
	if l.PerHost == 0 {
		t.MaxIdleConnsPerHost = l.Parallel
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	return t
}

// classify says in a report's words what went wrong with a hop.
func (f *Fetcher) classify(ctx context.Context, t *target, err error) *FetchError {
	if ferr, ok := errors.AsType[*FetchError](err); ok { // our own: a host that asked to be left alone
		ferr.URL = t.clean
		return ferr
	}
	e := &FetchError{URL: t.clean, Kind: Unreachable, Err: err}
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, errTotal), errors.Is(cause, errIdle):
		e.Reason, e.Err = reasonTimeout, cause
		return e
	case errors.Is(cause, errClosed):
		e.Reason, e.Err = reasonClosed, cause
		return e
	default:
		e.Reason, e.Err = reasonCancelled, cause
		return e
	}
	e.Kind, e.Reason = errorKind(err)
	return e
}

// errorKind sorts the errors of the network.
func errorKind(err error) (kind FetchErrorKind, reason string) {
	if _, ok := errors.AsType[codingError](err); ok {
		return UnsupportedMedia, reasonCoding
	}
	_, isDNS := errors.AsType[*net.DNSError](err)
	var timeout net.Error
	switch {
	case errors.Is(err, errSent):
		return TooLarge, reasonSent
	case errors.Is(err, errDecoded):
		return TooLarge, reasonDecoded
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return Blocked, reasonPort
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrInvalidHostPort):
		return Blocked, reasonNetwork
	case isDNS:
		return Unreachable, reasonDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return Unreachable, reasonTimeout
	case isTLS(err):
		return Unreachable, reasonTLS
	case isLost(err):
		return Unreachable, reasonConnect
	}
	return Unreachable, reasonProtocol
}

func isTLS(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return certificate || record || alert || errors.Is(err, http.ErrSchemeMismatch)
}

// isLost reports whether there was no connection, or suddenly none.
func isLost(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
