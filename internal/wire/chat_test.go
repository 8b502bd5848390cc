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

// TestChatDocuments checks that the caller's documents replace those of the request.
func TestChatDocuments(t *testing.T) {
	var got []string
	p := newChat(&Config{
		Documents: []Source{{Key: "a", Kind: kindDocument, Title: "A"}, {Kind: kindDocument, Title: "B"}},
		Emit:      func(op *Op) { got = append(got, line(op)) },
		Keep:      anything,
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
