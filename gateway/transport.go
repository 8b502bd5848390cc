package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

// TransportOptions are the options of [NewTransport].
type TransportOptions struct {
	Proxy func(*http.Request) (*url.URL, error) // nil: none
	TLS   *tls.Config                           // nil: the system's roots
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
// model may think for an hour.
func NewTransport(o *TransportOptions) *http.Transport {
	if o == nil {
		o = &TransportOptions{}
	}
	t := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:        o.TLS,
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
