package servertest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/server"
)

// Key is the key of every provider for the server's own calls.
const Key = "the-key-of-the-test"

// Setup customises a world. The zero value is ready to use.
type Setup struct {
	Upstream  http.Handler         // the providers, each below its name; nil means internal/replay
	Providers []string             // the names of providers and upstreams; nil means AllProviders
	Configure func(*server.Config) // changes the configuration before it is resolved; may be nil
	Env       map[string]string    // variables in addition to the providers' keys
}

// AllProviders are the providers that internal/replay simulates.
var AllProviders = []string{
	"openai", "gemini", "cohere", "anthropic", "perplexity", "xai", "openrouter", "mistral",
}

// World is a server that runs until the test ends.
type World struct {
	*server.Server

	URL      string // of the server
	Upstream *httptest.Server
	Log      *Log

	data string
	stop func() error
}

// Start starts a server and ends it with the test.
func Start(tb testing.TB, s *Setup) *World {
	tb.Helper()
	if s == nil {
		s = &Setup{}
	}
	upstream, providers := s.Upstream, s.Providers
	if upstream == nil {
		upstream = replay.New(nil)
	}
	if providers == nil {
		providers = AllProviders
	}
	w := &World{Upstream: httptest.NewServer(upstream), Log: &Log{}}
	tb.Cleanup(w.Upstream.Close)
	c := server.Defaults()
	c.Listen, c.Data, c.Prompts = "127.0.0.1:0", tb.TempDir(), "all"
	c.Drain, c.Publish.Recheck = 5*time.Second, server.Recheck{Off: true} // no test reads the web
	for _, name := range providers {
		c.Upstreams[name] = &server.Upstream{
			URL: server.URL(w.Upstream.URL + "/" + name), Provider: name, KeyEnv: "KEY_OF_THE_TEST",
		}
		c.Chat = append(c.Chat, server.ChatModel{Upstream: name, Model: "heron-1"})
	}
	if s.Configure != nil {
		s.Configure(c)
	}
	env := func(name string) (string, bool) {
		if name == "KEY_OF_THE_TEST" {
			return Key, true
		}
		value, ok := s.Env[name]
		return value, ok
	}
	if err := c.Resolve(nil, env); err != nil {
		tb.Fatal(err)
	}
	var err error
	w.data = c.Data
	w.Server, err = server.Open(tb.Context(), c, &server.Options{
		Logger: slog.New(slog.NewJSONHandler(w.Log, nil)), Env: env, Version: "test",
	})
	if err != nil {
		tb.Fatal(err)
	}
	w.run(tb)
	return w
}

// run serves until the test ends.
func (w *World) run(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // the context of a test ends before its clean-up
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, func(_ context.Context, url string) error {
			listening <- url
			return nil
		})
	}()
	w.stop = sync.OnceValue(func() error {
		http.DefaultClient.CloseIdleConnections() // else these would delay the shutdown
		cancel()
		return <-ended
	})
	tb.Cleanup(func() {
		if err := w.stop(); err != nil {
			tb.Errorf("the server ended: %v", err)
		}
		if tb.Failed() {
			tb.Logf("the server's log:\n%s", w.Log)
		}
	})
	select {
	case w.URL = <-listening:
	case err := <-ended:
		tb.Fatalf("the server did not start: %v", err)
	}
}

// Data returns the server's data directory.
func (w *World) Data() string { return w.data }

// Stop stops the server before the test ends, and returns the result of Run.
func (w *World) Stop() error { return w.stop() }

// Log collects the server's log. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  []byte
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
