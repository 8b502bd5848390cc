package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// A key that a provider repeats anywhere in its answer, also cut into pieces or as part of an address, reaches the
// client unchanged, and is kept nowhere. What stands beside it is where it was.
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
	attacks = append(attacks,
		attack{"bearer", "openai", chat, stream.String(), "text/event-stream", "Authorization", "Bearer " + key},
		attack{"query", "gemini", "/up/v1beta/models/m:generateContent?key=" + url.QueryEscape(key), gemini, "application/json", "", ""},
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
					t.Errorf("%q is kept: %s", form, kept)
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
