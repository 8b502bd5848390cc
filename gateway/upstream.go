package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxUpstreamName is the largest length of an upstream's name, in bytes.
const maxUpstreamName = 64

// reserved are the first path segments used by ibid itself.
var reserved = strings.Fields("v1 ui runs mcp healthz readyz metrics " +
	"schema log .well-known ibid.js favicon.ico robots.txt assets docs debug api ibid")

// Reserved returns the first path segments used by ibid itself, which upstreams cannot have as names.
func Reserved() []string { return slices.Clone(reserved) }

// upstream is an Upstream with its derived values.
type upstream struct {
	Upstream
	base      string // the URL's path without a trailing slash
	rawBase   string // base, escaped
	transport http.RoundTripper
	tunnel    http.Handler
}

func newUpstream(u *Upstream, shared http.RoundTripper) (*upstream, error) {
	notInName := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	err := u.Policies.check()
	switch {
	case u.Name == "" || len(u.Name) > maxUpstreamName || strings.ContainsFunc(u.Name, notInName):
		err = fmt.Errorf("a name consists of 1 to %d lower-case letters, digits, '-' and '_'", maxUpstreamName)
	case slices.Contains(reserved, u.Name):
		err = errors.New("the name is reserved for ibid's own paths")
	case u.URL == nil || u.URL.Host == "" || u.URL.Scheme != "http" && u.URL.Scheme != "https":
		err = errors.New("needs a URL that begins with http:// or https://")
	case u.URL.User != nil || u.URL.RawQuery != "" || u.URL.ForceQuery || u.URL.Fragment != "":
		err = errors.New("its URL may not have a user, a query or a fragment")
	}
	if err != nil {
		return nil, fmt.Errorf("upstream %q: %w", u.Name, err)
	}
	up := &upstream{Upstream: *u, transport: shared}
	if u.Transport != nil {
		up.transport = u.Transport
	}
	up.base = strings.TrimRight(u.URL.Path, "/")
	up.rawBase = strings.TrimRight(u.URL.EscapedPath(), "/")
	return up, nil
}

// splitPath returns the first segment of a request's path and the rest, unescaped and, if different, escaped: as in
// [url.URL].
func splitPath(u *url.URL) (name, path, rawPath string) {
	whole := u.RawPath
	if whole == "" {
		whole = u.Path
	}
	if whole == "" || whole[0] != '/' {
		return "", "", ""
	}
	name, rawPath = whole[1:], ""
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rawPath = name[:i], name[i:]
	}
	path = rawPath
	if u.RawPath == "" {
		rawPath = ""
	} else if path = strings.TrimPrefix(u.Path, "/"+name); len(path) == len(u.Path) {
		return "", "", "" // the name is escaped; no upstream's name needs that
	}
	return name, path, rawPath
}

// target sets to to the URL of a call.
func (u *upstream) target(to *url.URL, in *url.URL, path, rawPath string) {
	to.Scheme, to.Host = u.URL.Scheme, u.URL.Host
	to.RawQuery, to.ForceQuery = in.RawQuery, in.ForceQuery
	to.Path, to.RawPath = path, rawPath
	if u.base == "" {
		return
	}
	if rawPath != "" || u.rawBase != u.base {
		if rawPath == "" {
			rawPath = (&url.URL{Path: path}).EscapedPath()
		}
		to.RawPath = u.rawBase + rawPath
	}
	to.Path = u.base + path
}

// errProtocol reports an upstream that answered with 101.
var errProtocol = errors.New("the upstream switched to a protocol without being asked")

// upstreamProblem returns the problem for a failed round trip. It does not contain the error's own text, which may
// include addresses and data sent by the upstream.
func upstreamProblem(upstream string, err error) *Problem {
	p := NewProblem(CodeUpstream, "", "check the upstream's URL and whether it is running")
	var timeout net.Error
	var dns *net.DNSError
	var network *net.OpError
	detail := "it sent an invalid response"
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p = NewProblem(CodeUpstreamSlow, "", p.Hint)
		detail = "it did not answer in time"
	case errors.As(err, &network) && network.Op == "proxyconnect":
		detail = "its proxy cannot be reached"
		p.Hint = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and whether the proxy is running"
	case errors.As(err, &dns):
		detail = "its host name cannot be resolved"
	case errors.As(err, &network) && network.Op == "dial":
		detail = "it cannot be reached"
	case isTLS(err):
		detail = "its TLS certificate or handshake was not accepted"
	case errors.Is(err, errProtocol):
		detail = "it switched to a protocol without being asked"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network != nil:
		detail = "it closed the connection without a response"
		p.Hint = "it is unknown whether it processed the request"
	}
	p.Detail = "upstream " + upstream + ": " + detail
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

// reason returns the text of a failed round trip that may be logged: the network's own error, which may contain an
// address but no data that was sent.
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
	return "the response is invalid"
}

const (
	dialTimeout      = 10 * time.Second
	keepAlive        = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
	idleConnsPerHost = 1024
	// writeBuffer is the size of the buffer for writes to an upstream, in bytes; large bodies bypass it.
	writeBuffer = 2 << 10
	// maxResponseHeader is the largest response header, in bytes.
	maxResponseHeader = 1 << 20
)

// NewTransport returns a transport for a gateway: it leaves the encoding of bodies alone, keeps many connections to few
// hosts, uses HTTP/2 where the upstream supports it, and waits for a response as long as the client does, since a model
// may think for an hour. If proxy is nil, it connects directly.
func NewTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleConnTimeout,
		MaxIdleConnsPerHost:    idleConnsPerHost,
		MaxResponseHeaderBytes: maxResponseHeader,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        writeBuffer,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: keepAlive},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return t
}
