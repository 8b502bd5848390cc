package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestAnother(t *testing.T) {
	tests := []struct {
		format, id, doc string
		want            bool
	}{
		{"openai-chat", "a", `{"id":"b","choices":[{"message":{"content":"x"}}]}`, true},
		{"openai-chat", "a", `{"id":"a","choices":[{"message":{"content":"x"}}]}`, false},
		{"openai-chat", "a", `{"id":"a","choices":[],"usage":{}}`, false},
		{"openai-chat", "", `{"choices":[{"message":{"content":"x"}}]}`, true},
		{"openai-chat", "", `{"choices":[{"delta":{"content":"x"}}]}`, false},
		{"openai-chat", "", `{"choices":[{"delta":{"content":"x"},"message":{"content":"ax"}}]}`, false},
		{"openai-chat", "", `{"choices":[]}`, false},
		{"openai-responses", "a", `{"type":"response.created","response":{"id":"b"}}`, true},
		{"openai-responses", "a", `{"type":"response.completed","response":{"id":"a"}}`, false},
		{"openai-responses", "a", `{"type":"response.output_text.delta","item_id":"m","delta":"x"}`, false},
		{"openai-responses", "", `{"output":[{"type":"message"}]}`, true},
		{"gemini-generate", "a", `{"candidates":[{}],"responseId":"b"}`, true},
		{"gemini-generate", "a", `{"response":{"candidates":[{}],"responseId":"a"}}`, false},
		{"gemini-generate", "", `{"candidates":[{}]}`, false}, // some servers end a candidate with every chunk
		{"gemini-generate", "a", `{"candidates":[{}]}`, true},
		{"gemini-interactions", "a", `{"event_type":"interaction.created","interaction":{"id":"b"}}`, true},
		{"gemini-interactions", "a", `{"event_type":"interaction.status_update","interaction_id":"a"}`, false},
		{"cohere-v1", "a", `{"text":"x","response_id":"q","generation_id":"a"}`, false},
		{"cohere-v1", "a", `{"text":"x","generationId":"b"}`, true},
		{"cohere-v1", "a", `{"event_type":"stream-start","generation_id":"b"}`, true},
		{"cohere-v2", "a", `{"type":"message-start","id":"b"}`, true},
		{"cohere-v2", "a", `{"type":"citation-end","index":0}`, false},
		{"bedrock-converse", "", `{"output":{"message":{"content":[]}}}`, true},
		{"bedrock-converse", "", `messageStart {"role":"assistant"}`, true},
		{"bedrock-converse", "", `metadata {"usage":{}}`, false},
		{"bedrock-converse", "", `{"metadata":{"usage":{}}}`, false},
		{"vertex-search", "a", `{"answer":{"name":"a","answerText":"x"}}`, false},
		{"vertex-search", "a", `{"answer":{"name":"b","answerText":"x"}}`, true},
		{"vertex-search", "", `{"results":[],"summary":{"summaryText":"x"}}`, true},
		{"mistral-conversations", "a", `{"conversation_id":"b","outputs":[]}`, true},
		{"anthropic-messages", "a", `{"type":"message_start","message":{"id":"b"}}`, false}, // the next turn
	}
	for _, tt := range tests {
		event, data := splitEvent(tt.doc)
		if got := Another(tt.format, tt.id, event, scan.Value(data)); got != tt.want {
			t.Errorf("Another(%s, %q, %s) = %v, want %v", tt.format, tt.id, tt.doc, got, tt.want)
		}
	}
}
