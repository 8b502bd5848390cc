package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// world is a gateway with all its parts, in front of an upstream.
type world struct {
	dir      string
	upstream *httptest.Server
	store    *store.Store
	journal  *journal.Journal
	gateway  *gateway.Gateway
	metrics  *prometheus.Registry
	url      string // of the gateway
	client   *http.Client
	log      *servertest.Log
	options  *gateway.Options
}

// setup configures a world.
type setup struct {
	options  gateway.Options // Upstreams, Store and Journal are filled in
	provider string          // of the upstream "up"; default openai
	journal  journal.Options
	tls      bool // the server in front of the gateway uses TLS
	start    func(*httptest.Server)
	idle     bool              // without the indexer
	policies *gateway.Policies // of the upstream
}

// overTLS makes the upstream use HTTP/2 over TLS.
func (s *setup) overTLS() {
	s.start = func(up *httptest.Server) {
		up.EnableHTTP2 = true
		up.StartTLS()
		transport := gateway.NewTransport(nil)
		transport.TLSClientConfig = up.Client().Transport.(*http.Transport).TLSClientConfig
		s.options.Transport = transport
	}
}

// newWorld starts a world that ends with the test.
func newWorld(tb testing.TB, upstream http.HandlerFunc, s *setup) *world {
	tb.Helper()
	if s == nil {
		s = &setup{}
	}
	w := &world{dir: tb.TempDir(), metrics: prometheus.NewRegistry(), log: &servertest.Log{}}
	w.upstream = httptest.NewUnstartedServer(upstream)
	if s.start != nil {
		s.start(w.upstream)
	} else {
		w.upstream.Start()
	}
	tb.Cleanup(w.upstream.Close)
	var err error
	if w.journal, err = journal.Open(filepath.Join(w.dir, "journal"), &s.journal); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.journal.Close() })
	w.store = openStoreWith(tb, filepath.Join(w.dir, "ibid.db"), s.options.Bus)
	w.gateway = newGateway(tb, w, s)
	if !s.idle {
		run(tb, w.gateway)
	}
	w.serve(tb, s.tls)
	return w
}

func openStore(tb testing.TB, name string) *store.Store {
	tb.Helper()
	return openStoreWith(tb, name, nil)
}

// openStoreWith opens a store whose events go to a bus, unless that is nil.
func openStoreWith(tb testing.TB, name string, b *bus.Bus) *store.Store {
	tb.Helper()
	o := &store.Options{}
	if b != nil {
		o.Committed = b.Committed()
	}
	st := testenv.Must(store.Open(context.Background(), name, o))(tb)
	tb.Cleanup(func() { _ = st.Close() })
	return st
}

func newGateway(tb testing.TB, w *world, s *setup) *gateway.Gateway {
	tb.Helper()
	u := testenv.Must(url.Parse(w.upstream.URL))(tb)
	o := s.options
	provider := s.provider
	if provider == "" {
		provider = "openai"
	}
	if o.Upstreams == nil {
		o.Upstreams = []gateway.Upstream{{Name: "up", URL: u, Provider: provider, Policies: s.policies}}
	}
	o.Store, o.Journal, o.Metrics = w.store, w.journal, w.metrics
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewJSONHandler(w.log, nil))
	}
	w.options = &o
	return testenv.Must(gateway.New(&o))(tb)
}

func openBus(tb testing.TB) *bus.Bus {
	tb.Helper()
	b := testenv.Must(bus.Open(context.Background(), "", nil))(tb)
	tb.Cleanup(func() { _ = b.Close() })
	return b
}

// run runs the indexer until the test ends.
func run(tb testing.TB, g *gateway.Gateway) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
}

// serve starts a server in front of the gateway.
func (w *world) serve(tb testing.TB, secure bool) {
	tb.Helper()
	server := gateway.NewServer("", w.gateway, nil)
	front := httptest.NewUnstartedServer(w.gateway)
	front.Config = server
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	if secure {
		front.EnableHTTP2 = true
		front.StartTLS()
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		transport.ForceAttemptHTTP2 = true
	} else {
		front.Start()
	}
	w.url = front.URL
	w.client = &http.Client{Transport: transport}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		front.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.gateway.Close(ctx); err != nil {
			tb.Logf("Close: %v", err)
		}
	})
}

// reply is a response whose body was read.
type reply struct {
	StatusCode      int
	Proto           string
	Header, Trailer http.Header
}

// do makes a request and returns the response with its body.
func (w *world) do(tb testing.TB, r *http.Request) (*reply, []byte) {
	tb.Helper()
	res, err := w.client.Do(r)
	testenv.OK(tb, err)
	return readReply(tb, res)
}

// flush sends what an upstream has written so far.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// ask posts a chat request and reads the whole response.
func (w *world) ask(tb testing.TB, header http.Header) (*reply, []byte) {
	tb.Helper()
	r := w.request(tb, http.MethodPost, chat, strings.NewReader(chatRequest))
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	return w.do(tb, r)
}

// readRaw reads a response from a connection.
func readRaw(tb testing.TB, b *bufio.Reader) (*reply, []byte) {
	tb.Helper()
	res, err := http.ReadResponse(b, nil)
	testenv.OK(tb, err)
	return readReply(tb, res)
}

func readReply(tb testing.TB, res *http.Response) (*reply, []byte) {
	tb.Helper()
	defer res.Body.Close()
	var body []byte
	if res.StatusCode != http.StatusSwitchingProtocols {
		var err error
		if body, err = io.ReadAll(res.Body); err != nil {
			tb.Fatalf("reading the response: %v", err)
		}
	}
	return &reply{res.StatusCode, res.Proto, res.Header, res.Trailer}, body
}

func (w *world) request(tb testing.TB, method, path string, body io.Reader) *http.Request {
	tb.Helper()
	return testenv.Must(http.NewRequest(method, w.url+path, body))(tb)
}

// raw sends bytes to the gateway over a new connection, which it returns.
func (w *world) raw(tb testing.TB, s string) net.Conn {
	tb.Helper()
	u, _ := url.Parse(w.url)
	c := testenv.Must(net.Dial("tcp", u.Host))(tb)
	tb.Cleanup(func() { _ = c.Close() })
	testenv.Must(io.WriteString(c, s))(tb)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	return c
}
