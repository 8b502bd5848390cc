package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// A stream without citations is offered to the backfill, with the caller's key; what that finds is kept with the answer.
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

// With a token configured, calls need it, and the upstream never sees it.
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
				t.Errorf("a stranger hears of the upstreams: %s", body)
			}
		}
	}
}
