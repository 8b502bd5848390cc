package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// reply is a message to a client.
type reply struct {
	ID    any
	Error *struct {
		Code    int
		Message string
	}
	Result *struct{ IsError bool }
}

// serve runs a server on an input and returns its output.
func serve(tb testing.TB, m *mcp.MCP, input io.Reader) []reply {
	tb.Helper()
	var out bytes.Buffer
	testenv.OK(tb, m.Serve(tb.Context(), input, &out, store.DefaultTenant))
	var all []reply
	for line := range bytes.Lines(out.Bytes()) {
		var r reply
		if err := json.Unmarshal(line, &r); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			tb.Fatalf("a line is no message: %v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

func checkCall(id int) string {
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"tools/call","params":{"name":"check","arguments":{"claim":"Herons eat fish.","passages":["Herons eat fish."]}}}` + "\n"
}

// Calls before the end of the input are answered, even if the last line has no line break.
func TestServeEnd(t *testing.T) {
	var input strings.Builder
	input.WriteString(hello)
	for id := range 50 {
		input.WriteString(checkCall(id + 2))
	}
	got := serve(t, mcp.New(nil), iotest.OneByteReader(strings.NewReader(strings.TrimSuffix(input.String(), "\n"))))
	answered := map[any]bool{}
	for _, r := range got {
		answered[r.ID] = r.Error == nil && !r.Result.IsError
	}
	for id := 1; id < 52; id++ {
		if !answered[float64(id)] {
			t.Errorf("call %d was not answered", id)
		}
	}
}

// An invalid message is answered with an error, and the next one is read.
func TestServeRefuses(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	type refusal struct {
		code int
		word string
	}
	for input, want := range map[string]refusal{
		"hello":                          {-32700, "not JSON"},
		`{"jsonrpc":"2.0",`:              {-32700, "not JSON"},
		"\xff\xfe":                       {-32700, "not JSON"},
		"42":                             {-32600, "not a JSON-RPC message"},
		"{}":                             {-32600, "not a JSON-RPC message"},
		`{"jsonrpc":"1.0","method":"x"}`: {-32600, "not a JSON-RPC message"},
		"[" + strings.TrimSuffix(checkCall(7), "\n") + "]":                    {-32600, "batches"},
		`{"jsonrpc":"2.0","method":"x","params":` + deep + `}`:                {-32600, "not a JSON-RPC message"},
		`{"jsonrpc":"2.0","x":"` + strings.Repeat("x", mcp.MaxMessage) + `"}`: {-32600, "more than 16777216 bytes"},
	} {
		got := serve(t, mcp.New(nil), strings.NewReader(hello+input+"\n\r\n"+checkCall(9)))
		if len(got) != 3 {
			t.Fatalf("%.40q: %d answers", input, len(got))
		}
		refused := -1
		for i, r := range got {
			if r.Error != nil {
				refused = i
			} else if r.ID == 9.0 && r.Result.IsError {
				t.Errorf("%.40q: the call behind it failed", input)
			}
		}
		if refused < 0 {
			t.Errorf("%.40q was taken", input)
			continue
		}
		if r := got[refused]; r.ID != nil || r.Error.Code != want.code || !strings.Contains(r.Error.Message, want.word) || len(r.Error.Message) > 400 {
			t.Errorf("%.40q: %+v", input, r.Error)
		}
	}
}

func TestServeErrors(t *testing.T) {
	broken := errors.New("the pipe is broken")
	err := mcp.New(nil).Serve(t.Context(), io.MultiReader(strings.NewReader(hello), iotest.ErrReader(broken)), io.Discard, "a")
	if !errors.Is(err, broken) {
		t.Errorf("Serve = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, client := io.Pipe()
	defer client.Close()
	if err := mcp.New(nil).Serve(ctx, in, io.Discard, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve = %v, want that it was cancelled", err)
	}
	if got := serve(t, mcp.New(nil), strings.NewReader("")); len(got) != 0 {
		t.Errorf("no input: %v", got)
	}
}

// slowJudge is a checker that asks a model which does not answer. waiting hears of each question, and given of each that was given up.
func slowJudge(tb testing.TB) (c support.Checker, waiting, given chan struct{}) {
	tb.Helper()
	waiting, given = make(chan struct{}, 100), make(chan struct{}, 100)
	model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that its client has left
		waiting <- struct{}{}
		<-r.Context().Done()
		given <- struct{}{}
	}))
	tb.Cleanup(model.Close)
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	return &support.Judge{URL: model.URL, Model: "slow", Concurrency: 100, Client: &http.Client{Transport: transport}}, waiting, given
}

// A call cancelled by its client ends.
func TestCancel(t *testing.T) {
	judge, waiting, given := slowJudge(t)
	session := connect(t, mcp.New(&mcp.Options{Checker: judge}), store.DefaultTenant, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "check", Arguments: object{"claim": "x y z", "passages": []string{"x y z"}}})
		ended <- err
	}()
	<-waiting
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool = %v", err)
	}
	<-given
	var got struct{ CitedText string }
	call(t, session, "cite", object{"response": response}, &got) // and the next one works
}

// Stopping the server ends its calls.
func TestServeEnded(t *testing.T) {
	judge, waiting, given := slowJudge(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- mcp.New(&mcp.Options{Checker: judge}).Serve(ctx, in, io.Discard, "a") }()
	testenv.Must(io.WriteString(client, hello+checkCall(2)))(t)
	<-waiting
	cancel()
	<-given
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve = %v", err)
	}
}

// At most MaxCalls calls run at a time.
func TestManyCalls(t *testing.T) {
	judge, waiting, _ := slowJudge(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- mcp.New(&mcp.Options{Checker: judge}).Serve(ctx, in, io.Discard, "a") }()
	var input strings.Builder
	input.WriteString(hello)
	for id := range 3 * mcp.MaxCalls {
		input.WriteString(checkCall(id + 2))
	}
	testenv.Must(io.WriteString(client, input.String()))(t)
	for range mcp.MaxCalls {
		<-waiting
	}
	cancel()
	<-ended
	if n := len(waiting); n != 0 {
		t.Errorf("%d calls more than %d were worked on", n, mcp.MaxCalls)
	}
}

// broken is a checker that panics.
type broken struct{ support.Lexical }

func (*broken) Check(context.Context, []support.Pair) ([]support.Verdict, error) { panic("a mistake") }

// failing is a checker whose errors contain its operator's address.
type failing struct{ support.Lexical }

func (*failing) Check(context.Context, []support.Pair) ([]support.Verdict, error) {
	return nil, errors.New("ask http://judge.internal: connection refused")
}

// A panic ends one call; neither it nor the operator's address is revealed.
func TestToolFails(t *testing.T) {
	for name, checker := range map[string]support.Checker{"a mistake": &broken{}, "judge.internal": &failing{}} {
		var log bytes.Buffer
		session := connect(t, mcp.New(&mcp.Options{Checker: checker, Logger: slog.New(slog.NewJSONHandler(&log, nil))}), "a", nil)
		for tool, args := range map[string]object{
			"check":     {"claim": "Secret herons eat fish.", "passages": []string{"Herons eat fish."}},
			"attribute": {"answer": "Secret herons eat fish.", "sources": []any{object{"text": "Herons eat fish."}}},
		} {
			res := ask(t, session, tool, args)
			if got := textOf(res); !res.IsError || strings.Contains(got, name) || !strings.Contains(got, "log has") {
				t.Errorf("%s: %s", tool, got)
			}
		}
		if got := log.String(); strings.Count(got, name) < 2 || strings.Contains(got, "Secret") {
			t.Errorf("log: %s", got)
		}
	}
}

// Truncated text is marked as such, and is still valid text.
func TestLongText(t *testing.T) {
	session := connect(t, mcp.New(nil), "a", nil)
	long := strings.Repeat("Grüße aus dem Moor. ", 10_000)
	var got struct {
		CitedText string `json:"cited_text"`
	}
	text := call(t, session, "cite", object{"response": long, "document": false}, &got)
	if diff := cmp.Diff(strings.TrimSpace(long), strings.TrimSpace(got.CitedText)); diff != "" {
		t.Error("the structured content was changed")
	}
	if len(text) > 2000 || !strings.HasSuffix(text, "the structured content has the rest") {
		t.Errorf("%d bytes, …%s", len(text), text[len(text)-100:])
	}
}

// No input breaks the server or makes it write anything but messages.
func FuzzServe(f *testing.F) {
	f.Add(checkCall(2))
	f.Add(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cite","arguments":{"response":"[1] x","style":"html"}}}`)
	f.Add(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"verify","arguments":{"document":{"version":1},"offline":true}}}`)
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"attribute","arguments":{"answer":"a b","sources":[{"text":"a b"}]},"_meta":{"progressToken":1}}}`)
	f.Add(`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{}}}` + "\n[1]\n{\n")
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	m := mcp.New(&mcp.Options{Verify: newVerify(f)})
	f.Fuzz(func(t *testing.T, input string) { serve(t, m, strings.NewReader(hello+input)) })
}
