package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
)

// errProtocol says that an upstream answered with 101.
var errProtocol = errors.New("the upstream switched to a protocol that nobody asked for")

// upstreamProblem says what a failed round trip is to the client. An error's own words may hold addresses and what the
// upstream sent.
func upstreamProblem(upstream string, err error) *Problem {
	p := &Problem{
		Status: http.StatusBadGateway,
		Code:   CodeUpstream,
		Hint:   "check the upstream's URL, and whether it runs",
	}
	var timeout net.Error
	var dns *net.DNSError
	var network *net.OpError
	what := "it gave no response that can be understood"
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Code = http.StatusGatewayTimeout, CodeUpstreamSlow
		what = "it did not answer in time"
	case errors.As(err, &network) && network.Op == "proxyconnect":
		what, p.Hint = "the proxy on the way to it cannot be reached", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and whether the proxy runs"
	case errors.As(err, &dns):
		what = "its name is not known"
	case errors.As(err, &network) && network.Op == "dial":
		what = "it cannot be reached"
	case isTLS(err):
		what = "its TLS certificate or handshake was not accepted"
	case errors.Is(err, errProtocol):
		what = "it switched to a protocol that nobody asked for"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network != nil:
		what, p.Hint = "it closed the connection without a response", "whether it did what was asked is not known"
	}
	p.Detail = "upstream " + upstream + ": " + what
	return p
}

func isTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname)
}

// reason returns what the log may say of a failed round trip: the network's own words, which hold an address but
// nothing that was sent.
func reason(err error) string {
	var network *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &network):
		return network.Error()
	case errors.As(err, &dns):
		return dns.Error()
	case isTLS(err):
		return err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return "the response cannot be understood"
}
