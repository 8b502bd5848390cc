package mcp_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
)

// The largest allowed message is read.
func TestLargeMessages(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	overHTTP := testenv.Must(dial(t, server, "", nil))(t)
	words := strings.Repeat("Herons eat fish and frogs. ", (mcp.MaxMessage-1000)/27)
	for name, session := range map[string]*sdk.ClientSession{"stdio": connect(t, mcp.New(nil), "a", nil), "http": overHTTP} {
		res := ask(t, session, "check", object{"claim": "Herons eat fish.", "passages": []string{words}})
		if got := textOf(res); res.IsError || !strings.Contains(got, "supported") || !strings.Contains(got, "passage-truncated") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Any node can answer any message of a client.
func TestNodes(t *testing.T) {
	s := openStore(t, "default")
	var turn atomic.Int64
	nodes := []*httptest.Server{
		site(t, mcp.New(&mcp.Options{Store: s}), &gateway.GuardOptions{Store: s}), site(t, mcp.New(&mcp.Options{Store: s}), &gateway.GuardOptions{Store: s}),
	}
	balance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		node, err := url.Parse(nodes[turn.Add(1)%2].URL)
		if err != nil {
			t.Error(err)
			return
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = "http", node.Host, node.Host, ""
		res, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		maps.Copy(w.Header(), res.Header)
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	}))
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer balance.Close()
	session := testenv.Must(dial(t, balance, "", nil))(t)
	for range 4 {
		var got struct{ Answers []any }
		call(t, session, "find_answers", object{}, &got)
		if len(got.Answers) != 1 {
			t.Errorf("answers = %v", got)
		}
	}
}

// The cost of one call over HTTP, including the guard.
func BenchmarkCall(b *testing.B) {
	server := site(b, mcp.New(nil), nil)
	session := testenv.Must(dial(b, server, "", nil))(b)
	params := &sdk.CallToolParams{Name: "check", Arguments: object{"claim": "Herons eat fish.", "passages": []string{"Herons eat fish and frogs."}}}
	for b.Loop() {
		testenv.Must(session.CallTool(b.Context(), params))(b)
	}
}
