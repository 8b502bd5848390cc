package api_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// listening is an open event stream.
type listening struct {
	t      *testing.T
	res    *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// listen opens an event stream and reads its first comment.
func (n *node) listen(t *testing.T, path string, fields ...string) *listening {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	r := testenv.Must(http.NewRequestWithContext(ctx, http.MethodGet, n.URL+path, nil))(t)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	testenv.OK(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("%s: %d %s", path, res.StatusCode, body)
	}
	l := &listening{t, res, bufio.NewReader(res.Body), cancel}
	if got := l.next(); got != ": listening\nretry: 2000\n" {
		t.Fatalf("it begins with %q", got)
	}
	return l
}

// next returns the lines up to the next empty one, or "" at the end of the stream.
func (l *listening) next() string {
	l.t.Helper()
	var event strings.Builder
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil && event.Len() == 0 && line == "" {
			return ""
		}
		if err != nil {
			l.t.Fatalf("in the middle of an event: %v", err)
		}
		if line == "\n" {
			return event.String()
		}
		event.WriteString(line)
	}
}

// relay makes the bus relay events as long as the node runs.
func (n *node) relay() {
	n.start(func(ctx context.Context) error { return n.bus.Relay(ctx, n.store) })
}

// step stores an answer as a step of a run.
func (n *node) step(t *testing.T, tenant, run, id string) {
	t.Helper()
	c := call(id, herons("https://heron.example/"))
	c.Tenant, c.Run = tenant, run
	n.put(t, c)
	n.bus.Wake()
}

// wantAnswer checks that the next event has the number and reports the answer.
func (l *listening) wantAnswer(seq int, id string) {
	l.t.Helper()
	got := l.next()
	if !strings.HasPrefix(got, fmt.Sprintf("id: %d\nevent: answer\ndata: {", seq)) || !strings.Contains(got, `"answer_id":"`+id+`"`) {
		l.t.Errorf("got %q, want event %d of %s", got, seq, id)
	}
}

// A reader gets past events, new events and deltas in between; one that reconnects resumes where it was.
func TestEvents(t *testing.T) {
	n := newNode(t, nil)
	n.relay()
	n.step(t, "default", "r1", "ans_1")
	l := n.listen(t, "/v1/runs/r1/events")
	first := l.next()
	golden(t, "event.txt", first)
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := l.res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	n.step(t, "default", "r1", "ans_2")
	l.wantAnswer(2, "ans_2")
	n.bus.Tell("default", "r1", bus.Live{Kind: "text", AnswerID: "ans_3", Step: 3, At: 5, Data: json.RawMessage("\"her\\nons\"")})
	n.bus.Tell("default", "r1", bus.Live{Kind: "source", AnswerID: "ans_3", Data: json.RawMessage("{\n\"id\": \"web:0\"}")})
	want := []string{
		"event: text\ndata: {\"answer_id\":\"ans_3\",\"at\":5,\"step\":3,\"text\":\"her\\nons\"}\n",
		"event: source\ndata: {\"answer_id\":\"ans_3\",\"at\":0,\"source\":{\"id\":\"web:0\"},\"step\":null}\n",
	}
	testenv.Equal(t, "deltas", want, []string{l.next(), l.next()})
	n.step(t, "default", "r1", "ans_3")
	l.wantAnswer(3, "ans_3")
	l.cancel()

	again := n.listen(t, "/v1/runs/r1/events?after=1")
	again.wantAnswer(2, "ans_2")
	again.wantAnswer(3, "ans_3")
	again.cancel()
	again = n.listen(t, "/v1/runs/r1/events?after=1", "Last-Event-ID", "2")
	again.wantAnswer(3, "ans_3")
	n.step(t, "default", "r1", "ans_4")
	again.wantAnswer(4, "ans_4")

	for _, id := range []string{"x", "-1", "1.5"} {
		wantProblem(t, n.get(t, "/v1/runs/r1/events", "Last-Event-ID", id), 400)
	}
	res := n.do(t, "HEAD", "/v1/runs/r1/events", "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", res.StatusCode, res.Header)
	}
}

// A reader may come before the run.
func TestEventsBeforeTheRun(t *testing.T) {
	n := newNode(t, nil)
	n.relay()
	l := n.listen(t, "/v1/runs/later/events")
	n.step(t, "default", "later", "ans_1")
	l.wantAnswer(1, "ans_1")
}

// Two tenants may use the same run id.
func TestEventsOfTenants(t *testing.T) {
	n := newNode(t, nil)
	n.relay()
	evil := n.token(t, "evil", store.ScopeRead)
	n.step(t, "acme", "r1", "ans_1")
	l := n.listen(t, "/v1/runs/r1/events", bearer(evil)...)
	n.step(t, "acme", "r1", "ans_2")
	n.bus.Tell("acme", "r1", bus.Live{Kind: "text", AnswerID: "ans_2", Data: json.RawMessage(`"secret"`)})
	n.step(t, "evil", "r1", "ans_9")
	l.wantAnswer(1, "ans_9")
}

// A server that shuts down does not wait for readers.
func TestEventsEnd(t *testing.T) {
	n := newNode(t, nil)
	l := n.listen(t, "/v1/runs/r1/events")
	n.api.Close()
	if got := l.next(); got != "" {
		t.Errorf("got %q", got)
	}
	if got := n.listen(t, "/v1/runs/r1/events").next(); got != "" {
		t.Errorf("a new one: %q", got)
	}
	if got := n.get(t, "/v1/runs").StatusCode; got != 200 {
		t.Errorf("a list: %d", got)
	}
}

// A slow reader is dropped, and told where to resume.
func TestEventsDropped(t *testing.T) {
	n := newNode(t, nil)
	n.step(t, "default", "r1", "ans_1")
	l := n.listen(t, "/v1/runs/r1/events")
	l.wantAnswer(1, "ans_1")
	text := json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	last := ""
	for range 4 { // each hears some 15 MB; the connection does not hold so much
		other := testenv.Must(n.bus.Listen(t.Context(), "default", "r1"))(t)
		for told := 1; !other.Dropped(); told++ {
			n.bus.Tell("default", "r1", bus.Live{Kind: "text", AnswerID: "ans_2", Data: text})
			if told%8 == 0 { // so that no single write waits longer than a reader may take
				last = cmp.Or(l.next(), last)
			}
		}
		other.Close()
	}
	for event := l.next(); event != ""; event = l.next() {
		last = event
	}
	if want := "event: dropped\ndata: {\"last_event_id\":1}\n"; last != want {
		t.Errorf("it ends with %q, want %q", last, want)
	}
}

// maxStreams is the limit stated in docs/http.md.
const maxStreams = 256

// One tenant cannot use up all connections.
func TestEventsLimit(t *testing.T) {
	n := newNode(t, nil)
	secret, other := n.token(t, "acme", store.ScopeRead), n.token(t, "other", store.ScopeRead)
	var open []*listening
	for range maxStreams {
		open = append(open, n.listen(t, "/v1/runs/r1/events", bearer(secret)...))
	}
	if got := n.get(t, "/metrics").body; !strings.Contains(got, fmt.Sprintf("ibid_api_event_streams %d", maxStreams)) {
		t.Errorf("the metrics do not count them:\n%s", got)
	}
	res := n.get(t, "/v1/runs/r1/events", bearer(secret)...)
	wantProblem(t, res, 429)
	n.listen(t, "/v1/runs/r1/events", bearer(other)...)
	open[0].cancel()
	for n.do(t, "HEAD", "/v1/runs/r1/events", "", bearer(secret)...).StatusCode != 200 {
		if t.Context().Err() != nil {
			t.Fatal("a stream that was left still counts")
		}
	}
}
