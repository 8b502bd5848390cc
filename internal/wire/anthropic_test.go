package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnthropicGiven(t *testing.T) {
	given := []Source{{Title: "A"}, {Key: "own", ID: "own", Kind: kindFile}}
	got := recordGiven(t, "anthropic-messages", given, `{"type":"message","content":[{"type":"text","text":"a","citations":[{"type":"char_location","document_index":1}]}]}`)
	want := []string{
		`source doc:0 document id="doc:0" title="A"`,
		`source own file id="own"`,
		`begin 0/0/0`,
		`cite 0/0/1 0/0/0 block-span block -> own`,
		`text 0/0/0 "a"`,
		`end-part 0/0/0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestDetectAnthropic(t *testing.T) {
	testDetect(t, []detectTest{
		{`{"type":"message_start","message":{}}`, "anthropic-messages"},
		{`{"type":"content_block_delta"}`, "anthropic-messages"},
		{`{"type":"message","role":"assistant","content":[]}`, "anthropic-messages"},
		{`{"type":"message","role":"assistant","content":"x"}`, ""},
		{`{"type":"ping"}`, ""},
		{`{"content":[{"type":"text","text":"cut o`, "anthropic-messages"},
		{`{"content":[{"text":"a","type":"text"},{"id":"i","type":"server_tool_use"},{"content":[{"encr`, "anthropic-messages"},
		{`{"content":[{"type":"web_fetch_tool_result"`, "anthropic-messages"},
		{`{"content":[{"type":"sunrise"},{"type":"text"}]}`, ""},
		{`{"content":[{"text":"a"}]}`, ""},
		{`{"object":"thread.message","content":[{"type":"text","text":{"value":"a"}}]}`, ""},
		{`error {"type":"error","error":{"type":"overloaded_error","message":"x"}}`, "anthropic-messages"},
		{`{"type":"error","request_id":"r","error":{"type":"x"}}`, "anthropic-messages"},
		{`{"type":"error","error":{"type":"x"}}`, ""},
		{`{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0="}`, "anthropic-messages"},
		{`{"bytes":"?"}`, ""},
	})
}

func TestAnthropicKnows(t *testing.T) {
	testKnows(t, "anthropic-messages",
		[]string{`{"type":"ping"}`, `{"type":"message_stop"}`, `{"type":"content_block_stop"}`, `{"bytes":"eyJ0eXBlIjoicGluZyJ9"}`},
		[]string{`{}`, `[]`, `7`, ``, `{"type":"sunrise"}`, `{"bytes":"e30="}`, `{"type":"content_block_delta","index":0}`},
	)
}

func FuzzAnthropic(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"type":"document","title":"a"}]}]}`, `{"type":"message","content":[{"type":"text","text":"a","citations":[{"type":"page_location","document_index":0,"start_page_number":1,"end_page_number":9}]}]}`)
	f.Add(``, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83c"}}`)
	f.Add(``, `{"type":"content_block_start","index":0,"content_block":{"type":"web_fetch_tool_result","content":{"url":"u","content":{"type":"document"}}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "anthropic-messages", "", request, doc)
	})
}
