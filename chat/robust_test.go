package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// upstream selects the response by the first of its words that is in the question.
type upstream map[string]http.HandlerFunc

func (u upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(b)))
	for words, answer := range u {
		if strings.Contains(string(b), words) {
			answer(w, r)
			return
		}
	}
	replay.New(nil).ServeHTTP(w, r)
}

// say returns a handler with a fixed response.
func say(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A key that a provider repeats in its error is not revealed: not to the client, nor in the store and the log.
func TestKeyIsHidden(t *testing.T) {
	const words = `no access with Bearer ` + key + `, key='` + key + `'`
	failed, _ := json.Marshal(map[string]any{"error": map[string]any{"code": "x " + key, "type": "t", "message": words}})
	w := newWorld(t, &setup{upstream: upstream{
		"refuse": say(401, "application/json", string(failed)),
		"fake":   say(400, "application/problem+json", `{"type":"#x","detail":"`+words+`","hint":"`+key+`"}`),
		"whole":  say(200, "application/json", `{"id":"resp_1","object":"response","status":"failed","output":[],`+string(failed[1:])),
		"stream": say(200, "text/event-stream", "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n"+
			"event: error\ndata: {\"type\":\"error\",\"code\":\"x\",\"message\":\""+words+"\"}\n\n"),
	}})
	for _, how := range []string{"refuse", "fake", "whole", "stream"} {
		for _, form := range []string{"events", "ui", "openai", "no"} {
			res := w.do(t, "POST", "/v1/chat?stream="+form, question("openai", how))
			if strings.Contains(res.body, key) || !strings.Contains(res.body, "o access with …, key='…'") {
				t.Errorf("%s as %s: %s", how, form, res.body)
			}
			if res.StatusCode != 200 {
				continue
			}
			call := w.stored(t, res.Header)
			if kept, err := json.Marshal(call); err != nil || strings.Contains(string(kept), key) || call.Answer.Error == nil {
				t.Errorf("%s as %s: kept as %s, %v", how, form, kept, err)
			}
		}
	}
	if strings.Contains(w.Log.String(), key) {
		t.Errorf("the log has the key: %s", w.Log)
	}
}

// Mistral's error words are reported in whatever form it writes them: instead of an answer, or in its middle.
func TestWordsOfMistral(t *testing.T) {
	const (
		invalid = `{"object":"error","message":{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]},"type":"invalid_request_error","param":null,"code":null,"raw_status_code":422}`
		busy    = `{"object":"error","message":"Service tier capacity exceeded.","type":"service_tier_capacity_exceeded","param":null,"code":"3505","raw_status_code":429}`
		begun   = `data: {"id":"c1","object":"chat.completion.chunk","model":"mistral-small-latest","choices":[{"index":0,"delta":{"role":"assistant","content":"It rains"},"finish_reason":null}]}` + "\n\n"
		failed  = `data: {"id":"c1","object":"chat.completion.chunk","model":"mistral-small-latest","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n"
	)
	w := newWorld(t, &setup{upstream: upstream{
		"refuse a field": say(422, "application/json", invalid),
		"refuse at all":  say(429, "application/json", busy),
		"gateway":        say(401, "application/json", `{"message":"Unauthorized"}`),
		"break a field":  say(200, "text/event-stream", begun+"data: "+invalid+"\n\n"),
		"break at all":   say(200, "text/event-stream", begun+"data: "+busy+"\n\n"),
		"without words":  say(200, "text/event-stream", begun+failed),
	}})
	for how, want := range map[string]string{
		"refuse a field": "invalid_request_error: body.model: Field required", "refuse at all": "3505: Service tier capacity exceeded.",
		"gateway":       "mistral answered 401: Unauthorized",
		"break a field": "body.model: Field required", "break at all": "Service tier capacity exceeded.",
		"without words": "the model stopped with an error",
	} {
		for _, form := range []string{"events", "ui", "openai", "no"} {
			want := want
			if form == "ui" && how == "refuse at all" { // as one sentence
				want = "3505: Service tier capacity exceeded; try again in a while, or ask another one."
			}
			if res := w.do(t, "POST", "/v1/chat?stream="+form, question("mistral", how)); !strings.Contains(res.body, want) {
				t.Errorf("%s as %s: %d %s", how, form, res.StatusCode, res.body)
			}
		}
	}
}

// A provider that sends nothing, before its answer or within it, is not awaited forever.
func TestSilence(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{silence: 100 * time.Millisecond, upstream: upstream{
		"nothing": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}})
	if res := w.do(t, "POST", "/v1/chat", question("openai", "nothing", `,"conversation":"c1"`)); res.StatusCode != 504 || !strings.Contains(res.body, gateway.CodeUpstreamSlow) {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if res := w.do(t, "GET", "/v1/chat/c1/stream", ""); res.StatusCode != 204 {
		t.Errorf("it is still under way: %d", res.StatusCode)
	}
	silent := newWorld(t, &setup{silence: 600 * time.Millisecond, upstream: up})
	for form, want := range map[string]string{"events": `"code":"upstream-timeout"`, "ui": `"type":"error"`, "no": `"upstream-timeout"`} {
		if res := silent.do(t, "POST", "/v1/chat?stream="+form, question("openai", herons)); !strings.Contains(res.body, want) || !strings.Contains(res.body, "The ") { // pieces may be separate
			t.Errorf("%s: %s", form, res.body)
		}
	}
}

// A client that leaves before the answer begins ends its question if no one could find it, and no other.
func TestLeaving(t *testing.T) {
	asked, gone := make(chan string, 2), make(chan string, 2)
	w := newWorld(t, &setup{upstream: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		name := fmt.Sprint(strings.Contains(string(b), "lost"))
		asked <- name
		<-r.Context().Done()
		gone <- name
	})})
	for _, body := range []string{question("openai", "kept", `,"conversation":"c1"`), question("openai", "lost")} {
		ctx, cancel := context.WithCancel(t.Context())
		r := testenv.Must(http.NewRequestWithContext(ctx, "POST", w.URL+"/v1/chat", strings.NewReader(body)))(t)
		left := make(chan struct{})
		go func() {
			defer close(left)
			if res, err := http.DefaultClient.Do(r); err == nil {
				_ = res.Body.Close()
			}
		}()
		<-asked
		cancel()
		<-left
	}
	if name := <-gone; name != "true" {
		t.Error("the question of a conversation ended first")
	}
	if res := w.do(t, "DELETE", "/v1/chat/c1/stream", ""); res.StatusCode != 204 {
		t.Errorf("%d", res.StatusCode)
	}
	if name := <-gone; name != "false" {
		t.Error("the other ended twice")
	}
}

// A client that resumes a question whose answer has not begun is told so, and then what follows.
func TestResumeBeforeBegin(t *testing.T) {
	answer := make(chan int)
	w := newWorld(t, &setup{upstream: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if status := <-answer; status != http.StatusOK {
			rw.WriteHeader(status)
			return
		}
		replay.New(nil).ServeHTTP(rw, r)
	})})
	for status, want := range map[int]string{200: "event: answer", 503: "event: error"} {
		asked := make(chan error, 1)
		go func() {
			res, err := http.Post(w.URL+"/v1/chat", "application/json", strings.NewReader(question("openai", herons, `,"conversation":"c1"`)))
			if err == nil {
				err = res.Body.Close()
			}
			asked <- err
		}()
		var res *opened
		for res == nil || res.StatusCode == http.StatusNoContent { // until it was asked
			res = w.open(t, "GET", "/v1/chat/c1/stream", "")
		}
		answer <- status
		got, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasPrefix(string(got), ": waiting") || !strings.Contains(string(got), want) {
			t.Errorf("%d: %v: %s", status, err, got)
		}
		if err := <-asked; err != nil {
			t.Error(err)
		}
		for w.do(t, "GET", "/v1/chat/c1/stream", "").StatusCode != http.StatusNoContent { // until it has ended
		}
	}
}

// A newer question of a conversation takes its place when it begins, and gives it back when it ends. Stop ends all.
func TestSameConversation(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: upstream{"refused": say(500, "text/plain", "no"), herons: up.ServeHTTP}})
	first := w.open(t, "POST", "/v1/chat", question("openai", herons, `,"conversation":"c1"`))
	<-up.half
	for _, words := range []string{"refused", "What are the rules of the harbour?"} {
		w.do(t, "POST", "/v1/chat", question("openai", words, `,"conversation":"c1"`))
		if res := w.open(t, "GET", "/v1/chat/c1/stream", ""); res.StatusCode != 200 || res.Header.Get(gateway.AnswerHeader) != first.Header.Get(gateway.AnswerHeader) {
			t.Fatalf("after %q: %d %v", words, res.StatusCode, res.Header)
		}
	}
	second := w.open(t, "POST", "/v1/chat", question("openai", herons, `,"conversation":"c1"`))
	<-up.half
	if res := w.open(t, "GET", "/v1/chat/c1/stream", ""); res.Header.Get(gateway.AnswerHeader) != second.Header.Get(gateway.AnswerHeader) {
		t.Errorf("the newest is not sent: %v", res.Header)
	}
	if res := w.do(t, "DELETE", "/v1/chat/c1/stream", ""); res.StatusCode != 204 {
		t.Errorf("%d", res.StatusCode)
	}
	<-up.gone
	<-up.gone
}

// A client whose token was revoked is sent nothing more, however much there is.
func TestRevoked(t *testing.T) {
	up := newSlow()
	w := newWorld(t, &setup{upstream: up})
	w.chat.RecheckEvery(0)
	token := &store.Token{Name: "asker", Tenant: "acme", Scopes: []string{"proxy", "read"}}
	secret := testenv.Must(w.Store.NewToken(t.Context(), token))(t)
	other := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Name: "other", Tenant: "acme", Scopes: []string{"read"}}))(t)
	asked := w.open(t, "POST", "/v1/chat", question("openai", herons, `,"conversation":"c1"`), "Authorization", "Bearer "+secret)
	<-up.half
	whole := make(chan int)
	r := testenv.Must(http.NewRequestWithContext(t.Context(), "GET", w.URL+"/v1/chat/c1/stream?stream=no", nil))(t)
	r.Header.Set("Authorization", "Bearer "+secret)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			whole <- 0
			return
		}
		_ = res.Body.Close()
		whole <- res.StatusCode
	}()
	last := w.open(t, "GET", "/v1/chat/c1/stream", "", "Authorization", "Bearer "+other)
	testenv.OK(t, w.Store.RevokeToken(t.Context(), token.ID))
	w.Guard.Forget()
	close(up.on)
	if got, err := io.ReadAll(asked.Body); err == nil || strings.Contains(string(got), "event: answer") {
		t.Errorf("%v: %s", err, got)
	}
	if status := <-whole; status != http.StatusUnauthorized {
		t.Errorf("the whole answer: %d", status)
	}
	if got, err := io.ReadAll(last.Body); err != nil || !strings.Contains(string(got), "event: answer") {
		t.Errorf("another reader: %v: %s", err, got)
	}
}

// An empty response, or an HTML page, is not an answer.
func TestNoAnswer(t *testing.T) {
	w := newWorld(t, &setup{upstream: upstream{
		"empty": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) },
		"page":  say(200, "text/html", "<html>Sign in"),
	}})
	if res := w.do(t, "POST", "/v1/chat", question("openai", "empty")); res.StatusCode != 502 {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	res := w.do(t, "POST", "/v1/chat?stream=no", question("openai", "page"))
	if d := unmarshal[ibid.Document](t, res.body); d.Error == nil || d.Error.Message != "the upstream's response is not the answer of a model" {
		t.Errorf("%s", res.body)
	}
}

// The citations of an answer that breaks off after its text reach OpenAI's clients too.
func TestOpenAIBroken(t *testing.T) {
	w := newWorld(t, nil)
	res := w.do(t, "POST", "/v1/chat?stream=openai", question("openai", herons+" With an error in the stream."))
	cites, failed := strings.Index(res.body, `"annotations":[{`), strings.Index(res.body, `data: {"error"`)
	if cites < 0 || failed < cites {
		t.Errorf("%s", res.body)
	}
}

// many returns an OpenAI answer with n citations, each of a page of its own, numbered from first.
func many(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"url_citation","start_index":%d,"end_index":%d,"url":"https://heron.example/%d","title":"Heron"}`, 4*i, 4*i+3, first+i)
	}
	return `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` +
		strings.Repeat("One ", n) + `","annotations":[` + b.String() + `]}]}]}`
}

// An answer with as many citations as our pages show is sent completely.
func TestManyCitations(t *testing.T) {
	w := newWorld(t, &setup{upstream: upstream{"many": say(200, "application/json", many(0, 5000))}})
	res := w.do(t, "POST", "/v1/chat", question("openai", "many"))
	all := events(res.body)
	last := all[len(all)-1]
	if last.name != "answer" {
		t.Fatalf("%.300s", last)
	}
	if d := unmarshal[ibid.Document](t, last.data); len(d.Citations) != 5000 {
		t.Errorf("%d citations", len(d.Citations))
	}
}

// Numbers continue where the previous answer ended, although that takes a while to be stored.
func TestNumbersAtOnce(t *testing.T) {
	const n, turns = 400, 5
	up := upstream{}
	for i := range turns {
		up[fmt.Sprintf("turn %d", i)] = say(200, "application/json", many(i*n, n))
	}
	w := newWorld(t, &setup{upstream: up})
	for i := range turns {
		res := w.do(t, "POST", "/v1/chat?stream=no", question("openai", fmt.Sprintf("turn %d", i), `,"conversation":"c1"`))
		if d := unmarshal[ibid.Document](t, res.body); len(d.Sources) != n || d.Sources[0].Index != i*n+1 {
			t.Errorf("turn %d: %d sources from %d on", i, len(d.Sources), d.Sources[0].Index)
		}
	}
}

// A policy that blocks withholds a complete answer, which is stored all the same; a stream passes. One that only asks for
// a header adds it.
func TestPolicies(t *testing.T) {
	for action, want := range map[string]struct {
		status int
		header string
	}{"note": {200, ""}, "header": {200, "require-citations"}, "block": {422, "require-citations"}} {
		t.Run(action, func(t *testing.T) {
			w := newWorld(t, &setup{
				upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"The mill closed."}}]}`+"\n\n"+
						`data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
				}),
				server: func(c *server.Config) {
					c.File = filepath.Join(t.TempDir(), "ibid.yaml")
					testenv.OK(t, os.WriteFile(c.File, []byte("tenants: {default: {policies: {require-citations: "+action+"}}}"), 0o600))
				},
			})
			ask := func(stream string) (*http.Response, string) {
				t.Helper()
				res := testenv.Must(http.Post(w.URL+"/v1/chat?stream="+stream, "application/json",
					strings.NewReader(`{"provider": "mistral", "messages": [{"role": "user", "content": "When?"}]}`)))(t)
				defer res.Body.Close()
				return res, string(testenv.Must(io.ReadAll(res.Body))(t))
			}
			res, body := ask("no") //nolint:bodyclose // ask closes it
			if res.StatusCode != want.status || res.Header.Get("Ibid-Policy") != want.header || strings.Contains(body, "mill") != (want.status == 200) {
				t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
			}
			testenv.OK(t, w.Gateway.CatchUp(t.Context()))
			if c, err := w.Store.Call(t.Context(), "default", res.Header.Get("Ibid-Answer")); err != nil || c.Answer.Text != "The mill closed." {
				t.Errorf("kept: %+v, %v", c, err)
			}
			//nolint:bodyclose // ask closes it
			if res, body := ask("events"); res.StatusCode != 200 || res.Header.Get("Ibid-Policy") != "" || !strings.Contains(body, "mill") {
				t.Errorf("a stream: %d %v %s", res.StatusCode, res.Header, body)
			}
		})
	}
}

// A key that a provider repeats in its answer, split into pieces, in a title and in an address, is not revealed to chat
// clients.
func TestRepeatedKeyIsMasked(t *testing.T) {
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
	}
	text := "The key is " + key + ", and herons wade."
	begin := strings.Index(text, "herons")
	at := `"item_id":"msg_1","output_index":0,"content_index":0`
	source := fmt.Sprintf(`{"type":"url_citation","start_index":%d,"end_index":%d,"url":"https://a.example/?k=%s","title":"of %s"}`, begin, len(text)-1, key, key)
	message := fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[%s]}]}`, text, source)
	stream := event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`) +
		event("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}`)
	for rest := text; rest != ""; {
		n := min(3, len(rest))
		stream += event("response.output_text.delta", at+fmt.Sprintf(`,"delta":%q`, rest[:n]))
		rest = rest[n:]
	}
	stream += event("response.output_text.annotation.added", at+`,"annotation_index":0,"annotation":`+source) +
		event("response.output_item.done", `"output_index":0,"item":`+message) +
		event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`]}`)
	w := newWorld(t, &setup{upstream: upstream{"echo": say(200, "text/event-stream", stream)}})
	for _, form := range []string{"events", "ui", "openai", "no"} {
		res := w.do(t, "POST", "/v1/chat?stream="+form, question("openai", "echo"))
		if strings.Contains(res.body, key) || !strings.Contains(res.body, "wade") {
			t.Errorf("as %s: %s", form, res.body)
		}
		if res.StatusCode != 200 {
			t.Errorf("as %s: %d", form, res.StatusCode)
		}
		if c := w.stored(t, res.Header); !strings.Contains(c.Answer.Text, "***, and herons wade.") || len(c.Answer.Citations) != 1 {
			t.Errorf("as %s: stored %+v", form, c.Answer)
		}
	}
}
