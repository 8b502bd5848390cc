package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
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
	"github.com/ibidhq/ibid/support"
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
	testenv.Equal(t, "", []string{"attribute", "check", "cite", "find_answers", "run_sources", "verify"}, all)
}

func TestCite(t *testing.T) {
	session := connect(t, mcp.New(nil), store.DefaultTenant, nil)
	var got struct {
		CitedText string       `json:"cited_text"`
		Complete  bool         `json:"complete"`
		Citations int          `json:"citations"`
		Document  *ibid.Answer `json:"document"`
	}
	text := call(t, session, "cite", object{"response": response}, &got)
	if got.CitedText != "Herons eat fish.[1](https://birds.example/heron)" || !got.Complete || got.Citations != 1 {
		t.Errorf("cite = %+v", got)
	}
	if err := got.Document.Check(); err != nil || len(got.Document.Sources) != 1 {
		t.Errorf("document: %v", err)
	}
	if !strings.HasPrefix(text, got.CitedText) || !strings.Contains(text, "Herons") {
		t.Errorf("text = %s", text)
	}
	var whole object
	testenv.OK(t, json.Unmarshal([]byte(response), &whole))
	var plain struct {
		CitedText string `json:"cited_text"`
		Document  any    `json:"document"`
	}
	call(t, session, "cite", object{"response": whole, "style": "plain", "document": false}, &plain)
	if plain.CitedText != "Herons eat fish.[1]" || plain.Document != nil {
		t.Errorf("as an object: %+v", plain)
	}
	var failed struct {
		Error struct{ Message string }
	}
	text = call(t, session, "cite", object{"response": `{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}`}, &failed)
	if failed.Error.Message != "no such model" || !strings.Contains(text, "answered with an error") {
		t.Errorf("a provider's error: %+v\n%s", failed, text)
	}
	text = call(t, session, "cite", object{"response": response[:len(response)-150]}, nil)
	if !strings.Contains(text, "breaks off") {
		t.Errorf("a cut response: %s", text)
	}
}

func TestCiteDocuments(t *testing.T) {
	session := connect(t, mcp.New(nil), store.DefaultTenant, nil)
	var got struct {
		Document struct{ Sources []struct{ Title string } }
	}
	call(t, session, "cite", object{
		"response":  `{"id":"m","message":{"role":"assistant","content":[{"type":"text","text":"Herons eat fish."}],"citations":[{"start":0,"end":15,"text":"Herons eat fish","sources":[{"type":"document","id":"doc:0","document":{"id":"doc:0"}}]}]},"finish_reason":"COMPLETE"}`,
		"documents": []any{object{"data": object{"title": "Herons", "text": "Herons eat fish."}}},
	}, &got)
	if len(got.Document.Sources) != 1 || got.Document.Sources[0].Title != "Herons" {
		t.Errorf("sources = %+v", got.Document.Sources)
	}
}

func TestAttribute(t *testing.T) {
	session := connect(t, mcp.New(nil), store.DefaultTenant, nil)
	var got struct {
		CitedText string `json:"cited_text"`
		Citations []struct {
			Start, End int
			Text       string
			SourceID   string   `json:"source_id"`
			SourceURL  *string  `json:"source_url"`
			Quote      string   `json:"quote"`
			Score      *float64 `json:"score"`
		}
		Uncited  []struct{ Text string }
		Share    float64 `json:"uncited_share"`
		Document *ibid.Answer
	}
	text := call(t, session, "attribute", object{
		"answer": "Größe! Herons eat fish and frogs. The moon is made of green cheese and honey.", "unit": "utf-16",
		"sources": []any{
			object{"id": "diet", "title": "Heron diet", "url": "https://birds.example/diet", "text": "Herons eat fish and frogs in shallow water."},
			object{"text": "Violins are made of wood."},
		},
	}, &got)
	if len(got.Citations) != 1 || got.Citations[0].SourceID != "diet" || *got.Citations[0].SourceURL != "https://birds.example/diet" || got.Citations[0].Quote == "" {
		t.Fatalf("citations = %+v", got.Citations)
	}
	if s := got.Citations[0].Score; s == nil || *s < support.Balanced || *s > 1 {
		t.Errorf("score = %v", s)
	}
	if len(got.Uncited) != 1 || !strings.HasPrefix(got.Uncited[0].Text, "The moon") || math.Abs(got.Share-.5) > 1e-9 || !strings.Contains(text, "Without a source: 1 of 2 sentences.\n- The moon") {
		t.Errorf("uncited = %+v, %v\n%s", got.Uncited, got.Share, text)
	}
	if err := got.Document.Check(); err != nil || got.Document.Citations[0].Origin != ibid.OriginInferred {
		t.Errorf("document: %v", err)
	}
	// Nothing is invented where nothing supports.
	var none struct{ Citations []any }
	call(t, session, "attribute", object{"answer": "The moon is made of green cheese.", "sources": []any{object{"text": "Violins are made of wood."}}}, &none)
	if len(none.Citations) != 0 {
		t.Errorf("citations = %v", none.Citations)
	}
}

func TestCheck(t *testing.T) {
	session := connect(t, mcp.New(nil), store.DefaultTenant, nil)
	type verdict struct {
		Label      support.Label
		Score      *float64
		Calibrated bool
		Missing    []string
		Evidence   []struct {
			Passage, Start, End int
			Text                string
		}
		Changed   bool
		Conflicts []struct{ Kind, Claim, Evidence string }
	}
	passages := []string{"Trams ring bells.", "The bridge was opened to traffic in 1931 by the mayor."}
	var got verdict
	text := call(t, session, "check", object{"claim": "The bridge was opened to traffic in 1932.", "passages": passages}, &got)
	if got.Label != support.Partial || !got.Changed || !got.Calibrated || len(got.Conflicts) != 1 || got.Conflicts[0].Claim != "1932" || got.Conflicts[0].Evidence != "1931" {
		t.Errorf("verdict = %+v", got)
	}
	e := got.Evidence[0]
	if e.Passage != 1 || passages[1][e.Start:e.End] != e.Text || !strings.Contains(text, `the claim says "1932", the evidence "1931"`) {
		t.Errorf("evidence = %+v\n%s", e, text)
	}
	got = verdict{}
	call(t, session, "check", object{"claim": "The mayor opened the bridge to traffic in 1931.", "passages": passages, "context": "Who opened it?"}, &got)
	if got.Label != support.Supported || got.Changed || *got.Score < .6 {
		t.Errorf("verdict = %+v", got)
	}
}

// verifying verifies what may be on this machine.
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
	// Who asks how far it is is told, and numbers grow.
	params := &sdk.CallToolParams{Name: "verify", Arguments: object{"document": quoting(t, page.URL, "Herons eat fish and frogs")}}
	params.SetProgressToken("p")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
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

// What documents name is fetched from public networks only.
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

func TestRunSources(t *testing.T) {
	session := connect(t, mcp.New(&mcp.Options{Store: openStore(t, "a")}), "a", nil)
	var got struct {
		Run, Question string
		Steps         []struct {
			Number  int
			After   []int
			Tool    *string
			Sources []struct {
				DocumentID string `json:"document_id"`
				Relevance  *float64
				Excerpt    *string
			}
		}
		Primary []struct {
			DocumentID string `json:"document_id"`
		} `json:"primary_sources"`
		Sentences []struct {
			Text     string
			Steps    []int
			Passages []struct {
				DocumentID string `json:"document_id"`
				Reason     string
				Score      *float64
			}
		}
		Uncited float64 `json:"uncited_share"`
	}
	text := call(t, session, "run_sources", object{"run": "herons"}, &got)
	if got.Question != "What do herons eat?" || len(got.Steps) != 2 || *got.Steps[0].Tool != "search" || len(got.Steps[0].Sources) != 2 || *got.Steps[0].Sources[0].Relevance != .9 || !slices.Equal(got.Steps[1].After, []int{1}) {
		t.Errorf("run = %+v", got)
	}
	if len(got.Primary) != 1 || got.Primary[0].DocumentID != "d1" || got.Uncited != .5 {
		t.Errorf("primary = %+v, uncited %v", got.Primary, got.Uncited)
	}
	first := got.Sentences[0]
	if len(first.Passages) == 0 || first.Passages[0].DocumentID != "d1" || first.Passages[0].Reason != "inferred" || first.Passages[0].Score == nil || len(got.Sentences[1].Passages) != 0 {
		t.Errorf("sentences = %+v", got.Sentences)
	}
	if !strings.Contains(text, "Primary sources: Heron diet (0.90)") || !strings.Contains(text, `in large colonies." ← no source`) {
		t.Errorf("text = %s", text)
	}
	call(t, session, "run_sources", object{"run": "herons", "excerpt": 0}, &got)
	if text = call(t, session, "run_sources", object{"run": "captured"}, nil); !strings.Contains(text, "Herons") {
		t.Errorf("a captured run: %s", text)
	}
}

func TestFindAnswers(t *testing.T) {
	session := connect(t, mcp.New(&mcp.Options{Store: openStore(t, "a")}), "a", nil)
	type page struct {
		Answers []struct {
			ID       string `json:"answer_id"`
			Run      string
			Document *ibid.Answer
		}
		Next *string `json:"next_cursor"`
	}
	for _, args := range []object{{}, {"words": "herons eat"}, {"source": "https://birds.example/heron"}, {"run": "captured", "limit": 1}, {"conversation": "birds"}} {
		var got page
		call(t, session, "find_answers", args, &got)
		if len(got.Answers) != 1 || got.Answers[0].ID != "ans_heron" || got.Answers[0].Run != "captured" || got.Answers[0].Document != nil || got.Next != nil {
			t.Errorf("%v: %+v", args, got)
		}
	}
	var none, one page
	call(t, session, "find_answers", object{"words": "penguins"}, &none)
	text := call(t, session, "find_answers", object{"answer_id": "ans_heron"}, &one)
	if len(none.Answers) != 0 || one.Answers[0].Document.Check() != nil || !strings.HasPrefix(text, "Herons eat fish.[1](https://birds.example/heron)") {
		t.Errorf("%+v, %s", one, text)
	}
}

// What another tenant has is not there.
func TestTenants(t *testing.T) {
	session := connect(t, mcp.New(&mcp.Options{Store: openStore(t, "a")}), "b", nil)
	for name, args := range map[string]object{"run_sources": {"run": "herons"}, "find_answers": {"answer_id": "ans_heron"}} {
		if res := ask(t, session, name, args); !res.IsError || !strings.Contains(textOf(res), "there is no") {
			t.Errorf("%s: %s", name, textOf(res))
		}
	}
	var got struct{ Answers []any }
	call(t, session, "find_answers", object{}, &got)
	if len(got.Answers) != 0 {
		t.Errorf("answers = %v", got.Answers)
	}
}

// Arguments that are wrong are told so in the result, with what to do, whatever they are. What the schema refuses, the tool refuses.
func TestToolErrors(t *testing.T) {
	session := connect(t, mcp.New(&mcp.Options{Store: openStore(t, "a"), Verify: newVerify(t)}), "a", nil)
	list := testenv.Must(session.ListTools(t.Context(), nil))(t)
	sources := []any{object{"text": "x"}}
	deep := any("x")
	for range 900 {
		deep = []any{deep}
	}
	for _, test := range []struct {
		tool   string
		args   any
		want   string
		beyond bool // what is wrong is more than the schema says
	}{
		{tool: "cite", args: object{}, want: "response: it is missing or empty"},
		{tool: "cite", args: object{"response": "  "}, want: "response: it is missing or empty", beyond: true},
		{tool: "cite", args: object{"response": 1}, want: "must not be a JSON number"},
		{tool: "cite", args: object{"response": "x", "stile": "plain"}, want: `there is no argument "stile"`},
		{tool: "cite", args: object{"response": "x", "style": "word"}, want: `style: there is no "word"`},
		{tool: "cite", args: object{"response": "x", "unit": "bytes"}, want: "it is one of utf-8, code-point, utf-16"},
		{tool: "cite", args: object{"response": "x", "format": "telegram"}, want: `format: there is no "telegram"`},
		{tool: "cite", args: object{"response": "{}", "format": "openai-chat"}, want: "nothing in it is of the format", beyond: true},
		{tool: "cite", args: object{"response": "x", "documents": object{}}, want: "documents: "},
		{tool: "cite", args: object{"response": "\x00\x01\x02\x03"}, want: "response: ", beyond: true},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": []any{}}, want: "sources: there are none"},
		{tool: "attribute", args: object{"answer": " ", "sources": sources}, want: "answer: it is missing", beyond: true},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": []any{object{"id": "x"}}}, want: "sources[0].text"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": sources, "threshold": 0}, want: "threshold: 0 is not"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": sources, "threshold": 1.1}, want: "threshold: 1.1 is not"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": sources, "per_sentence": 11}, want: "from 1 to 10"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": sources, "per_sentence": 1.5}, want: "must not be a JSON number"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": slices.Repeat(sources, mcp.MaxSources+1)}, want: "more than 1000"},
		{tool: "attribute", args: object{"answer": "A b c.", "sources": deep}, want: "must not be"},
		{tool: "check", args: object{"passages": []string{"x"}}, want: "claim: it is missing"},
		{tool: "check", args: object{"claim": "x"}, want: "passages: there are none"},
		{tool: "check", args: object{"claim": "x", "passages": "x"}, want: "passages: it must not be a JSON string"},
		{tool: "check", args: object{"claim": "x", "passages": slices.Repeat([]string{"x"}, mcp.MaxPassages+1)}, want: "more than 256"},
		{tool: "verify", args: object{}, want: "one thing is to be verified", beyond: true},
		{tool: "verify", args: object{"url": "https://a.example", "manifest": object{}}, want: "one thing", beyond: true},
		{tool: "verify", args: object{"document": object{"a": 1}}, want: "it is no manifest", beyond: true},
		{tool: "verify", args: object{"document": "x"}, want: "must be JSON objects"},
		{tool: "verify", args: object{"url": strings.Repeat("x", 4097)}, want: "no address"},
		{tool: "verify", args: object{"response": "hello"}, want: "what curl -i printed", beyond: true},
		{tool: "verify", args: object{"url": "https://a.example", "require_level": 4}, want: "from 0 to 3"},
		{tool: "verify", args: object{"url": "https://a.example", "trust": slices.Repeat([]string{"a"}, 65)}, want: "more than 64"},
		{tool: "verify", args: object{"url": "https://a.example", "trust": []string{strings.Repeat("a", 257)}}, want: "neither a host"},
		{tool: "run_sources", args: object{}, want: "run: it is missing"},
		{tool: "run_sources", args: object{"run": "none"}, want: "run: there is none with this id", beyond: true},
		{tool: "run_sources", args: object{"run": strings.Repeat("x", 10000)}, want: "run: there is none"},
		{tool: "run_sources", args: object{"run": "x", "excerpt": -1}, want: "from 0 to 2000"},
		{tool: "find_answers", args: object{"limit": 101}, want: "from 1 to 100"},
		{tool: "find_answers", args: object{"cursor": "x"}, want: "cursor: ", beyond: true},
		{tool: "find_answers", args: object{"words": strings.Repeat("x", 5000)}, want: "words: ", beyond: true},
		{tool: "find_answers", args: object{"answer_id": "x", "words": "y"}, want: "answer_id goes alone", beyond: true},
		{tool: "find_answers", args: []any{}, want: "must be a JSON object"},
	} {
		res := ask(t, session, test.tool, test.args)
		if got := textOf(res); !res.IsError || !strings.Contains(got, test.want) || res.StructuredContent != nil || len(got) > 1000 {
			t.Errorf("%s %.200s: %s, want an error with %q", test.tool, fmt.Sprint(test.args), got, test.want)
		}
		i := slices.IndexFunc(list.Tools, func(tool *sdk.Tool) bool { return tool.Name == test.tool })
		raw := testenv.Must(json.Marshal(test.args))(t)
		var value any
		testenv.OK(t, json.Unmarshal(raw, &value))
		if refused := compile(t, list.Tools[i].InputSchema).Validate(value) != nil; refused == test.beyond {
			t.Errorf("%s %.200s: the schema refuses it: %v", test.tool, fmt.Sprint(test.args), refused)
		}
	}
	_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "delete_all"})
	if err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
}
