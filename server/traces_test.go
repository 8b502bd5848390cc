package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// receiver is an OTLP receiver that responds in turn, and then with success.
type receiver struct {
	answers []func(http.ResponseWriter)

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
	times    []time.Time
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.requests)
	c.requests, c.bodies, c.times = append(c.requests, r), append(c.bodies, body), append(c.times, time.Now())
	w.Header().Set("Content-Type", "application/x-protobuf")
	if n < len(c.answers) {
		c.answers[n](w)
	}
}

// spans returns the names of the spans in a body.
func spans(t *testing.T, body []byte) string {
	t.Helper()
	var data tracepb.TracesData
	testenv.OK(t, proto.Unmarshal(body, &data))
	var names []string
	for _, r := range data.ResourceSpans {
		for _, a := range r.Resource.Attributes {
			names = append(names, a.Key+"="+a.Value.GetStringValue())
		}
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				names = append(names, span.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

// traced makes a captured call on a server that sends traces to an address, stops it, and returns its log.
func traced(t *testing.T, address string, env map[string]string) string {
	t.Helper()
	w := servertest.Start(t, &servertest.Setup{Env: env, Configure: func(c *server.Config) { c.OTLP = address }})
	r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/openai/v1/responses",
		strings.NewReader(`{"model":"heron-1","input":"Where do herons nest?"}`)))(t)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	testenv.OK(t, err)
	_ = testenv.Must(io.ReadAll(res.Body))(t)
	testenv.OK(t, res.Body.Close())
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	testenv.OK(t, w.Stop())
	return w.Log.String()
}

// Traces reach a receiver with the headers, compression and certificate of OpenTelemetry's variables, again if it is
// busy, and not before it asks for them.
func TestTraces(t *testing.T) {
	status := func(code int, header, value string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
		}
	}
	c := &receiver{answers: []func(http.ResponseWriter){status(503, "X", ""), status(429, "Retry-After", "2")}}
	s := httptest.NewTLSServer(c)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	testenv.OK(t, os.WriteFile(file, ca, 0o600))
	log := traced(t, s.URL+"/otlp/v1/traces?key=k", map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        file,
		"OTEL_EXPORTER_OTLP_HEADERS":            "Authorization=of another signal",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":     "authorization=Bearer%20a%2Cb, x-tenant = t",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_TIMEOUT":            "60000",
	})
	if strings.Contains(log, "traces") {
		t.Error(log)
	}
	if len(c.requests) != 3 {
		t.Fatalf("%d requests", len(c.requests))
	}
	if pause := c.times[1].Sub(c.times[0]); pause < 200*time.Millisecond {
		t.Errorf("again after %v", pause)
	}
	if pause := c.times[2].Sub(c.times[1]); pause < 2*time.Second {
		t.Errorf("again after %v, not 2 s", pause)
	}
	for i, r := range c.requests {
		testenv.Equal(t, "request", "POST /otlp/v1/traces?key=k Bearer a,b t gzip application/x-protobuf ibid/test", strings.Join([]string{
			r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("X-Tenant"),
			r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"),
		}, " "))
		body := testenv.Must(io.ReadAll(testenv.Must(gzip.NewReader(bytes.NewReader(c.bodies[i])))(t)))(t)
		if got := spans(t, body); !strings.Contains(got, "service.name=ibid service.version=test") || !strings.Contains(got, "heron-1") {
			t.Errorf("spans %q", got)
		}
	}
}

// What a receiver says goes to the log, without the secrets of its address, and calls go on.
func TestTracesRefused(t *testing.T) {
	// Not in parallel: OpenTelemetry's error handler is one for the process.
	message := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	varint := func(n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), n)
	}
	for _, test := range []struct {
		name     string
		status   int
		location string
		body     []byte
		env      map[string]string
		requests int
		want     string
	}{
		{
			name: "partial success", status: 200, body: message(nil, 1, string(message(varint(3), 2, "attributes\nare too long"))),
			requests: 1, want: "the receiver rejected 3 spans: attributes are too long",
		},
		{name: "success", status: 200, requests: 1},
		{name: "refused", status: 400, body: message(varint(3), 2, "no tenant"), requests: 1, want: "400 Bad Request: no tenant"},
		{name: "broken body", status: 401, body: []byte{0xff, 0xff}, requests: 1, want: "401 Unauthorized: "},
		{name: "redirect", status: 307, location: "/elsewhere", requests: 1, want: "307 Temporary Redirect: "},
		{name: "timeout", status: 504, env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "100"}, requests: 1, want: "504 Gateway Timeout: "},
		{name: "malformed variables", status: 200, env: map[string]string{
			"OTEL_EXPORTER_OTLP_HEADERS": "s3cret", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s", "OTEL_EXPORTER_OTLP_COMPRESSION": "br",
			"OTEL_EXPORTER_OTLP_CERTIFICATE": "/missing.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/missing.key",
		}, requests: 1, want: "is ignored"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &receiver{answers: []func(http.ResponseWriter){func(w http.ResponseWriter) {
				w.Header().Set("Location", test.location)
				w.WriteHeader(test.status)
				_, _ = w.Write(test.body)
			}}}
			s := httptest.NewServer(c)
			defer s.Close()
			log := traced(t, strings.Replace(s.URL, "://", "://user:s3cret@", 1)+"/v1/traces?key=s3cret", test.env)
			if len(c.requests) != test.requests {
				t.Errorf("%d requests", len(c.requests))
			}
			if said := strings.Contains(log, `"level":"WARN"`); said != (test.want != "") || !strings.Contains(log, test.want) || strings.Contains(log, "s3cret") {
				t.Errorf("the log does not say %q:\n%s", test.want, log)
			}
			for name := range test.env {
				if name = strings.Replace(name, "CLIENT_KEY", "CLIENT_CERTIFICATE", 1); test.want == "is ignored" && !strings.Contains(log, name+" is ignored") {
					t.Errorf("nothing about %s:\n%s", name, log)
				}
			}
		})
	}
}
