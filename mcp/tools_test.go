package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

type object = map[string]any

func TestTools(t *testing.T) {
	names := func(o *mcp.Options) []string {
		list := testenv.Must(connect(t, mcp.New(o), store.DefaultTenant, nil).ListTools(t.Context(), nil))(t)
		var all []string
		for _, tool := range list.Tools {
			all = append(all, tool.Name)
			a := tool.Annotations
			if !a.ReadOnlyHint || *a.OpenWorldHint != (tool.Name == "verify") || tool.Title == "" || tool.Description == "" {
				t.Errorf("%s says of itself %+v", tool.Name, a)
			}
		}
		return all
	}
	testenv.Equal(t, "", []string{"attribute", "check", "cite"}, names(nil))
	all := names(&mcp.Options{Store: openStore(t, "a"), Verify: newVerify(t)})
	testenv.Equal(t, "", []string{"attribute", "check", "cite", "find_answers", "find_runs", "run_sources", "verify"}, all)
}

// verifying may connect to this machine.
type verifying = func(context.Context, string, *api.Verification) (*verify.Report, error)

func newVerify(tb testing.TB, allow ...netip.Prefix) verifying {
	tb.Helper()
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: allow})
	tb.Cleanup(func() { _ = fetcher.Close() })
	memory := &verify.MemoryMap{}
	return func(ctx context.Context, _ string, what *api.Verification) (*verify.Report, error) {
		return api.Report(ctx, &verify.Verifier{Fetcher: fetcher, Memory: memory}, what)
	}
}

// quoting returns the document of an answer that quotes a source.
func quoting(tb testing.TB, url, quote string) json.RawMessage {
	tb.Helper()
	a := &ibid.Answer{
		Text: "Herons eat fish.", Complete: true, Parts: []ibid.Part{{Span: ibid.Span{End: 16}, Kind: ibid.AnswerPart}},
		Sources: []ibid.Source{{ID: "s", Kind: ibid.Web, URL: url, Title: "Herons"}},
	}
	testenv.OK(tb, a.Cite(ibid.Span{End: 15}, ibid.Ref{Source: "s", Quote: quote}))
	return testenv.Must(json.Marshal(a))(tb)
}

func TestVerify(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("Herons eat fish and frogs in shallow water."))
	}))
	defer page.Close()
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	told := make(chan *sdk.ProgressNotificationParams, 100)
	session := connect(t, mcp.New(&mcp.Options{Verify: newVerify(t, loopback)}), "a", &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
	})
	type report struct {
		State    verify.State
		Failures []verify.Finding
		Claims   []struct {
			Sources []struct{ Status verify.Status }
		}
		Report *verify.Report
	}
	var good report
	text := call(t, session, "verify", object{"document": quoting(t, page.URL, "Herons eat fish and frogs"), "report": true}, &good)
	if good.State != verify.Valid || len(good.Failures) != 0 || good.Report == nil || len(good.Claims) != 1 || !strings.Contains(text, "VALID") {
		t.Errorf("report = %+v\n%s", good, text)
	}
	var bad report
	call(t, session, "verify", object{"document": quoting(t, page.URL, "Herons eat snow and rocks"), "trust": []string{"agent.example"}}, &bad)
	if bad.State != verify.Invalid || len(bad.Failures) == 0 || bad.Report != nil || bad.Claims[0].Sources[0].Status != verify.ExcerptMissing && bad.Claims[0].Sources[0].Status != verify.ExcerptAltered {
		t.Errorf("report = %+v", bad)
	}
	// Clients that request progress get it, with increasing numbers.
	params := &sdk.CallToolParams{Name: "verify", Arguments: object{"document": quoting(t, page.URL, "Herons eat fish and frogs")}}
	params.SetProgressToken("p")
	testenv.Must(session.CallTool(t.Context(), params))(t)
	for i := range 2 { // the source, and the support of its claim
		select {
		case p := <-told:
			if p.ProgressToken != "p" || p.Progress != float64(i+1) || p.Message == "" {
				t.Errorf("progress %d = %+v", i, p)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d times it was said how far it was", i)
		}
	}
}

// URLs in documents are only fetched from public networks.
func TestVerifyPrivate(t *testing.T) {
	asked := false
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer page.Close()
	session := connect(t, mcp.New(&mcp.Options{Verify: newVerify(t)}), store.DefaultTenant, nil)
	for _, args := range []object{
		{"url": page.URL + "/runs/x/cite"},
		{"manifest": page.URL},
		{"document": quoting(t, page.URL, "Herons eat fish and frogs")},
		{"url": "http://169.254.169.254/latest/meta-data"},
		{"url": "file:///etc/passwd"},
	} {
		var got struct{ State verify.State }
		call(t, session, "verify", args, &got)
		if got.State != verify.Unverifiable && got.State != verify.Invalid {
			t.Errorf("%v: %s", args, got.State)
		}
	}
	if asked {
		t.Error("a private address was fetched")
	}
}

// Exceeded limits are reported in the result, however large the input.
func TestToolLimits(t *testing.T) {
	session := connect(t, mcp.New(&mcp.Options{Store: openStore(t, "a"), Verify: newVerify(t)}), "a", nil)
	sources := []any{object{"text": "x"}}
	deep := any("x")
	for range 900 {
		deep = []any{deep}
	}
	for _, test := range []struct {
		words, tool string
		args        object
		beyond      bool
	}{
		{"more than 1000", "attribute", object{"answer": "A b c.", "sources": slices.Repeat(sources, mcp.MaxSources+1)}, false},
		{"must not be", "attribute", object{"answer": "A b c.", "sources": deep}, false},
		{"more than 256", "check", object{"claim": "x", "passages": slices.Repeat([]string{"x"}, mcp.MaxPassages+1)}, false},
		{"not a URL", "verify", object{"url": strings.Repeat("x", 4097)}, false},
		{"more than 64", "verify", object{"url": "https://a.example", "trust": slices.Repeat([]string{"a"}, 65)}, false},
		{"neither a host", "verify", object{"url": "https://a.example", "trust": []string{strings.Repeat("a", 257)}}, false},
		{"run: no run has", "run_sources", object{"run": strings.Repeat("x", 10000)}, false},
		{"words: ", "find_answers", object{"words": strings.Repeat("x", 5000)}, true},
	} {
		wantRefused(t, session, test.tool, test.args, test.words, test.beyond)
	}
	_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "delete_all"})
	if err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
}

// A long run is found, and shown in parts: each result has a text of at most 2 kB that says how to go on.
func TestLongRun(t *testing.T) {
	s := openStore(t, "a")
	run := &trail.Trail{ID: "long", Question: "What does the mill grind?", Answer: "The mill grinds rye."}
	for n := 1; n <= 200; n++ {
		run.Steps = append(run.Steps, trail.Step{Number: n, Tool: "search", Sources: []trail.Source{{
			DocumentID: fmt.Sprintf("d%d", n), Title: "A document", Content: "The mill grinds rye.", Used: true,
		}}})
	}
	testenv.Must(s.Record(t.Context(), "a", &store.Recording{Run: "long", Trail: run}))(t)
	session := connect(t, mcp.New(&mcp.Options{Store: s}), "a", nil)
	var found struct{ Runs []struct{ Run string } }
	if text := call(t, session, "find_runs", object{}, &found); len(found.Runs) != 3 || !strings.Contains(text, "What does the mill grind?") {
		t.Errorf("found %v: %s", found, text)
	}
	type shown struct {
		Steps []struct{ Number int }
		Next  *int `json:"next_step"`
	}
	var first, next, one shown
	text := call(t, session, "run_sources", object{"run": "long"}, &first)
	if len(first.Steps) != 20 || first.Next == nil || *first.Next != 21 || len(text) > 2000 || !strings.Contains(text, "from_step") {
		t.Errorf("%d steps, %d bytes: %s", len(first.Steps), len(text), text)
	}
	call(t, session, "run_sources", object{"run": "long", "from_step": 199}, &next)
	if len(next.Steps) != 2 || next.Next != nil {
		t.Errorf("from step 199: %+v", next)
	}
	call(t, session, "run_sources", object{"run": "long", "sentence": 1}, &one)
	if len(one.Steps) == 0 || len(one.Steps) > 20 {
		t.Errorf("of one sentence: %d steps", len(one.Steps))
	}
}
