package mcp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// The stories of testdata/story. Their commands are
//
//	server [stored]              starts a server, with the answer and the run of openStore, and a client of it
//	tool NAME ARGUMENTS          calls a tool: the structured content, which is as its schema says, is standard
//	                             output, the text standard error
//	refused WORDS NAME ARGUMENTS calls one with arguments that its schema refuses, and expects an error with the words
//	beyond WORDS NAME ARGUMENTS  the same for errors that the schema does not cover
func TestStories(t *testing.T) {
	type story = servertest.Story[*sdk.ClientSession]
	refused := func(beyond bool) func(*story, []string) {
		return func(s *story, args []string) {
			wantRefused(s.TB, *s.World, args[1], json.RawMessage(args[2]), args[0], beyond)
		}
	}
	servertest.Stories(t, map[string]string{"RESPONSE": response}, map[string]func(*story, []string){
		"server": func(s *story, args []string) {
			o := &mcp.Options{Verify: newVerify(s.TB)}
			if len(args) > 0 {
				o.Store = openStore(s.TB, store.DefaultTenant)
			}
			*s.World = connect(s.TB, mcp.New(o), store.DefaultTenant, nil)
		},
		"tool": func(s *story, args []string) {
			var structured json.RawMessage
			text := call(s.TB, *s.World, args[0], json.RawMessage(args[1]), &structured)
			_, _ = fmt.Fprintln(s.Stdout(), string(structured))
			_, _ = fmt.Fprintln(s.Stderr(), text)
		},
		"refused": refused(false),
		"beyond":  refused(true),
	})
}

// wantRefused calls a tool that refuses its arguments. So does the schema, unless the error is beyond it.
func wantRefused(tb testing.TB, session *sdk.ClientSession, tool string, args any, words string, beyond bool) {
	tb.Helper()
	res := ask(tb, session, tool, args)
	if got := textOf(res); !res.IsError || !strings.Contains(got, words) || res.StructuredContent != nil || len(got) > 1000 {
		tb.Errorf("%s %.200s: %s, want an error with %q", tool, fmt.Sprint(args), got, words)
	}
	list := testenv.Must(session.ListTools(tb.Context(), nil))(tb)
	i := slices.IndexFunc(list.Tools, func(t *sdk.Tool) bool { return t.Name == tool })
	var value any
	testenv.OK(tb, json.Unmarshal(testenv.Must(json.Marshal(args))(tb), &value))
	if refused := compile(tb, list.Tools[i].InputSchema).Validate(value) != nil; refused == beyond {
		tb.Errorf("%s %.200s: the schema refuses it: %v", tool, fmt.Sprint(args), refused)
	}
}
