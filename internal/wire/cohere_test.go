package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCohere2(t *testing.T) {
	testParser(t, "cohere-v2", []parserTest{
		{
			name:    "a body: documents and tools",
			request: `{"documents":["Brot ist alt.",{"id":"own","data":{"title":"Ofen","text":"Heiß","url":"https://ofen.example/","author":"A. B."}},{"data":{"rows":3}},{"title":"flat","snippet":"s"}]}`,
			docs: []string{
				`{"id":"co_1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Brot 🥖 ist alt."}],"citations":[{"start":0,"end":4,"text":"Brot","type":"TEXT_CONTENT","content_index":0,"sources":[{"type":"document","id":"doc:0","document":{"id":"doc:0","text":"Brot ist alt."}},{"type":"tool","id":"bake_1:0","tool_output":{"grams":500}}]},{"start":7,"end":14,"text":"ist alt","sources":[{"type":"document","id":"own","document":{"id":"own","title":"Ofen"}},{"type":"tool","tool_output":{"id":"t9","text":"x"}},{"type":"tool","id":7,"tool_output":"y"},{"type":"document","document":"z"},{"type":"document"},{}]}]}}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" content="Brot ist alt."`,
				`source own document id="own" title="Ofen" url="https://ofen.example/" authors="A. B." content="Heiß"`,
				`source doc:2 document id="doc:2" content="{\"rows\":3}"`,
				`source doc:3 document id="doc:3" title="flat" content="s"`,
				`head id=co_1`,
				`text 0/0/0 "Brot 🥖 ist alt."`,
				`end-part 0/0/0`,
				`source doc:0 document id="doc:0" content="Brot ist alt."`,
				`source bake_1:0 tool id="bake_1:0" content="{\"grams\":500}"`,
				`cite citation:0/0/0-4 0/0/0 claim 0-4 code-points of part quote="Brot" -> doc:0 -> bake_1:0`,
				`source own document id="own" title="Ofen" content="{\"title\":\"Ofen\"}"`,
				`source t9 tool id="t9" content="x"`,
				`source 7 tool id="7" content="y"`,
				`source content:z document content="z"`,
				`cite citation:1/0/7-14 0/0/0 claim 7-14 code-points of part quote="ist alt" -> own -> t9 -> 7 -> content:z`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "two citations with one index are two, the same one again is one",
			docs: []string{
				`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":4,"text":"Brot","sources":[{"id":"a"}]}}}}`,
				`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":5,"end":8,"text":"ist","sources":[{"id":"a"}]}}}}`,
				`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":5,"end":8,"text":"ist","sources":[{"id":"a"}]}}}}`,
				`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"text":"alt","sources":[{"id":"a"}]}}}}`,
			},
			want: []string{
				`source a document id="a"`,
				`cite citation:0/0/0-4 0/0/0 claim 0-4 code-points of part quote="Brot" -> a`,
				`cite citation:0/0/5-8 0/0/0 claim 5-8 code-points of part quote="ist" -> a`,
				`cite citation:0/0/5-8 0/0/0 claim 5-8 code-points of part quote="ist" -> a`,
				`cite citation:0/0/alt 0/0/0 claim nowhere quote="alt" -> a`,
			},
		},
		{
			name: "ids of documents in the place of sources, and camelCase",
			docs: []string{
				`{"id":"co_1","finishReason":"MAX_TOKENS","message":{"toolCalls":[{"id":"c","function":{"name":"bake"}}],"content":[{"type":"text","text":"Brot"}],"citations":[{"start":0,"end":4,"text":"Brot","document_ids":["a","b"]},{"start":0,"end":2,"text":"Br","documentIds":["b"],"sources":[]},{"start":0,"end":1,"text":"B","document_ids":["x"],"sources":[{"id":"c"}]}]}}`,
			},
			want: []string{
				`head id=co_1`,
				`text 0/0/0 "Brot"`,
				`end-part 0/0/0`,
				`tool "c" bake`,
				`cite citation:0/0/0-4 0/0/0 claim 0-4 code-points of part quote="Brot" -> a -> b`,
				`cite citation:1/0/0-2 0/0/0 claim 0-2 code-points of part quote="Br" -> b`,
				`source c document id="c"`,
				`cite citation:2/0/0-1 0/0/0 claim 0-1 code-points of part quote="B" -> c`,
				`finish 0 length`,
				`end`,
			},
		},
		{
			name: "thinking before the text",
			docs: []string{
				`{"id":"co_1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Brot"}],"citations":[{"start":0,"end":4,"text":"Brot","content_index":1,"sources":[{"id":"a"}]},{"start":0,"end":4,"text":"Brot","sources":[{"id":"a"}]},{"start":0,"end":2,"text":"hm","content_index":0,"sources":[{"id":"b"}]},{"start":0,"end":2,"text":"hm","type":"THINKING_CONTENT","sources":[{"id":"c"}]},{"start":0,"end":2,"text":"pl","type":"PLAN","sources":[{"id":"d"}]},{"start":0,"end":1,"text":"B","contentIndex":1,"sources":[{"id":"e"}]}]}}`,
			},
			want: []string{
				`head id=co_1`,
				`end-part 0/0/0`,
				`text 0/0/1 "Brot"`,
				`end-part 0/0/1`,
				`source a document id="a"`,
				`cite citation:0/1/0-4 0/0/1 claim 0-4 code-points of part quote="Brot" -> a`,
				`cite citation:1/1/0-4 0/0/1 claim 0-4 code-points of part quote="Brot" -> a`,
				`source b document id="b"`,
				`cite citation:2/0/0-2 0/0/0 claim nowhere -> b`,
				`source c document id="c"`,
				`cite citation:3/1/0-2 0/0/1 claim nowhere -> c`,
				`source d document id="d"`,
				`cite citation:4/1/0-2 0/0/1 claim nowhere -> d`,
				`source e document id="e"`,
				`cite citation:5/1/0-1 0/0/1 claim 0-1 code-points of part quote="B" -> e`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "citations of no use",
			docs: []string{
				`{"id":"co_1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"abc"}],"citations":[null,{"start":0,"end":1,"text":"a"},{"start":0,"end":1,"text":"a","sources":null},{"start":-1,"end":1,"text":"a","sources":[{"id":"a"}]},{"text":"b","sources":[{"id":"a"}]},{"start":1.0,"end":"2","text":"b","sources":[{"id":"a"}]},{"start":1.5,"end":2,"content_index":"x","sources":[{"id":"a"}]}]}}`,
				`{"id":"co_1","finish_reason":"COMPLETE","message":{"role":"assistant","content":"just text","citations":{}}}`,
				`{"id":"co_1","finish_reason":"MAX_TOKENS","message":{"role":"assistant","content":[{"type":"chart"},{"text":"x"}],"citations":null}}`,
			},
			want: []string{
				`head id=co_1`,
				`text 0/0/0 "abc"`,
				`end-part 0/0/0`,
				`issue citation-without-source `,
				`issue citation-without-source a`,
				`issue citation-without-source a`,
				`issue bad-number start -1`,
				`source a document id="a"`,
				`cite citation:3/0/a 0/0/0 claim nowhere quote="a" -> a`,
				`cite citation:4/0/b 0/0/0 claim nowhere quote="b" -> a`,
				`cite citation:5/0/1-2 0/0/0 claim 1-2 code-points of part quote="b" -> a`,
				`issue bad-number content_index "x"`,
				`issue bad-number start 1.5`,
				`cite citation:6/0/ 0/0/0 claim nowhere -> a`,
				`finish 0 stop`,
				`end`,
				`head id=co_1`,
				`text 0/0/0 "just text"`,
				`issue wrong-type citations`,
				`finish 0 stop`,
				`end`,
				`head id=co_1`,
				`issue unknown-type content chart`,
				`end-part 0/0/0`,
				`text 0/0/1 "x"`,
				`end-part 0/0/1`,
				`finish 0 length`,
				`end`,
			},
		},
		{
			name: "finish reasons",
			docs: []string{
				`{"id":"co_1","finish_reason":"TOOL_CALL","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":"STOP_SEQUENCE","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":"ERROR","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":"TIMEOUT","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":"stop_sequence","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":"ERROR_TOXIC","message":{"role":"assistant","content":[],"citations":[]}}`,
				`{"id":"co_1","finish_reason":null,"message":{"role":"assistant","content":[],"citations":[]}}`,
			},
			want: []string{
				`head id=co_1`,
				`finish 0 tool`,
				`end`,
				`head id=co_1`,
				`finish 0 stop`,
				`end`,
				`head id=co_1`,
				`finish 0 error`,
				`end`,
				`head id=co_1`,
				`finish 0 error`,
				`end`,
				`head id=co_1`,
				`finish 0 stop`,
				`end`,
				`head id=co_1`,
				`finish 0 filter`,
				`end`,
				`head id=co_1`,
			},
		},
		{
			name: "a stream, citations inline",
			docs: []string{
				`message-start {"id":"co_2","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
				`tool-plan-delta {"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}}`,
				`tool-call-start {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t1","type":"function","function":{"name":"weigh","arguments":""}}}}}`,
				`tool-call-delta {"type":"tool-call-delta","index":0,"delta":{}}`,
				`tool-call-end {"type":"tool-call-end","index":0}`,
				`content-start {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`,
				`content-delta {"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}`,
				`content-end {"type":"content-end","index":0}`,
				`content-start {"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
				`content-delta {"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"Brot"}}}}`,
				`citation-start {"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":4,"text":"Brot","sources":[{"type":"document","id":"doc:0","document":{"text":"t"}}],"type":"TEXT_CONTENT"}}}}`,
				`citation-end {"type":"citation-end","index":0}`,
				`content-delta {"type":"content-delta","index":1,"delta":{"message":{"content":{"text":" ist"}}}}`,
				`content-end {"type":"content-end","index":1}`,
				`citation-start {"type":"citation-start","index":1,"delta":{"message":{"citations":[{"start":5,"end":8,"text":"ist","sources":[{"id":"doc:0"}]}]}}}`,
				`message-end {"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{}}}`,
			},
			want: []string{
				`head id=co_2`,
				`tool "t1" weigh`,
				`end-part 0/0/0`,
				`text 0/0/1 ""`,
				`text 0/0/1 "Brot"`,
				`source doc:0 document id="doc:0" content="t"`,
				`cite citation:0/1/0-4 0/0/1 claim 0-4 code-points of part quote="Brot" -> doc:0`,
				`text 0/0/1 " ist"`,
				`end-part 0/0/1`,
				`source doc:0 document id="doc:0"`,
				`cite citation:1:0/1/5-8 0/0/1 claim 5-8 code-points of part quote="ist" -> doc:0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a stream whose citations have no index",
			docs: []string{
				`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Brot ist"}}}}`,
				`{"type":"citation-start","delta":{"message":{"citations":{"start":0,"end":4,"text":"Brot","sources":[{"id":"a"}]}}}}`,
				`{"type":"citation-start","delta":{"message":{"citations":{"start":5,"end":8,"text":"ist","sources":[{"id":"b"}]}}}}`,
				`{"type":"citation-start","delta":{"message":{}}}`,
				`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"gone"}}`,
				`{"type":"sunrise"}`,
				`{"message":7}`,
			},
			want: []string{
				`text 0/0/0 "Brot ist"`,
				`source a document id="a"`,
				`cite citation:0/0/0-4 0/0/0 claim 0-4 code-points of part quote="Brot" -> a`,
				`source b document id="b"`,
				`cite citation:1/0/5-8 0/0/0 claim 5-8 code-points of part quote="ist" -> b`,
				`issue citation-without-source `,
				`finish 0 error`,
				`error error "gone"`,
				`end`,
			},
		},
	})
}

func TestCohere2Given(t *testing.T) {
	given := []Source{{Title: "A", Content: "x"}, {Key: "own", ID: "own"}}
	got := recordGiven(t, "cohere-v2", given, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	want := []string{
		`source doc:0 document id="doc:0" title="A" content="x"`,
		`source own document id="own"`,
		`text 0/0/0 "a"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestDetectCohere(t *testing.T) {
	testDetect(t, []detectTest{
		{`{"type":"message-start","id":"a"}`, "cohere-v2"},
		{`{"type":"citation-start"}`, "cohere-v2"},
		{`{"finish_reason":"COMPLETE","message":{"content":[]}}`, "cohere-v2"},
		{`{"finish_reason":"TOOL_CALL","message":{"tool_plan":"x"}}`, "cohere-v2"},
		{`{"finish_reason":"COMPLETE","message":{"content":"x"}}`, ""},
		{`{"id":"a","message":{"role":"assistant","content":[{"type":"text","text":"cut o`, "cohere-v2"},
		{`{"id":"a","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}`, "cohere-v2"},
		{`{"id":"a","message":{"role":"assistant","tool_plan":"pl`, "cohere-v2"},
		{`{"id":"a","message":{"toolCalls":[]},"finishReason":"TOOL_CALL"}`, "cohere-v2"},
		{`{"message":{"content":"x","citations":[{"start":0`, "cohere-v2"},
		{`{"model":"llama","message":{"content":"x","tool_calls":[]},"done":true}`, ""},
		{`{"message":{"content":[{"type":"image_url"}]}}`, ""},
		{`{"message":{"content":[{"x":1}]}}`, ""},
		{`{"event_type":"stream-start","is_finished":false}`, "cohere-v1"},
		{`{"text":"a","generation_id":"g","finish_reason":"COMPLETE"}`, "cohere-v1"},
		{`{"response_id":"r","text":"cut o`, "cohere-v1"},
		{`{"text":"a","finishReason":"COMPLETE","citations":[],"documents":[],"generationId":"g"}`, "cohere-v1"},
		{`{"text":"a","finishReason":"COMPLETE","citations":[{"start":0,"documentIds":["d`, "cohere-v1"},
		{`{"text":"a","citations":[{"url":"u"}]}`, ""},
		{`{"text":"a","finish_reason":"COMPLETE"}`, ""},
	})
}

func TestCohere2Knows(t *testing.T) {
	testKnows(t, "cohere-v2",
		[]string{`{"type":"debug"}`, `{"type":"message-end"}`, `{"message":{}}`, `{"message":"invalid request"}`},
		[]string{`{}`, `[]`, ``, `{"type":"sunrise"}`, `{"message":7}`},
	)
}

func FuzzCohere2(f *testing.F) {
	f.Add(`{"documents":["a",{"id":"b","data":{"n":1}}]}`, `{"message":{"content":[{"type":"text","text":"ab"}],"citations":[{"start":0,"end":1,"text":"a","sources":[{"id":"doc:0","document":{}}]}]}}`)
	f.Add(``, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	f.Add(``, `{"type":"citation-start","delta":{"message":{"citations":[{"start":1,"end":0,"sources":[{"type":"tool","tool_output":[]}]}]}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v2", "", request, doc)
	})
}
