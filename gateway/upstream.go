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

// maxUpstreamName is how long the name of an upstream may be, in bytes.
const maxUpstreamName = 64

// reserved are the first path segments that are ibid's own.
var reserved = strings.Fields("v1 ui runs mcp healthz readyz metrics " +
	"schema log .well-known ibid.js favicon.ico robots.txt assets docs debug api ibid")

// Reserved returns the first path segments that are ibid's own, and so no names of upstreams.
func Reserved() []string { return slices.Clone(reserved) }

// upstream is an Upstream, ready for use.
type upstream struct {
	Upstream
	base      string // the URL's path, without a slash at its end
	rawBase   string // the same, escaped
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
		err = fmt.Errorf("a name has 1 to %d lower-case letters, digits, '-' and '_'", maxUpstreamName)
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

// splitPath returns the first segment of a request's path, and the rest of it, unescaped and, where that is not the
// same, escaped: as in [url.URL].
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
		return "", "", "" // the name is escaped: no upstream's is
	}
	return name, path, rawPath
}

// target sets to to where a call goes.
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

// errProtocol says that an upstream answered with 101.
var errProtocol = errors.New("the upstream switched to a protocol that nobody asked for")

// upstreamProblem says what a failed round trip is to the client. An error's own words may hold addresses and what the
// upstream sent.
func upstreamProblem(upstream string, err error) *Problem {
	p := NewProblem(CodeUpstream, "", "check the upstream's URL, and whether it runs")
	var timeout net.Error
	var dns *net.DNSError
	var network *net.OpError
	what := "it gave no response that can be understood"
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p = NewProblem(CodeUpstreamSlow, "", p.Hint)
		what = "it did not answer in time"
	case errors.As(err, &network) && network.Op == "proxyconnect":
		what = "the proxy on the way to it cannot be reached"
		p.Hint = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and whether the proxy runs"
	case errors.As(err, &dns):
		what = "its name is not known"
	case errors.As(err, &network) && network.Op == "dial":
		what = "it cannot be reached"
	case isTLS(err):
		what = "its TLS certificate or handshake was not accepted"
	case errors.Is(err, errProtocol):
		what = "it switched to a protocol that nobody asked for"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network != nil:
		what = "it closed the connection without a response"
		p.Hint = "whether it did what was asked is not known"
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

const (
	dialTimeout      = 10 * time.Second
	keepAlive        = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
	idleConnsPerHost = 1024
	// writeBuffer is for what is sent to an upstream, in bytes: large bodies go past it.
	writeBuffer = 2 << 10
	// maxResponseHeader bounds the header of a response, in bytes.
	maxResponseHeader = 1 << 20
)

// NewTransport returns a transport that suits a gateway: it leaves the encoding of bodies alone, keeps many connections
// to few hosts, speaks HTTP/2 where the upstream does, and waits for a response as long as the client does, since a
// model may think for an hour. Proxy says the way to them; nil: straight.
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
