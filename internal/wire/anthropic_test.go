package wire

import "testing"

func FuzzAnthropic(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"type":"document","title":"a"}]}]}`, `{"type":"message","content":[{"type":"text","text":"a","citations":[{"type":"page_location","document_index":0,"start_page_number":1,"end_page_number":9}]}]}`)
	f.Add(``, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83c"}}`)
	f.Add(``, `{"type":"content_block_start","index":0,"content_block":{"type":"web_fetch_tool_result","content":{"url":"u","content":{"type":"document"}}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "anthropic-messages", "", request, doc)
	})
}
