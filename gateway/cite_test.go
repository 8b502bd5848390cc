package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// citing returns the options for attribution in these tests.
func citing(level int) *gateway.Citing {
	return &gateway.Citing{Level: level, Origin: "https://agent.example", Pub: func(tenant, run string) string { return "pub-of-" + tenant }}
}

// citedParts returns a stream whose answer cites a source.
func citedParts() []string {
	parts := chatParts("Hello ", "there.")
	cite := `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-test","choices":[{"index":0,"delta":{"annotations":[` +
		`{"type":"url_citation","url_citation":{"start_index":0,"end_index":2,"url":"https://example.com/a","title":"A"}}]}}]}` + "\n\n"
	return append([]string{parts[0], parts[1], cite}, parts[2:]...)
}

// announced parses a response's Citation-Source, or returns nil if there is none.
func announced(t *testing.T, values []string) []manifest.Announcement {
	t.Helper()
	if values == nil {
		return nil
	}
	return testenv.Must(manifest.ParseHeader(values))(t)
}

// A JSON response names its sources and their manifest in its header, and its body is unchanged.
func TestCiteJSON(t *testing.T) {
	want := chatBody("Hi there.") + "\n \n"
	for _, level := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			w := newWorld(t, answerJSON(want), &setup{options: gateway.Options{Citing: citing(level)}})
			res, body := w.ask(t, nil)
			if string(body) != want || res.Header.Get("Content-Length") != fmt.Sprint(len(want)) {
				t.Errorf("got %d bytes with length %s, want %d unchanged", len(body), res.Header.Get("Content-Length"), len(want))
			}
			id := res.Header.Get(gateway.AnswerHeader)
			expect := manifest.Announcement{URL: "https://example.com/a"}
			if level > 1 {
				expect.Manifest = "https://agent.example/runs/pub-of-default/cite/" + id
			}
			if diff := cmp.Diff([]manifest.Announcement{expect}, announced(t, res.Header[manifest.HeaderName])); diff != "" {
				t.Error(diff)
			}
			if len(res.Trailer) != 0 {
				t.Errorf("there are trailers: %v", res.Trailer)
			}
			sum := sha256.Sum256([]byte(want))
			c := w.stored(t, id)
			if c.Publish != (level > 1) || c.Body == nil || c.Body.Hash != "sha256:"+hex.EncodeToString(sum[:]) || c.Body.MediaType != "application/json" {
				t.Errorf("stored with publish %t and body %+v", c.Publish, c.Body)
			}
		})
	}
}

// A stream cannot name its sources in advance: its header has the manifest's address, and its trailer the rest.
func TestCiteStream(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for _, level := range []int{1, 3} {
			t.Run(fmt.Sprintf("tls %t, level %d", tls, level), func(t *testing.T) {
				w := newWorld(t, answerParts(citedParts()...), &setup{tls: tls, options: gateway.Options{Citing: citing(level)}})
				res, body := w.ask(t, nil)
				if want := strings.Join(citedParts(), ""); string(body) != want {
					t.Errorf("the stream was changed: %s", cmp.Diff(want, string(body)))
				}
				url := ""
				var first []manifest.Announcement
				if level > 1 {
					url = "https://agent.example/runs/pub-of-default/cite/" + res.Header.Get(gateway.AnswerHeader)
					first = []manifest.Announcement{{More: true, Manifest: url}}
				}
				if diff := cmp.Diff(first, announced(t, res.Header[manifest.HeaderName])); diff != "" {
					t.Errorf("header: %s", diff)
				}
				last := []manifest.Announcement{{URL: "https://example.com/a", Manifest: url}}
				if diff := cmp.Diff(last, announced(t, res.Trailer[manifest.HeaderName])); diff != "" {
					t.Errorf("trailer: %s", diff)
				}
				if c := w.stored(t, res.Header.Get(gateway.AnswerHeader)); c.Publish != (level > 1) || c.Body == nil || c.Body.Hash != "" {
					t.Errorf("stored with publish %t and body %+v", c.Publish, c.Body)
				}
			})
		}
	}
}

// A JSON response that is too long to be held is passed on as it arrives, with the header and trailer of a stream.
func TestCiteLongJSON(t *testing.T) {
	c := citing(2)
	c.Buffer = 100
	want := chatBody("Hi there.")
	for _, chunked := range []bool{false, true} {
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			rw.Header().Set("Content-Type", "application/json")
			if !chunked {
				rw.Header().Set("Content-Length", fmt.Sprint(len(want)))
			}
			fmt.Fprint(rw, want[:50])
			flush(rw)
			fmt.Fprint(rw, want[50:])
		}, &setup{options: gateway.Options{Citing: c}})
		res, body := w.ask(t, nil)
		if string(body) != want {
			t.Errorf("the body was changed: %s", cmp.Diff(want, string(body)))
		}
		list := announced(t, res.Header[manifest.HeaderName])
		if len(list) != 1 || !list[0].More {
			t.Errorf("header: %+v", list)
		}
		if list := announced(t, res.Trailer[manifest.HeaderName]); (len(list) == 1) != chunked {
			t.Errorf("chunked %t: trailer %+v", chunked, list)
		}
	}
}

// Without the right or the wish to publish, no sources are named. An upstream's own Citation-Source is dropped.
func TestCiteNot(t *testing.T) {
	body := chatBody("Hi there.")
	with := func(name, value string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set(name, value)
			answerJSON(body)(rw, r)
		}
	}
	own := `<https://example.com/b>; manifest="https://other.example/m"`
	for _, test := range []struct {
		name     string
		upstream http.HandlerFunc
		citing   *gateway.Citing
		header   http.Header
		want     []string
	}{
		{"off", answerJSON(body), nil, nil, nil},
		{"asked not to", answerJSON(body), citing(3), http.Header{gateway.PublishHeader: {"no"}}, nil},
		{"the upstream says it", with(manifest.HeaderName, own), nil, nil, nil},
		{"nothing to cite", answerJSON(strings.Replace(body, `"annotations"`, `"other"`, 1)), citing(3), nil, nil},
		{"no answer", answerJSON(`{"hello": "world"}`), citing(3), nil, nil},
		{"broken off", answerJSON(body[:len(body)-20]), citing(3), nil, nil},
	} {
		for _, traced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, traced %t", test.name, traced), func(t *testing.T) {
				o := gateway.Options{Citing: test.citing}
				if traced {
					o.Tracer = trace.NewTracerProvider().Tracer("ibid")
				}
				w := newWorld(t, test.upstream, &setup{options: o})
				res, got := w.ask(t, test.header)
				if diff := cmp.Diff(test.want, res.Header[manifest.HeaderName]); diff != "" {
					t.Error(diff)
				}
				if !bytes.HasPrefix([]byte(body), got) && test.name == "broken off" {
					t.Errorf("the body is another: %s", got)
				}
			})
		}
	}
}

// Neither an answer that breaks off nor one that cannot be kept has its sources in the trailer, whoever else looks at
// it.
func TestCiteNotInTrailer(t *testing.T) {
	parts := citedParts()
	for _, test := range []struct {
		name  string
		parts []string
		setup setup
	}{
		{"broken off", parts[:3], setup{}},
		{"not kept", parts, setup{journal: journal.Options{MaxBytes: 1}}},
	} {
		for _, traced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, traced %t", test.name, traced), func(t *testing.T) {
				test.setup.options.Citing = citing(3)
				if traced {
					test.setup.options.Tracer = trace.NewTracerProvider().Tracer("ibid")
				}
				w := newWorld(t, answerParts(test.parts...), &test.setup)
				res, _ := w.ask(t, nil)
				if list := announced(t, res.Trailer[manifest.HeaderName]); len(list) > 0 {
					t.Errorf("trailer: %+v", list)
				}
			})
		}
	}
}

// Only a token that may publish does, and asking for it needs the scope.
func TestCiteTokens(t *testing.T) {
	for _, test := range []struct {
		name    string
		token   store.Token
		header  string
		status  int
		publish bool
	}{
		{"publishes", store.Token{Scopes: []string{store.ScopeProxy}, Publish: true}, "", http.StatusOK, true},
		{"does not", store.Token{Scopes: []string{store.ScopeProxy}}, "", http.StatusOK, false},
		{"may, and asks", store.Token{Scopes: []string{store.ScopeProxy, store.ScopePublish}}, "yes", http.StatusOK, true},
		{"may not, and asks", store.Token{Scopes: []string{store.ScopeProxy}}, "yes", http.StatusForbidden, false},
		{"publishes, and asks not to", store.Token{Scopes: []string{store.ScopeProxy}, Publish: true}, "no", http.StatusOK, false},
		{"asks for what there is not", store.Token{Scopes: []string{store.ScopeProxy}, Publish: true}, "perhaps", http.StatusBadRequest, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tokens := openStore(t, t.TempDir()+"/tokens.db")
			secret := testenv.Must(tokens.NewToken(t.Context(), &test.token))(t)
			w := newWorld(t, answerJSON(chatBody("Hi.")), &setup{options: gateway.Options{
				Citing: citing(2), Guard: gateway.NewGuard(&gateway.GuardOptions{Store: tokens}),
			}})
			h := http.Header{gateway.TokenHeader: {secret}}
			if test.header != "" {
				h.Set(gateway.PublishHeader, test.header)
			}
			res, _ := w.ask(t, h)
			if got := res.Header[manifest.HeaderName] != nil; res.StatusCode != test.status || got != test.publish {
				t.Errorf("got %d, published %t", res.StatusCode, got)
			}
		})
	}
}

// If an upstream breaks off while its response is held, so does the response, after what had arrived.
func TestCiteBroken(t *testing.T) {
	body := chatBody("Hi there.")
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		fmt.Fprint(rw, body[:60])
		flush(rw)
		panic(http.ErrAbortHandler)
	}, &setup{options: gateway.Options{Citing: citing(3)}})
	req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+chat, strings.NewReader(chatRequest)))(t)
	res, err := w.client.Do(req)
	testenv.OK(t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err == nil || string(got) != body[:60] {
		t.Errorf("got %q and error %v", got, err)
	}
}

// A stream may also be JSON, as a growing array or one document per line: it is passed on as it arrives.
func TestCiteJSONStream(t *testing.T) {
	for _, test := range []struct{ name, provider, path, mediaType, first, second string }{
		{
			"a growing array", "gemini", "/up/v1beta/models/gemini-test:streamGenerateContent", "application/json; charset=UTF-8",
			`[{"candidates":[{"content":{"parts":[{"text":"Hi "}]}}]}`, `,{"candidates":[{"content":{"parts":[{"text":"there."}]},"finishReason":"STOP"}]}]`,
		},
		{
			"a document a line", "cohere", "/up/v1/chat", "application/stream+json",
			`{"event_type":"text-generation","text":"Hi "}` + "\n", `{"event_type":"stream-end","is_finished":true,"finish_reason":"COMPLETE","response":{"text":"Hi "}}` + "\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := make(chan struct{})
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				rw.Header().Set("Content-Type", test.mediaType)
				fmt.Fprint(rw, test.first)
				flush(rw)
				select {
				case <-seen:
					fmt.Fprint(rw, test.second)
				case <-r.Context().Done():
				}
			}, &setup{provider: test.provider, options: gateway.Options{Citing: citing(3)}})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			req := w.request(t, http.MethodPost, test.path, strings.NewReader(`{"message":"Hi","stream":true,"contents":[{"parts":[{"text":"Hi"}]}]}`))
			res, err := w.client.Do(req.WithContext(ctx))
			testenv.OK(t, err)
			defer res.Body.Close()
			got := make([]byte, len(test.first))
			if _, err := io.ReadFull(res.Body, got); err != nil {
				t.Fatalf("the first part does not come before the second was sent: %v", err)
			}
			close(seen)
			rest, err := io.ReadAll(res.Body)
			if err != nil || string(got)+string(rest) != test.first+test.second {
				t.Errorf("got %s%s, %v", got, rest, err)
			}
			if list := announced(t, res.Header[manifest.HeaderName]); len(list) != 1 || !list[0].More {
				t.Errorf("header: %+v", list)
			}
		})
	}
}
