package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnthropic(t *testing.T) {
	testParser(t, "anthropic-messages", []parserTest{
		{
			name:    "the request's documents, in the order that citations count them",
			request: `{"messages":[{"role":"user","content":[{"type":"document","title":"Reiher","source":{"type":"text","data":"Graureiher fischen früh."}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}},{"type":"text","text":"?"}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"search_result","source":"https://heron.example/","title":"Herons","content":[{"type":"text","text":"They wade."}]},{"type":"search_result","source":"kb/7","title":"Notes","content":[]},{"type":"search_result","source":"kb/8"},{"type":"tool_result","content":[{"type":"document"}]}]},{"type":"document","source":{"type":"url","url":"https://tide.example/t.pdf"}},{"type":"document","source":{"type":"file","file_id":"file_9"}},{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://old.example/","content":{"type":"document","title":"Old"}}},{"type":"web_fetch_tool_result","content":{"type":"web_fetch_tool_error"}}]},{"role":"user","content":"plain"}]}`,
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" title="Reiher" content="Graureiher fischen früh."`,
				`source doc:1 document id="doc:1" content="AB"`,
				`source doc:2 document id="doc:2" url="https://tide.example/t.pdf"`,
				`source doc:3 file id="doc:3" global="file_9"`,
				`source https://old.example/ web id="https://old.example/" title="Old" url="https://old.example/"`,
				`source sr:0 web id="sr:0" title="Herons" url="https://heron.example/" content="They wade."`,
				`source sr:1 document id="sr:1" global="kb/7" title="Notes"`,
				`source sr:2 document id="sr:2" title="kb/8"`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name:    "locations with the request",
			request: `{"messages":[{"role":"user","content":[{"type":"document","title":"Reiher","source":{"type":"text","data":"Graureiher fischen früh."}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}},{"type":"text","text":"?"}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"search_result","source":"https://heron.example/","title":"Herons","content":[{"type":"text","text":"They wade."}]},{"type":"search_result","source":"kb/7","title":"Notes","content":[]},{"type":"search_result","source":"kb/8"},{"type":"tool_result","content":[{"type":"document"}]}]},{"type":"document","source":{"type":"url","url":"https://tide.example/t.pdf"}},{"type":"document","source":{"type":"file","file_id":"file_9"}},{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://old.example/","content":{"type":"document","title":"Old"}}},{"type":"web_fetch_tool_result","content":{"type":"web_fetch_tool_error"}}]},{"role":"user","content":"plain"}]}`,
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"text","text":"Reiher 🪶 fischen","citations":[{"type":"char_location","cited_text":"Graureiher","document_index":0,"document_title":"Reiher","file_id":null,"start_char_index":0,"end_char_index":10}]},{"type":"text","text":", "},{"type":"text","text":"B","citations":[{"type":"content_block_location","cited_text":"B","document_index":1,"document_title":null,"start_block_index":1,"end_block_index":2},{"type":"page_location","cited_text":"p","document_index":2,"document_title":"t.pdf","start_page_number":2,"end_page_number":5},{"type":"page_location","cited_text":"q","document_index":3,"start_page_number":1,"end_page_number":2,"file_id":"file_9"}]},{"type":"text","text":"C","citations":[{"type":"search_result_location","cited_text":"They wade.","source":"https://heron.example/","title":"Herons","search_result_index":0,"start_block_index":0,"end_block_index":3},{"type":"web_search_result_location","cited_text":"w","url":"https://web.example/","title":null,"encrypted_index":"xx"}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" title="Reiher" content="Graureiher fischen früh."`,
				`source doc:1 document id="doc:1" content="AB"`,
				`source doc:2 document id="doc:2" url="https://tide.example/t.pdf"`,
				`source doc:3 file id="doc:3" global="file_9"`,
				`source https://old.example/ web id="https://old.example/" title="Old" url="https://old.example/"`,
				`source sr:0 web id="sr:0" title="Herons" url="https://heron.example/" content="They wade."`,
				`source sr:1 document id="sr:1" global="kb/7" title="Notes"`,
				`source sr:2 document id="sr:2" title="kb/8"`,
				`head id=msg_1`,
				`head model=claude`,
				`begin 0/0/0`,
				`source doc:0 document title="Reiher"`,
				`cite 0/0/1 0/0/0 block-span block -> doc:0 "Graureiher" char-start=0 char-end=10`,
				`text 0/0/0 "Reiher 🪶 fischen"`,
				`end-part 0/0/0`,
				`begin 0/0/1`,
				`text 0/0/1 ", "`,
				`end-part 0/0/1`,
				`begin 0/0/2`,
				`cite 0/2/1 0/0/2 block-span block -> doc:1 "B" block=1 last-block=1`,
				`source doc:2 document title="t.pdf"`,
				`cite 0/2/2 0/0/2 block-span block -> doc:2 "p" page=2 last-page=4`,
				`source doc:3 file global="file_9"`,
				`cite 0/2/3 0/0/2 block-span block -> doc:3 "q" page=1`,
				`text 0/0/2 "B"`,
				`end-part 0/0/2`,
				`begin 0/0/3`,
				`cite 0/3/1 0/0/3 block-span block -> sr:0 "They wade." block=0 last-block=2`,
				`source https://web.example/ web url="https://web.example/"`,
				`cite 0/3/2 0/0/3 block-span block -> https://web.example/ "w"`,
				`text 0/0/3 "C"`,
				`end-part 0/0/3`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "locations without the request",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"x","document_index":1,"document_title":"One","start_char_index":3,"end_char_index":4},{"type":"char_location","cited_text":"y","document_index":1,"document_title":"One","file_id":"file_1"},{"type":"search_result_location","cited_text":"z","source":"https://heron.example/","title":"H","search_result_index":4,"start_block_index":0,"end_block_index":1},{"type":"search_result_location","cited_text":"z","source":"kb/9"}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`begin 0/0/0`,
				`source doc:1 document id="doc:1" title="One"`,
				`cite 0/0/1 0/0/0 block-span block -> doc:1 "x" char-start=3 char-end=4`,
				`source doc:1 document global="file_1" title="One"`,
				`cite 0/0/2 0/0/0 block-span block -> doc:1 "y"`,
				`source sr:4 web id="sr:4" title="H" url="https://heron.example/"`,
				`cite 0/0/3 0/0/0 block-span block -> sr:4 "z" block=0 last-block=0`,
				`source kb/9 document id="kb/9" title="kb/9"`,
				`cite 0/0/4 0/0/0 block-span block -> kb/9 "z"`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name:    "indices past the documents that are known",
			request: `{"messages":[{"role":"user","content":"?"}]}`,
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"char_location","document_index":3},{"type":"char_location","document_index":3},{"type":"search_result_location","search_result_index":1,"source":"kb"}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`begin 0/0/0`,
				`issue document-index-out-of-range doc:3`,
				`source doc:3 document id="doc:3"`,
				`cite 0/0/1 0/0/0 block-span block -> doc:3`,
				`cite 0/0/2 0/0/0 block-span block -> doc:3`,
				`issue document-index-out-of-range sr:1`,
				`source sr:1 document id="sr:1" title="kb"`,
				`cite 0/0/3 0/0/0 block-span block -> sr:1`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "citations of no use",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"text","text":"a","citations":[null,7,{},{"type":"shelf_location"},{"type":"char_location"},{"type":"char_location","document_index":-1},{"type":"char_location","document_index":"two"},{"type":"char_location","document_index":1.5},{"type":"web_search_result_location","url":null},{"type":"search_result_location"}]},{"type":"text","text":"b","citations":{}},{"type":"text","text":"c","citations":null}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`begin 0/0/0`,
				`issue unknown-type citation `,
				`issue unknown-type citation `,
				`issue unknown-type citation `,
				`issue unknown-type citation shelf_location`,
				`issue citation-without-source `,
				`issue bad-number document_index -1`,
				`issue citation-without-source `,
				`issue bad-number document_index "two"`,
				`issue citation-without-source `,
				`issue bad-number document_index 1.5`,
				`issue citation-without-source `,
				`issue citation-without-source `,
				`issue citation-without-source `,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`begin 0/0/1`,
				`issue wrong-type citations`,
				`text 0/0/1 "b"`,
				`end-part 0/0/1`,
				`begin 0/0/2`,
				`text 0/0/2 "c"`,
				`end-part 0/0/2`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "places of no use",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"char_location","document_index":0.0,"start_char_index":-4,"end_char_index":"9"},{"type":"page_location","document_index":0,"start_page_number":3,"end_page_number":3},{"type":"page_location","document_index":0,"end_page_number":4},{"type":"content_block_location","document_index":0,"start_block_index":2,"end_block_index":2}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`begin 0/0/0`,
				`source doc:0 document id="doc:0"`,
				`issue bad-number start_char_index -4`,
				`cite 0/0/1 0/0/0 block-span block -> doc:0 char-end=9`,
				`cite 0/0/2 0/0/0 block-span block -> doc:0 page=3`,
				`cite 0/0/3 0/0/0 block-span block -> doc:0`,
				`cite 0/0/4 0/0/0 block-span block -> doc:0 block=2`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "web search",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"spring tide 🌊"}},{"type":"web_search_tool_result","content":[{"type":"web_search_result","url":"https://tide.example/","title":"Tide","page_age":"March 4, 2026","encrypted_content":"zz"},{"type":"web_search_result","title":"no address"},{"type":"odd"}]},{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}},{"type":"thinking","thinking":"hm"},{"type":"bash_code_execution_tool_result","content":{}},{"type":"parchment"}],"stop_reason":"pause_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`tool "srv_1" web_search`,
				`query "spring tide 🌊"`,
				`source https://tide.example/ web title="Tide" url="https://tide.example/" published="March 4, 2026"`,
				`issue unknown-type search result odd`,
				`issue source-not-retrieved web search: max_uses_exceeded`,
				`issue unknown-type content block parchment`,
				`finish 0 tool`,
				`end`,
			},
		},
		{
			name: "a fetched page counts as a document",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://page.example/","content":{"type":"document","title":"Page","source":{"type":"text","data":"words"}}}},{"type":"web_fetch_tool_result","content":{"type":"web_fetch_tool_error","error_code":"url_not_accessible"}},{"type":"text","text":"a","citations":[{"type":"char_location","document_index":0,"document_title":"Page","cited_text":"words","start_char_index":0,"end_char_index":5}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`source https://page.example/ web title="Page" url="https://page.example/" content="words"`,
				`issue source-not-retrieved web fetch: url_not_accessible`,
				`begin 0/0/2`,
				`source https://page.example/ web title="Page"`,
				`cite 0/2/1 0/0/2 block-span block -> https://page.example/ "words" char-start=0 char-end=5`,
				`text 0/0/2 "a"`,
				`end-part 0/0/2`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a fetched page is not the document that the unknown request had",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://page.example/","content":{"type":"document","title":"Page"}}},{"type":"text","text":"a","citations":[{"type":"char_location","document_index":0,"document_title":"Bridges","cited_text":"x"},{"type":"char_location","document_index":2,"document_title":"Page","cited_text":"y"},{"type":"char_location","document_index":0,"cited_text":"z"}]}],"stop_reason":"end_turn"}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`source https://page.example/ web title="Page" url="https://page.example/"`,
				`begin 0/0/1`,
				`source doc:0 document id="doc:0" title="Bridges"`,
				`cite 0/1/1 0/0/1 block-span block -> doc:0 "x"`,
				`source https://page.example/ web title="Page"`,
				`cite 0/1/2 0/0/1 block-span block -> https://page.example/ "y"`,
				`cite 0/1/3 0/0/1 block-span block -> doc:0 "z"`,
				`text 0/0/1 "a"`,
				`end-part 0/0/1`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "stop reasons",
			docs: []string{
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"max_tokens"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"refusal"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"tool_use"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"model_context_window_exceeded"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"stop_sequence"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":"sunset"}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":[],"stop_reason":null}`,
				`{"type":"message","id":"msg_1","model":"claude","role":"assistant","content":null,"stop_reason":7}`,
			},
			want: []string{
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 length`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 refusal`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 tool`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 length`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 stop`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`finish 0 stop`,
				`issue unknown-type stop reason sunset`,
				`end`,
				`head id=msg_1`,
				`head model=claude`,
				`head id=msg_1`,
				`head model=claude`,
			},
		},
		{
			name: "a stream: citations come before the text",
			docs: []string{
				`message_start {"type":"message_start","message":{"id":"msg_2","model":"claude","content":[],"stop_reason":null}}`,
				`{"type":"ping"}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example/","title":"A","cited_text":"q"}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Ebbe "}  }`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83c"}      }`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\udf0a"} }`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`,
				`{"type":"message_stop"}`,
			},
			want: []string{
				`head id=msg_2`,
				`head model=claude`,
				`begin 0/0/0`,
				`text 0/0/0 ""`,
				`source https://a.example/ web title="A" url="https://a.example/"`,
				`cite 0/0/1 0/0/0 block-span block -> https://a.example/ "q"`,
				`text 0/0/0 "Ebbe "`,
				`text 0/0/0 "\xed\xa0\xbc"`,
				`text 0/0/0 "\xed\xbc\x8a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a stream whose members are sorted: the index stands behind the text",
			docs: []string{
				`{"delta":{"text":"a","type":"text_delta"},"index":0,"type":"content_block_delta"}`,
				`{"delta":{"text":"b","type":"text_delta"},"index":0,"type":"content_block_delta"}`,
				`{"delta":{"text":"c","type":"text_delta"},"index":1,"type":"content_block_delta"}`,
			},
			want: []string{
				`text 0/0/0 "a"`,
				`text 0/0/0 "b"`,
				`text 0/0/1 "c"`,
			},
		},
		{
			name: "a server tool's input in pieces",
			docs: []string{
				`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"ba"}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"kery\"}"}}`,
				`{"type":"content_block_stop","index":1}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"weigh"}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`,
				`{"type":"content_block_stop","index":2}`,
			},
			want: []string{
				`tool "srv_1" web_search`,
				`query "bakery"`,
				`tool "t" weigh`,
			},
		},
		{
			name: "a beginning said twice",
			docs: []string{
				`{"type":"message_start","message":{"id":"msg_3"}}`,
				`{"type":"message_start","message":{"id":"msg_3"}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example/"}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"content_block_stop","index":0}`,
			},
			want: []string{
				`head id=msg_3`,
				`head id=msg_3`,
				`begin 0/0/0`,
				`text 0/0/0 ""`,
				`source https://a.example/ web url="https://a.example/"`,
				`cite 0/0/1 0/0/0 block-span block -> https://a.example/`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
			},
		},
		{
			name: "a second message in one recording",
			docs: []string{
				`{"type":"message_start","message":{"id":"msg_4"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"message_start","message":{"id":"msg_5"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`,
				`{"type":"content_block_stop","index":0}`,
			},
			want: []string{
				`head id=msg_4`,
				`text 0/0/0 "a"`,
				`head id=msg_5`,
				`text 0/1/0 "b"`,
				`end-part 0/1/0`,
			},
		},
		{
			name: "a lost block start",
			docs: []string{
				`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"content_block_stop","index":2}`,
				`{"type":"content_block_stop","index":2}`,
			},
			want: []string{
				`text 0/0/2 "a"`,
				`end-part 0/0/2`,
			},
		},
		{
			name: "deltas of no use",
			docs: []string{
				`{"type":"content_block_delta","index":0,"delta":{"type":"smell_delta"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}`,
				`{"type":"content_block_delta","index":0}`,
				`{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"x"}}`,
				`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`,
				`{"type":"content_block_start","index":0}`,
			},
			want: []string{
				`issue unknown-type delta smell_delta`,
				`issue bad-number index -1`,
				`issue unknown-type content block `,
			},
		},
		{
			name: "an error in the middle",
			docs: []string{
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
				`error {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			},
			want: []string{
				`text 0/0/0 "a"`,
				`error overloaded_error "Overloaded"`,
			},
		},
		{
			name: "wrapped by InvokeModel",
			docs: []string{
				`{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdGFydCIsIm1lc3NhZ2UiOnsiaWQiOiJtc2dfNiIsIm1vZGVsIjoiY2xhdWRlIn19","p":"abc"}`,
				`{"bytes":"eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImluZGV4IjowLCJkZWx0YSI6eyJ0eXBlIjoidGV4dF9kZWx0YSIsInRleHQiOiLDnCJ9fQ==","p":"abc"}`,
				`{"bytes":"eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImluZGV4IjowLCJkZWx0YSI6eyJ0eXBlIjoidGV4dF9kZWx0YSIsInRleHQiOiJiZXIifX0=","p":"abc"}`,
				`{"chunk":{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0="}}`,
				`{"bytes":"not base64!"}`,
				`{"bytes":7}`,
			},
			want: []string{
				`head id=msg_6`,
				`head model=claude`,
				`text 0/0/0 "Ü"`,
				`text 0/0/0 "ber"`,
				`end`,
			},
		},
	})
}

func TestAnthropicGiven(t *testing.T) {
	given := []Source{{Title: "A"}, {Key: "own", ID: "own", Kind: KindFile}}
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
