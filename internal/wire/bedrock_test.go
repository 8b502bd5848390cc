package wire

import "testing"

func TestConverse(t *testing.T) {
	testParser(t, "bedrock-converse", []parserTest{
		{
			name:    "the request's documents",
			request: `{"messages":[{"role":"user","content":[{"document":{"name":"Gezeiten","format":"txt","source":{"text":"Zweimal täglich."}}},{"document":{"name":"Buch","source":{"content":[{"text":"x"},{"text":"y"}]}}},{"document":{"name":"Karte","source":{"s3Location":{"uri":"s3://maps/k.pdf"}}}},{"searchResult":{"source":"https://tide.example/","title":"Tide","content":[{"text":"High"}]}},{"toolResult":{"content":[{"document":{"name":"Inner"}},{"toolResult":{"content":[{"document":{"name":"too deep"}}]}}]}}]}]}`,
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" title="Gezeiten" content="Zweimal täglich."`,
				`source doc:1 document id="doc:1" title="Buch" content="xy"`,
				`source doc:2 document id="doc:2" title="Karte" url="s3://maps/k.pdf"`,
				`source doc:3 document id="doc:3" title="Inner"`,
				`source sr:0 web id="sr:0" title="Tide" url="https://tide.example/" content="High"`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name:    "blocks with every location",
			request: `{"messages":[{"role":"user","content":[{"document":{"name":"Gezeiten","format":"txt","source":{"text":"Zweimal täglich."}}},{"document":{"name":"Buch","source":{"content":[{"text":"x"},{"text":"y"}]}}},{"document":{"name":"Karte","source":{"s3Location":{"uri":"s3://maps/k.pdf"}}}},{"searchResult":{"source":"https://tide.example/","title":"Tide","content":[{"text":"High"}]}},{"toolResult":{"content":[{"document":{"name":"Inner"}},{"toolResult":{"content":[{"document":{"name":"too deep"}}]}}]}}]}]}`,
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"Flut "},{"text":"🌊"}],"citations":[{"title":"Gezeiten","sourceContent":[{"text":"Zwei"},{"text":"mal"}],"location":{"documentChar":{"documentIndex":0,"start":0,"end":7}}},{"location":{"documentPage":{"documentIndex":2,"start":1,"end":2}}},{"location":{"documentPage":{"documentIndex":2,"start":1,"end":4}}},{"location":{"documentChunk":{"documentIndex":1,"start":1,"end":2}}},{"location":{"searchResultLocation":{"searchResultIndex":0,"start":0,"end":1}}},{"title":"W","location":{"web":{"url":"https://w.example/","domain":"w.example"}}}]}},{"text":", und"}]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" title="Gezeiten" content="Zweimal täglich."`,
				`source doc:1 document id="doc:1" title="Buch" content="xy"`,
				`source doc:2 document id="doc:2" title="Karte" url="s3://maps/k.pdf"`,
				`source doc:3 document id="doc:3" title="Inner"`,
				`source sr:0 web id="sr:0" title="Tide" url="https://tide.example/" content="High"`,
				`begin 0/0/0`,
				`cite citation:0 0/0/0 block-span block -> doc:0 "Zweimal" char-start=0 char-end=7`,
				`cite citation:1 0/0/0 block-span block -> doc:2 page=1`,
				`cite citation:2 0/0/0 block-span block -> doc:2 page=1 last-page=3`,
				`cite citation:3 0/0/0 block-span block -> doc:1 block=1 last-block=1`,
				`cite citation:4 0/0/0 block-span block -> sr:0 block=0 last-block=0`,
				`source https://w.example/ web title="W" url="https://w.example/" site="w.example"`,
				`cite citation:5 0/0/0 block-span block -> https://w.example/`,
				`text 0/0/0 "Flut "`,
				`text 0/0/0 "🌊"`,
				`end-part 0/0/0`,
				`begin 0/0/1`,
				`text 0/0/1 ", und"`,
				`end-part 0/0/1`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "citations without a location",
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"source":"https://s.example/","title":"S"},{"source":"kb-3","title":"K"},{"title":"T"},{"title":"T"},{"title":""},{},null]}}]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`begin 0/0/0`,
				`source https://s.example/ web title="S" url="https://s.example/"`,
				`cite citation:0 0/0/0 block-span block -> https://s.example/`,
				`source kb-3 document global="kb-3" title="K"`,
				`cite citation:1 0/0/0 block-span block -> kb-3`,
				`source title:T document title="T"`,
				`cite citation:2 0/0/0 block-span block -> title:T`,
				`source title:T document title="T"`,
				`cite citation:3 0/0/0 block-span block -> title:T`,
				`issue citation-without-source `,
				`issue citation-without-source `,
				`issue citation-without-source `,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "indices",
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"location":{"documentChar":{"start":1,"end":2}}},{"location":{"documentChar":{"documentIndex":5,"start":1.0,"end":"2"}},"title":"V"},{"location":{"documentChar":{"documentIndex":-1}},"title":"N"},{"location":{"documentChar":{"documentIndex":0,"start":-3}}},{"location":{"shelf":{"n":1}},"title":"Sh"},{"location":{"web":{"domain":"d.example"}}}]}}]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`begin 0/0/0`,
				`source doc:0 document id="doc:0"`,
				`cite citation:0 0/0/0 block-span block -> doc:0 char-start=1 char-end=2`,
				`source doc:5 document id="doc:5" title="V"`,
				`cite citation:1 0/0/0 block-span block -> doc:5 char-start=1 char-end=2`,
				`issue bad-number doc: index -1`,
				`source title:N document title="N"`,
				`cite citation:2 0/0/0 block-span block -> title:N`,
				`issue bad-number start -3`,
				`cite citation:3 0/0/0 block-span block -> doc:0`,
				`issue unknown-type location shelf`,
				`source title:Sh document title="Sh"`,
				`cite citation:4 0/0/0 block-span block -> title:Sh`,
				`issue citation-without-source `,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name:    "indices against a request",
			request: `{"messages":[{"role":"user","content":[{"document":{"name":"Gezeiten","format":"txt","source":{"text":"Zweimal täglich."}}},{"document":{"name":"Buch","source":{"content":[{"text":"x"},{"text":"y"}]}}},{"document":{"name":"Karte","source":{"s3Location":{"uri":"s3://maps/k.pdf"}}}},{"searchResult":{"source":"https://tide.example/","title":"Tide","content":[{"text":"High"}]}},{"toolResult":{"content":[{"document":{"name":"Inner"}},{"toolResult":{"content":[{"document":{"name":"too deep"}}]}}]}}]}]}`,
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"location":{"documentChar":{"start":1,"end":2}},"title":"which?"},{"location":{"documentChar":{"documentIndex":9}}},{"location":{"searchResultLocation":{"start":0,"end":1}}}]}}]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`source doc:0 document id="doc:0" title="Gezeiten" content="Zweimal täglich."`,
				`source doc:1 document id="doc:1" title="Buch" content="xy"`,
				`source doc:2 document id="doc:2" title="Karte" url="s3://maps/k.pdf"`,
				`source doc:3 document id="doc:3" title="Inner"`,
				`source sr:0 web id="sr:0" title="Tide" url="https://tide.example/" content="High"`,
				`begin 0/0/0`,
				`source title:which? document title="which?"`,
				`cite citation:0 0/0/0 block-span block -> title:which? char-start=1 char-end=2`,
				`issue document-index-out-of-range doc:9`,
				`source doc:9 document id="doc:9"`,
				`cite citation:1 0/0/0 block-span block -> doc:9`,
				`cite citation:2 0/0/0 block-span block -> sr:0 block=0 last-block=0`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a citation block without text",
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"text":"Flut um acht\u200b"},{"citationsContent":{"citations":[{"location":{"web":{"url":"https://w.example/"}}}]}},{"text":"."}]}},"stopReason":"end_turn","usage":{}}`,
			},
			want: []string{
				`begin 0/0/0`,
				`text 0/0/0 "Flut um acht\u200b"`,
				`end-part 0/0/0`,
				`begin 0/0/1`,
				`source https://w.example/ web url="https://w.example/"`,
				`cite citation:0 0/0/1 block-span block -> https://w.example/`,
				`end-part 0/0/1`,
				`begin 0/0/2`,
				`text 0/0/2 "."`,
				`end-part 0/0/2`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "other blocks",
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"nova_grounding","input":{"query":"tide"}}},{"toolResult":{"toolUseId":"t1","content":[{"text":"[HIDDEN]"}]}},{"reasoningContent":{}},{"hologram":{}},{"text":null}]}},"stopReason":"tool_use","usage":{}}`,
			},
			want: []string{
				`tool "t1" nova_grounding`,
				`query "tide"`,
				`issue unknown-type content block hologram`,
				`begin 0/0/4`,
				`end-part 0/0/4`,
				`finish 0 tool`,
				`end`,
			},
		},
		{
			name: "stop reasons",
			docs: []string{
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"max_tokens","usage":{}}`,
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"guardrail_intervened","usage":{}}`,
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"content_filtered","usage":{}}`,
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"malformed_tool_use","usage":{}}`,
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"sunset","usage":{}}`,
				`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":null,"usage":{}}`,
			},
			want: []string{
				`finish 0 length`,
				`end`,
				`finish 0 filter`,
				`end`,
				`finish 0 filter`,
				`end`,
				`finish 0 error`,
				`end`,
				`finish 0 stop`,
				`issue unknown-type stop reason sunset`,
				`end`,
			},
		},
		{
			name: "a stream of named events with padding",
			docs: []string{
				`messageStart {"role":"assistant","p":"abc"}`,
				`contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"nova_grounding"}},"p":"a"}`,
				`contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"query\":\"ti"}},"p":"ab"}`,
				`contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"de\"}"}},"p":"ab"}`,
				`contentBlockStop {"contentBlockIndex":0,"p":"x"}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"citation":{"title":"T","location":{"web":{"url":"https://w.example/"}}}},"p":"a"}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"Flut "},"p":"abcd"}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"🌊"},"p":"abcdefg"}`,
				`contentBlockStop {"contentBlockIndex":1}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"citation":{"title":"late"}}}`,
				`messageStop {"stopReason":"end_turn","p":"a"}`,
				`metadata {"usage":{},"p":"ab"}`,
			},
			want: []string{
				`tool "t1" nova_grounding`,
				`query "tide"`,
				`end-part 0/0/0`,
				`begin 0/0/1`,
				`source https://w.example/ web title="T" url="https://w.example/"`,
				`cite citation:0 0/0/1 block-span block -> https://w.example/`,
				`text 0/0/1 "Flut "`,
				`text 0/0/1 "🌊"`,
				`end-part 0/0/1`,
				`begin 0/0/1`,
				`source title:late document title="late"`,
				`cite citation:1 0/0/1 block-span block -> title:late`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a stream as JSON lines",
			docs: []string{
				`{"messageStart":{"role":"assistant"}}`,
				`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"a"},"p":"abc"}}`,
				`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"b"},"p":"abcd"}}`,
				`{"contentBlockDelta":{"contentBlockIndex":3,"delta":{"text":"c"},"p":"abcd"}}`,
				`{"contentBlockStop":{"contentBlockIndex":3}}`,
				`{"messageStop":{"stopReason":"max_tokens"}}`,
				`{"weather":{}}`,
			},
			want: []string{
				`text 0/0/2 "a"`,
				`text 0/0/2 "b"`,
				`text 0/0/3 "c"`,
				`end-part 0/0/3`,
				`finish 0 length`,
				`end`,
			},
		},
		{
			name: "a stream whose members are sorted otherwise",
			docs: []string{
				`contentBlockDelta {"delta":{"text":"a"},"contentBlockIndex":0}`,
				`contentBlockDelta {"delta":{"text":"b"},"contentBlockIndex":1}`,
			},
			want: []string{
				`text 0/0/0 "a"`,
				`text 0/0/1 "b"`,
			},
		},
		{
			name: "odd events",
			docs: []string{
				`contentBlockDelta {"contentBlockIndex":-2,"delta":{"text":"a"}}`,
				`contentBlockDelta {"contentBlockIndex":0,"delta":{"smell":{}}}`,
				`contentBlockDelta {"contentBlockIndex":0,"delta":null}`,
				`throttlingException {"message":"Too many"}`,
				`modelStreamErrorException {"originalMessage":"gone"}`,
				`sunrise {}`,
			},
			want: []string{
				`issue bad-number contentBlockIndex -2`,
				`text 0/0/0 "a"`,
				`issue unknown-type delta smell`,
				`error throttlingException "Too many"`,
				`error modelStreamErrorException "gone"`,
			},
		},
	})
}

func TestDetectConverse(t *testing.T) {
	testDetect(t, []detectTest{
		{`messageStart {"role":"assistant"}`, "bedrock-converse"},
		{`contentBlockDelta {}`, "bedrock-converse"},
		{`{"messageStart":{"role":"assistant"}}`, "bedrock-converse"},
		{`{"contentBlockDelta":{"delta":{}},"a":1,"b":2}`, ""},
		{`{"output":{"message":{"content":[]}},"stopReason":"end_turn"}`, "bedrock-converse"},
		{`{"output":{"message":{"content":"x"}},"stopReason":"end_turn"}`, ""},
		{`metadata {"usage":{}}`, ""},
	})
}

func TestConverseKnows(t *testing.T) {
	testKnows(t, "bedrock-converse",
		[]string{`metadata {}`, `{"metadata":{}}`, `internalServerException {"message":"x"}`, `{"output":{"message":{}}}`},
		[]string{`{}`, `[]`, ``, `sunrise {}`, `{"sunrise":{}}`, `{"metadata":7}`},
	)
}

func FuzzConverse(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"document":{"name":"a"}}]}]}`, ``, `{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"location":{"documentPage":{"start":1,"end":3}}}]}}]}}}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"text":"a"},"p":"abc"}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"citation":{"title":"a"}},"p":"abc"}`)
	f.Fuzz(func(t *testing.T, request, event, doc string) {
		fuzzEvent(t, "bedrock-converse", event, request, doc)
	})
}
