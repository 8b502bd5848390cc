package wire

import "testing"

func TestCohere1(t *testing.T) {
	testParser(t, "cohere-v1", []parserTest{
		{
			name:    "a body",
			request: `{"documents":[{"title":"Ofen","text":"Heiß"},{"id":"own","snippet":"s"}]}`,
			docs: []string{
				`{"text":"Brot 🥖","generation_id":"g1","finish_reason":"COMPLETE","citations":[{"start":0,"end":4,"text":"Brot","document_ids":["doc_0","own"]},{"start":0,"end":2,"text":"pl","type":"PLAN","document_ids":["own"]},{"start":0,"end":1,"text":"x","document_ids":[]},{"start":"a","end":6,"text":"🥖","documentIds":["own",null]},{"text":"Brot","document_ids":["web-search_0"]}],"documents":[{"id":"doc_0","title":"Ofen","text":"Heiß"},{"id":"web-search_0","url":"https://w.example/","title":"W","snippet":"n"},{"id":"calc_1","tool_name":"calc","output":"4"},{"text":"no id"},7],"search_queries":[{"text":"brot","generation_id":"x"}],"search_results":[{"error_message":"connector down"},{"document_ids":["web-search_0"]}],"tool_calls":[{"name":"calc","parameters":{}}]}`,
			},
			want: []string{
				`source doc_0 document id="doc_0" title="Ofen" content="Heiß"`,
				`source own document id="own" content="s"`,
				`head id=g1`,
				`query "brot"`,
				`source doc_0 document id="doc_0" title="Ofen" content="Heiß"`,
				`source web-search_0 web id="web-search_0" title="W" url="https://w.example/" content="n"`,
				`source calc_1 tool id="calc_1" content="{\"tool_name\":\"calc\",\"output\":\"4\"}"`,
				`source content:no id document content="no id"`,
				`final 0/0/0 "Brot 🥖"`,
				`cite 0/4/Brot/doc_0/own 0/0/0 claim 0-4 code-points of part quote="Brot" -> doc_0 -> own`,
				`cite 0/2/pl/own 0/0/0 claim nowhere -> own`,
				`issue citation-without-source x`,
				`issue bad-number start "a"`,
				`cite 0/0/🥖/own 0/0/0 claim nowhere quote="🥖" -> own`,
				`cite 0/0/Brot/web-search_0 0/0/0 claim nowhere quote="Brot" -> web-search_0`,
				`tool "" calc`,
				`issue source-not-retrieved connector down`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a body in camelCase, as OCI and Bedrock send it",
			docs: []string{
				`{"text":"Brot","finishReason":"COMPLETE","citations":[{"start":0,"end":4,"text":"Brot","documentIds":["d"]}],"documents":[{"id":"d","text":"x"}],"searchQueries":[{"text":"q"}],"toolCalls":[{"name":"calc"}],"searchResults":[{"errorMessage":"down"}],"generationId":"g"}`,
			},
			want: []string{
				`head id=g`,
				`query "q"`,
				`source d document id="d" content="x"`,
				`final 0/0/0 "Brot"`,
				`cite 0/4/Brot/d 0/0/0 claim 0-4 code-points of part quote="Brot" -> d`,
				`tool "" calc`,
				`issue source-not-retrieved down`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a stream, which says everything again at its end",
			docs: []string{
				`{"is_finished":false,"event_type":"stream-start","generation_id":"g2"}`,
				`{"is_finished":false,"event_type":"search-queries-generation","search_queries":[{"text":"ofen"}]}`,
				`{"is_finished":false,"event_type":"search-results","documents":[{"id":"web-search_0","url":"https://w.example/"}]}`,
				`{"is_finished":false,"event_type":"text-generation","text":"Br"}`,
				`{"is_finished":false,"event_type":"text-generation","text":"ot"}`,
				`{"is_finished":false,"event_type":"citation-generation","citations":[{"start":0,"end":4,"text":"Brot","document_ids":["web-search_0"]}]}`,
				`{"is_finished":false,"event_type":"debug"}`,
				`{"is_finished":true,"event_type":"stream-end","finish_reason":"MAX_TOKENS","response":{"text":"Brot","generation_id":"g2","citations":[{"start":0,"end":4,"text":"Brot","document_ids":["web-search_0"]}],"documents":[{"id":"web-search_0","url":"https://w.example/"}]}}`,
			},
			want: []string{
				`head id=g2`,
				`query "ofen"`,
				`source web-search_0 web id="web-search_0" url="https://w.example/" content="{\"url\":\"https://w.example/\"}"`,
				`text 0/0/0 "Br"`,
				`text 0/0/0 "ot"`,
				`cite 0/4/Brot/web-search_0 0/0/0 claim 0-4 code-points of part quote="Brot" -> web-search_0`,
				`head id=g2`,
				`source web-search_0 web id="web-search_0" url="https://w.example/" content="{\"url\":\"https://w.example/\"}"`,
				`final 0/0/0 "Brot"`,
				`cite 0/4/Brot/web-search_0 0/0/0 claim 0-4 code-points of part quote="Brot" -> web-search_0`,
				`finish 0 length`,
				`end`,
			},
		},
		{
			name: "events of no use",
			docs: []string{
				`{"event_type":"text-generation","is_finished":false}`,
				`{"event_type":"sunrise","is_finished":false}`,
				`{"event_type":"tool-calls-generation","tool_calls":[{"name":"calc"}]}`,
				`{"text":7}`,
			},
			want: []string{
				`tool "" calc`,
			},
		},
	})
}

func TestCohere1Knows(t *testing.T) {
	testKnows(t, "cohere-v1",
		[]string{`{"event_type":"debug"}`, `{"event_type":"stream-end"}`, `{"text":""}`},
		[]string{`{}`, `[]`, ``, `{"event_type":"sunrise"}`, `{"event_type":"text-generation"}`, `{"text":7}`},
	)
}

func FuzzCohere1(f *testing.F) {
	f.Add(`{"documents":[{"title":"a"}]}`, `{"text":"ab","citations":[{"start":0,"end":1,"text":"a","document_ids":["doc_0",7]}],"documents":[{"id":"doc_0"}]}`)
	f.Add(``, `{"event_type":"text-generation","text":"a"}`)
	f.Add(``, `{"event_type":"stream-end","response":{"text":"a","search_results":[{"error_message":"x"}]}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v1", "", request, doc)
	})
}
