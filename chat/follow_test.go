package chat_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

// slow is an upstream that stops halfway through an answer until it is released.
type slow struct {
	replay http.Handler

	half chan struct{} // receives when half is sent
	on   chan struct{} // closed or sent to, to go on
	gone chan struct{} // receives when a call was aborted
}

func newSlow() *slow {
	return &slow{replay: replay.New(&replay.Options{ChunkSize: 4}), half: make(chan struct{}, 1000), on: make(chan struct{}), gone: make(chan struct{}, 1000)}
}

// ServeHTTP replays an answer, and holds back what follows the first citation's words.
func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.replay.ServeHTTP(&halting{w, s, r.Context(), 0}, r)
}

type halting struct {
	http.ResponseWriter
	s   *slow
	ctx context.Context
	n   int
}

func (h *halting) Write(b []byte) (int, error) {
	n, err := h.ResponseWriter.Write(b)
	if before := h.n; err == nil && before < 4000 && before+n >= 4000 {
		_ = http.NewResponseController(h.ResponseWriter).Flush()
		h.s.half <- struct{}{}
		select {
		case <-h.s.on:
		case <-h.ctx.Done():
			h.s.gone <- struct{}{}
			return n, h.ctx.Err()
		}
	}
	h.n += n
	return n, err
}

func (h *halting) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *halting) Flush() { _ = http.NewResponseController(h.ResponseWriter).Flush() }

// read reads events up to one with a name.
func read(t *testing.T, s *scanner, name string) event {
	t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			t.Fatalf("the stream ended before an event %q", name)
		}
		if e.name == name {
			return e
		}
	}
}

// A client that comes later gets the answer so far in one piece and then what follows, even if the first client has
// left.
func TestResume(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: up})
	if res := w.do(t, "GET", "/v1/chat/c1/stream", ""); res.StatusCode != 204 || res.body != "" {
		t.Errorf("nothing to resume: %d %s", res.StatusCode, res.body)
	}
	res := w.open(t, "POST", "/v1/chat", question("openai", herons, `,"conversation":"c1"`))
	asked := newScanner(res.Body)
	for n := 0; n < 12; {
		n += len(unmarshal[struct{ Text string }](t, read(t, asked, "text").data).Text)
	}
	id := res.Header.Get(gateway.AnswerHeader)
	_ = res.Body.Close() // the first client leaves
	for _, path := range []string{"/v1/chat/c1/stream", "/v1/chat/" + id + "/stream?unit=utf-16"} {
		again := w.open(t, "GET", path, "")
		if again.StatusCode != 200 || again.Header.Get(gateway.AnswerHeader) != id {
			t.Fatalf("%s: %d %v", path, again.StatusCode, again.Header)
		}
		first := read(t, newScanner(again.Body), "text")
		if text := unmarshal[struct{ Text string }](t, first.data).Text; len(text) < 12 {
			t.Errorf("%s: the text so far comes in pieces: %q", path, text)
		}
		_ = again.Body.Close()
	}
	ui := w.open(t, "GET", "/v1/chat/c1/stream?stream=ui", "")
	last := w.open(t, "GET", "/v1/chat/c1/stream", "")
	if head := w.do(t, "HEAD", "/v1/chat/c1/stream", ""); head.StatusCode != 200 || head.body != "" {
		t.Errorf("HEAD: %d %q", head.StatusCode, head.body)
	}
	close(up.on)
	d := unmarshal[ibid.Document](t, read(t, newScanner(last.Body), "answer").data)
	if !d.Complete || *d.AnswerID != id || !strings.HasSuffix(d.Text, "island.") {
		t.Errorf("%+v", d)
	}
	if all, _ := io.ReadAll(ui.Body); strings.Count(string(all), `"messageId":"`+id+`"`) != 1 || !strings.HasSuffix(string(all), "data: [DONE]\n\n") {
		t.Errorf("%s", all)
	}
	if _, err := io.Copy(io.Discard, last.Body); err != nil {
		t.Error(err)
	}
	if res := w.do(t, "GET", "/v1/chat/c1/stream", ""); res.StatusCode != 204 {
		t.Errorf("an answer that has ended is resumed: %d", res.StatusCode)
	}
	w.stored(t, http.Header{gateway.AnswerHeader: {id}})
}

// Stop ends the call, and what has arrived is kept.
func TestStop(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: up})
	res := w.open(t, "POST", "/v1/chat?stream=ui", question("openai", herons, `,"conversation":"c1"`))
	<-up.half
	if got := w.do(t, "DELETE", "/v1/chat/c1/stream", ""); got.StatusCode != 204 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	<-up.gone
	all, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(all), `{"type":"abort"}`) || !strings.HasSuffix(string(all), "data: [DONE]\n\n") {
		t.Errorf("%v: %s", err, all)
	}
	if got := w.do(t, "DELETE", "/v1/chat/c1/stream", ""); got.StatusCode != 204 {
		t.Errorf("again: %d %s", got.StatusCode, got.body)
	}
}

// The number of turns of a tenant is limited; another tenant has its own limit.
func TestMaxTurns(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: up})
	who, q := gateway.Identity{Tenant: "acme"}, &chat.Question{Provider: "openai", Messages: []chat.Message{{Role: "user", Text: herons}}}
	ctx, cancel := context.WithCancel(t.Context())
	turns := make([]*chat.Turn, 0, chat.MaxTurns)
	for range chat.MaxTurns {
		turn := testenv.Must(w.chat.Ask(ctx, who, q))(t)
		turns = append(turns, turn)
	}
	cancel() // the turns go on
	_, err := w.chat.Ask(t.Context(), who, q)
	if p := gateway.ProblemOf(err); p.Status != 429 || p.Header.Get("Retry-After") == "" {
		t.Errorf("%v", err)
	}
	if _, err := w.chat.Ask(t.Context(), gateway.Identity{Tenant: "rival"}, q); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if a := turns[0].Answer(); a.Complete {
		t.Errorf("%+v", a)
	}
	close(up.on)
	for _, turn := range turns {
		<-turn.Done()
		if a := turn.Answer(); !a.Complete || turn.Err() != nil || turn.AnswerID == "" {
			t.Fatalf("%+v: %v", a, turn.Err())
		}
	}
	if _, err := w.chat.Ask(t.Context(), who, q); err != nil {
		t.Errorf("after they ended: %v", err)
	}
}

// An answer that is too long to be held is stored all the same, and its followers are told where.
func TestMaxTurn(t *testing.T) {
	w := newWorld(t, &setup{upstream: replay.New(&replay.Options{ChunkSize: 64 << 10, PaddingTo: chat.MaxTurn + 1000})})
	res := w.do(t, "POST", "/v1/chat", question("gemini", herons))
	all := events(res.body)
	if last := all[len(all)-1]; last.name != "error" || !strings.Contains(last.data, "/v1/answers/"+res.Header.Get(gateway.AnswerHeader)) {
		t.Errorf("%.300s", last)
	}
	whole := w.do(t, "POST", "/v1/chat?stream=no", question("gemini", herons))
	if d := unmarshal[ibid.Document](t, whole.body); !d.Complete || len(d.Text) <= chat.MaxTurn {
		t.Errorf("%d bytes", len(d.Text))
	}
}

// Close lets answers end, for a while, and accepts no new questions.
func TestClose(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: up})
	res := w.open(t, "POST", "/v1/chat", question("openai", herons))
	<-up.half
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.chat.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call under way: %v", err)
	}
	if all, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(all), "event: error") {
		t.Errorf("%v: %s", err, all)
	}
	if got := w.do(t, "POST", "/v1/chat", question("openai", herons)); got.StatusCode != 503 {
		t.Errorf("%d", got.StatusCode)
	}
	if err := w.chat.Close(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
}

// lateWorld is a chat that would wait an hour for late citations.
func lateWorld(t *testing.T, upstream http.Handler, configure func(*server.Config)) *world {
	t.Helper()
	return newWorld(t, &setup{upstream: upstream, late: time.Hour, server: configure})
}

// Late citations are awaited and sent.
func TestLate(t *testing.T) {
	w := lateWorld(t, nil, func(c *server.Config) { c.Attribute = "balanced" })
	const given = `,"documents":[{"id":"s","title":"Late","text":"The colony at Lake Tonbo has 41 nests this year."}]`
	for _, form := range []string{"events", "ui", "openai", "no"} {
		res := w.do(t, "POST", "/v1/chat?stream="+form, question("mistral", herons, given))
		if !strings.Contains(res.body, `Late`) {
			t.Errorf("%s: %s", form, res.body)
		}
		if pending, final := strings.Index(res.body, `"pending"`), strings.LastIndex(res.body, `"final"`); form == "ui" && (pending < 0 || final < pending) {
			t.Errorf("%s", res.body)
		}
		if call := w.stored(t, res.Header); len(call.Answer.Citations) == 0 {
			t.Errorf("%s: what was told is not stored", form)
		}
	}
}

// A search that has ended is not awaited: whether it found nothing, was refused, or took too long. If none begins,
// nothing is pending at all.
func TestLateSearchEnds(t *testing.T) {
	providers := replay.New(nil)
	second := func(h http.HandlerFunc) func(*server.Config) {
		up := httptest.NewServer(h)
		t.Cleanup(up.Close)
		return func(c *server.Config) {
			c.Upstreams["mistral"].Backfill = []server.Backfill{{Provider: "openai", Model: "m", Timeout: 200_000_000}}
			c.Upstreams["openai"].URL = server.URL(up.URL)
		}
	}
	for name, configure := range map[string]func(*server.Config){
		"the comparison finds nothing": func(c *server.Config) { c.Attribute = "balanced" },
		"the second call finds nothing": second(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(rw, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m",`+
				`"role":"assistant","status":"completed","content":[{"type":"output_text","text":"Twenty-five.","annotations":[]}]}]}`)
		}),
		"the second call is refused": second(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(429) }),
		"the second call lasts": second(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := lateWorld(t, providers, configure)
			res := w.do(t, "POST", "/v1/chat?stream=ui", question("mistral", herons))
			if strings.Count(res.body, `"status":"pending"`) != 2 || !strings.Contains(res.body, `"status":"final"`) {
				t.Errorf("%s", res.body)
			}
			res = w.do(t, "POST", "/v1/chat", question("mistral", herons))
			if n := strings.Count(res.body, "event: answer"); n != 1 {
				t.Errorf("%d answers", n)
			}
		})
	}
	w := lateWorld(t, providers, nil)
	if res := w.do(t, "POST", "/v1/chat?stream=ui", question("mistral", herons)); strings.Count(res.body, `"pending"`) != 1 {
		t.Errorf("%s", res.body) // only at the beginning
	}
}

// A search may take longer than the chat waits.
func TestLateLimit(t *testing.T) {
	w := newWorld(t, &setup{late: 30 * time.Millisecond, server: func(c *server.Config) {
		up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		t.Cleanup(up.Close)
		c.Upstreams["openai"].URL = server.URL(up.URL)
		c.Upstreams["mistral"].Backfill = []server.Backfill{{Provider: "openai", Model: "m", Timeout: 3600_000_000_000}}
	}})
	res := w.do(t, "POST", "/v1/chat?stream=ui", question("mistral", herons))
	if !strings.Contains(res.body, `"status":"pending"`) || !strings.Contains(res.body, `"status":"final"`) {
		t.Errorf("%s", res.body)
	}
}
