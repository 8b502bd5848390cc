package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

const key = "the-key-of-the-test"

// world is a chat over a real gateway, in front of an upstream.
type world struct {
	*httptest.Server

	chat    *chat.Chat
	gateway *gateway.Gateway
	store   *store.Store
	bus     *bus.Bus
	guard   *gateway.Guard
	metrics *prometheus.Registry
	log     *lines
}

// setup says what is special about a world.
type setup struct {
	upstream http.Handler // nil: internal/replay
	guard    gateway.GuardOptions
	late     time.Duration
	silence  time.Duration
	lateFor  func(upstream, model, run string) bool
	change   func([]chat.Provider)
}

func providerNames() []string {
	return []string{"openai", "gemini", "cohere", "anthropic", "perplexity", "xai", "openrouter", "mistral"}
}

func newWorld(tb testing.TB, s *setup) *world {
	tb.Helper()
	if s == nil {
		s = &setup{}
	}
	handler := s.upstream
	if handler == nil {
		handler = replay.New(nil)
	}
	upstream := httptest.NewServer(handler)
	tb.Cleanup(upstream.Close)
	w := &world{metrics: prometheus.NewRegistry(), log: &lines{}}
	var err error
	if w.store, err = store.Open(tb.Context(), tb.TempDir()+"/ibid.db", nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.store.Close() })
	if w.bus, err = bus.Open(tb.Context(), bus.Embedded, nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.bus.Close() })
	s.guard.Store = w.store
	w.guard = gateway.NewGuard(&s.guard)
	var providers []chat.Provider
	var upstreams []gateway.Upstream
	for _, name := range providerNames() {
		u, err := url.Parse(upstream.URL + "/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		upstreams = append(upstreams, gateway.Upstream{Name: name, URL: u, Provider: name})
		providers = append(providers, chat.Provider{Upstream: name, Provider: name, Model: "heron-1", Key: key})
	}
	if s.change != nil {
		s.change(providers)
	}
	w.openGateway(tb, upstreams)
	w.chat, err = chat.New(&chat.Options{
		Gateway: w.gateway, Guard: w.guard, Store: w.store, Bus: w.bus, Providers: providers, Late: s.late, LateFor: s.lateFor, Silence: s.silence,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)), Metrics: w.metrics,
	})
	if err != nil {
		tb.Fatal(err)
	}
	w.Server = httptest.NewServer(w.chat)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = w.chat.Close(ctx)
		w.CloseClientConnections()
		w.Close()
		_ = w.gateway.Close(ctx)
	})
	return w
}

func (w *world) openGateway(tb testing.TB, upstreams []gateway.Upstream) {
	tb.Helper()
	j, err := journal.Open(tb.TempDir(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close() })
	w.gateway, err = gateway.New(&gateway.Options{
		Upstreams: upstreams, Store: w.store, Bus: w.bus, Journal: j, Guard: w.guard, Prompts: gateway.PromptsAll,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- w.gateway.Run(ctx) }()
	go func() { ended <- w.bus.Relay(ctx, w.store) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
}

// lines keeps what was logged.
type lines struct {
	mu sync.Mutex
	b  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// response is what came back.
type response struct {
	StatusCode int
	Header     http.Header
	body       string
}

// opened is a response that is still to be read.
type opened struct {
	StatusCode int
	Header     http.Header
	Body       io.ReadCloser
}

// open makes a request and leaves the body to be read. fields are header fields, by turns name and value.
func (w *world) open(tb testing.TB, method, path, body string, fields ...string) *opened {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, w.URL+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = res.Body.Close() })
	return &opened{res.StatusCode, res.Header, res.Body}
}

func (w *world) do(tb testing.TB, method, path, body string, fields ...string) *response {
	tb.Helper()
	res := w.open(tb, method, path, body, fields...)
	got, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatalf("%s %s: %v after %q", method, path, err, got)
	}
	return &response{res.StatusCode, res.Header, string(got)}
}

// event is one of an event stream.
type event struct{ name, data string }

// scanner reads an event stream, event by event.
type scanner struct{ lines *bufio.Scanner }

func newScanner(r io.Reader) *scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	return &scanner{s}
}

// next returns the next event; false: there is none.
func (s *scanner) next() (event, bool) {
	var e event
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case line == "" && e.data != "":
			return e, true
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data += line[6:]
		}
	}
	return e, e.data != ""
}

func events(body string) []event {
	var all []event
	s := newScanner(strings.NewReader(body))
	for {
		e, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

func unmarshal[T any](tb testing.TB, data string) T {
	tb.Helper()
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		tb.Fatalf("%v in %.300q", err, data)
	}
	return v
}
