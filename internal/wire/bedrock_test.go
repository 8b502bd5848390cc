package wire

import "testing"

func FuzzConverse(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"document":{"name":"a"}}]}]}`, ``, `{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"location":{"documentPage":{"start":1,"end":3}}}]}}]}}}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"text":"a"},"p":"abc"}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"citation":{"title":"a"}},"p":"abc"}`)
	f.Fuzz(func(t *testing.T, request, event, doc string) {
		fuzzEvent(t, "bedrock-converse", event, request, doc)
	})
}
