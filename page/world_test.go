package page_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// world is a whole server with its page, in front of providers that need no network.
type world struct{ *servertest.World }

// newWorld starts a world and ends it with the test. An upstream can be given.
func newWorld(tb testing.TB, upstream http.Handler) *world {
	tb.Helper()
	return &world{servertest.Start(tb, &servertest.Setup{
		Upstream: upstream, Providers: []string{"openai", "gemini", "anthropic"},
	})}
}

// shownPage is a response.
type shownPage struct {
	*http.Response

	body string
}

// open makes a request and leaves the body to be read; it is closed with the test. Redirects are not followed. fields
// are header names and values in turn.
func (w *world) open(tb testing.TB, method, path, body string, fields ...string) *http.Response {
	tb.Helper()
	r := testenv.Must(http.NewRequestWithContext(tb.Context(), method, w.URL+path, strings.NewReader(body)))(tb)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res := testenv.Must(http.DefaultTransport.RoundTrip(r))(tb)
	tb.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// watch passes the events of a stream to take until it has enough or the stream ends, and returns the status and the
// media type.
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

// ask asks on the page, and returns the address that it redirects to.
func (w *world) ask(tb testing.TB, conversation, question string) *url.URL {
	tb.Helper()
	res := w.post(tb, "/ui/ask", url.Values{"question": {question}, "conversation": {conversation}})
	if res.StatusCode != http.StatusSeeOther {
		tb.Fatalf("ask: %d %s", res.StatusCode, res.body)
	}
	return testenv.Must(res.Location())(tb)
}

// put stores calls.
func (w *world) put(tb testing.TB, calls ...*store.Call) {
	tb.Helper()
	testenv.OK(tb, w.Store.Put(tb.Context(), calls))
}

// settle waits until everything captured is stored.
func (w *world) settle(tb testing.TB) {
	tb.Helper()
	testenv.OK(tb, w.Gateway.CatchUp(tb.Context()))
}

// sent is one event of a stream.
type sent struct{ name, data string }

// readEvents passes the events of a stream to take until it has enough or the stream ends.
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
