package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// key is the key of every provider.
const key = servertest.Key

// world is a chat beside all of ibid, in front of an upstream.
type world struct {
	*servertest.World // its URL is that of the chat

	chat *chat.Chat
}

// setup is what differs in a world.
type setup struct {
	upstream http.Handler // nil for internal/replay
	origins  []string
	late     time.Duration
	silence  time.Duration
	change   func([]chat.Provider)
	server   func(*server.Config)
}

// newWorld makes a chat of its own instead of using the server's, because the differences cannot be configured there.
func newWorld(tb testing.TB, s *setup) *world {
	tb.Helper()
	if s == nil {
		s = &setup{}
	}
	w := &world{World: servertest.Start(tb, &servertest.Setup{
		Upstream: s.upstream, Configure: func(c *server.Config) {
			c.Origins = s.origins
			if s.server != nil {
				s.server(c)
			}
		},
	})}
	var providers []chat.Provider
	for _, name := range servertest.AllProviders {
		providers = append(providers, chat.Provider{Upstream: name, Provider: name, Model: "heron-1", Key: key})
	}
	if s.change != nil {
		s.change(providers)
	}
	w.chat = testenv.Must(chat.New(&chat.Options{
		Gateway: w.Gateway, Guard: w.Guard, Store: w.Store, Providers: providers, Late: s.late, Silence: s.silence,
		Logger: slog.New(slog.NewJSONHandler(w.Log, nil)),
	}))(tb)
	listener := httptest.NewServer(w.chat)
	w.URL = listener.URL
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = w.chat.Close(ctx)
		listener.CloseClientConnections()
		listener.Close()
	})
	return w
}

// response is a response that was read.
type response struct {
	*http.Response

	body string
}

// open makes a request and leaves the body to be read. fields are header names and values in turn.
func (w *world) open(tb testing.TB, method, path, body string, fields ...string) *opened {
	tb.Helper()
	r := testenv.Must(http.NewRequestWithContext(tb.Context(), method, w.URL+path, strings.NewReader(body)))(tb)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	testenv.OK(tb, err)
	tb.Cleanup(func() { _ = res.Body.Close() })
	return &opened{res}
}

func (w *world) do(tb testing.TB, method, path, body string, fields ...string) *response {
	tb.Helper()
	res := w.open(tb, method, path, body, fields...)
	got, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatalf("%s %s: %v after %q", method, path, err, got)
	}
	return &response{res.Response, string(got)}
}

// opened is a response whose body is closed with the test.
type opened struct{ *http.Response }

// event is one event of a stream.
type event struct{ name, data string }

// scanner reads an event stream, event by event.
type scanner struct{ lines *bufio.Scanner }

func newScanner(r io.Reader) *scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	return &scanner{s}
}

// next returns the next event; false if there is none.
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
