package wire

import "testing"

func FuzzConversations(f *testing.F) {
	f.Add(`{"conversation_id":"c","outputs":[{"type":"message.output","content":[{"type":"text","text":"a"},{"type":"tool_reference","tool":"t","title":"x"},{"type":"tool_file"}]}]}`)
	f.Add(`{"type":"message.output.delta","output_index":1,"content":"a"}`)
	f.Add(`{"type":"message.output.delta","output_index":1,"content":{"type":"tool_reference","url":"u"}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		fuzzEvent(t, "mistral-conversations", "", "", doc)
	})
}
