package replay_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

// asks are requests to all providers, with %s for the prompt as JSON.
var asks = []struct{ name, path, body, stream string }{
	{"openai-responses", "/v1/responses", `{"model":"gpt-heron","input":%s}`, `{"model":"gpt-heron","stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":%s}]}]}`},
	{"openai-chat", "/v1/chat/completions", `{"model":"gpt-heron","messages":[{"role":"user","content":%s}]}`, `{"model":"gpt-heron","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%s}]}`},
	{"gemini-generate", "/v1beta/models/gemini-heron:generateContent", `{"contents":[{"role":"user","parts":[{"text":%s}]}]}`, ""},
	{"gemini-generate", "/v1beta/models/gemini-heron:streamGenerateContent?alt=sse", "", `{"contents":[{"role":"user","parts":[{"text":%s}]}]}`},
	{"gemini-generate", "/v1beta/models/gemini-heron:streamGenerateContent", "", `{"contents":[{"role":"user","parts":[{"text":%s}]}]}`},
	{"anthropic-messages", "/v1/messages", `{"model":"claude-heron","max_tokens":9,"messages":[{"role":"user","content":%s}]}`, `{"model":"claude-heron","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":%s}]}]}`},
	{"cohere-v2", "/v2/chat", `{"model":"command-heron","messages":[{"role":"user","content":%s}]}`, `{"model":"command-heron","stream":true,"messages":[{"role":"user","content":%s}]}`},
	{"perplexity-chat", "/perplexity/chat/completions", `{"model":"sonar-heron","messages":[{"role":"user","content":%s}]}`, `{"model":"sonar-heron","stream":true,"messages":[{"role":"user","content":%s}]}`},
	{"mistral-conversations", "/mistral/v1/conversations", `{"model":"mistral-heron","inputs":%s}`, `{"model":"mistral-heron","stream":true,"inputs":[{"role":"user","content":%s}]}`},
}

// fill puts a prompt into a request.
func fill(t *testing.T, body, prompt string) string {
	t.Helper()
	quoted := testenv.Must(json.Marshal(prompt))(t)
	return strings.Replace(body, "%s", string(quoted), 1)
}

// serve sends one request.
func serve(h http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w
}

// each calls f for every kind of request.
func each(t *testing.T, f func(t *testing.T, format, path, body string)) {
	t.Helper()
	for _, ask := range asks {
		for kind, body := range map[string]string{"body": ask.body, "stream": ask.stream} {
			if body != "" {
				t.Run(ask.name+"/"+kind, func(t *testing.T) { f(t, ask.name, ask.path, body) })
			}
		}
	}
}

// said is the relevant part of a citation, in any format.
type said struct {
	Claim  string
	Source int
}

// Decoded from any format, an answer has the original claims and sources, and no issues.
func TestFormats(t *testing.T) {
	h := replay.New(nil)
	each(t, func(t *testing.T, format, path, body string) {
		t.Helper()
		for _, answer := range replay.Answers() {
			request := fill(t, body, answer.Prompt)
			r := serve(h, path, request)
			data := r.Body.Bytes()
			got, err := ibid.Decode(data, &ibid.DecodeOptions{Request: []byte(request)})
			if err != nil || r.Code != http.StatusOK {
				t.Fatalf("%s: %d, %v\n%s", answer.Prompt, r.Code, err, data)
			}
			if got.Format != format || !got.Complete || len(got.Issues) > 0 || got.Finish != "stop" {
				t.Errorf("%s: format %s, complete %t, finish %s, issues %v", answer.Prompt, got.Format, got.Complete, got.Finish, got.Issues)
			}
			if diff := cmp.Diff(wanted(answer), claims(answer, got)); diff != "" {
				t.Errorf("%s (-wrote +read):\n%s", answer.Prompt, diff)
			}
		}
	})
}

// wanted returns the citations of an answer.
func wanted(a replay.Answer) []said {
	var all []said
	for _, claim := range a.Claims {
		for _, n := range claim.Sources {
			all = append(all, said{a.Text[claim.Start:claim.End], n})
		}
	}
	return all
}

// claims returns the decoded citations.
func claims(a replay.Answer, got *ibid.Answer) []said {
	var all []said
	for _, c := range got.Citations {
		for _, ref := range c.Refs {
			source := got.Sources[slices.IndexFunc(got.Sources, func(s ibid.Source) bool { return s.ID == ref.Source })]
			n := slices.IndexFunc(a.Sources, func(s replay.Source) bool {
				return s.URL == source.URL || s.ID != "" && (s.Title == source.Title || s.Title == source.Filename)
			})
			all = append(all, said{got.Text[c.Claim.Start:c.Claim.End], n})
		}
	}
	return all
}

// Mistral Chat cites the results of the client's tool, and nothing without them.
func TestMistralChat(t *testing.T) {
	h := replay.New(nil)
	for _, answer := range replay.Answers() {
		results := map[string]any{}
		for i, s := range answer.Sources {
			results[strconv.Itoa(i)] = map[string]string{"url": s.URL, "title": s.Title, "snippet": s.Quote}
		}
		encoded := testenv.Must(json.Marshal(results))(t)
		for _, stream := range []string{"false", "true"} {
			ask := fill(t, `{"model":"mistral-heron","stream":`+stream+`,"messages":[{"role":"user","content":%s}`, answer.Prompt)
			with := ask + fill(t, `,{"role":"tool","tool_call_id":"c","content":%s}]}`, string(encoded))
			for request, want := range map[string][]said{ask + "]}": nil, with: wanted(answer)} {
				got, err := ibid.Decode(serve(h, "/mistral/v1/chat/completions", request).Body.Bytes(), &ibid.DecodeOptions{Request: []byte(request), Provider: "mistral"})
				if err != nil || got.Format != "mistral-chat" || !got.Complete || len(got.Issues) > 0 || got.Text != answer.Text {
					t.Errorf("%v, format %s, complete %t, issues %v, %q", err, got.Format, got.Complete, got.Issues, got.Text)
				}
				if diff := cmp.Diff(want, claims(answer, got)); diff != "" {
					t.Errorf("%s (-wrote +read):\n%s", request, diff)
				}
			}
		}
	}
}

// Without a tool to search with, an answer has no sources if the prompt says so.
func TestUnsourced(t *testing.T) {
	h := replay.New(nil)
	for tools, want := range map[string]int{"": 0, `"tools":[{"google_search":{}}],`: 3} {
		body := `{` + tools + `"contents":[{"role":"user","parts":[{"text":"Herons? Do not cite unless you can search."}]}]}`
		got, err := ibid.Decode(serve(h, "/v1beta/models/m:streamGenerateContent?alt=sse", body).Body.Bytes(), nil)
		if err != nil || len(got.Citations) != want || !strings.Contains(got.Text, "41 nests") {
			t.Errorf("tools %q: %v, %d citations, %q", tools, err, len(got.Citations), got.Text)
		}
	}
}

// A model that calls a tool names it and gives its finish reason; after the tool's result it answers.
func TestTools(t *testing.T) {
	h := replay.New(nil)
	each(t, func(t *testing.T, format, path, body string) {
		t.Helper()
		if format == "perplexity-chat" {
			t.Skip("it has no tools")
		}
		request := fill(t, body, "Please call a tool.")
		got, err := ibid.Decode(serve(h, path, request).Body.Bytes(), nil)
		if err != nil || !got.Complete || len(got.ToolCalls) != 1 || got.ToolCalls[0].Name != "look_up" || len(got.Issues) > 0 {
			t.Errorf("%v, complete %t, calls %v, issues %v", err, got.Complete, got.ToolCalls, got.Issues)
		}
	})
	for name, ask := range map[string]struct{ path, body string }{
		"openai-responses": {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"call a tool about herons"},{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"41"}]}`},
		"openai-chat":      {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"call a tool about herons"},{"role":"tool","tool_call_id":"c","content":"41"}]}`},
		"gemini":           {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"call a tool about herons"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`},
		"anthropic":        {"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"call a tool about herons"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"41"}]}]}`},
	} {
		got, err := ibid.Decode(serve(h, ask.path, ask.body).Body.Bytes(), nil)
		if err != nil || slices.ContainsFunc(got.ToolCalls, isLookUp) || !strings.Contains(got.Text, "41 nests") {
			t.Errorf("%s: after the tool: %v, calls %v, %q", name, err, got.ToolCalls, got.Text)
		}
	}
	offered := `{"model":"m","messages":[{"role":"user","content":"call a tool"}],"tools":[{"type":"function","function":{"name":"count_nests"}}]}`
	if data := serve(h, "/v2/chat", offered).Body.Bytes(); !strings.Contains(string(data), `"name":"count_nests"`) {
		t.Errorf("not the tool that was offered: %s", data)
	}
}

func isLookUp(c ibid.ToolCall) bool { return c.Name == "look_up" }

// Errors have the provider's own format and the requested status.
func TestErrors(t *testing.T) {
	h := replay.New(nil)
	each(t, func(t *testing.T, format, path, body string) {
		t.Helper()
		for _, status := range []int{400, 401, 403, 404, 429, 500, 503, 529} {
			r := serve(h, path, fill(t, body, "error "+strconv.Itoa(status)))
			data := r.Body.Bytes()
			if got, err := ibid.Decode(data, nil); err != nil || r.Code != status || format != "cohere-v2" && got.Error == nil {
				t.Errorf("%d: %d, %v: %s", status, r.Code, err, data) // Cohere's has any message, without the status
			}
		}
		if strings.Contains(body, `"stream":true`) || strings.Contains(path, ":stream") {
			data := serve(h, path, fill(t, body, "herons: error in the stream")).Body.Bytes()
			if got, err := ibid.Decode(data, nil); err != nil || got.Error == nil || got.Text == "" {
				t.Errorf("in the stream: %v: %s", err, data)
			}
		}
		if r := serve(h, path, `{"model":`); r.Code != http.StatusBadRequest {
			t.Errorf("half a request: %d", r.Code)
		}
	})
	if r := serve(h, "/v1/unknown", "{}"); r.Code != http.StatusNotFound {
		t.Errorf("unknown path: %d", r.Code)
	}
}

// A connection breaks off after part of the answer, visibly to the client.
func TestBreakOff(t *testing.T) {
	server := httptest.NewServer(replay.New(nil))
	defer server.Close()
	each(t, func(t *testing.T, _, path, body string) {
		t.Helper()
		r, err := http.Post(server.URL+path, "application/json", strings.NewReader(fill(t, body, "herons, then break off")))
		testenv.OK(t, err)
		defer r.Body.Close()
		if data, err := io.ReadAll(r.Body); err == nil || len(data) == 0 {
			t.Errorf("%v after %q", err, data)
		}
	})
}

// A response has a unique id, with which OpenAI's can be fetched again; its model is the requested one.
func TestIdentity(t *testing.T) {
	h := replay.New(nil)
	each(t, func(t *testing.T, format, path, body string) {
		t.Helper()
		seen := map[string]bool{}
		for range 3 {
			got, err := ibid.Decode(serve(h, path, fill(t, body, "herons")).Body.Bytes(), nil)
			if err != nil || seen[got.ID] || got.ID == "" || format != "cohere-v2" && !strings.HasSuffix(got.Model, "-heron") {
				t.Errorf("%v, id %q, model %q", err, got.ID, got.Model)
			}
			seen[got.ID] = true
			if format != "openai-responses" {
				continue
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"/"+got.ID, nil))
			again, err := ibid.Decode(w.Body.Bytes(), nil)
			if err != nil || again.ID != got.ID || again.Text != got.Text || len(again.Citations) != len(got.Citations) {
				t.Errorf("fetched again: %v, %q", err, w.Body)
			}
		}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/responses/resp_nobody", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("unknown id: %d", w.Code)
	}
}

// The split into writes does not change the bytes, except for ids and times.
func TestOptions(t *testing.T) {
	const ask = `{"model":"gpt-heron","stream":true,"messages":[{"role":"user","content":"herons"}]}`
	plain := testenv.Must(ibid.Decode(serve(replay.New(nil), "/v1/chat/completions", ask).Body.Bytes(), nil))(t)
	for name, o := range map[string]replay.Options{
		"one character": {ChunkSize: 1}, "one byte": {Split: 1}, "odd": {ChunkSize: 7, Split: 13}, "gzip": {Gzip: true},
	} {
		r := serve(replay.New(&o), "/v1/chat/completions", ask)
		body := io.Reader(r.Body)
		if o.Gzip {
			body = testenv.Must(gzip.NewReader(body))(t)
		}
		data := testenv.Must(io.ReadAll(body))(t)
		got, err := ibid.Decode(data, nil)
		if err != nil || got.Text != plain.Text || len(got.Citations) != len(plain.Citations) {
			t.Errorf("%s: %v, %q", name, err, got.Text)
		}
	}
	padded, err := ibid.Decode(serve(replay.New(&replay.Options{PaddingTo: 5000}), "/v2/chat", ask).Body.Bytes(), nil)
	if err != nil || utf8.RuneCountInString(padded.Text) != 5000 || len(padded.Citations) != 3 {
		t.Errorf("padded: %v, %d bytes, %d citations", err, len(padded.Text), len(padded.Citations))
	}
}

// There are delays before the first byte and between events, but not for a client that has left.
func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replay.New(&replay.Options{First: time.Second, Delay: time.Minute})
		start := time.Now()
		body := serve(h, "/v2/chat", `{"model":"m","stream":true,"messages":[{"role":"user","content":"herons"}]}`).Body.Bytes()
		events := strings.Count(string(body), "\n\n")
		if took, want := time.Since(start), time.Second+time.Duration(events-1)*time.Minute; took != want {
			t.Errorf("%d events took %v, want %v", events, took, want)
		}
		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v2/chat", strings.NewReader(`{"stream":true,"messages":[{"content":"herons"}]}`))
		h.ServeHTTP(httptest.NewRecorder(), r)
		if took := time.Since(start); took != 90*time.Second {
			t.Errorf("it took %v for a client that waits 90s", took)
		}
	})
}
