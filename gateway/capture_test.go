package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
	"github.com/ibidhq/ibid/tee"
	"github.com/ibidhq/ibid/watch"
)

// chatBody is a complete answer; chatParts is its stream.
func chatBody(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":%q,"annotations":[{"type":"url_citation","url_citation":`+
		`{"start_index":0,"end_index":2,"url":"https://example.com/a","title":"A"}}]}}]}`, text)
}

func chatParts(words ...string) []string {
	var parts []string
	for _, word := range words {
		parts = append(parts, fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", word))
	}
	return append(parts,
		`data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n",
		"data: [DONE]\n\n")
}

const (
	chat         = "/up/v1/chat/completions"
	chatRequest  = `{"model":"gpt-test","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"How?"}]}`
	chatDocument = "text/event-stream"
)

// answerJSON answers with a body.
func answerJSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// answerParts answers with a stream.
func answerParts(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", chatDocument)
		for _, part := range parts {
			fmt.Fprint(w, part)
			flush(w)
		}
	}
}

// stored waits for the indexer and returns a stored call.
func (w *world) stored(tb testing.TB, id string) *store.Call {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	if err := w.gateway.CatchUp(ctx); err != nil {
		tb.Fatalf("CatchUp: %v", err)
	}
	c, err := w.store.Call(ctx, store.DefaultTenant, id)
	if err != nil {
		tb.Fatalf("answer %s: %v", id, err)
	}
	return c
}

// metric returns the value of a counter, summed over its labels or over those with the given first label.
func (w *world) metric(tb testing.TB, name string, label ...string) float64 {
	tb.Helper()
	families := testenv.Must(w.metrics.Gather())(tb)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "ibid_gateway_"+name {
			for _, m := range f.GetMetric() {
				if len(label) == 0 || m.GetLabel()[0].GetValue() == label[0] {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

func TestCapture(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"json": answerJSON(chatBody("So it is.")), "stream": answerParts(chatParts("So ", "it ", "is.")...),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, upstream, nil)
			r := w.request(t, "POST", chat+"?api=1", strings.NewReader(chatRequest))
			for name, value := range map[string]string{
				"Ibid-Run": "run-1", "Ibid-Step": `2;tool="ask";after="1"`, "Ibid-Conversation": "conv:1", "Ibid-Agent": "Früh & Co",
				"Authorization": "Bearer sk-secret",
			} {
				r.Header.Set(name, value)
			}
			res, body := w.do(t, r)
			id := res.Header.Get("Ibid-Answer")
			if !strings.HasPrefix(id, "ans_") || len(id) != 40 || res.Header.Get("Ibid-Run") != "run-1" {
				t.Fatalf("headers: %v", res.Header)
			}
			got := w.stored(t, id)
			want := &store.Call{
				AnswerID: id, Tenant: "default", Upstream: "up", Route: "POST /v1/chat/completions", Conversation: "conv:1", Run: "run-1",
				Agent: "Früh & Co", Step: store.Step{Number: 2, Tool: "ask", After: []int{1}}, Prompt: []store.Message{{Role: "user", Text: "How?"}},
				Status: 200, Bytes: int64(len(body)),
			}
			ignore := cmpopts.IgnoreFields(store.Call{}, "Started", "FirstByte", "Duration", "Answer")
			testenv.Equal(t, "call", want, got, ignore, cmpopts.IgnoreUnexported(store.Call{}))
			if got.FirstByte <= 0 || got.Duration < got.FirstByte || time.Since(got.Started) > time.Minute {
				t.Errorf("times: %v %v %v", got.Started, got.FirstByte, got.Duration)
			}
			a := got.Answer
			if a.Text != "So it is." || !a.Complete || a.ID != "c1" || a.Model != "gpt-test" {
				t.Errorf("answer: %+v", a)
			}
			line := w.log.String()
			for _, word := range []string{`"msg":"answer"`, id, `"run":"run-1"`, `"agent":"Früh & Co"`, `"route":"/chat/completions"`, `"complete":true`, `"end":`} {
				if !strings.Contains(line, word) {
					t.Errorf("the log lacks %s: %s", word, line)
				}
			}
			for _, word := range []string{"secret", "How?", "So it", "api=1"} {
				if strings.Contains(line, word) {
					t.Errorf("the log has %s: %s", word, line)
				}
			}
		})
	}
}

// The end mark arrives only after the answer is on disk: when the client has it, the journal is opened as after a
// crash.
func TestStrict(t *testing.T) {
	parts := chatParts("So ", "it ", "is.")
	w := newWorld(t, answerParts(parts...), &setup{idle: true})
	for i := range 20 {
		res, body := w.ask(t, nil)
		if string(body) != strings.Join(parts, "") {
			t.Fatalf("got %q", body)
		}
		if !onDisk(t, w.dir, res.Header.Get("Ibid-Answer")) {
			t.Fatalf("answer %d is not on disk", i)
		}
	}
}

// onDisk reports whether a copy of the journal's files contains an answer.
func onDisk(tb testing.TB, dir, id string) bool {
	tb.Helper()
	files := testenv.Must(filepath.Glob(filepath.Join(dir, "journal", "*")))(tb)
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(id)) {
			return true
		}
	}
	return false
}

// An answer can be found by id as soon as its end was seen: first in memory, then in the store.
func TestFind(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true})
	res, _ := w.ask(t, nil)
	id := res.Header.Get("Ibid-Answer")
	c, ok := w.gateway.Find(store.DefaultTenant, id)
	if !ok || c.Answer.Text != "So it is." {
		t.Fatalf("Find: %v, %t", c, ok)
	}
	if _, ok := w.gateway.Find("other", id); ok {
		t.Error("found by another tenant")
	}
	run(t, w.gateway)
	w.stored(t, id)
	if _, ok := w.gateway.Find(store.DefaultTenant, id); ok {
		t.Error("still in memory")
	}
}

// The tail is limited; answers beyond its limit are found in the store.
func TestTailLimit(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true, options: gateway.Options{Limits: gateway.Limits{Tail: 10}}})
	res, _ := w.ask(t, nil)
	id := res.Header.Get("Ibid-Answer")
	if _, ok := w.gateway.Find(store.DefaultTenant, id); ok {
		t.Error("the tail exceeds its limit")
	}
	run(t, w.gateway)
	w.stored(t, id)
}

func TestModes(t *testing.T) {
	for _, mode := range []gateway.Mode{gateway.Relaxed, gateway.Strict, gateway.Stored} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{Capture: mode, CaptureWait: 10 * time.Second}})
			res, _ := w.ask(t, nil)
			id := res.Header.Get("Ibid-Answer")
			if mode == gateway.Stored {
				if _, err := w.store.Call(t.Context(), store.DefaultTenant, id); err != nil {
					t.Errorf("not in the store yet: %v", err)
				}
			}
			w.stored(t, id)
			if n := w.metric(t, "capture_late_total"); n != 0 {
				t.Errorf("%v were late", n)
			}
		})
	}
}

// The end mark is not held longer than CaptureWait, and the answer is kept nevertheless.
func TestCaptureWait(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{
		idle: true, options: gateway.Options{Capture: gateway.Stored, CaptureWait: 10 * time.Millisecond}, // the store never takes it
	})
	res, body := w.ask(t, nil)
	if string(body) != chatBody("So it is.") {
		t.Errorf("got %s", body)
	}
	if n := w.metric(t, "capture_late_total"); n != 1 {
		t.Errorf("%v were late", n)
	}
	// CaptureWait also limits the journal's sync; the answer is still written afterwards.
	testenv.Until(t, "it is on disk", func() bool { return onDisk(t, w.dir, res.Header.Get("Ibid-Answer")) })
}

func TestPrompts(t *testing.T) {
	for keep, want := range map[gateway.Prompts][]store.Message{
		gateway.PromptsNone: nil,
		gateway.PromptsLast: {{Role: "user", Text: "How?"}},
		gateway.PromptsAll:  {{Role: "system", Text: "Be brief."}, {Role: "user", Text: "How?"}},
	} {
		t.Run(string(keep), func(t *testing.T) {
			w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{Prompts: keep}})
			res, _ := w.ask(t, nil)
			testenv.Equal(t, "prompt", want, w.stored(t, res.Header.Get("Ibid-Answer")).Prompt, cmpopts.EquateEmpty())
		})
	}
}

// If the client leaves or the upstream breaks off, what arrived is kept as incomplete.
func TestPartial(t *testing.T) {
	parts := chatParts("So ", "it ", "is.")
	t.Run("upstream", func(t *testing.T) {
		w := newWorld(t, hijack("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"+parts[0]+parts[1]+parts[2][:30]), nil)
		res, err := w.client.Do(w.request(t, "POST", chat, strings.NewReader(chatRequest)))
		testenv.OK(t, err)
		if got, err := io.ReadAll(res.Body); err == nil || string(got) != parts[0]+parts[1]+parts[2][:30] {
			t.Errorf("got %q, %v", got, err)
		}
		_ = res.Body.Close()
		if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != "So it " || a.Complete {
			t.Errorf("answer: %+v", a)
		}
	})
	t.Run("client", func(t *testing.T) {
		left := make(chan struct{})
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, parts[0])
			flush(w)
			<-r.Context().Done()
			close(left)
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		res, err := w.client.Do(w.request(t, "POST", chat, strings.NewReader(chatRequest)).WithContext(ctx))
		testenv.OK(t, err)
		defer res.Body.Close()
		testenv.Must(io.ReadFull(res.Body, make([]byte, len(parts[0]))))(t)
		cancel()
		<-left
		closing, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		testenv.OK(t, w.gateway.Close(closing)) // waits for the call to end
		if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != "So " || a.Complete {
			t.Errorf("answer: %+v", a)
		}
	})
}

// Errors of the provider pass unchanged and are not kept: endless retries with a wrong key would fill the store.
func TestErrorsAreNotKept(t *testing.T) {
	for _, status := range []int{400, 401, 429, 500, 503} {
		w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":{"message":"no"}}`)
		}, nil)
		res, body := w.ask(t, nil)
		if res.StatusCode != status || string(body) != `{"error":{"message":"no"}}` {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
		if res.Header.Get("Ibid-Answer") != "" || res.Header.Get("Ibid-Run") != "" || w.journal.Stats().Records != 0 {
			t.Errorf("%d: %v, %d records", status, res.Header, w.journal.Stats().Records)
		}
		if n := testutil.CollectAndCount(w.metrics, "ibid_gateway_calls_total"); n != 1 {
			t.Errorf("%d series of calls", n)
		}
	}
}

// A compressed answer that was not requested is captured without being held back.
func TestCompressed(t *testing.T) {
	type flusher interface {
		io.WriteCloser
		Flush() error
	}
	for encoding, packed := range map[string]func(io.Writer) flusher{
		"gzip": func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) flusher { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z }, // returns no error without options
	} {
		for kind, parts := range map[string][]string{"body": {chatBody("So it is.")}, "stream": chatParts("So ", "it ", "is.")} {
			t.Run(encoding+"/"+kind, func(t *testing.T) {
				var sent bytes.Buffer // by the upstream
				w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Encoding", encoding)
					w.Header().Set("Content-Type", map[string]string{"body": "application/json", "stream": chatDocument}[kind])
					z := packed(io.MultiWriter(w, &sent))
					for _, part := range parts {
						_, _ = io.WriteString(z, part)
						_ = z.Flush()
						flush(w)
					}
					_ = z.Close()
				}, nil)
				res, body := w.ask(t, nil)
				if !bytes.Equal(body, sent.Bytes()) || res.Header.Get("Content-Encoding") != encoding {
					t.Errorf("got %d bytes of %d, %v", len(body), sent.Len(), res.Header)
				}
				if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != "So it is." || !a.Complete {
					t.Errorf("answer: %+v", a)
				}
			})
		}
	}
}

// A wrong checksum at the end of a compressed response is an issue of its answer.
func TestDamagedEncoding(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": chatBody("So it is."), chatDocument: strings.Join(chatParts("So ", "it is."), ""),
	} {
		for _, length := range []bool{false, true} {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			testenv.Must(io.WriteString(z, body))(t)
			testenv.OK(t, z.Close())
			packed.Bytes()[packed.Len()-6] ^= 0xff
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", kind)
				if length {
					w.Header().Set("Content-Length", strconv.Itoa(packed.Len()))
				}
				_, _ = w.Write(packed.Bytes())
			}, nil)
			res, _ := w.ask(t, nil)
			a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer
			if len(a.Issues) != 1 || a.Issues[0].Code != tee.IssueDamagedEncoding || a.Text != "So it is." {
				t.Errorf("%s, length %t: %+v", kind, length, a)
			}
		}
	}
}

// A stream that goes on with comments alone is broken off, at the upstream too, and what came before is kept.
func TestCommentsEndCall(t *testing.T) {
	parts := chatParts("So ", "it is.")
	left := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", chatDocument)
		_, _ = io.WriteString(w, parts[0])
		for comments := strings.Repeat(": keep-alive\n\n", 1000); ; {
			if _, err := io.WriteString(w, comments); err != nil {
				return
			}
		}
	}, nil)
	res, err := w.client.Do(w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	testenv.OK(t, err)
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err == nil || n < tee.MaxComments || n > tee.MaxComments+1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	<-left
	a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer
	if len(a.Issues) == 0 || a.Issues[len(a.Issues)-1].Code != tee.IssueEndlessComments || a.Complete || a.Text != "So " {
		t.Errorf("answer: %+v", a)
	}
}

// Responses without an answer are not stored, and data after an answer does not damage it.
func TestNoAnswer(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "page": "<html><p>Welcome", "binary": "\x00\x01\x02\x03"} {
		w := newWorld(t, answerJSON(body), nil)
		if _, got := w.ask(t, nil); string(got) != body {
			t.Errorf("%s: got %q", name, got)
		}
		if n := w.metric(t, "answers_total"); n != 0 {
			t.Errorf("%s: %v answers: %s", name, n, w.log)
		}
	}
	w := newWorld(t, answerJSON(chatBody("So it is.")+"\n\n garbage {\"id\":\"c2\"}"), nil)
	res, body := w.ask(t, nil)
	if !strings.HasSuffix(string(body), "{\"id\":\"c2\"}") {
		t.Errorf("got %q", body)
	}
	if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != "So it is." || a.ID != "c1" {
		t.Errorf("answer: %+v", a)
	}
}

// A GET of an earlier answer updates it and has no answer id of its own.
func TestRefetch(t *testing.T) {
	response := func(status, text string) string {
		return fmt.Sprintf(`{"id":"resp_1","object":"response","status":%q,"model":"m","output":[{"type":"message","id":"msg","role":"assistant",`+
			`"status":%q,"content":[{"type":"output_text","text":%q,"annotations":[]}]}]}`, status, status, text)
	}
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			fmt.Fprint(w, response("completed", "So it is."))
			return
		}
		fmt.Fprint(w, response("in_progress", ""))
	}, nil)
	first, _ := w.do(t, w.request(t, "POST", captured, strings.NewReader(`{"background":true,"input":"How?"}`)))
	id := first.Header.Get("Ibid-Answer")
	if a := w.stored(t, id).Answer; a.Complete {
		t.Errorf("answer: %+v", a)
	}
	second, _ := w.do(t, w.request(t, "GET", captured+"/resp_1", nil))
	if second.Header.Get("Ibid-Answer") != "" || second.Header.Get("Ibid-Run") != "" {
		t.Errorf("headers: %v", second.Header)
	}
	if a := w.stored(t, id).Answer; a.Text != "So it is." || !a.Complete {
		t.Errorf("answer: %+v", a)
	}
}

// A full journal fails no call, but is counted and reported by Ready.
func TestJournalFull(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody(strings.Repeat("So it is. ", 500))), &setup{idle: true, journal: journal.Options{MaxBytes: 20 << 10}})
	full := false
	for range 40 {
		res, body := w.ask(t, nil)
		if res.StatusCode != 200 || len(body) < 5000 {
			t.Fatalf("got %d, %d bytes", res.StatusCode, len(body))
		}
		if named := res.Header["Ibid-Answer"]; full && len(named) > 0 {
			t.Fatalf("an answer id despite a full journal: %s", named)
		}
		_, found := w.gateway.Find(store.DefaultTenant, res.Header.Get("Ibid-Answer"))
		if full = full || !found; found == full {
			t.Fatal("found a lost answer")
		}
	}
	if !full || w.metric(t, "capture_failures_total") == 0 {
		t.Errorf("full: %t, %v failures", full, w.metric(t, "capture_failures_total"))
	}
	run(t, w.gateway)
	for w.journal.Stats().Records > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		testenv.OK(t, w.gateway.CatchUp(ctx))
		cancel()
	}
	if log := w.log.String(); !strings.Contains(log, "cannot keep an answer") || !strings.Contains(log, "a response is not kept") {
		t.Error("not logged")
	}
}

// If it is clear before the body that an answer will not be kept, no header names it, and the reason is logged.
func TestUnkeptIsNotNamed(t *testing.T) {
	answer := chatBody("So it is.")
	for name, test := range map[string]struct {
		header http.Header
		body   string
		why    string
	}{
		"an unknown encoding": {http.Header{"Content-Encoding": {"compress"}}, answer, "unknown content encoding"},
		"over the limit":      {http.Header{"Content-Length": {strconv.Itoa(len(answer) + 500)}}, answer + strings.Repeat(" ", 500), "exceeds the decoding limit"},
		"a web page":          {http.Header{"Content-Type": {"text/html; charset=utf-8"}}, "<html><body>Sign in", "a web page"},
	} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			maps.Copy(w.Header(), test.header)
			fmt.Fprint(w, test.body)
		}, &setup{options: gateway.Options{Limits: gateway.Limits{Decoded: int64(len(answer)) + 100}}})
		res, body := w.ask(t, nil)
		if res.StatusCode != 200 || string(body) != test.body {
			t.Errorf("%s: %d %q", name, res.StatusCode, body)
		}
		if named := res.Header["Ibid-Answer"]; len(named) > 0 || len(res.Header["Ibid-Run"]) != 1 {
			t.Errorf("%s: headers %v", name, res.Header)
		}
		if log := w.log.String(); !strings.Contains(log, "a response is not kept") || !strings.Contains(log, test.why) {
			t.Errorf("%s: the log: %s", name, log)
		}
	}
	w := newWorld(t, answerJSON(`{"weather":"fine"}`), nil) // the header is sent before that is known
	w.ask(t, nil)
	if log := w.log.String(); !strings.Contains(log, "a response is not kept") || !strings.Contains(log, "it contains no answer") {
		t.Errorf("no answer: the log: %s", log)
	}
}

func TestReady(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody(strings.Repeat("So it is. ", 500))), &setup{idle: true, journal: journal.Options{MaxBytes: 20 << 10}})
	if err := w.gateway.Ready(); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("without indexer: %v", err)
	}
	for range 10 {
		w.ask(t, nil)
	}
	if err := w.journal.Stats().Err; !errors.Is(err, journal.ErrFull) {
		t.Fatalf("the journal: %v", err)
	}
}

// Records left in the journal by an earlier process are stored by the next.
func TestRestart(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true})
	var ids []string
	for range 5 {
		res, _ := w.ask(t, nil)
		ids = append(ids, res.Header.Get("Ibid-Answer"))
	}
	testenv.OK(t, w.journal.Close())
	var err error
	if w.journal, err = journal.Open(filepath.Join(w.dir, "journal"), nil); err != nil {
		t.Fatal(err)
	}
	defer w.journal.Close()
	o := *w.options
	o.Journal, o.Metrics = w.journal, nil
	next := testenv.Must(gateway.New(&o))(t)
	w.gateway = next
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- next.Run(ctx) }()
	for _, id := range ids {
		w.stored(t, id)
	}
	cancel()
	testenv.OK(t, <-ended)
}

// A record that the store rejects is set aside and does not block others.
func TestPoison(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true})
	w.options.Damaged = filepath.Join(w.dir, "damaged")
	o := *w.options
	o.Metrics = nil
	g := testenv.Must(gateway.New(&o))(t)
	w.gateway = g
	w.serve(t, false)
	var ids []string
	for range 7 {
		res, _ := w.ask(t, nil)
		ids = append(ids, res.Header.Get("Ibid-Answer"))
		testenv.Must(w.journal.Append([]byte("no call")))(t)
		if len(ids) == 3 { // a record that can be decoded but not stored
			bad := &store.Call{AnswerID: "", Tenant: "", Answer: &ibid.Answer{}}
			if b, err := bad.Encode(); err == nil {
				_, _ = w.journal.Append(b)
			}
		}
	}
	run(t, g)
	for _, id := range ids {
		w.stored(t, id)
	}
	files, err := filepath.Glob(filepath.Join(w.options.Damaged, "*.json"))
	if err != nil || len(files) < 6 {
		t.Fatalf("set aside: %v, %v", files, err)
	}
	if b, _ := os.ReadFile(files[0]); string(b) != "no call" {
		t.Errorf("set aside: %q", b)
	}
}

// While the store is unavailable, calls succeed and the journal grows; afterwards nothing is missing.
func TestStoreAway(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), nil)
	// Another connection locks the database for writing.
	unlock := lockDatabase(t, filepath.Join(w.dir, "ibid.db"))
	var ids []string
	for range 20 {
		res, _ := w.ask(t, nil)
		ids = append(ids, res.Header.Get("Ibid-Answer"))
	}
	for _, id := range ids {
		if c, ok := w.gateway.Find(store.DefaultTenant, id); !ok || c.Answer.Text != "So it is." {
			t.Fatal("an answer cannot be found")
		}
	}
	unlock()
	for _, id := range ids {
		w.stored(t, id)
	}
	if n := w.metric(t, "capture_failures_total"); n != 0 {
		t.Errorf("%v failures", n)
	}
}

// oneStep is the memory held for the first bytes of an answer.
const oneStep = tee.HoldStep * gateway.DecodeMemory

func TestProblems(t *testing.T) {
	w := newWorld(t, answerJSON("{}"), &setup{options: gateway.Options{Limits: gateway.Limits{Request: 100, Decoded: 100, Memory: oneStep + 150}}})
	for _, test := range testenv.Table[struct {
		Name, Path, Field string
		Body, Status      int
		Says              string
	}](t, "testdata/problems.txt") {
		t.Run(test.Name, func(t *testing.T) {
			path := test.Path
			if path == "" {
				path = chat
			}
			sent := strings.Repeat("x", test.Body)
			r := w.request(t, "POST", path, strings.NewReader(sent))
			setFields(r, test.Field, map[string]string{"long": strings.Repeat("x", 129)})
			res, body := w.do(t, r)
			if res.StatusCode != test.Status || !strings.Contains(string(body), test.Says) {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if test.Status != 200 && !json.Valid(body) {
				t.Errorf("no JSON: %s", body)
			}
			// The same without a known length.
			if test.Body > 0 {
				r := w.request(t, "POST", path, io.MultiReader(strings.NewReader(sent)))
				if res, _ := w.do(t, r); res.StatusCode != test.Status {
					t.Errorf("chunked: got %d", res.StatusCode)
				}
			}
		})
	}
}

// All requests together hold no more than the limit, and release it afterwards.
func TestInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-leave
		fmt.Fprint(w, chatBody("So it is."))
	}, &setup{options: gateway.Options{Limits: gateway.Limits{Request: 100, Decoded: 100, Memory: oneStep + 150}}})
	request := func() *http.Request { return w.request(t, "POST", chat, strings.NewReader(strings.Repeat("x", 100))) }
	first := make(chan int)
	go func() {
		res, err := w.client.Do(request())
		if err != nil {
			first <- 0
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		first <- res.StatusCode
	}()
	<-entered
	res, body := w.do(t, request())
	if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	close(leave)
	if status := <-first; status != 200 {
		t.Errorf("the first got %d", status)
	}
	go func() { <-entered }()
	if res, body := w.do(t, request()); res.StatusCode != 200 {
		t.Errorf("afterwards: %d %s", res.StatusCode, body)
	}
	if n := w.metric(t, "held_bytes"); n != 0 {
		t.Errorf("%v bytes are held", n)
	}
}

// A client that sends too slowly gets a 408, whose hint says what was too slow.
func TestSlowRequest(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	w := newWorld(t, read, &setup{options: gateway.Options{Limits: gateway.Limits{RequestTime: 50 * time.Millisecond, Idle: 50 * time.Millisecond}}})
	for path, hint := range map[string]string{chat: "before it forwards it", streamed: "may not pause for long"} {
		c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
		b, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408") || !strings.Contains(string(b), hint) {
			t.Errorf("%s: got %q, %v", path, b, err)
		}
	}
}

// A client that does not read is disconnected.
func TestSlowReader(t *testing.T) {
	ended := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		defer close(ended)
		for range 10_000 {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	}, &setup{options: gateway.Options{Limits: gateway.Limits{Idle: 200 * time.Millisecond}}})
	w.raw(t, "POST "+streamed+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
	<-ended
}

func TestHugeHeader(t *testing.T) {
	w := newWorld(t, answerJSON("{}"), nil)
	c := w.raw(t, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", gateway.MaxHeader+8<<10)+"\r\nConnection: close\r\n\r\n")
	if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), "HTTP/1.1 431") {
		t.Errorf("got %q", b)
	}
}

func TestParseStep(t *testing.T) {
	for s, want := range map[string]store.Step{
		`3`:                                {Number: 3},
		` 3 `:                              {Number: 3},
		`3;tool="summarize";after="1,2"`:   {Number: 3, Tool: "summarize", After: []int{1, 2}},
		`3; after="1, 2";  tool="a \"b\\"`: {Number: 3, Tool: `a "b\`, After: []int{1, 2}},
		`3;after=""`:                       {Number: 3, After: []int{}},
		`1000000`:                          {Number: 1_000_000},
	} {
		got, err := gateway.ParseStep(s)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", s, err, diff)
		}
	}
	many := make([]string, 70)
	for i := range many {
		many[i] = strconv.Itoa(i + 1)
	}
	for _, s := range []string{
		"", "0", "-1", "+1", "1.5", "1000001", "x", "3;", "3;tool", "3;tool=x", `3;tool="x`, `3;tool="x\y"`, `3;tool="x" y`, `3;Tool="x"`, `3;other="x"`, `3;tool=""`, "3;tool=\"\x01\"", `3;after="3"`, `3;after="x"`, `3;after="1,1"`, `3;after="1,"`,
		`100;after="` + strings.Join(many, ",") + `"`, `3;tool="` + strings.Repeat("x", 129) + `"`, "1" + strings.Repeat(" ", 2000), "3 ;tool=\"x\"",
	} {
		if got, err := gateway.ParseStep(s); err == nil {
			t.Errorf("%q: %+v", s, got)
		}
	}
}

// A stream without citations is offered to the backfill, with the caller's key, and the result is kept with the answer.
func TestBackfill(t *testing.T) {
	var calls atomic.Int32
	var w *world
	b := testenv.Must(watch.NewBackfill(&watch.BackfillOptions{
		Rules: []watch.Rule{{Upstream: "up", Provider: "openai", Timeout: 10 * time.Second}},
		Store: func(ctx context.Context, c *store.Call) error { return w.gateway.Keep(ctx, c) },
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	second := make(chan string, 1)
	w = newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			answerParts(chatParts("So ", "it ", "is.")...)(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, `{"id":"resp_2","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant",`+
			`"status":"completed","content":[{"type":"output_text","text":"So it is.","annotations":[{"type":"url_citation","start_index":0,`+
			`"end_index":9,"url":"https://example.com/a","title":"A"}]}]}]}`)
		second <- r.Header.Get("Authorization") + " " + string(body)
	}, &setup{options: gateway.Options{Backfill: b}})
	r := w.request(t, "POST", chat, strings.NewReader(`{"stream":true,"model":"gpt-test","messages":[{"role":"user","content":"How?"}]}`))
	r.Header.Set("Authorization", "Bearer sk-secret")
	asked := time.Now()
	res, _ := w.do(t, r)
	select {
	case got := <-second:
		if !strings.HasPrefix(got, "Bearer sk-secret ") || !strings.Contains(got, "How?") {
			t.Errorf("the second call: %s", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no second call: %s", w.log)
	}
	for len(w.stored(t, res.Header.Get("Ibid-Answer")).Answer.Citations) == 0 {
		if time.Since(asked) > 20*time.Second {
			t.Fatal("no citations")
		}
		runtime.Gosched() // until Backfill has read the response
	}
	if strings.Contains(w.log.String(), "secret") {
		t.Errorf("the key is in the log: %s", w.log)
	}
}

// With a token configured, calls need it, and it is not forwarded.
func TestToken(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Ibid-Token")+r.Header.Get("Authorization"))
	}, &setup{options: gateway.Options{Guard: gateway.NewGuard(&gateway.GuardOptions{Bootstrap: "ibid_secret"})}})
	for token, want := range map[string]int{"": 401, "wrong": 401, "ibid_secret": 200} {
		for _, path := range []string{chat, streamed, "/nobody"} {
			r := w.request(t, "POST", path, strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer provider's")
			if token != "" {
				r.Header.Set("Ibid-Token", token)
			}
			res, body := w.do(t, r)
			status := want
			if path == "/nobody" && want == 200 {
				status = 404
			}
			if res.StatusCode != status || status == 200 && string(body) != "Bearer provider's" {
				t.Errorf("%q %s: got %d %s", token, path, res.StatusCode, body)
			}
			if status == 401 && strings.Contains(string(body), "upstreams are") {
				t.Errorf("an unauthenticated caller sees the upstreams: %s", body)
			}
		}
	}
}
