package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const response = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",
"content":"Herons eat fish.","annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":15,"url":"https://birds.example/heron","title":"Herons"}}]}}]}`

// connect starts a server for one client over pipes, and stops both with the test.
func connect(tb testing.TB, m *mcp.MCP, tenant string, o *sdk.ClientOptions) *sdk.ClientSession {
	tb.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := m.Serve(context.Background(), in, out, tenant)
		_ = out.Close()
		ended <- err
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session := testenv.Must(client.Connect(tb.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil))(tb)
	tb.Cleanup(func() {
		_ = session.Close()
		_ = toServer.Close()
		if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) { // a call that was given up is answered all the same
			tb.Errorf("Serve: %v", err)
		}
	})
	return session
}

// call calls a tool that must succeed, checks the result against the tool's schema, and decodes it.
func call(tb testing.TB, session *sdk.ClientSession, name string, args any, into any) string {
	tb.Helper()
	res := ask(tb, session, name, args)
	if res.IsError {
		tb.Fatalf("%s: %s", name, textOf(res))
	}
	raw := testenv.Must(json.Marshal(res.StructuredContent))(tb)
	checkSchema(tb, session, name, raw)
	if into != nil {
		testenv.OK(tb, json.Unmarshal(raw, into))
	}
	return textOf(res)
}

func ask(tb testing.TB, session *sdk.ClientSession, name string, args any) *sdk.CallToolResult {
	tb.Helper()
	res, err := session.CallTool(tb.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return res
}

func textOf(res *sdk.CallToolResult) string {
	var all []string
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

// checkSchema checks structured content against the tool's schema.
func checkSchema(tb testing.TB, session *sdk.ClientSession, name string, raw []byte) {
	tb.Helper()
	list := testenv.Must(session.ListTools(tb.Context(), nil))(tb)
	for _, t := range list.Tools {
		if t.Name == name {
			value := testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(tb)
			if err := compile(tb, t.OutputSchema).Validate(value); err != nil {
				tb.Errorf("%s gives back what its schema does not allow: %v\n%s", name, err, raw)
			}
			return
		}
	}
	tb.Fatalf("there is no tool %s", name)
}

func compile(tb testing.TB, schema any) *jsonschema.Schema {
	tb.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	testenv.OK(tb, c.AddResource("tool.json", schema))
	return testenv.Must(c.Compile("tool.json"))(tb)
}

// openStore returns a store with a captured answer and a recorded run of a tenant.
func openStore(tb testing.TB, tenant string) *store.Store {
	tb.Helper()
	s := testenv.Must(store.Open(context.Background(), filepath.Join(tb.TempDir(), "ibid.db"), nil))(tb)
	tb.Cleanup(func() { _ = s.Close() })
	answer := testenv.Must(ibid.Decode([]byte(response), nil))(tb)
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	testenv.OK(tb, s.Put(context.Background(), []*store.Call{{
		AnswerID: "ans_heron", Tenant: tenant, Upstream: "openai", Route: "POST /v1/chat/completions", Conversation: "birds", Run: "captured", Status: 200,
		Started: began, Duration: time.Second, Answer: answer,
	}}))
	run := testenv.Must(trail.Read([]byte(`{"original_question":"What do herons eat?","final_answer":"Herons eat fish and frogs. They live on the moon in large colonies.","reasoning_steps":[
		{"step_number":1,"tool":"search","question":"heron diet","retrieved_documents":[{"document_id":"d1","title":"Heron diet","score":0.9,"content":"Herons eat fish and frogs in shallow water."},
		{"document_id":"d2","title":"Moon","score":0.2,"content":"The moon has no water."}]},
		{"step_number":2,"question":"What follows?","intermediate_answer":"They eat fish.","after":[1]}]}`)))(tb)
	testenv.Must(s.Record(context.Background(), tenant, &store.Recording{Run: "herons", Trail: run, Finish: true}))(tb)
	return s
}
