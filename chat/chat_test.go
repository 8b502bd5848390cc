package chat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// question returns a body in our own format.
func question(provider, words string, more ...string) string {
	b, _ := json.Marshal(words)
	return `{"provider":"` + provider + `","messages":[{"role":"user","content":` + string(b) + `}]` + strings.Join(more, "") + `}`
}

const herons = "How many herons nest at Lake Tonbo?"

// stored returns the answer that a response names, once it is stored.
func (w *world) stored(tb testing.TB, h http.Header) *store.Call {
	tb.Helper()
	testenv.OK(tb, w.Gateway.CatchUp(tb.Context()))
	call, err := w.Store.Call(tb.Context(), "default", h.Get(gateway.AnswerHeader))
	if err != nil {
		tb.Fatalf("%q: %v", h.Get(gateway.AnswerHeader), err)
	}
	return call
}

// For each provider, the events build up to the stored answer, and all forms have the same.
func TestProviders(t *testing.T) {
	var mu sync.Mutex
	keys := map[string]string{}
	upstream := replay.New(nil)
	w := newWorld(t, &setup{upstream: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys[strings.Split(r.URL.Path, "/")[1]] = strings.TrimPrefix(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"), "Bearer ")
		mu.Unlock()
		for name := range r.Header {
			if strings.HasPrefix(name, "Ibid-") {
				t.Errorf("the upstream sees %s", name)
			}
		}
		upstream.ServeHTTP(rw, r)
	})})
	for _, provider := range servertest.AllProviders {
		t.Run(provider, func(t *testing.T) {
			for _, words := range []string{herons, "とんぼ湖のアオサギについて教えてください。🪿"} {
				for _, unit := range ibid.Units() {
					res := w.do(t, "POST", "/v1/chat?unit="+string(unit), question(provider, words, `,"conversation":"c-`+provider+`","agent":"tutor"`))
					checkEvents(t, res, unit)
					call := w.stored(t, res.Header)
					if call.Conversation != "c-"+provider || call.Agent != "tutor" || call.Upstream != provider || call.Run != res.Header.Get(gateway.RunHeader) {
						t.Errorf("%+v", call)
					}
					if n := len(call.Prompt); n == 0 || call.Prompt[n-1].Text != words {
						t.Errorf("prompt %+v", call.Prompt)
					}
				}
				whole := w.do(t, "POST", "/v1/chat", question(provider, words), "Accept", "application/json")
				got := unmarshal[ibid.Document](t, whole.body)
				call := w.stored(t, whole.Header)
				want, _ := call.Answer.Document(&ibid.DocumentOptions{AnswerID: call.AnswerID}).JSON()
				if diff := cmp.Diff(string(want)+"\n", whole.body); diff != "" || !got.Complete {
					t.Errorf("stream=no (-stored +told):\n%s", diff)
				}
			}
		})
	}
	for _, provider := range servertest.AllProviders {
		if keys[provider] != key {
			t.Errorf("%s got the key %q", provider, keys[provider])
		}
	}
	if log := w.Log.String(); strings.Contains(log, key) || strings.Contains(log, herons) {
		t.Errorf("the log contains secrets: %s", log)
	}
}

// checkEvents checks that events are as described in docs/chat.md.
func checkEvents(t *testing.T, res *response, unit ibid.Unit) {
	t.Helper()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v %s", res.StatusCode, res.Header, res.body)
	}
	all := events(res.body)
	last := all[len(all)-1]
	if last.name != "answer" {
		t.Fatalf("the last event is %s", last.name)
	}
	d := unmarshal[ibid.Document](t, last.data)
	if d.Unit != unit || *d.AnswerID != res.Header.Get(gateway.AnswerHeader) {
		t.Errorf("unit %s, answer %s", d.Unit, *d.AnswerID)
	}
	var text string
	sources, rows := map[string]bool{}, map[string][]ibid.DocumentCitation{}
	for _, e := range all {
		switch e.name {
		case "text":
			data := unmarshal[struct {
				At   int
				Text string
			}](t, e.data)
			if _, n := ibid.NewOffsets(text).In(unit, ibid.Span{End: len(text)}); n != data.At {
				t.Errorf("text at %d, want %d", data.At, n)
			}
			text += data.Text
		case "source":
			sources[unmarshal[struct{ Source ibid.DocumentSource }](t, e.data).Source.ID] = true
		case "citation":
			c := unmarshal[struct{ Citation gateway.LiveCitations }](t, e.data).Citation
			if delete(rows, c.Key); !c.Withdrawn {
				rows[c.Key] = c.Citations
			}
		}
	}
	if text != d.Text {
		t.Errorf("text %q, want %q", text, d.Text)
	}
	for i := range d.Sources {
		if !sources[d.Sources[i].ID] {
			t.Errorf("source %s was not told", d.Sources[i].ID)
		}
	}
	told := []ibid.DocumentCitation{}
	for _, list := range rows {
		told = append(told, list...)
	}
	if diff := cmp.Diff(bare(d.Citations), bare(told)); diff != "" {
		t.Errorf("citations (-answer +told):\n%s", diff)
	}
}

// bare returns rows without what only the complete answer has, in an order of their own.
func bare(rows []ibid.DocumentCitation) []string {
	all := []string{}
	for _, row := range rows {
		row.ID, row.Group, row.Index = "", 0, 0
		b, _ := json.Marshal(row)
		all = append(all, string(b))
	}
	slices.Sort(all)
	return all
}

// Sources keep their numbers through a conversation, even if the previous answer has only just ended.
func TestNumbers(t *testing.T) {
	w := newWorld(t, nil)
	w.do(t, "POST", "/v1/chat", question("openai", herons, `,"conversation":"c1"`))
	for _, form := range []string{"events", "no"} {
		res := w.do(t, "POST", "/v1/chat?stream="+form, question("openai", "What are the rules of the harbour?", `,"conversation":"c1"`))
		data := res.body
		if all := events(res.body); form == "events" {
			data = all[len(all)-1].data
		}
		d := unmarshal[ibid.Document](t, data)
		for i := range d.Sources {
			if d.Sources[i].Index <= 3 {
				t.Errorf("%s: %s has number %d, which is another's", form, d.Sources[i].ID, d.Sources[i].Index)
			}
		}
	}
}

// Documents reach every model: in the provider's own field for them, or else in a message of their own.
func TestDocuments(t *testing.T) {
	var mu sync.Mutex
	var sent string
	upstream := replay.New(nil)
	w := newWorld(t, &setup{upstream: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		r.Body = reader{r.Body, &b}
		upstream.ServeHTTP(rw, r)
		mu.Lock()
		sent = b.String()
		mu.Unlock()
	})})
	documents := `,"documents":[{"id":"d1","data":{"title":"Census","text":"41 <nests>","author":"Ann","rating":5}},"plain words"]`
	for _, provider := range servertest.AllProviders {
		res := w.do(t, "POST", "/v1/chat?stream=no", question(provider, herons, documents))
		mu.Lock()
		got := sent
		mu.Unlock()
		if res.StatusCode != 200 || !strings.Contains(got, "nests") || !strings.Contains(got, "plain words") || !strings.Contains(got, "Ann") || !strings.Contains(got, "rating") {
			t.Errorf("%s: %d %s; sent %s", provider, res.StatusCode, res.body, got)
		}
		prompt := w.stored(t, res.Header).Prompt
		if last := prompt[len(prompt)-1].Text; provider != "mistral" && last != herons {
			t.Errorf("%s: what was asked is %q", provider, last)
		}
	}
}

// reader copies what is read.
type reader struct {
	io.ReadCloser
	to *strings.Builder
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.to.Write(p[:n])
	return n, err
}

// If an upstream refuses, the problem has its words; if it cannot be reached, the problem says so too.
func TestRefusals(t *testing.T) {
	w := newWorld(t, nil)
	for _, test := range []struct {
		words  string
		status int
		code   string
	}{
		{"error 400", 400, gateway.CodeBadRequest},
		{"error 401", 502, gateway.CodeUpstream},
		{"error 404", 400, gateway.CodeBadRequest},
		{"error 429", 429, gateway.CodeTooMany},
		{"error 503", 502, gateway.CodeUpstream},
	} {
		for _, provider := range servertest.AllProviders {
			res := w.do(t, "POST", "/v1/chat", question(provider, "Please, "+test.words+"!"))
			if res.StatusCode != test.status || !strings.Contains(res.body, "#"+test.code) || !strings.Contains(res.body, "upstream "+provider+" answered "+test.words[6:]+": ") {
				t.Errorf("%s: %s: %d %s", provider, test.words, res.StatusCode, res.body)
			}
		}
	}
}

// OpenAI's clients read text and annotations, which count code points.
func TestOpenAI(t *testing.T) {
	w := newWorld(t, nil)
	res := w.do(t, "POST", "/v1/chat?stream=openai", question("gemini", "アオサギ"))
	a, err := ibid.Decode([]byte(strings.ReplaceAll(res.body, ": listening\n\n", "")), &ibid.DecodeOptions{Provider: "openai"})
	if err != nil {
		t.Fatalf("%v in %s", err, res.body)
	}
	want := w.stored(t, res.Header).Answer
	if a.Text != want.Text || len(a.Citations) != len(want.Citations) || len(want.Citations) == 0 || a.ID != res.Header.Get(gateway.AnswerHeader) || !a.Complete {
		t.Errorf("%s", res.body)
	}
	for i := range a.Citations {
		if got, want := a.Text[a.Citations[i].Span.Start:a.Citations[i].Span.End], want.Text[want.Citations[i].Span.Start:want.Citations[i].Span.End]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNew(t *testing.T) {
	w := newWorld(t, nil)
	for _, bad := range [][]chat.Provider{
		nil,
		{{Upstream: "", Provider: "openai"}},
		{{Upstream: "x", Provider: "nobody"}},
		{{Upstream: "x", Provider: "bedrock"}},
		{{Upstream: "x", Provider: "openai"}, {Upstream: "x", Provider: "openai"}},
		{{Upstream: "x", Provider: "openai", Tools: []json.RawMessage{[]byte("{")}}},
	} {
		if _, err := chat.New(&chat.Options{Gateway: w.Gateway, Guard: w.Guard, Store: w.Store, Providers: bad}); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	for _, p := range w.chat.Providers() {
		if p.Key != "" || p.Upstream == "" {
			t.Errorf("%+v", p)
		}
	}
}

// Cohere's fast citations arrive where the model uses a document, and are sent there: a client that prints a mark for
// each has it after its words, however late it reads.
func TestFastCitationsKeepTheirPlace(t *testing.T) {
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + rest + "}\n\n"
	}
	text := func(s string) string {
		return event("content-delta", `"index":0,"delta":{"message":{"content":{"text":"`+s+`"}}}`)
	}
	cite := func(i, start, end int, text, id string) string {
		return event("citation-start", fmt.Sprintf(`"index":%d,"delta":{"message":{"citations":{"start":%d,"end":%d,"text":%q,"content_index":0,"type":"TEXT_CONTENT",`+
			`"sources":[{"type":"document","id":%q,"document":{"id":%q,"snippet":"…","title":"T%s"}}]}}}`, i, start, end, text, id, id, id)) + event("citation-end", fmt.Sprintf(`"index":%d`, i))
	}
	stream := event("message-start", `"id":"m1","delta":{"message":{"role":"assistant","content":[],"citations":[]}}`) +
		event("content-start", `"index":0,"delta":{"message":{"content":{"type":"text","text":""}}}`) +
		text("The") + text(" tallest") + text(" penguins") + cite(0, 4, 20, "tallest penguins", "100") + text(" are") + text(" the Emperor penguins") +
		cite(1, 29, 45, "Emperor penguins", "100") + text(", which only live in Antarctica.") + cite(2, 66, 76, "Antarctica", "101") +
		event("content-end", `"index":0`) + event("message-end", `"delta":{"finish_reason":"COMPLETE"}`)
	w := newWorld(t, &setup{upstream: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, stream)
	})})
	for range 20 {
		res := w.do(t, "POST", "/v1/chat", question("cohere", "Where do the tallest penguins live?", `,"citations":"fast"`))
		var printed strings.Builder
		seen := map[string]bool{}
		for _, e := range events(res.body) {
			switch e.name {
			case "text":
				printed.WriteString(unmarshal[struct{ Text string }](t, e.data).Text)
			case "citation":
				c := unmarshal[struct{ Citation gateway.LiveCitations }](t, e.data).Citation
				if !seen[c.Key] {
					seen[c.Key] = true
					printed.WriteString(" [" + c.Citations[0].SourceID + "]")
				}
			}
		}
		const want = "The tallest penguins [100] are the Emperor penguins [100], which only live in Antarctica. [101]"
		if got := printed.String(); got != want {
			t.Fatalf("%s", got)
		}
	}
}

// OpenAI's clients get a blank line between a model's words before and after a tool call, and annotations of the
// resulting text. The vector's text comes in pieces, with and without space of its own between the two.
func TestOpenAIParts(t *testing.T) {
	archive := testenv.Must(txtar.ParseFile("../testdata/anthropic-messages/text-around-a-tool.txtar"))(t)
	stream := string(archive.Files[0].Data)
	for space, want := range map[string]string{"": "for you.\n\nBased on", `\n`: "for you.\n\nBased on", `\n\n `: "for you.\n\n Based on"} {
		body := strings.Replace(stream, `"Based on`, `"`+space+`Based on`, 1)
		if space != "" { // and in separate events
			body = strings.Replace(body, space+`Based`, space+`"}, "index": 3}`+
				"\n\nevent: content_block_delta\n"+`data: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Based`, 1)
		}
		w := newWorld(t, &setup{upstream: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		})})
		res := w.do(t, "POST", "/v1/chat?stream=openai", question("anthropic", "When?"))
		a, err := ibid.Decode([]byte(strings.ReplaceAll(res.body, ": listening\n\n", "")), &ibid.DecodeOptions{Provider: "openai"})
		if err != nil {
			t.Fatalf("%v in %s", err, res.body)
		}
		kept := export.Parted(w.stored(t, res.Header).Answer)
		if !strings.Contains(a.Text, want) || a.Text != kept.Text || len(a.Citations) != 1 {
			t.Fatalf("%q, want %q, in %s", a.Text, kept.Text, res.body)
		}
		s := a.Citations[0].Span
		testenv.Equal(t, "cited words", "the pool opens at nine", a.Text[s.Start:s.End])
	}
}

// Requests that are too large are refused like all others: in one sentence where a front-end shows it.
func TestLargeRequests(t *testing.T) {
	w := newWorld(t, nil)
	large := `"x":"` + strings.Repeat("x", chat.MaxRequest) + `"}`
	res := w.do(t, "POST", "/v1/chat", `{"messages":[{"role":"user","content":"?"}],`+large)
	if res.StatusCode != 413 || !strings.Contains(res.body, "bytes") || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	large = `{"id":"a","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"?"}]}],` + large
	if res := w.do(t, "POST", "/v1/chat", large); res.StatusCode != 413 || res.body != "The request's body has more than 33554432 bytes." {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Name: "t", Tenant: "acme", Scopes: []string{"read"}}))(t)
	w.Guard.Forget()
	if res := w.do(t, "POST", "/v1/chat", large); res.StatusCode != 401 || strings.ContainsAny(res.body, "\n{") {
		t.Errorf("without a token: %d %s", res.StatusCode, res.body)
	}
}
