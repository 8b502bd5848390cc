package ibid_test

import (
	"net/url"
	"testing"

	"github.com/ibidhq/ibid"
)

func TestCallOptions(t *testing.T) {
	for _, tc := range []struct {
		method, url, provider string
		ok                    bool
	}{
		{"POST", "https://api.openai.com/v1/responses", "openai", true},
		{"POST", "https://API.OpenAI.com/v1/chat/completions", "openai", true},
		{"GET", "https://api.openai.com/v1/responses/resp_1", "openai", true},
		{"GET", "https://api.openai.com/v1/models", "", false},
		{"POST", "https://api.openai.com/v1/embeddings", "", false},
		{"POST", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse&key=k", "gemini", true},
		{"POST", "https://oauth2.googleapis.com/token", "", false},
		{"POST", "https://bedrock-runtime.eu-north-1.amazonaws.com/model/a%3Ab/converse-stream", "bedrock", true},
		{"POST", "http://127.0.0.1:8080/openai/v1/chat/completions", "", true},
		{"POST", "http://127.0.0.1:8080/v1/messages", "", true},
		{"DELETE", "https://api.openai.com/v1/responses/resp_1", "", false},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		if opts, ok := ibid.CallOptions(tc.method, u); ok != tc.ok || opts.Provider != tc.provider {
			t.Errorf("CallOptions(%s %s) = provider %q, %t; want %q, %t", tc.method, tc.url, opts.Provider, ok, tc.provider, tc.ok)
		}
	}
}
