package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

// A neutral tool is put into each provider's words, and what is not one stays as it is.
func TestBuildRequestTools(t *testing.T) {
	const (
		web    = `{"type":"web_search"}`
		files  = `{"stores":["a","b"],"type":"file_search"}`
		own    = `{"type":"file_search","vector_store_ids":["v"]}`
		google = `{"google_search":{"timeRangeFilter":{}}}`
	)
	for _, test := range []struct{ provider, model, tool, want string }{
		{"gemini", "m", web, `[{"googleSearch":{}}]`},
		{"openai", "m", web, `[{"type":"web_search"}]`},
		{"xai", "m", web, `[{"type":"web_search"}]`},
		{"mistral", "m", web, `[{"type":"web_search"}]`},
		{"perplexity", "openai/gpt", web, `[{"type":"web_search"}]`},
		{"perplexity", "sonar-pro", web, ``},
		{"openrouter", "m", web, `[{"type":"openrouter:web_search"}]`},
		{"anthropic", "m", web, `[{"type":"web_search_20250305","name":"web_search"}]`},
		{"cohere", "m", web, "cohere has no web_search; openai, gemini, anthropic, perplexity, xai, openrouter, mistral have"},

		{"gemini", "m", files, `[{"fileSearch":{"fileSearchStoreNames":["a","b"]}}]`},
		{"openai", "m", files, `[{"type":"file_search","vector_store_ids":["a","b"]}]`},
		{"xai", "m", files, `[{"type":"file_search","vector_store_ids":["a","b"]}]`},
		{"mistral", "m", files, `[{"type":"document_library","library_ids":["a","b"]}]`},
		{"anthropic", "m", files, "anthropic has no file_search; openai, gemini, xai, mistral have"},
		{"cohere", "m", files, "cohere has no file_search; openai, gemini, xai, mistral have"},

		{
			"gemini", "m", `{"type":"file_search","stores":["a"],"filter":"author = \"Ann\""}`,
			`[{"fileSearch":{"fileSearchStoreNames":["a"],"metadataFilter":"author = \"Ann\""}}]`,
		},
		{
			"openai", "m", `{"type":"file_search","stores":["a"],"filter":{"type":"eq","key":"k","value":1}}`,
			`[{"type":"file_search","vector_store_ids":["a"],"filters":{"type":"eq","key":"k","value":1}}]`,
		},
		{"gemini", "m", `{"type":"file_search","stores":["a"],"filter":{}}`, `file_search: gemini's "filter" is a string`},
		{"gemini", "m", `{"type":"file_search","stores":["a"],"filter":""}`, `file_search: gemini's "filter" is a string`},
		{"openai", "m", `{"type":"file_search","stores":["a"],"filter":"x"}`, `file_search: openai's "filter" is an object`},
		{"xai", "m", `{"type":"file_search","stores":["a"],"filter":"x"}`, `file_search: xai takes no "filter"`},
		{"mistral", "m", `{"type":"file_search","stores":["a"],"filter":null}`, `file_search: mistral takes no "filter"`},

		{"openai", "m", `{"type":"file_search"}`, `file_search: "stores" is not a list of the stores' names`},
		{"openai", "m", `{"type":"file_search","stores":[]}`, `file_search: "stores" is not a list of the stores' names`},
		{"openai", "m", `{"type":"file_search","stores":"a"}`, `file_search: "stores" is not a list of the stores' names`},
		{"openai", "m", `{"type":"file_search","stores":["a",""]}`, `file_search: "stores" is not a list of the stores' names`},
		{"openai", "m", `{"type":"file_search","filter":{}}`, `file_search: "stores" is not a list of the stores' names`},
		{"openai", "m", `{"type":"file_search","stores":["a"],"top":3}`, `file_search: beside "stores" there is only "filter", not "top"`},

		{"openai", "m", own, `[` + own + `]`},
		{"gemini", "m", google, `[` + google + `]`},
		{"openai", "m", `{"type":"web_search","user_location":{}}`, `[{"type":"web_search","user_location":{}}]`},
		{"cohere", "m", `{"type":"function","function":{}}`, `[{"type":"function","function":{}}]`},
		{"openai", "m", `{"type":7}`, `[{"type":7}]`},
		{"openai", "m", `null`, `[null]`},
	} {
		b, err := BuildRequest(test.provider, &Chat{Model: test.model, Messages: []Message{{RoleUser, "U"}}, Tools: []json.RawMessage{json.RawMessage(test.tool)}})
		if err != nil {
			const before = ": tool 0: "
			if _, got, _ := strings.Cut(err.Error(), before); got == "" || !strings.HasPrefix(got, test.want) || test.want == "" {
				t.Errorf("%s, %s: %v, want %s", test.provider, test.tool, err, test.want)
			}
			continue
		}
		if got := string(scan.Value(b.Body).Get("tools")); got != test.want {
			t.Errorf("%s, %s: %s, want %s", test.provider, test.tool, got, test.want)
		}
	}
}

// The chat itself is not changed, and tools keep their order.
func TestBuildRequestToolsStay(t *testing.T) {
	chat := Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Tools: []json.RawMessage{[]byte(`{"type":"web_search"}`), []byte(`{"codeExecution":{}}`)}}
	for range 2 {
		b, err := BuildRequest("gemini", &chat)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(scan.Value(b.Body).Get("tools")); got != `[{"googleSearch":{}},{"codeExecution":{}}]` {
			t.Error(got)
		}
	}
	if got := string(chat.Tools[0]); got != `{"type":"web_search"}` {
		t.Errorf("the caller's tool is now %s", got)
	}
}

// The mode of citations is each provider's, where it has one.
func TestBuildRequestCitations(t *testing.T) {
	docs := []Source{{Content: "first"}}
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
		b, err := BuildRequest(test.provider, &chat)
		if err != nil {
			t.Fatal(err)
		}
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
			continue // no requests of its
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

// Whatever is said to be a tool, what comes of it is JSON, and an error says nothing of the rest.
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
