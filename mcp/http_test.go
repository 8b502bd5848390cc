package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

// site serves the handler like ibid.
func site(tb testing.TB, m *mcp.MCP, o *gateway.GuardOptions) *httptest.Server {
	tb.Helper()
	mux := http.NewServeMux()
	mux.Handle("/mcp", m.Handler(gateway.NewGuard(o)))
	server := httptest.NewUnstartedServer(mux)
	server.Config = gateway.NewServer("", mux, nil)
	server.Start()
	tb.Cleanup(server.Close)
	return server
}

// bearer sends an access token with every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// dial connects the SDK's client over HTTP.
func dial(tb testing.TB, server *httptest.Server, token string, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	tb.Helper()
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(tb.Context(), &sdk.StreamableClientTransport{
		Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: &bearer{token, transport}}, MaxRetries: -1,
	}, nil)
	if err == nil {
		tb.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func newToken(tb testing.TB, s *store.Store, tenant string, scopes ...string) string {
	tb.Helper()
	return testenv.Must(s.NewToken(context.Background(), &store.Token{Tenant: tenant, Name: "test", Scopes: scopes}))(tb)
}

// Without tokens it serves this machine, with all tools.
func TestHandler(t *testing.T) {
	s := openStore(t, store.DefaultTenant)
	server := site(t, mcp.New(&mcp.Options{Store: s, Verify: newVerify(t)}), &gateway.GuardOptions{Store: s})
	session := testenv.Must(dial(t, server, "", nil))(t)
	if session.ID() != "" {
		t.Errorf("there is a session %s", session.ID())
	}
	if got := session.InitializeResult(); got.ServerInfo.Name != "ibid" || got.Instructions == "" {
		t.Errorf("server = %+v", got)
	}
	var found struct{ Answers []any }
	call(t, session, "find_answers", object{}, &found)
	var cited struct {
		CitedText string `json:"cited_text"`
	}
	call(t, session, "cite", object{"response": response}, &cited)
	if len(found.Answers) != 1 || cited.CitedText == "" {
		t.Errorf("%v, %v", found, cited)
	}
}

// Each call has the rights of its token, and sees its tenant.
func TestHandlerTokens(t *testing.T) {
	s := openStore(t, "a")
	server := site(t, mcp.New(&mcp.Options{Store: s, Verify: newVerify(t)}), &gateway.GuardOptions{Store: s})
	reader, other, verifier := newToken(t, s, "a", store.ScopeRead), newToken(t, s, "b", store.ScopeRead), newToken(t, s, "a", store.ScopeVerify)
	for _, bad := range []string{"", "ibid_wrong"} {
		if _, err := dial(t, server, bad, nil); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	sessions := map[string]*sdk.ClientSession{}
	for _, token := range []string{reader, other, verifier} {
		session := testenv.Must(dial(t, server, token, nil))(t)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 7 {
			t.Errorf("tools: %v, %v", list, err)
		}
		sessions[token] = session
	}
	find, check := object{"run": "captured"}, object{"url": "http://127.0.0.1/x"}
	var got struct{ Answers []any }
	call(t, sessions[reader], "find_answers", find, &got)
	if len(got.Answers) != 1 {
		t.Errorf("its own answers: %v", got)
	}
	call(t, sessions[other], "find_answers", find, &got)
	if len(got.Answers) != 0 {
		t.Errorf("another tenant's answers: %v", got)
	}
	call(t, sessions[verifier], "verify", check, nil)
	for token, tool := range map[string]string{reader: "verify", verifier: "find_answers"} {
		args := find
		if tool == "verify" {
			args = check
		}
		if res := ask(t, sessions[token], tool, args); !res.IsError || !strings.Contains(textOf(res), "lacks the scope") || !strings.Contains(textOf(res), "ibid token new") {
			t.Errorf("%s without its scope: %s", tool, textOf(res))
		}
	}
}

// Errors of requests are reported like everywhere else.
func TestHandlerProblems(t *testing.T) {
	server := site(t, mcp.New(nil), &gateway.GuardOptions{Origins: []string{"https://app.example"}})
	message := strings.TrimSuffix(checkCall(1), "\n")
	for name, test := range map[string]struct {
		method, body string
		header       http.Header
		host         string
		status       int
		word         string
	}{
		"get":            {method: "GET", status: 405, word: "only POST is supported"},
		"delete":         {method: "DELETE", status: 405, word: "only POST is supported"},
		"empty":          {body: " \n", status: 400, word: "the body is empty"},
		"batch":          {body: " [" + message + "]", status: 400, word: "batches"},
		"garbage":        {body: "{", status: 400},
		"deep":           {body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", status: 400},
		"huge":           {body: strings.Repeat("x", mcp.MaxMessage+1), status: 413, word: "more than 16777216 bytes"},
		"coded":          {body: message, header: http.Header{"Content-Encoding": {"gzip"}}, status: 415, word: "Content-Encoding"},
		"text":           {body: message, header: http.Header{"Content-Type": {"text/plain"}}, status: 415},
		"foreign page":   {body: message, header: http.Header{"Origin": {"https://evil.example"}}, status: 403, word: "another origin"},
		"rebound":        {body: message, host: "evil.example", status: 403, word: "does not answer to the name"},
		"own page":       {body: message, header: http.Header{"Origin": {"https://app.example"}}, status: 200},
		"listen":         {body: `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`, status: 200, word: "method not found"},
		"good":           {body: message, status: 200, word: `"label":"supported"`},
		"unknown tool":   {body: strings.ReplaceAll(message, `"check"`, `"rm"`), status: 200, word: "unknown tool"},
		"unknown method": {body: `{"jsonrpc":"2.0","id":1,"method":"rm","params":{}}`, status: 200, word: `"code":-32601`},
		"preflight": {
			method: "OPTIONS", header: http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"mcp-protocol-version"}},
			status: 204,
		},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodPost
			}
			r := testenv.Must(http.NewRequestWithContext(t.Context(), method, server.URL+"/mcp", strings.NewReader(test.body)))(t)
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			maps.Copy(r.Header, test.header)
			r.Host = test.host
			res, err := server.Client().Do(r)
			testenv.OK(t, err)
			defer res.Body.Close()
			body := testenv.Must(io.ReadAll(res.Body))(t)
			if res.StatusCode != test.status || !bytes.Contains(body, []byte(test.word)) || len(body) > 10_000 {
				t.Errorf("%d %.1000s", res.StatusCode, body)
			}
			if test.word != "" && res.StatusCode >= 400 {
				var problem struct{ Detail, Hint string }
				if err := json.Unmarshal(body, &problem); err != nil || res.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("no problem: %s", body)
				}
			}
			if method != "OPTIONS" && res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("header = %v", res.Header)
			}
		})
	}
}

// A call ends when its client disconnects, also in older versions of the protocol.
func TestHandlerHangUp(t *testing.T) {
	judge, waiting, given := slowJudge(t)
	server := site(t, mcp.New(&mcp.Options{Checker: judge}), nil)
	for _, version := range []string{"", "2025-06-18"} {
		ctx, cancel := context.WithCancel(t.Context())
		r := testenv.Must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/mcp", strings.NewReader(checkCall(1))))(t)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if version != "" {
			r.Header.Set("Mcp-Protocol-Version", version)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if res, err := server.Client().Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		<-waiting
		cancel()
		<-ended
		<-given
	}
	session := testenv.Must(dial(t, server, "", nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-waiting; cancel() }()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "check", Arguments: object{"claim": "x y", "passages": []string{"x y"}}}); err == nil {
		t.Error("a call that was given up was answered")
	}
	<-given
}

// More than MaxRequests requests are told to retry.
func TestHandlerFull(t *testing.T) {
	judge, waiting, _ := slowJudge(t)
	server := site(t, mcp.New(&mcp.Options{Checker: judge}), nil)
	post := func(ctx context.Context) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/mcp", strings.NewReader(checkCall(1)))
		if err != nil {
			return nil, err
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		return server.Client().Do(r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	full := make(chan struct{})
	ended := make(chan struct{}, mcp.MaxRequests+1)
	for range mcp.MaxRequests + 1 {
		go func() {
			defer func() { ended <- struct{}{} }()
			res, err := post(ctx)
			if err != nil {
				return
			}
			defer res.Body.Close()
			if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" {
				close(full)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
		}()
	}
	<-waiting
	<-full
	cancel()
	for range mcp.MaxRequests + 1 {
		<-ended
	}
}

// Clients that announce a large body and send nothing do not block others.
func TestHandlerIdle(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	for i := range mcp.MaxRequests + 8 {
		c := testenv.Must(net.Dial("tcp", server.Listener.Addr().String()))(t)
		defer c.Close()
		length := "Transfer-Encoding: chunked"
		if i%2 == 0 {
			length = fmt.Sprintf("Content-Length: %d", mcp.MaxMessage)
		}
		testenv.Must(fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n%s\r\n\r\n", length))(t)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // the body is being read
			t.Fatalf("request %d: %q, %v", i, line, err)
		}
	}
	r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(checkCall(1))))(t)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	res, err := server.Client().Do(r)
	testenv.OK(t, err)
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%d %s, %v", res.StatusCode, body, err)
	}
}

// Over HTTP, progress also arrives before the result.
func TestHandlerProgress(t *testing.T) {
	told := make(chan string, 100)
	server := site(t, mcp.New(&mcp.Options{Checker: &support.Lexical{}, Verify: newVerify(t)}), nil)
	session := testenv.Must(dial(t, server, "", &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Message },
	}))(t)
	params := &sdk.CallToolParams{Name: "attribute", Arguments: object{"answer": "Herons eat fish. Herons eat frogs.", "sources": []any{object{"text": "Herons eat fish."}}}}
	params.SetProgressToken(7)
	testenv.Must(session.CallTool(t.Context(), params))(t)
	if got := <-told; !strings.HasSuffix(got, "of 2 sentences") {
		t.Errorf("progress = %s", got)
	}
}
