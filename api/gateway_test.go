package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store/journal"
)

// newProvider starts a provider for a gateway and returns its address.
func newProvider(t *testing.T, handler http.HandlerFunc) *url.URL {
	t.Helper()
	provider := httptest.NewServer(handler)
	t.Cleanup(provider.Close)
	return testenv.Must(url.Parse(provider.URL))(t)
}

// capture gives a node a gateway in front of a provider. Captured answers are stored only once it runs.
func (n *node) capture(t *testing.T, o *api.Options, provider string, address *url.URL, more gateway.Options) {
	t.Helper()
	j := testenv.Must(journal.Open(filepath.Join(n.dir, "journal"), nil))(t)
	n.ending = append(n.ending, j.Close)
	more.Upstreams = []gateway.Upstream{{Name: provider, URL: address, Provider: provider}}
	more.Store, more.Bus, more.Journal, more.Guard = n.store, n.bus, j, o.Guard
	o.Gateway = testenv.Must(gateway.New(&more))(t)
}

// harbour is a provider that has one answer with citations.
func harbour(t *testing.T) (body string, address *url.URL) {
	t.Helper()
	body = vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	return body, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	})
}

// A client that has received an answer's end finds it at once: by its id even before it is stored, and in lists once it
// is.
func TestReadYourWrites(t *testing.T) {
	body, address := harbour(t)
	var g *gateway.Gateway
	n := openNode(t, t.TempDir(), func(n *node, o *api.Options) {
		n.capture(t, o, "openai", address, gateway.Options{})
		g = o.Gateway
	})

	res := n.do(t, "POST", "/openai/v1/responses", `{"model": "gpt-heron-1", "input": "Harbour rules?"}`, "Ibid-Conversation", "c1")
	if res.StatusCode != 200 || res.body != body {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	id, run := res.Header.Get(gateway.AnswerHeader), res.Header.Get(gateway.RunHeader)
	if got := n.get(t, "/v1/answers/"+id); got.StatusCode != 200 || !strings.Contains(got.body, `"answer_id":"`+id+`"`) {
		t.Errorf("before it is stored: %d %s", got.StatusCode, got.body)
	}
	if got := n.get(t, "/v1/answers"); got.StatusCode != 200 || strings.Contains(got.body, id) {
		t.Errorf("a list with a bounded wait: %d %s", got.StatusCode, got.body)
	}

	// A 404 would mean that it is deleted, yet it would be stored later.
	early := n.do(t, "DELETE", "/v1/answers/"+id, "")
	if wantProblem(t, early, 503); early.Header.Get("Retry-After") == "" {
		t.Errorf("header: %v", early.Header)
	}

	n.start(g.Run)
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

// The address of a manifest is in the response before anything is stored: an early reader is asked to wait instead of
// getting a 404.
func TestPublishedCapture(t *testing.T) {
	_, address := harbour(t)
	p := &press{}
	var g *gateway.Gateway
	p.node = openNode(t, t.TempDir(), func(n *node, o *api.Options) {
		p.publisher = &manifest.Publisher{Origin: n.URL, Level: 3, Manifests: n.store}
		keysAndLog(t, p.publisher, n.store)
		names := testenv.Must(n.store.Publications(t.Context()))(t)
		n.capture(t, o, "openai", address, gateway.Options{Citing: &gateway.Citing{Level: 3, Origin: n.URL, Pub: names.Of}})
		g, o.Publisher = o.Gateway, p.publisher
	})
	res := p.do(t, "POST", "/openai/v1/responses", `{"model": "gpt-heron-1", "input": "Harbour rules?"}`)
	list := announced(t, res)
	if res.StatusCode != 200 || len(list) == 0 {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	path := strings.TrimPrefix(list[0].Manifest, p.publisher.Origin)
	early := p.get(t, path)
	if wantProblem(t, early, 503); early.Header.Get("Retry-After") == "" {
		t.Errorf("header: %v", early.Header)
	}
	p.start(g.Run)
	if got := p.get(t, path); got.StatusCode != 202 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	var at where
	p.read(t, "/v1/answers/"+res.Header.Get(gateway.AnswerHeader)+"/manifest", &at)
	if at.URL != list[0].Manifest || at.State != "pending" {
		t.Errorf("%+v, announced %+v", at, list[0])
	}
	wantProblem(t, p.get(t, path+"x"), 404)
}
