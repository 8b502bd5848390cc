package call

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestFindRoute(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Provider, Call string
		Want           Route // Provider: "=" the one asked for
	}](t, "testdata/tables/find-route.txt") {
		method, path, _ := strings.Cut(test.Call, " ")
		if test.Want.Provider == "=" {
			test.Want.Provider = test.Provider
		}
		got, ok := FindRoute(test.Provider, method, path)
		if !ok {
			t.Errorf("%s %s: no route", test.Provider, test.Call)
		}
		if diff := cmp.Diff(test.Want, got); diff != "" {
			t.Errorf("%s %s (-want +got)\n%s", test.Provider, test.Call, diff)
		}
	}
}

// Paths that some servers read as others: who writes them so gets around nothing.
func TestFindOddRoute(t *testing.T) {
	for provider, calls := range map[string][]string{
		"openai": {
			"POST /v1/chat/%63ompletions", "POST /v1/chat//completions//", "POST /v1/chat/./completions/.", "POST /v1/chat%2Fcompletions",
			"POST /v1/chat/completions/x/..", "POST /v1/chat/completions/x/%2e%2E", "POST /v1/chat/completions;a=b", `POST /v1/chat%5ccompletions`,
			"POST /v1/Chat/Completions", "POST /v1/chat/..;/chat/completions/", "GET /v1/%72esponses/r", "GET /v1/responses/r/",
		},
		"gemini":  {"POST /v1beta/%6dodels/g:generateContent", "POST /v1beta/models/g:generat%65Content", "POST /v1beta/models/g:GenerateContent;x"},
		"bedrock": {"POST /model/arn%2Fx/%69nvoke", "POST //model//m//converse"},
		"azure":   {"POST /openai/Deployments/d/Chat/Completions"},
		"":        {"POST /v1/%6dessages"},
	} {
		for _, call := range calls {
			method, path, _ := strings.Cut(call, " ")
			if _, ok := FindRoute(provider, method, path); !ok {
				t.Errorf("%q %s: no route", provider, call)
			}
		}
	}
}

// Neighbours of captured paths, and paths that only look like them.
func TestFindNoRoute(t *testing.T) {
	for provider, calls := range map[string][]string{
		"openai": {
			"GET /v1/responses", "GET /v1/responses/", "GET /v1/responses/r/input_items", "POST /v1/responses/r/cancel",
			"POST /v1/responses/input_tokens", "DELETE /v1/responses/r", "PUT /v1/responses", "OPTIONS /v1/responses",
			"GET /v1/chat/completions", "POST /v1/embeddings", "POST /v1/files", "POST /v1/xresponses",
			"POST /v1/threads/t/messages", "POST /v1/conversations", "POST ", "POST /", "POST responses",
		},
		"gemini": {
			"POST /v1beta/models/g:countTokens", "POST /v1beta/models/g:batchGenerateContent", "POST /v1beta/models/:generateContent",
			"GET /v1beta/models/g:generateContent", "POST /v1beta/models/g", "POST /v1beta/interactions/i/cancel",
			"POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", "POST /v1/servingConfigs/c:search",
			"POST /v1beta/models/g%3BgenerateContent", "POST generateContent", "POST %3AgenerateContent",
		},
		"cohere":     {"POST /v2/rerank", "POST /v2/embed", "POST /v12/chat", "POST /chat"},
		"anthropic":  {"POST /v1/messages/count_tokens", "POST /v1/messages/batches", "GET /v1/messages", "POST /v1/complete"},
		"perplexity": {"POST /async/chat/completions", "GET /async/chat/completions/j", "POST /search"},
		"xai":        {"GET /v1/chat/deferred-completion/r", "POST /v1/images/generations"},
		"openrouter": {"GET /api/v1/generation"},
		"mistral":    {"GET /v1/conversations/c", "GET /v1/conversations/c/history", "POST /v1/fim/completions", "POST /v1/chat/moderations"},
		"bedrock":    {"POST /model//converse", "POST /model/m/count-tokens", "POST /guardrail/g/version/1/apply", "POST /model/m/async-invoke"},
		"azure":      {"POST /openai/deployments/d/embeddings", "GET /openai/models"},
		"":           {"POST /v1/conversations", "POST /v1/threads/t/messages", "POST /async/chat/completions", "POST /v1/embeddings"},
	} {
		for _, call := range calls {
			method, path, _ := strings.Cut(call, " ")
			if got, ok := FindRoute(provider, method, path); ok || got != (Route{}) {
				t.Errorf("%q %s: %+v, want none", provider, call, got)
			}
		}
	}
}

// It runs on every call.
func TestFindRouteAllocates(t *testing.T) {
	for _, path := range []string{"/v1beta/models/gemini-3-flash:streamGenerateContent", "/v1/files/none/of/ours"} {
		if n := testing.AllocsPerRun(100, func() { FindRoute("", "POST", path) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", path, n)
		}
	}
}

func FuzzFindRoute(f *testing.F) {
	f.Add("", "POST", "/v1beta/models/g%3AgenerateContent")
	f.Add("openai", "GET", "/v1/responses/a%zz")
	f.Add("bedrock", "POST", "/model/arn%2Fx/invoke")
	f.Fuzz(func(t *testing.T, provider, method, path string) {
		got, ok := FindRoute(provider, method, path)
		if !ok && got != (Route{}) {
			t.Errorf("%+v of a call without a route", got)
		}
		if ok && (got.Pattern == "" || got.Get != (got.ID != "") || got.Get && got.Stream) {
			t.Errorf("%+v contradicts itself", got)
		}
		if again, found := FindRoute(provider, method, "/base"+path); ok && (!found || again != got) {
			t.Errorf("below a base: %+v, alone %+v", again, got)
		}
	})
}

func BenchmarkFindRoute(b *testing.B) {
	for _, bench := range []struct{ name, provider, path string }{
		{"openai", "openai", "/v1/responses"},
		{"gemini", "gemini", "/v1beta/models/gemini-3-flash:streamGenerateContent"},
		{"azure", "azure", "/openai/deployments/my-gpt/chat/completions"},
		{"unknown", "", "/model/us.anthropic.claude-sonnet-4/converse-stream"},
		{"none", "", "/v1/vector_stores/vs_123/files"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FindRoute(bench.provider, "POST", bench.path)
			}
		})
	}
}
