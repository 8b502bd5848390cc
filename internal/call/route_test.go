package call

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindRoute(t *testing.T) {
	const (
		vertexModel = "/v1/projects/p/locations/us-central1/publishers/"
		arn         = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.claude"
		serving     = "/v1beta/projects/p/locations/global/collections/c/engines/e/servingConfigs/default_search"
	)
	for _, test := range []struct {
		provider, call string
		want           Route // Provider: "=" the one asked for
	}{
		{"openai", "POST /v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"openai", "POST /v1/responses/", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"openai", "POST /llm/proxy/v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"openai", "POST /responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"openai", "GET /v1/responses/resp_1", Route{Pattern: "/responses/{id}", Provider: "=", Format: "openai-responses", Get: true, ID: "resp_1"}},
		{"openai", "GET /v1/responses/a%2Fb", Route{Pattern: "/responses/{id}", Provider: "=", Format: "openai-responses", Get: true, ID: "a/b"}},
		{"openai", "GET /v1/responses/a%2", Route{Pattern: "/responses/{id}", Provider: "=", Format: "openai-responses", Get: true, ID: "a%2"}},
		{"openai", "POST /v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "=", Format: "openai-chat"}},

		{"gemini", "POST /v1beta/models/gemini-3-flash:generateContent", Route{Pattern: "/{model}:generateContent", Provider: "=", Format: "gemini-generate", Model: "gemini-3-flash"}},
		{"gemini", "POST /v1alpha/models/g%3AgenerateContent", Route{Pattern: "/{model}:generateContent", Provider: "=", Format: "gemini-generate", Model: "g"}},
		{"gemini", "POST /v1/tunedModels/t:streamGenerateContent", Route{Pattern: "/{model}:streamGenerateContent", Provider: "=", Format: "gemini-generate", Model: "t", Stream: true}},
		{"gemini", "POST " + vertexModel + "google/models/g:streamGenerateContent", Route{Pattern: "/{model}:streamGenerateContent", Provider: "=", Format: "gemini-generate", Model: "g", Stream: true}},
		{"vertex", "POST /v1/projects/p/locations/l/endpoints/7:generateContent", Route{Pattern: "/{model}:generateContent", Provider: "=", Format: "gemini-generate", Model: "7"}},
		{"gemini", "POST " + vertexModel + "anthropic/models/claude@1:rawPredict", Route{Pattern: "/models/{model}:rawPredict", Format: "anthropic-messages", Model: "claude@1"}},
		{"gemini", "POST " + vertexModel + "mistralai/models/m:streamRawPredict", Route{Pattern: "/models/{model}:streamRawPredict", Model: "m", Stream: true}},
		{"gemini", "POST /v1beta/interactions", Route{Pattern: "/interactions", Provider: "=", Format: "gemini-interactions"}},
		{"gemini", "GET /v1beta/interactions/v1_x", Route{Pattern: "/interactions/{id}", Provider: "=", Format: "gemini-interactions", Get: true, ID: "v1_x"}},
		{"gemini", "POST /v1beta/openai/chat/completions", Route{Pattern: "/openai/chat/completions", Provider: "=", Format: "openai-chat"}},
		{"gemini", "POST /v1/projects/p/locations/l/endpoints/openapi/chat/completions", Route{Pattern: "/endpoints/openapi/chat/completions", Provider: "=", Format: "openai-chat"}},
		{"gemini", "POST " + serving + ":answer", Route{Pattern: "/servingConfigs/{model}:answer", Provider: "vertex", Format: "vertex-search"}},
		{"vertex", "POST " + serving + ":streamAnswer", Route{Pattern: "/servingConfigs/{model}:streamAnswer", Provider: "vertex", Format: "vertex-search", Stream: true}},

		{"cohere", "POST /v2/chat", Route{Pattern: "/v2/chat", Provider: "=", Format: "cohere-v2"}},
		{"cohere", "POST /v1/chat", Route{Pattern: "/v1/chat", Provider: "=", Format: "cohere-v1"}},
		{"cohere", "POST /compatibility/v1/chat/completions", Route{Pattern: "/compatibility/v1/chat/completions", Provider: "=", Format: "openai-chat"}},
		{"anthropic", "POST /v1/messages", Route{Pattern: "/v1/messages", Provider: "=", Format: "anthropic-messages"}},
		{"perplexity", "POST /chat/completions", Route{Pattern: "/chat/completions", Provider: "=", Format: "perplexity-chat"}},
		{"perplexity", "POST /v1/agent", Route{Pattern: "/v1/agent", Provider: "=", Format: "openai-responses"}},
		{"perplexity", "POST /v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"xai", "POST /v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "xai-responses"}},
		{"xai", "GET /v1/responses/r", Route{Pattern: "/responses/{id}", Provider: "=", Format: "xai-responses", Get: true, ID: "r"}},
		{"xai", "POST /v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "=", Format: "xai-chat"}},
		{"openrouter", "POST /api/v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "=", Format: "openrouter-chat"}},
		{"openrouter", "POST /api/v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"openrouter", "POST /api/v1/messages", Route{Pattern: "/v1/messages", Provider: "=", Format: "anthropic-messages"}},
		{"mistral", "POST /v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "=", Format: "mistral-chat"}},
		{"mistral", "POST /v1/agents/completions", Route{Pattern: "/agents/completions", Provider: "=", Format: "mistral-chat"}},
		{"mistral", "POST /v1/conversations", Route{Pattern: "/conversations", Provider: "=", Format: "mistral-conversations"}},
		{"mistral", "POST /v1/conversations/c1", Route{Pattern: "/conversations/{id}", Provider: "=", Format: "mistral-conversations"}},
		{"mistral", "POST /v1/conversations/c1/restart", Route{Pattern: "/conversations/{id}/restart", Provider: "=", Format: "mistral-conversations"}},

		{"bedrock", "POST /model/us.amazon.nova-lite-v1%3A0/converse", Route{Pattern: "/model/{model}/converse", Provider: "=", Format: "bedrock-converse", Model: "us.amazon.nova-lite-v1:0"}},
		{"bedrock", "POST /model/" + arn + "/converse-stream", Route{Pattern: "/model/{model}/converse-stream", Provider: "=", Format: "bedrock-converse", Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude", Stream: true}},
		{"bedrock", "POST /model/m/invoke", Route{Pattern: "/model/{model}/invoke", Provider: "=", Model: "m"}},
		{"bedrock", "POST /model/m/invoke-with-response-stream", Route{Pattern: "/model/{model}/invoke-with-response-stream", Provider: "=", Model: "m", Stream: true}},
		{"bedrock", "POST /retrieveAndGenerate", Route{Pattern: "/retrieveAndGenerate", Provider: "=", Format: "bedrock-rag"}},
		{"bedrock", "POST /retrieveAndGenerateStream", Route{Pattern: "/retrieveAndGenerateStream", Provider: "=", Format: "bedrock-rag", Stream: true}},
		{"bedrock", "POST /openai/v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "="}},

		{"azure", "POST /openai/deployments/my%20gpt/chat/completions", Route{Pattern: "/deployments/{model}/chat/completions", Provider: "=", Model: "my gpt"}},
		{"azure", "POST /openai/deployments/d/extensions/chat/completions", Route{Pattern: "/deployments/{model}/extensions/chat/completions", Provider: "=", Model: "d"}},
		{"azure", "POST /openai/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"azure", "POST /openai/v1/responses", Route{Pattern: "/responses", Provider: "=", Format: "openai-responses"}},
		{"azure", "GET /openai/v1/responses/r", Route{Pattern: "/responses/{id}", Provider: "=", Format: "openai-responses", Get: true, ID: "r"}},
		{"azure", "POST /openai/v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "="}},
		{"azure", "POST /anthropic/v1/messages", Route{Pattern: "/v1/messages", Provider: "=", Format: "anthropic-messages"}},

		{"", "POST /v1/chat/completions", Route{Pattern: "/chat/completions"}},
		{"groq", "POST /openai/v1/chat/completions", Route{Pattern: "/chat/completions", Provider: "="}},
		{"", "POST /v1/responses", Route{Pattern: "/responses"}},
		{"", "GET /v1/responses/r", Route{Pattern: "/responses/{id}", Get: true, ID: "r"}},
		{"", "POST /anthropic/v1/messages", Route{Pattern: "/v1/messages", Format: "anthropic-messages"}},
		{"", "POST /v2/chat", Route{Pattern: "/v2/chat"}},
		{"", "POST /v1beta/models/g:generateContent", Route{Pattern: "/{model}:generateContent", Provider: "gemini", Format: "gemini-generate", Model: "g"}},
		{"", "POST /v1beta/interactions", Route{Pattern: "/interactions", Provider: "gemini", Format: "gemini-interactions"}},
		{"", "POST " + vertexModel + "anthropic/models/c:streamRawPredict", Route{Pattern: "/models/{model}:streamRawPredict", Format: "anthropic-messages", Model: "c", Stream: true}},
		{"", "POST " + serving + ":answer", Route{Pattern: "/servingConfigs/{model}:answer", Provider: "vertex", Format: "vertex-search"}},
		{"", "POST /model/m/converse", Route{Pattern: "/model/{model}/converse", Provider: "bedrock", Format: "bedrock-converse", Model: "m"}},
	} {
		method, path, _ := strings.Cut(test.call, " ")
		if test.want.Provider == "=" {
			test.want.Provider = test.provider
		}
		got, ok := FindRoute(test.provider, method, path)
		if !ok {
			t.Errorf("%s %s: no route", test.provider, test.call)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s (-want +got)\n%s", test.provider, test.call, diff)
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
