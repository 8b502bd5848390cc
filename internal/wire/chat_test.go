package wire

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

// chatBody returns a body with one message.
func chatBody(message string) string {
	return `{"object":"chat.completion","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
}

func chunk(delta string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func TestDetectChat(t *testing.T) {
	tests := []struct{ doc, want string }{
		{`{"object":"chat.completion.chunk","choices":[]}`, "openai-chat"},
		{`{"choices":[{"message":{"content":"a"}}]}`, "openai-chat"},
		{`{"choices":[{"delta":{}}]}`, "openai-chat"},
		{`{"choices":[{"text":"a"}],"object":"text_completion"}`, ""},
		{`{"choices":[{"text":"a"}]}`, ""},
		{`{"choices":[]}`, ""},
		{`{"choices":{}}`, ""},
		{`{"choices":["a"]}`, ""},
		{`{"model":"grok-9","choices":[{"delta":{}}]}`, "xai-chat"},
		{`{"model":"x-ai/grok-9","id":"gen-1","choices":[{"delta":{}}]}`, "openrouter-chat"},
		{`{"model":"sonar-pro","choices":[{"delta":{}}]}`, "perplexity-chat"},
		{`{"model":"magistral-x","choices":[{"delta":{}}]}`, "mistral-chat"},
		{`{"model":"mistral-saba","x_groq":{},"choices":[{"delta":{}}]}`, "openai-chat"},
		{`{"model":"","object":"","choices":[],"prompt_filter_results":[]}`, "azure-chat"},
		{`{"model":"gpt-x","choices":[{"delta":{},"content_filter_results":{}}]}`, "azure-chat"},
		{`{"id":"x","citations":["https://a.example/"],"choices":[{"message":{"content":"a"}}]}`, "perplexity-chat"},
		{`{"id":"x","citations":[],"choices":[{"message":{"content":"a"}}]}`, "openai-chat"},
		{`{"id":"x","message":{"content":[]},"citations":[]}`, ""},
		{`{"error":{"message":"x"}}`, ""},
		{`{}`, ""},
	}
	for _, tt := range tests {
		got := Detect(nil, scan.Value(tt.doc))
		if !strings.HasSuffix(got, "-chat") {
			got = ""
		}
		if got != tt.want {
			t.Errorf("Detect(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
}

// TestChatDocuments: documents that the caller gives take the place of those of the request.
func TestChatDocuments(t *testing.T) {
	var got []string
	p := newChat(&Config{
		Documents: []Source{{Key: "a", Kind: kindDocument, Title: "A"}, {Kind: kindDocument, Title: "B"}},
		Emit:      func(op *Op) { got = append(got, line(op)) },
	})
	p.Parse(nil, scan.Value(chatBody(`{"content":[{"type":"reference","reference_ids":["a",1]}]}`)))
	if want := `source 1 document title="B"`; !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("operations %q lack %q", got, want)
	}
}

func FuzzChat(f *testing.F) {
	f.Add(chatBody(`{"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"u","start_index":0,"end_index":1}}]}`), chunk(`{"content":"\ud83c"}`))
	f.Add(`{"usage":{},"citations":["u"],"object":"chat.completion.chunk","choices":[{"message":{"content":"a\""},"delta":{"content":"b"}}]}`, `{"usage":{"x":1},"citations":["u"],"object":"chat.completion.chunk","choices":[{"message":{"content":"a"},"delta":{"content":"b`)
	f.Add(`{"choices":[{"messages":[{"role":"tool","content":"{\"messages\":[{\"role\":\"tool\"}],\"citations\":[{}]}"}]}]}`, `{"choices":[{"delta":{"content":[{"type":"reference","reference_ids":[{},[],1]}]}}],"obfuscation":"x"}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		fuzzParser(t, newChat, one, two)
		Detect(nil, scan.Value(one))
	})
}
