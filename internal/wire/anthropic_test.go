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

func FuzzAnthropic(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"type":"document","title":"a"}]}]}`, `{"type":"message","content":[{"type":"text","text":"a","citations":[{"type":"page_location","document_index":0,"start_page_number":1,"end_page_number":9}]}]}`)
	f.Add(``, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83c"}}`)
	f.Add(``, `{"type":"content_block_start","index":0,"content_block":{"type":"web_fetch_tool_result","content":{"url":"u","content":{"type":"document"}}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "anthropic-messages", "", request, doc)
	})
}
