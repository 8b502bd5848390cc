package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/wire"
)

func TestBuildRequest(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Name, Provider string
		Chat           Chat
		Path, Body     string
	}](t, "testdata/tables/build-request.txt") {
		got, err := BuildRequest(test.Provider, &test.Chat)
		if err != nil {
			t.Errorf("%s %s: %v", test.Provider, test.Name, err)
			continue
		}
		if string(got.Body) != test.Body {
			t.Errorf("%s %s\n got %s\nwant %s", test.Provider, test.Name, got.Body, test.Body)
		}
		want := Built{"POST", test.Path, map[string][]string{"Content-Type": {"application/json"}}, got.Body}
		if test.Provider == "anthropic" {
			want.Header["Anthropic-Version"] = []string{"2023-06-01"}
		}
		testenv.Equal(t, test.Provider+" "+test.Name, &want, got)
	}
}

// What BuildRequest writes is captured when the gateway receives it, and is read back unchanged.
func TestBuildRequestRoundTrip(t *testing.T) {
	talk := []Message{{RoleSystem, "Be brief."}, {RoleUser, "a \"b\" \\ \n\u2028 <c> 🎉"}, {RoleAssistant, "d\n\ne"}, {RoleUser, "ü?"}}
	for provider, tools := range map[string][]json.RawMessage{
		"gemini":     {json.RawMessage(`{"googleSearch":{}}`)},
		"openai":     {json.RawMessage(`{"type":"web_search"}`)},
		"xai":        {json.RawMessage(`{"type":"web_search"}`)},
		"cohere":     {json.RawMessage(`{"type":"function","function":{"name":"f"}}`)},
		"anthropic":  {json.RawMessage(`{"type":"web_search_20250305","name":"web_search"}`)},
		"perplexity": {json.RawMessage(`{"type":"web_search"}`)},
		"openrouter": {json.RawMessage(`{"type":"openrouter:web_search"}`)},
		"mistral":    {json.RawMessage(`{"type":"web_search"}`)},
	} {
		for _, chat := range []Chat{
			{Model: "m", Messages: talk},
			{Model: "m", Messages: talk, Stream: true, Tools: tools},
			{Model: "sonar", Messages: talk, Stream: true},
		} {
			built, err := BuildRequest(provider, &chat)
			if err != nil {
				t.Errorf("%s: %v", provider, err)
				continue
			}
			path, _, _ := strings.Cut(built.Path, "?")
			route, ok := FindRoute(provider, built.Method, path)
			if !ok || route.Format == "" || route.Provider != provider {
				t.Errorf("%s: the route of %s is %+v", provider, path, route)
			}
			r, err := ReadRequest(route.Format, built.Body)
			if err != nil {
				t.Errorf("%s: %v", provider, err)
				continue
			}
			testenv.Equal(t, provider+": messages", talk, r.Messages)
			if model, stream := route.Model+r.Model, route.Stream || r.Stream; model != chat.Model || stream != chat.Stream {
				t.Errorf("%s: model %q, stream %t, want %q, %t", provider, model, stream, chat.Model, chat.Stream)
			}
			if len(r.Tools) != len(chat.Tools) || chat.Tools != nil && r.Grounded != (provider != "cohere") {
				t.Errorf("%s: tools %q of %q, grounded: %t", provider, r.Tools, chat.Tools, r.Grounded)
			}
		}
	}
}

// The parsers find the documents that were put into a request.
func TestBuildRequestDocuments(t *testing.T) {
	want := []wire.Source{{Title: "T", Content: "first"}, {Title: "U", Content: "second"}}
	for provider, test := range map[string]struct{ format, doc string }{
		"anthropic": {"anthropic-messages", `{"type":"ping"}`},
		"cohere":    {"cohere-v2", `{"type":"debug"}`},
		"mistral":   {"mistral-chat", `{"choices":[{"delta":{"content":[{"type":"reference","reference_ids":[0,1]}]}}]}`},
	} {
		built := testenv.Must(BuildRequest(provider, &Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Documents: want}))(t)
		var got []wire.Source
		parser, err := wire.New(test.format, &wire.Config{Request: built.Body, Emit: func(op *wire.Op) {
			if op.Kind == wire.SourceOp {
				got = append(got, wire.Source{Title: op.Source.Title, Content: op.Source.Content})
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		parser.Parse(nil, scan.Value(test.doc))
		testenv.Equal(t, provider, want, got)
		if r, err := ReadRequest("", built.Body); err != nil || provider != "mistral" && !r.Grounded {
			t.Errorf("%s: %+v, %v, want it grounded", provider, r, err)
		}
	}
}

func TestBuildRequestRefuses(t *testing.T) {
	type refused struct {
		Provider string
		Chat     Chat
		Want     string
	}
	user := []Message{{RoleUser, "U"}}
	for _, test := range append(testenv.Table[refused](t, "testdata/tables/build-refused.txt"),
		refused{"openai", Chat{Model: "m", Messages: user, Tools: []json.RawMessage{[]byte(`{"type"`)}}, "building a request for openai: a tool is not JSON"},
		refused{"cohere", Chat{Model: "m", Messages: user, Tools: []json.RawMessage{nil}}, "building a request for cohere: a tool is not JSON"},
	) {
		b, err := BuildRequest(test.Provider, &test.Chat)
		if err == nil || err.Error() != test.Want {
			t.Errorf("%s: %v, %v, want %q", test.Provider, b, err, test.Want)
		}
		if strings.HasSuffix(test.Want, ErrDocuments.Error()) != errors.Is(err, ErrDocuments) {
			t.Errorf("%s: errors.Is with ErrDocuments is wrong for %v", test.Provider, err)
		}
	}
}

// Only the context of the user's newest message is sent.
func TestBuildRequestEndsWithTheUser(t *testing.T) {
	b, err := BuildRequest("openrouter", &Chat{Model: "m", Messages: []Message{
		{RoleUser, "U"}, {RoleAssistant, ""}, {RoleTool, "T"}, {RoleAssistant, "A"}, {RoleSystem, "S"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"model":"m","messages":[{"role":"user","content":"U"}]}`; string(b.Body) != want {
		t.Errorf("got %s, want %s", b.Body, want)
	}
}

func TestTrim(t *testing.T) {
	said := func(letters string) []Message {
		roles := map[rune]string{'s': RoleSystem, 'u': RoleUser, 'a': RoleAssistant, 't': RoleTool}
		var all []Message
		for _, letter := range letters {
			all = append(all, Message{Role: roles[letter]})
		}
		return all
	}
	for _, test := range []struct {
		messages string
		n        int
		want     string
	}{
		{"uauau", 3, "uau"}, // the third, an answer, would have no question
		{"uauau", 4, "uauau"},
		{"uauau", 2, "uau"},
		{"uauau", 0, "u"},
		{"uauau", -1, "uauau"},
		{"uauau", 99, "uauau"},
		{"suauau", 1, "su"},
		{"uasau", 2, "su"},
		{"auau", -1, "uau"},
		{"uatau", 3, "u"},
		{"ua", 0, "a"},
		{"at", 3, "t"},
		{"s", 3, "s"},
		{"", 3, ""},
	} {
		messages := said(test.messages)
		got := Trim(messages, test.n)
		testenv.Equal(t, fmt.Sprint("Trim ", test.messages, test.n), said(test.want), got)
		if len(got) > 0 && &got[0] == &messages[0] {
			t.Errorf("Trim(%s, %d) shares its memory", test.messages, test.n)
		}
	}
}

// Additional members of a document reach the model, whatever their names.
func TestBuildRequestDocumentRest(t *testing.T) {
	const list = `[{"id":"d1","data":{"title":"T","url":"https://t.example/","text":"Herons","snippet":"s","author":"Ann","date":"2024","rating":5,"meta":{"page":[1,2]},"none":null}},` +
		`{"id":"d2","title":7,"content":"flat","source":"desk\none"},"words",{"rows":1}]`
	docs := testenv.Must(wire.ReadDocuments(scan.Value(list)))(t)
	docs[3].Raw = []byte(`{"text":"x","broken`) // invalid JSON must not get into any request
	for _, test := range []struct {
		provider string
		want     []string
	}{
		{"cohere", []string{
			`{"id":"d1","data":{"title":"T","url":"https://t.example/","authors":["Ann"],"published_at":"2024","text":"Herons","snippet":"s","rating":5,"meta":{"page":[1,2]}}}`,
			`{"id":"d2","data":{"text":"flat","title":7,"source":"desk\none"}},{"data":{"text":"words"}},{"data":{"text":"{\"rows\":1}"}}]`,
		}},
		{"anthropic", []string{`"context":"https://t.example/\nauthors: Ann\npublished_at: 2024\nsnippet: s\nrating: 5\nmeta: {\"page\":[1,2]}"`, `"context":"title: 7\nsource: desk one"`}},
		{"mistral", []string{`\"snippets\":[\"Herons\"],\"date\":\"2024\",\"authors\":[\"Ann\"],\"snippet\":\"s\",\"rating\":5,\"meta\":{\"page\":[1,2]}}`}},
	} {
		b := testenv.Must(BuildRequest(test.provider, &Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Documents: docs}))(t)
		for _, want := range test.want {
			if !strings.Contains(string(b.Body), want) {
				t.Errorf("%s: no %s in\n%s", test.provider, want, b.Body)
			}
		}
	}
	if diff := cmp.Diff([]string{"title: 7", "source: desk one"}, About(&docs[1])); diff != "" {
		t.Error(diff)
	}
}

// A neutral tool is converted to each provider's form, and any other tool is passed on unchanged.
func TestBuildRequestTools(t *testing.T) {
	for _, test := range testenv.Table[struct{ Provider, Model, Tool, Want string }](t, "testdata/tables/build-request-tools.txt") {
		b, err := BuildRequest(test.Provider, &Chat{Model: test.Model, Messages: []Message{{RoleUser, "U"}}, Tools: []json.RawMessage{json.RawMessage(test.Tool)}})
		if err != nil {
			const before = ": tool 0: "
			if _, got, _ := strings.Cut(err.Error(), before); got == "" || !strings.HasPrefix(got, test.Want) || test.Want == "" {
				t.Errorf("%s, %s: %v, want %s", test.Provider, test.Tool, err, test.Want)
			}
			continue
		}
		if got := string(scan.Value(b.Body).Get("tools")); got != test.Want {
			t.Errorf("%s, %s: %s, want %s", test.Provider, test.Tool, got, test.Want)
		}
	}
}

// The chat itself is not changed, and its tools keep their order.
func TestBuildRequestToolsStay(t *testing.T) {
	chat := Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Tools: []json.RawMessage{[]byte(`{"type":"web_search"}`), []byte(`{"codeExecution":{}}`)}}
	for range 2 {
		b := testenv.Must(BuildRequest("gemini", &chat))(t)
		if got := string(scan.Value(b.Body).Get("tools")); got != `[{"googleSearch":{}},{"codeExecution":{}}]` {
			t.Error(got)
		}
	}
	if got := string(chat.Tools[0]); got != `{"type":"web_search"}` {
		t.Errorf("the caller's tool is now %s", got)
	}
}

// The citation mode is set for providers that have one.
func TestBuildRequestCitations(t *testing.T) {
	docs := []wire.Source{{Content: "first"}}
	for _, test := range []struct {
		provider, mode string
		want           []string // in the body
	}{
		{"cohere", CitationsFast, []string{`"citation_options":{"mode":"FAST"}`}},
		{"cohere", CitationsAccurate, []string{`"citation_options":{"mode":"ACCURATE"}`}},
		{"cohere", CitationsOff, []string{`"citation_options":{"mode":"OFF"}`}},
		{"anthropic", CitationsFast, []string{`"citations":{"enabled":true}`}},
		{"anthropic", CitationsOff, []string{`"citations":{"enabled":false}`}},
		{"xai", CitationsOff, []string{`"include":["no_inline_citations"]`}},
	} {
		chat := Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Citations: test.mode}
		if test.provider != "xai" {
			chat.Documents = docs
		}
		b := testenv.Must(BuildRequest(test.provider, &chat))(t)
		for _, want := range test.want {
			if !strings.Contains(string(b.Body), want) {
				t.Errorf("%s, %s: %s lacks %s", test.provider, test.mode, b.Body, want)
			}
		}
	}
	for _, p := range Providers() {
		plain := Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}}
		before, err := BuildRequest(p.Name, &plain)
		if err != nil {
			continue // sends no requests of its own
		}
		if strings.Contains(string(before.Body), "citation") {
			t.Errorf("%s: %s", p.Name, before.Body)
		}
		plain.Citations = "none"
		if _, err := BuildRequest(p.Name, &plain); err == nil || !strings.Contains(err.Error(), `citations "none": not one of fast, accurate, off`) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

// Any tool results in valid JSON or in an error, which does not reveal the rest of the request.
func FuzzBuildRequestTool(f *testing.F) {
	for _, tool := range []string{`{"type":"web_search"}`, `{"type":"file_search","stores":["a"],"filter":{}}`, `{"type":"file_search","stores":["a"],"filter":"x"}`, `[]`, `{"type":7}`} {
		f.Add([]byte(tool))
	}
	f.Fuzz(func(t *testing.T, tool []byte) {
		for _, p := range Providers() {
			b, err := BuildRequest(p.Name, &Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Tools: []json.RawMessage{tool}})
			if err == nil && !json.Valid(b.Body) {
				t.Errorf("%s: %q became %s", p.Name, tool, b.Body)
			}
		}
	})
}
