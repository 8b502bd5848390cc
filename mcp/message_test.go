package mcp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/store"
)

// send posts a message and returns the status and the media type of the response, and the JSON of its body, also if that
// is an event.
func send(tb testing.TB, server *httptest.Server, body string, header http.Header) (status int, kind string, message []byte) {
	tb.Helper()
	r := testenv.Must(http.NewRequestWithContext(tb.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(body)))(tb)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(r.Header, header)
	res, err := server.Client().Do(r)
	testenv.OK(tb, err)
	defer res.Body.Close()
	all := testenv.Must(io.ReadAll(res.Body))(tb)
	all = bytes.TrimPrefix(all, []byte("event: message\ndata: "))
	return res.StatusCode, res.Header.Get("Content-Type"), bytes.TrimSpace(all)
}

// idOf returns the id of a message as it is written.
func idOf(tb testing.TB, message []byte) string {
	tb.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal(message, &m); err != nil {
		tb.Fatalf("no message: %v: %.200s", err, message)
	}
	return string(m.ID)
}

// An answer has the very id that the call had, whatever a JSON reader would make of it, over HTTP and over stdio.
func TestIDs(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	for _, id := range []string{
		`"a"`, `""`, `"1"`, `"é\u0000\ud800"`, `"a\"b\\"`, `"id-as-sent:MQ"`, `1`, `0`, `-1`, `-0`, `1.0`, `1.5`, `1e2`,
		`9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `18446744073709551615`, `123456789012345678901234567890`,
		`"` + strings.Repeat("long", 10_000) + `"`,
	} {
		for name, message := range map[string]string{
			"result": `{"id":ID,"jsonrpc":"2.0","method":"ping"}`,
			"tool":   `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"check","arguments":{"claim":"x y","passages":["x y"]}}}`,
			"echo":   `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"\",\"id\":\"id-as-sent:MQ\""}}`,
			"method": `{"jsonrpc":"2.0","id":ID,"method":"rm"}`,
			"params": `{"jsonrpc":"2.0","method":"tools/call","id":ID}`,
		} {
			message = strings.Replace(message, "ID", id, 1)
			status, _, body := send(t, server, message, nil)
			if got := idOf(t, body); got != id || status != http.StatusOK {
				t.Errorf("%s: HTTP answered the id %.100s with %.100s (%d)", name, id, got, status)
			}
			var out bytes.Buffer
			testenv.OK(t, mcp.New(nil).Serve(t.Context(), strings.NewReader(hello+message+"\n"), &out, store.DefaultTenant))
			found := false
			for line := range bytes.Lines(out.Bytes()) {
				found = found || idOf(t, line) == id
			}
			if !found {
				t.Errorf("%s: stdio did not answer the id %.100s: %.300s", name, id, &out)
			}
		}
	}
}

// Progress is reported under the very token that the call named, and a call is cancelled by the very id that it had.
func TestTokens(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	for _, token := range []string{`"t"`, `7`, `9007199254740993`, `1.50`} {
		_, _, body := send(t, server, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":`+token+
			`},"name":"attribute","arguments":{"answer":"Herons eat fish. Herons eat frogs.","sources":[{"text":"Herons eat fish."}]}}}`, nil)
		if !bytes.Contains(body, []byte(`"progressToken":`+token+`,`)) || !bytes.Contains(body, []byte(`"id":5,`)) {
			t.Errorf("token %s: %.600s", token, body)
		}
	}
	judge, waiting, given := slowJudge(t)
	in, input := io.Pipe()
	ended := make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- mcp.New(&mcp.Options{Checker: judge}).Serve(t.Context(), in, &out, store.DefaultTenant)
	}()
	const id = "9007199254740993"
	testenv.Must(io.WriteString(input, hello+strings.Replace(checkCall(2), `"id":2`, `"id":`+id, 1)))(t)
	<-waiting
	testenv.Must(io.WriteString(input, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`+"\n"))(t)
	<-given // the judge was given up
	testenv.OK(t, input.Close())
	testenv.OK(t, <-ended)
}

// A body has one JSON object, which is a message; anything else is a problem.
func TestMessages(t *testing.T) {
	server := site(t, mcp.New(nil), nil)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for body, word := range map[string]string{
		ping + ping:        "nothing after it",
		ping + "\n" + ping: "nothing after it",
		ping + " x":        "nothing after it",
		ping + "]":         "nothing after it",
		"\ufeff" + ping:    "not JSON",
		"{":                "not JSON",
		"\xff":             "not JSON",
		`"x"`:              "not an object",
		`1`:                "not an object",
		`null`:             "not an object",
		"[" + ping + "]":   "batches",
		`{}`:               "version",
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:         "twice",
		`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ping"}`:    "twice",
		`{"jsonrpc":"2.0","id":"` + "\xff" + `","method":"ping"}`: "UTF-8",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                "version",
		`{"id":1,"method":"ping"}`:                                "version",
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:             "invalid ID",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:               "invalid ID",
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`:              "invalid ID",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:             "missing id",
		`{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`:                "neither a method nor a result",
		`{"jsonrpc":"2.0","id":1,"method":5}`:                     "not a JSON-RPC message",
		`{"jsonrpc":"2.0","method":"rm"}`:                         "rm",
	} {
		status, kind, got := send(t, server, body, nil)
		var problem struct {
			Type, Detail, Hint string
			Status             int
		}
		if err := json.Unmarshal(got, &problem); err != nil || status != 400 || kind != "application/problem+json" ||
			problem.Status != 400 || !strings.Contains(problem.Detail, word) || problem.Hint == "" {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
	for name, header := range map[string]http.Header{
		"accept":  {"Accept": {"text/html"}},
		"version": {"Mcp-Protocol-Version": {"1999-01-01"}},
	} {
		if status, kind, got := send(t, server, ping, header); status != 400 || kind != "application/problem+json" {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if status, _, body := send(t, server, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil); status != http.StatusAccepted || len(body) > 0 {
		t.Errorf("a notification: %d %s", status, body)
	}
}
