package mcp_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/verify"
)

// One verification more than MaxVerifying is refused, and those that are given up make room.
func TestVerifyBusy(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer page.Close()
	begun := make(chan struct{}, mcp.MaxVerifying+1)
	verifier := newVerifier(t, netip.MustParsePrefix("127.0.0.0/8"))
	session := connect(t, mcp.New(&mcp.Options{Verifier: func(tenant string) *verify.Verifier {
		begun <- struct{}{}
		return verifier(tenant)
	}}), "a", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, mcp.MaxVerifying)
	for range mcp.MaxVerifying {
		go func() {
			defer func() { ended <- struct{}{} }()
			_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "verify", Arguments: object{"url": page.URL}})
		}()
		<-begun
	}
	if res := ask(t, session, "verify", object{"url": page.URL}); !res.IsError || !strings.Contains(textOf(res), "4 verifications are being made") {
		t.Errorf("one more: %s", textOf(res))
	}
	cancel()
	for range mcp.MaxVerifying {
		<-ended
	}
}

// What is as large as may be is read.
func TestLargeMessages(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	overHTTP, err := dial(t, server, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Repeat("Herons eat fish and frogs. ", (mcp.MaxMessage-1000)/27)
	for name, session := range map[string]*sdk.ClientSession{"stdio": connect(t, mcp.New(nil), "a", nil), "http": overHTTP} {
		res := ask(t, session, "check", object{"claim": "Herons eat fish.", "passages": []string{words}})
		if got := textOf(res); res.IsError || !strings.Contains(got, "supported") || !strings.Contains(got, "passage-truncated") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Any node answers any message of a client.
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
	session, err := dial(t, balance, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		var got struct{ Answers []any }
		call(t, session, "find_answers", object{}, &got)
		if len(got.Answers) != 1 {
			t.Errorf("answers = %v", got)
		}
	}
}

// What one call costs over HTTP, with its guard.
func BenchmarkCall(b *testing.B) {
	server := site(b, mcp.New(nil), nil)
	session, err := dial(b, server, "", nil)
	if err != nil {
		b.Fatal(err)
	}
	params := &sdk.CallToolParams{Name: "check", Arguments: object{"claim": "Herons eat fish.", "passages": []string{"Herons eat fish and frogs."}}}
	for b.Loop() {
		if _, err := session.CallTool(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}
