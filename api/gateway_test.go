package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store/journal"
)

// Whoever saw an answer's end finds it at once: by its id even before it is stored, in the lists as soon as it is.
func TestReadYourWrites(t *testing.T) {
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(provider.Close)
	address, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, nil)
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	guard := gateway.NewGuard(&gateway.GuardOptions{Store: n.store})
	g, err := gateway.New(&gateway.Options{
		Upstreams: []gateway.Upstream{{Name: "openai", URL: address, Provider: "openai"}}, Store: n.store, Bus: n.bus, Journal: j, Guard: guard,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := api.New(&api.Options{Store: n.store, Bus: n.bus, Guard: guard, Gateway: g})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/openai/") {
			g.ServeHTTP(w, r)
			return
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	n.Server = server

	res := n.do(t, "POST", "/openai/v1/responses", `{"model": "gpt-heron-1", "input": "Harbour rules?"}`, "Ibid-Conversation", "c1")
	if res.StatusCode != 200 || res.body != body {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	id, run := res.Header.Get(gateway.AnswerHeader), res.Header.Get(gateway.RunHeader)
	if got := n.get(t, "/v1/answers/"+id); got.StatusCode != 200 || !strings.Contains(got.body, `"answer_id":"`+id+`"`) {
		t.Errorf("before it is stored: %d %s", got.StatusCode, got.body)
	}
	if got := n.get(t, "/v1/answers"); got.StatusCode != 200 || strings.Contains(got.body, id) {
		t.Errorf("a list waits no longer than it may: %d %s", got.StatusCode, got.body)
	}

	// A 404 would say that it is gone, and then it would be stored.
	early := n.do(t, "DELETE", "/v1/answers/"+id, "")
	if wantProblem(t, early, 503, "unavailable"); early.Header.Get("Retry-After") == "" {
		t.Errorf("header: %v", early.Header)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, path := range []string{"/v1/answers?conversation=c1", "/v1/answers?q=boats", "/v1/conversations/c1", "/v1/runs/" + run, "/v1/answers/" + id} {
		if got := n.get(t, path); got.StatusCode != 200 || !strings.Contains(got.body, `"answer_id":"`+id+`"`) {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
	if got := n.do(t, "DELETE", "/v1/answers/"+id, ""); got.StatusCode != 204 {
		t.Errorf("delete: %d %s", got.StatusCode, got.body)
	}
	if got := n.get(t, "/readyz"); got.StatusCode != 200 || !strings.Contains(got.body, `"journal":"ok"`) {
		t.Errorf("/readyz: %d %s", got.StatusCode, got.body)
	}
}

// The address of a manifest is in the response before anything is in the store: whoever is quick is told to wait, and not that
// there is nothing.
func TestPublishedCapture(t *testing.T) {
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(provider.Close)
	address, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newPress(t, 3)
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	names, err := p.store.Publications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	guard := gateway.NewGuard(&gateway.GuardOptions{Store: p.store})
	g, err := gateway.New(&gateway.Options{
		Upstreams: []gateway.Upstream{{Name: "openai", URL: address, Provider: "openai"}}, Store: p.store, Bus: p.bus, Journal: j, Guard: guard,
		Citing: &gateway.Citing{Level: 3, Origin: p.publisher.Origin, Pub: names.Of},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := api.New(&api.Options{Store: p.store, Bus: p.bus, Guard: guard, Gateway: g, Publisher: p.publisher})
	if err != nil {
		t.Fatal(err)
	}
	calls := httptest.NewServer(g)
	t.Cleanup(calls.Close)
	p.Server = httptest.NewServer(a)
	t.Cleanup(p.Close)
	res := (&node{Server: calls}).do(t, "POST", "/openai/v1/responses", `{"model": "gpt-heron-1", "input": "Harbour rules?"}`)
	list := announced(t, res)
	if res.StatusCode != 200 || len(list) == 0 {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	path := strings.TrimPrefix(list[0].Manifest, p.publisher.Origin)
	early := p.get(t, path)
	if wantProblem(t, early, 503, gateway.CodeUnavailable); early.Header.Get("Retry-After") == "" {
		t.Errorf("header: %v", early.Header)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if got := p.get(t, path); got.StatusCode != 202 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	var at where
	p.read(t, "/v1/answers/"+res.Header.Get(gateway.AnswerHeader)+"/manifest", &at)
	if at.URL != list[0].Manifest || at.State != "pending" {
		t.Errorf("%+v, announced %+v", at, list[0])
	}
	wantProblem(t, p.get(t, path+"x"), 404, gateway.CodeNotFound)
}
