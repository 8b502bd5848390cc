package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// A key that a provider repeats anywhere in its answer, even split or as part of an address, reaches the client
// unchanged and is not stored. Everything around it keeps its place.
func TestRepeatedKeyIsMasked(t *testing.T) {
	const key = "sk-test/Zq+9=canary0123"
	text := "Your key is " + key + ", and herons wade."
	at := strings.Index(text, "herons")
	source := fmt.Sprintf(`{"type":"url_citation","url_citation":{"start_index":%d,"end_index":%d,"url":"https://a.example/?k=%s","title":"of %s"}}`,
		at, at+len("herons wade"), url.QueryEscape(key), key)
	whole := fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":%q,"annotations":[%s]}}],"usage":{%q:1}}`, text, source, key)
	var stream strings.Builder
	delta := func(format string, args ...any) {
		fmt.Fprintf(&stream, `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":`+format+"}]}\n\n", args...)
	}
	for rest := text; rest != ""; {
		n := min(3, len(rest))
		delta(`{"content":%q}`, rest[:n])
		rest = rest[n:]
	}
	delta(`{"annotations":[%s]},"finish_reason":"stop"`, source)
	stream.WriteString("data: [DONE]\n\n")
	gemini := fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}]},"finishReason":"STOP","groundingMetadata":{`+
		`"webSearchQueries":[%q],"groundingChunks":[{"web":{"uri":"https://a.example/%s","title":%q}}],`+
		`"groundingSupports":[{"segment":{"startIndex":%d,"endIndex":%d,"text":"herons wade"},"groundingChunkIndices":[0]}]}}]}`,
		text, key, url.PathEscape(key), key, at, at+len("herons wade"))

	type attack struct{ name, provider, path, body, media, header, value string }
	var attacks []attack
	for _, name := range call.KeyHeaders() {
		for media, body := range map[string]string{"application/json": whole, "text/event-stream": stream.String()} {
			attacks = append(attacks, attack{name + " " + media, "openai", chat, body, media, name, key})
		}
	}
	const generate = "/up/v1beta/models/m:generateContent?key="
	both := generate + "another-key&key=" + url.QueryEscape(key)
	attacks = append(attacks,
		attack{"bearer", "openai", chat, stream.String(), "text/event-stream", "Authorization", "Bearer " + key},
		attack{"query", "gemini", generate + url.QueryEscape(key), gemini, "application/json", "", ""},
		attack{"beside a query", "gemini", generate + "another-key", gemini, "application/json", "X-Goog-Api-Key", key},
		attack{"query beside another", "gemini", both, gemini, "application/json", "", ""},
	)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", a.media)
				_, _ = rw.Write([]byte(a.body))
			}, &setup{provider: a.provider, options: gateway.Options{Prompts: gateway.PromptsAll}})
			request := strings.Replace(chatRequest, `"content":"`, `"content":"`+key+` `, 1)
			if a.provider == "gemini" {
				request = `{"contents":[{"role":"user","parts":[{"text":"` + key + `"}]}]}`
			}
			r := w.request(t, http.MethodPost, a.path, strings.NewReader(request))
			r.Header.Set("Content-Type", "application/json")
			if a.header != "" {
				r.Header.Set(a.header, a.value)
			}
			res, body := w.do(t, r)
			if string(body) != a.body {
				t.Errorf("the client gets %q", body)
			}
			c := w.stored(t, res.Header.Get("Ibid-Answer"))
			kept, err := json.Marshal([]any{c, c.Answer})
			record, err2 := c.Encode()
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for _, form := range []string{key, url.QueryEscape(key), "canary"} {
				if strings.Contains(string(kept)+string(record), form) {
					t.Errorf("%q is stored: %s", form, kept)
				}
			}
			if len(c.Answer.Citations) != 1 || c.Answer.Text[c.Answer.Citations[0].Span.Start:c.Answer.Citations[0].Span.End] != "herons wade" {
				t.Errorf("the citation is elsewhere: %s", record)
			}
			if len(c.Prompt) == 0 || c.Publish {
				t.Errorf("prompt %v, published %v", c.Prompt, c.Publish)
			}
			if page, err := w.store.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "canary0123"}); err != nil || len(page.Items) > 0 {
				t.Errorf("it is found by the key: %v", err)
			}
		})
	}
}

// A listener to a run, from its beginning or later, does not receive a key that the provider repeats: everything else
// is sent as it is stored.
func TestRepeatedKeyIsNotTold(t *testing.T) {
	const key = "sk-test/Zq+9=canary0123"
	s := newStepwise(t, "openai")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	early := s.listen(t)
	s.call(t, chat, "Authorization", "Bearer "+key)
	text := "Your key is " + key + ", and herons wade. It was " + key
	parts := chatParts(slices.Collect(pieces(text))...)
	at := strings.Index(text, "herons")
	cited := fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation",`+
		`"url_citation":{"start_index":%d,"end_index":%d,"url":"https://a.example/?k=%s","title":"of %s"}}]}}]}`+"\n\n",
		at, at+len("herons wade"), url.QueryEscape(key), key)
	last := len(parts) - 2 // before the answer's end; the source arrives within the second key
	for _, part := range slices.Insert(parts[:last:last], last-2, cited) {
		s.next <- part
	}
	masked := strings.ReplaceAll(text, key, strings.Repeat("*", len(key)))
	hear := func(l *lateReader) { // until the source and all of the text arrived
		var told strings.Builder
		for named := false; !named || told.Len() < len(text); {
			select {
			case m := <-l.heard:
				if m.Live == nil {
					continue
				}
				if data := string(m.Live.Data); strings.Contains(data, "canary") {
					t.Errorf("received: %s", data)
				}
				named = named || m.Live.Kind == gateway.LiveSource
				var s string
				if m.Live.Kind == gateway.LiveText && json.Unmarshal(m.Live.Data, &s) == nil && m.Live.At+len(s) > told.Len() {
					told.WriteString(s[told.Len()-m.Live.At:])
				}
			case <-ctx.Done():
				t.Fatalf("only %q was received", told.String())
			}
		}
		if told.String() != masked {
			t.Errorf("received %q\nwant %q", told.String(), masked)
		}
	}
	hear(early)
	hear(s.listen(t))
	if c := s.w.stored(t, s.end(parts[last:]...)); c.Answer.Text != masked {
		t.Errorf("stored %q", c.Answer.Text)
	}
}

// Nor does it receive a key that was in the query, besides another.
func TestRepeatedKeyBesideAnotherIsNotTold(t *testing.T) {
	const key = "sk-test/Zq+9=canary0123"
	s := newStepwise(t, "gemini")
	l := s.listen(t)
	s.call(t, "/up/v1beta/models/m:streamGenerateContent?alt=sse&key=another-key", "X-Goog-Api-Key", key)
	s.end(`data: {"candidates":[{"content":{"parts":[{"text":"It was ` + key + `."}]},"finishReason":"STOP"}]}` + "\n\n")
	l.hear(t, "It was "+strings.Repeat("*", len(key))+".", 0, 0)
}

// Requests that an answer is compared with afterwards contain no key either.
func TestRepeatedKeyIsNotCompared(t *testing.T) {
	const key = "sk-test/Zq+9=canary0123"
	const answer = `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",` +
		`"message":{"role":"assistant","content":"High water at Ostend is at 03:12 on Friday."}}]}`
	chosen := testenv.Must(experiment.Find(experiment.Builtin(), "balanced"))(t)
	kept := make(chan *store.Call, 1)
	compare := testenv.Must(watch.NewAttribution(&watch.AttributionOptions{
		Choose: func(string) *experiment.Strategy { return &chosen },
		Store: func(_ context.Context, c *store.Call) error {
			kept <- c
			return nil
		},
	}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	compared := make(chan error, 1)
	go func() { compared <- compare.Run(ctx) }()
	defer func() {
		cancel()
		<-compared
	}()
	w := newWorld(t, answerJSON(answer), &setup{options: gateway.Options{Attribution: compare}})
	r := w.request(t, "POST", chat, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"When?"},{"role":"tool","tool_call_id":"1",`+
		`"content":"On Friday high water at Ostend is at 03:12 and low water at 09:30. It says `+key+`."}]}`))
	r.Header.Set("Authorization", "Bearer "+key)
	w.do(t, r)
	select {
	case c := <-kept:
		if record := string(testenv.Must(c.Encode())(t)); strings.Contains(record, "canary") || !strings.Contains(record, "It says ***") {
			t.Errorf("stored: %s", record)
		}
	case <-ctx.Done():
		t.Fatal("nothing was found")
	}
}

// pieces splits a text into pieces of three bytes.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range slices.Chunk([]byte(text), 3) {
			if !yield(string(piece)) {
				return
			}
		}
	}
}
