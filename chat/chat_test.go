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
	"time"

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

// question returns a body of our own form.
func question(provider, words string, more ...string) string {
	b, _ := json.Marshal(words)
	return `{"provider":"` + provider + `","messages":[{"role":"user","content":` + string(b) + `}]` + strings.Join(more, "") + `}`
}

const herons = "How many herons nest at Lake Tonbo?"

// stored returns the answer that a response says it is kept as, once it is in the store.
func (w *world) stored(t *testing.T, h http.Header) *store.Call {
	t.Helper()
	if err := w.Gateway.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	call, err := w.Store.Call(t.Context(), "default", h.Get(gateway.AnswerHeader))
	if err != nil {
		t.Fatalf("%q: %v", h.Get(gateway.AnswerHeader), err)
	}
	return call
}

// Whoever is asked: the events build up to the answer, which is the one that is kept, and all forms tell the same.
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
		t.Errorf("the log has secrets: %s", log)
	}
}

// checkEvents checks that events are what docs/chat.md says.
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

// bare returns rows without what only the whole answer tells, in an order of their own.
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

// Sources keep their numbers through a conversation, also where the answer before has only just ended.
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

// Documents reach the model, whoever it is: in its provider's place for them, or else in a message of their own.
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

// reader keeps what is read.
type reader struct {
	io.ReadCloser
	to *strings.Builder
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.to.Write(p[:n])
	return n, err
}

// What a client can do wrong has a problem that says so, and nothing is asked of anybody.
func TestBadRequests(t *testing.T) {
	w := newWorld(t, &setup{
		upstream: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") }),
		change:   func(p []chat.Provider) { p[1].Model = "" },
	})
	for _, test := range []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"empty", "", "", 400, "not a JSON object"},
		{"no JSON", "", "{", 400, "not a JSON object"},
		{"misspelt", "", `{"mesages":[]}`, 400, `no member \"mesages\"`},
		{"wrong type", "", `{"model":7}`, 400, "model may not be a number"},
		{"no message", "", `{"messages":[]}`, 400, "no message of the user"},
		{"no words", "", `{"messages":[{"role":"user"}]}`, 400, "message 0 has no content"},
		{"another case", "", `{"Model":"m","messages":[{"role":"user","content":"?"}]}`, 400, `no member \"Model\"`},
		{"another case in a message", "", `{"messages":[{"role":"user","Content":"?"}]}`, 400, `no member \"Content\"`},
		{"a list", "", `{"model":[]}`, 400, "model may not be an array"},
		{"a tool's words", "", `{"messages":[{"role":"tool","content":"x"},{"role":"user","content":"?"}]}`, 400, "message 0: its role is not"},
		{"a tool's words of useChat", "", `{"id":"a","messages":[{"role":"tool","parts":[]},{"role":"user","parts":[{"type":"text","text":"?"}]}]}`, 400, "message 0: its role is not"},
		{"a picture", "", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, 400, `part 0 of a content is no text: \"image_url\"`},
		{"a content that is none", "", `{"messages":[{"role":"user","content":7}]}`, 400, "content is neither a string nor a list"},
		{"wrong role", "", `{"messages":[{"role":"boss","content":"?"}]}`, 400, "role"},
		{"wrong citations", "", question("openai", "?", `,"citations":"many"`), 400, "fast, accurate, off"},
		{"wrong documents", "", question("openai", "?", `,"documents":7`), 400, "documents"},
		{"wrong conversation", "", question("openai", "?", `,"conversation":"a/b"`), 400, "conversation: an id has"},
		{"wrong run", "", question("openai", "?", `,"run":"a b"`), 400, "run: an id has"},
		{"wrong agent", "", question("openai", "?", `,"agent":"\u0007"`), 400, "Ibid-Agent"},
		{"nobody", "", question("nobody", "?"), 400, "openai, gemini, cohere"},
		{"no model", "", question("gemini", "?"), 400, "no model"},
		{"no tool", "", question("openai", "?", `,"tools":["x",]`), 400, ""},
		{"chat id", "", `{"id":"a b","messages":[{"role":"user","parts":[{"type":"text","text":"?"}]}]}`, 400, "conversation: an id has"},
		{"a file", "", `{"id":"a","messages":[{"role":"user","parts":[{"type":"file","url":"data:,"}]}]}`, 400, "a file cannot be sent"},
		{"form", "?stream=all", question("openai", "?"), 400, "events, ui, openai, no"},
		{"unit", "?unit=bytes", question("openai", "?"), 400, "utf-8, code-point, utf-16"},
		{"unit of ui", "?stream=ui&unit=utf-8", question("openai", "?"), 400, "always utf-16"},
		{"twice", "?unit=utf-8&unit=utf-8", question("openai", "?"), 400, "more than once"},
		{"parameter", "?as=json", question("openai", "?"), 400, "stream, unit"},
		{"query", "?%zz", question("openai", "?"), 400, "encoded"},
		{"too large", "", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", chat.MaxRequest) + `"}]}`, 413, "bytes"},
	} {
		kind := "application/problem+json"
		if strings.Contains(test.path+test.body, "stream=ui") || strings.Contains(test.body, `"parts"`) {
			kind = "text/plain; charset=utf-8" // a front-end shows it as it is
		}
		res := w.do(t, "POST", "/v1/chat"+test.path, test.body)
		if res.StatusCode != test.status || !strings.Contains(res.body, test.want) || res.Header.Get("Content-Type") != kind {
			t.Errorf("%s: %d %.300s", test.name, res.StatusCode, res.body)
		}
	}
	for path, status := range map[string]int{"DELETE /v1/chat/c/stream?all": 400, "GET /v1/chat": 405, "PUT /v1/chat/c/stream": 405, "GET /v1/chat/c": 404, "GET /v1/chat//stream": 404, "HEAD /v1/chat": 405} {
		method, path, _ := strings.Cut(path, " ")
		if res := w.do(t, method, path, ""); res.StatusCode != status {
			t.Errorf("%s %s: %d", method, path, res.StatusCode)
		}
	}
}

// An upstream that refuses has its words in the problem; one that is not there says so too.
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
	dead := newWorld(t, &setup{upstream: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(rw).Hijack()
		_ = c.Close()
	})})
	res := dead.do(t, "POST", "/v1/chat", question("openai", "?"))
	if res.StatusCode != 502 || !strings.Contains(res.body, "it closed the connection without a response") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

// What ends badly after it began says so in every form, behind what came.
func TestBroken(t *testing.T) {
	w := newWorld(t, nil)
	for words, want := range map[string]string{"error in the stream": "", "break off": "the answer broke off"} {
		for form, mark := range map[string]string{"events": "event: error\ndata: {", "ui": `"type":"error"`, "openai": `data: {"error":{`} {
			res := w.do(t, "POST", "/v1/chat?stream="+form, question("openai", herons+" With an "+words+"."))
			if res.StatusCode != 200 || !strings.Contains(res.body, mark) || !strings.Contains(res.body, want) || !strings.Contains(res.body, "The colony") {
				t.Errorf("%s: %s: %d %s", words, form, res.StatusCode, res.body)
			}
		}
		res := w.do(t, "POST", "/v1/chat?stream=no", question("openai", herons+" With an "+words+"."))
		if d := unmarshal[ibid.Document](t, res.body); d.Complete || d.Error == nil || d.Text == "" {
			t.Errorf("%s: %s", words, res.body)
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

// Tokens, scopes, tenants and foreign pages.
func TestAccess(t *testing.T) {
	w := newWorld(t, &setup{origins: []string{"https://app.example"}, upstream: replay.New(&replay.Options{Delay: 20 * time.Millisecond})})
	token := func(tenant string, scopes ...string) string {
		secret, err := w.Store.NewToken(t.Context(), &store.Token{Name: "t", Tenant: tenant, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + secret
	}
	both, reader, other := token("acme", "proxy", "read"), token("acme", "read"), token("rival", "proxy", "read")
	body := question("openai", herons, `,"conversation":"c1"`)
	if res := w.do(t, "POST", "/v1/chat", body); res.StatusCode != 401 {
		t.Errorf("without a token: %d", res.StatusCode)
	}
	if res := w.do(t, "POST", "/v1/chat", body, "Authorization", reader); res.StatusCode != 403 {
		t.Errorf("without the scope: %d", res.StatusCode)
	}
	res := w.open(t, "POST", "/v1/chat", body, "Authorization", both, "Origin", "https://app.example")
	if res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if got := w.do(t, "GET", "/v1/chat/c1/stream", "", "Authorization", other); got.StatusCode != 204 {
		t.Errorf("another tenant: %d", got.StatusCode)
	}
	if got := w.do(t, "DELETE", "/v1/chat/c1/stream", "", "Authorization", other); got.StatusCode != 204 {
		t.Errorf("another tenant ends it: %d", got.StatusCode)
	}
	if got := w.do(t, "DELETE", "/v1/chat/c1/stream", "", "Authorization", reader); got.StatusCode != 403 {
		t.Errorf("a reader ends it: %d", got.StatusCode)
	}
	if got := w.do(t, "GET", "/v1/chat/c1/stream", "", "Authorization", reader); got.StatusCode != 200 || !strings.Contains(got.body, "event: answer") {
		t.Errorf("a reader: %d", got.StatusCode)
	}
	pre := w.do(t, "OPTIONS", "/v1/chat", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	if pre.StatusCode != 204 {
		t.Errorf("preflight: %d", pre.StatusCode)
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

// A front-end of the AI SDK shows the body of a refusal to its user: it is one sentence, not JSON.
func TestPlainErrors(t *testing.T) {
	w := newWorld(t, nil)
	for body, want := range map[string]string{
		`{"id":"a","messages":[{"role":"user","parts":[{"type":"text","text":"error 429"}]}],"provider":"openai"}`: "Upstream openai answered 429: ",
		`{"id":"a","messages":[{"role":"user","parts":[{"type":"text","text":"?"}]}],"provider":"nobody"}`:         "provider: there is none of that name; there is openai, ",
		`{"id":"a","messages":[{"role":"user","parts":[]}]}`:                                                       "messages: there is no message of the user that says something; ",
	} {
		res := w.do(t, "POST", "/v1/chat", body)
		if !strings.HasPrefix(res.body, want) || !strings.HasSuffix(res.body, ".") || strings.ContainsAny(res.body, "\n#") {
			t.Errorf("%s", res.body)
		}
		if got := res.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("Content-Type: %s", got)
		}
	}
}

// So is what the guard refuses, who has not read the question. Other clients get problems.
func TestPlainRefusals(t *testing.T) {
	w := newWorld(t, &setup{origins: []string{"https://app.example"}})
	secret := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Name: "t", Tenant: "acme", Scopes: []string{"read"}}))(t)
	ui := `{"id":"a","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"?"}]}]}`
	large := ui[:len(ui)-1] + `,"x":"` + strings.Repeat("x", chat.MaxRequest) + `"}`
	for _, test := range []struct {
		method, path, body string
		header             []string
		status             int
		plain              bool
	}{
		{"POST", "/v1/chat", ui, nil, 401, true},
		{"POST", "/v1/chat", ui, []string{"Authorization", "Bearer " + secret}, 403, true},
		{"POST", "/v1/chat", ui, []string{"Origin", "https://foreign.example"}, 403, true},
		{"POST", "/v1/chat", large, nil, 401, true},
		{"POST", "/v1/chat?stream=ui", question("openai", herons), nil, 401, true},
		{"POST", "/v1/chat?stream=events", ui, nil, 401, false},
		{"POST", "/v1/chat", question("openai", herons), nil, 401, false},
		{"POST", "/v1/chat?stream=x", ui, []string{"Authorization", "Bearer " + secret}, 403, false},
		{"GET", "/v1/chat/c1/stream", "", []string{"Sec-Fetch-Mode", "cors"}, 401, true},
		{"GET", "/v1/chat/c1/stream", "", []string{"Origin", "https://app.example"}, 401, true},
		{"GET", "/v1/chat/c1/stream", "", nil, 401, false},
		{"PUT", "/v1/chat", "", nil, 405, false},
	} {
		res := w.do(t, test.method, test.path, test.body, test.header...)
		plain := res.Header.Get("Content-Type") == "text/plain; charset=utf-8"
		if res.StatusCode != test.status || plain != test.plain || plain == strings.ContainsAny(res.body, "\n{") {
			t.Errorf("%s %s %v: %d %s", test.method, test.path, test.header, res.StatusCode, res.body)
		}
	}
	open := newWorld(t, nil)
	if res := open.do(t, "POST", "/v1/chat", large); res.StatusCode != 413 || res.body != "The request's body has more than 33554432 bytes." {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

// A message's content may be a list of parts, as the providers' own APIs have it.
func TestContentParts(t *testing.T) {
	w := newWorld(t, nil)
	res := w.do(t, "POST", "/v1/chat", `{"provider":"openai","messages":[{"role":"user","content":[{"type":"text","text":"How many herons"},{"type":"input_text","text":"nest at Lake Tonbo?"}]}]}`)
	call := w.stored(t, res.Header)
	if n := len(call.Prompt); n == 0 || call.Prompt[n-1].Text != "How many herons\nnest at Lake Tonbo?" {
		t.Errorf("asked %+v", call.Prompt)
	}
}

// Cohere's fast citations come where the model uses a document, and so they are told: whoever prints a mark for each has
// it behind its words, however late they read.
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

// OpenAI's clients get a blank line between what a model says before it calls a tool and after, and annotations of the
// text that they have. The vector's text comes in pieces, with and without space of its own between the two.
func TestOpenAIParts(t *testing.T) {
	archive, err := txtar.ParseFile("../testdata/anthropic-messages/text-around-a-tool.txtar")
	if err != nil {
		t.Fatal(err)
	}
	stream := string(archive.Files[0].Data)
	for space, want := range map[string]string{"": "for you.\n\nBased on", `\n`: "for you.\n\nBased on", `\n\n `: "for you.\n\n Based on"} {
		body := strings.Replace(stream, `"Based on`, `"`+space+`Based on`, 1)
		if space != "" { // and in events of their own
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
