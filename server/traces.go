package server

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/trail/otel"
)

const (
	traceTimeout     = 10 * time.Second       // for a batch with its retries, by the specification
	traceRetry       = 500 * time.Millisecond // the first pause; each further one is twice as long
	maxTraceResponse = 64 << 10               // as much is read of a response
)

// traceClient sends spans to a receiver by OTLP over HTTP in protobuf: an otlptrace.Client. OpenTelemetry's own client
// would link gRPC.
type traceClient struct {
	http    http.Client
	url     string
	header  http.Header
	gzip    bool
	timeout time.Duration
}

// newTraceClient returns a client configured by OpenTelemetry's environment variables. Errors concern variables that
// are malformed; by the specification these are reported and ignored, so that the client works without them.
func newTraceClient(address, version string, env Env) (*traceClient, error) {
	var ignored []error
	get := func(name string) string {
		return strings.TrimSpace(env.first("OTEL_EXPORTER_OTLP_TRACES_"+name, "OTEL_EXPORTER_OTLP_"+name))
	}
	ignore := func(name string, err error) {
		ignored = append(ignored, fmt.Errorf("OTEL_EXPORTER_OTLP_%s is ignored: %w", name, err))
	}
	c := &traceClient{url: address, header: http.Header{}, timeout: traceTimeout}
	c.header.Set("User-Agent", "ibid/"+version)
	for pair := range strings.SplitSeq(get("HEADERS"), ",") {
		name, escaped, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		name = strings.TrimSpace(name)
		switch {
		case strings.TrimSpace(pair) == "":
		case !found, err != nil, !httpguts.ValidHeaderFieldName(name), !httpguts.ValidHeaderFieldValue(value):
			ignore("HEADERS", errors.New("an element is not name=value, percent-encoded")) // it may be a secret
		default:
			c.header.Set(name, value)
		}
	}
	c.header.Set("Content-Type", otel.Protobuf)
	if name := cmp.Or(get("COMPRESSION"), "none"); name == "gzip" {
		c.gzip = true
		c.header.Set("Content-Encoding", "gzip")
	} else if name != "none" {
		ignore("COMPRESSION", fmt.Errorf("%q is neither gzip nor none", name))
	}
	if s := get("TIMEOUT"); s != "" {
		if ms, err := strconv.ParseUint(s, 10, 31); err == nil && ms > 0 {
			c.timeout = time.Duration(ms) * time.Millisecond
		} else {
			ignore("TIMEOUT", fmt.Errorf("%q is not a number of milliseconds", s))
		}
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := get("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if pool := x509.NewCertPool(); pool.AppendCertsFromPEM(pem) {
			security.RootCAs = pool
		} else {
			ignore("CERTIFICATE", cmp.Or(err, fmt.Errorf("%s has no certificate", file)))
		}
	}
	if file, key := get("CLIENT_CERTIFICATE"), get("CLIENT_KEY"); file != "" || key != "" {
		if pair, err := tls.LoadX509KeyPair(file, key); err == nil {
			security.Certificates = []tls.Certificate{pair}
		} else {
			ignore("CLIENT_CERTIFICATE", err)
		}
	}
	// Redirects would take the headers elsewhere, or turn a request into a GET that succeeds.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Transport = &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   security,
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   time.Minute,
	}
	return c, errors.Join(ignored...)
}

// Start implements otlptrace.Client.
func (*traceClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *traceClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client: it sends a batch, and again for as long as the receiver is busy or away.
func (c *traceClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // encoded like an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	if c.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(body)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = b.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for pause := traceRetry; ; pause *= 2 {
		asked, again, err := c.send(ctx, body)
		if err == nil {
			return nil
		}
		wait := max(asked, pause/2+rand.N(pause)) //nolint:gosec // only so that not all retry at once
		if !again || time.Until(deadline) < wait {
			return fmt.Errorf("sending to %s: %w", Redacted(c.url), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sending to %s: %w", Redacted(c.url), err)
		case <-time.After(wait):
		}
	}
}

// send makes one request. If it fails, it reports whether a retry makes sense, and after which pause if the receiver
// asks for one.
func (c *traceClient) send(ctx context.Context, body []byte) (pause time.Duration, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	r.Header = c.header
	res, err := c.http.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may contain a secret
		}
		return 0, true, err
	}
	defer func() { _ = res.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxTraceResponse)) // the status decides
	isProto := strings.HasPrefix(res.Header.Get("Content-Type"), otel.Protobuf)
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		if partial, _ := protoField(said, 1); isProto && len(partial) > 0 {
			message, _ := protoField(partial, 2)
			_, rejected := protoField(partial, 1)
			return 0, false, fmt.Errorf("the receiver rejected %d spans: %s", rejected, text.Line(string(message), 200))
		}
		return 0, false, nil
	}
	if isProto {
		said, _ = protoField(said, 2) // the message of a google.rpc.Status
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		pause, again = snapshot.RetryAfter(res.Header.Get("Retry-After"), time.Now()), true
	}
	return pause, again, fmt.Errorf("%s: %s", res.Status, text.Line(string(said), 200))
}

// protoField returns the last field with a number in an encoded message: its bytes, or its value as a varint. What is
// malformed is absent.
func protoField(b []byte, number protowire.Number) (bytes []byte, varint uint64) {
	for len(b) > 0 {
		got, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(got, kind, b[n:])
		if size < 0 {
			break
		}
		if got == number {
			bytes, _ = protowire.ConsumeBytes(b[n:])
			varint, _ = protowire.ConsumeVarint(b[n:])
		}
		b = b[n+size:]
	}
	return bytes, varint
}
