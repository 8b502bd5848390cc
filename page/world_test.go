package page_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// world is a page over everything that it shows, with a chat over a gateway in front of providers that need no network.
type world struct {
	*httptest.Server

	store   *store.Store
	guard   *gateway.Guard
	bus     *bus.Bus
	gateway *gateway.Gateway
	chat    *chat.Chat
	page    *page.Page
}

// newWorld starts a world and ends it with the test. The upstream's way of answering may be given.
func newWorld(tb testing.TB, upstream http.Handler) *world {
	tb.Helper()
	if upstream == nil {
		upstream = replay.New(nil)
	}
	provider := httptest.NewServer(upstream)
	tb.Cleanup(provider.Close)
	w := &world{}
	var err error
	if w.store, err = store.Open(tb.Context(), tb.TempDir()+"/ibid.db", nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.store.Close() })
	if w.bus, err = bus.Open(tb.Context(), bus.Embedded, nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.bus.Close() })
	w.guard = gateway.NewGuard(&gateway.GuardOptions{Store: w.store})
	var upstreams []gateway.Upstream
	var providers []chat.Provider
	for _, name := range []string{"openai", "gemini", "anthropic"} {
		address, err := url.Parse(provider.URL + "/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		upstreams = append(upstreams, gateway.Upstream{Name: name, URL: address, Provider: name})
		providers = append(providers, chat.Provider{Upstream: name, Provider: name, Model: "heron-1", Key: "the-key-of-the-test"})
	}
	w.openGateway(tb, upstreams)
	if w.chat, err = chat.New(&chat.Options{Gateway: w.gateway, Guard: w.guard, Store: w.store, Bus: w.bus, Providers: providers}); err != nil {
		tb.Fatal(err)
	}
	a, err := api.New(&api.Options{Store: w.store, Guard: w.guard, Gateway: w.gateway, Bus: w.bus})
	if err != nil {
		tb.Fatal(err)
	}
	if w.page, err = page.New(&page.Options{
		Store: w.store, Guard: w.guard, API: a, Gateway: w.gateway, Bus: w.bus, Chat: w.chat, Version: "test",
	}); err != nil {
		tb.Fatal(err)
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); first {
		case "openai", "gemini", "anthropic":
			w.gateway.ServeHTTP(rw, r)
		default:
			w.page.ServeHTTP(rw, r)
		}
	}))
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		w.page.Close()
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

// shownPage is what came back.
type shownPage struct {
	*http.Response

	body string
}

// open makes a request and leaves the body to be read; it is closed with the test. Redirects are not followed. fields are header
// fields, by turns name and value.
func (w *world) open(tb testing.TB, method, path, body string, fields ...string) *http.Response {
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
	return res
}

// watch reads the events that a path tells until take has enough or the stream ends, and returns the status and the media type.
func (w *world) watch(tb testing.TB, path string, take func(sent) (enough bool), fields ...string) (status int, mediaType string) {
	tb.Helper()
	res := w.open(tb, "GET", path, "", fields...)
	defer func() { _ = res.Body.Close() }()
	readEvents(res.Body, take)
	return res.StatusCode, res.Header.Get("Content-Type")
}

func (w *world) do(tb testing.TB, method, path, body string, fields ...string) *shownPage {
	tb.Helper()
	res := w.open(tb, method, path, body, fields...)
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatalf("%s %s: %v after %q", method, path, err, got)
	}
	return &shownPage{res, string(got)}
}

func (w *world) get(tb testing.TB, path string, fields ...string) *shownPage {
	tb.Helper()
	return w.do(tb, "GET", path, "", fields...)
}

// post sends a form as one of our own pages does.
func (w *world) post(tb testing.TB, path string, form url.Values, fields ...string) *shownPage {
	tb.Helper()
	fields = append([]string{"Content-Type", "application/x-www-form-urlencoded", "Origin", w.URL, "Sec-Fetch-Site", "same-origin"}, fields...)
	return w.do(tb, "POST", path, form.Encode(), fields...)
}

// ask asks on the page, and returns where that leads to.
func (w *world) ask(tb testing.TB, conversation, question string) *url.URL {
	tb.Helper()
	res := w.post(tb, "/ui/ask", url.Values{"question": {question}, "conversation": {conversation}})
	if res.StatusCode != http.StatusSeeOther {
		tb.Fatalf("ask: %d %s", res.StatusCode, res.body)
	}
	to, err := res.Location()
	if err != nil {
		tb.Fatal(err)
	}
	return to
}

// settle waits until what was captured is in the store.
func (w *world) settle(tb testing.TB) {
	tb.Helper()
	if err := w.gateway.CatchUp(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// sent is one event of a stream.
type sent struct{ name, data string }

// readEvents hands the events of a stream to take until it is enough or the stream ends.
func readEvents(body io.Reader, take func(sent) (enough bool)) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	var e sent
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" && e.data != "":
			if take(e) {
				return
			}
			e = sent{}
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data += line[6:]
		}
	}
}
