package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/internal/scan"
)

// responsesBody returns a body with one message of one part.
func responsesBody(text, annotations string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"object":"response","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[` +
		`{"type":"output_text","text":` + string(quoted) + `,"annotations":` + annotations + `}]}]}`
}

func TestResponsesAnnotations(t *testing.T) {
	tests := []struct {
		name, annotations string
		want              []string
	}{
		{
			"a link", `[{"type":"url_citation","start_index":6,"end_index":40,"title":"Gezeiten","url":"https://tide.example/?utm_source=openai"}]`,
			[]string{
				`source https://tide.example/?utm_source=openai web title="Gezeiten" url="https://tide.example/?utm_source=openai"`,
				`cite 0/0/0 0/0/0 link 6-40 code-points of part link="https://tide.example/?utm_source=openai" -> https://tide.example/?utm_source=openai`,
			},
		},
		{
			"a link, nested as in Chat Completions", `[{"type":"url_citation","url_citation":{"start_index":6,"end_index":40,"title":"T","url":"https://t.example/"}}]`,
			[]string{
				`source https://t.example/ web title="T" url="https://t.example/"`,
				`cite 0/0/0 0/0/0 link 6-40 code-points of part link="https://t.example/" -> https://t.example/`,
			},
		},
		{
			"links without a place", `[{"type":"url_citation","url":"https://a.example/"},{"type":"url_citation","start_index":0,"end_index":0,"url":"https://b.example/"}]`,
			[]string{
				`source https://a.example/ web url="https://a.example/"`,
				`cite 0/0/0 0/0/0 link nowhere -> https://a.example/`,
				`source https://b.example/ web url="https://b.example/"`,
				`cite 0/0/1 0/0/0 link nowhere -> https://b.example/`,
			},
		},
		{
			"a point of a link", `[{"type":"url_citation","start_index":7,"end_index":7,"url":"https://a.example/"}]`,
			[]string{`source https://a.example/ web url="https://a.example/"`, `cite 0/0/0 0/0/0 point 7-7 code-points of part -> https://a.example/`},
		},
		{
			"a file at a point", `[{"type":"file_citation","file_id":"file-7","filename":"bay.pdf","index":12}]`,
			[]string{
				`source file-7 file id="file-7" global="file-7" title="bay.pdf" filename="bay.pdf"`,
				`cite 0/0/0 0/0/0 point 12-12 code-points of part -> file-7`,
			},
		},
		{
			"a file over a claim", `[{"type":"file_citation","file_id":"file-7","start_index":2,"end_index":9,"quote":"the bay is deep"}]`,
			[]string{
				`source file-7 file id="file-7" global="file-7"`,
				`cite 0/0/0 0/0/0 claim 2-9 code-points of part -> file-7 "the bay is deep"`,
			},
		},
		{
			"a file without a place", `[{"type":"file_citation","filename":"bay.pdf"}]`,
			[]string{`source bay.pdf file title="bay.pdf" filename="bay.pdf"`, `cite 0/0/0 0/0/0 point nowhere -> bay.pdf`},
		},
		{
			"a file that the model made", `[{"type":"container_file_citation","container_id":"cntr_1","file_id":"cfile_1","filename":"plot.png","start_index":8,"end_index":36}]`,
			[]string{
				`source cfile_1 file id="cfile_1" global="cfile_1" title="plot.png" filename="plot.png"`,
				`cite 0/0/0 0/0/0 link 8-36 code-points of part link="sandbox:/mnt/data/plot.png" -> cfile_1`,
			},
		},
		{
			"an image that the text does not name", `[{"type":"container_file_citation","file_id":"cfile_1","start_index":0,"end_index":0}]`,
			[]string{`source cfile_1 file id="cfile_1" global="cfile_1"`, `cite 0/0/0 0/0/0 link nowhere -> cfile_1`},
		},
		{
			"a path", `[{"type":"file_path","file_id":"file-2","index":7}]`,
			[]string{`source file-2 file id="file-2" global="file-2"`, `cite 0/0/0 0/0/0 point 7-7 code-points of part -> file-2`},
		},
		{
			"bad offsets", `[{"type":"url_citation","start_index":-4,"end_index":9,"url":"https://a.example/"},{"type":"file_citation","file_id":"f","index":2.5}]`,
			[]string{
				`issue bad-number start_index -4`,
				`source https://a.example/ web url="https://a.example/"`,
				`cite 0/0/0 0/0/0 link nowhere -> https://a.example/`,
				`issue bad-number index 2.5`,
				`source f file id="f" global="f"`,
				`cite 0/0/1 0/0/0 point nowhere -> f`,
			},
		},
		{"no source", `[{"type":"url_citation","start_index":1,"end_index":2}]`, []string{`issue citation-without-source url_citation`}},
		{"a new type", `[{"type":"moon_citation","phase":"full"}]`, []string{`issue unknown-type annotation moon_citation`}},
		{"not an object", `["x",null,7]`, []string{`issue unknown-type annotation `, `issue unknown-type annotation `, `issue unknown-type annotation `}},
		{"null", `null`, nil},
		{"an object", `{}`, []string{`issue wrong-type annotations`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := record(t, "openai-responses", "", responsesBody("Ebbe: ([tide.example](https://tide.example/)).", tt.annotations))
			got = slices.DeleteFunc(got, func(l string) bool {
				return !strings.HasPrefix(l, "source") && !strings.HasPrefix(l, "cite") && !strings.HasPrefix(l, "issue")
			})
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponsesBody(t *testing.T) {
	const search = `{"type":"file_search_call","id":"fs_1","queries":["depth of the bay"],`
	tests := []struct {
		name, format, doc string
		want              []string
	}{
		{
			"commentary, tools and an answer", "openai-responses",
			`{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"gpt-x","output":[
			 {"type":"reasoning","id":"rs_1","summary":[]},
			 {"type":"message","id":"msg_1","phase":"commentary","content":[{"type":"output_text","text":"Ich sehe nach …","annotations":[]}]},
			 {"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"old","queries":["tide 満潮","ws_call_id=7"],"sources":[{"type":"url","url":"https://tide.example/"},{"type":"api","name":"moon"}]}},
			 {"type":"code_interpreter_call","id":"ci_1"},
			 {"type":"mcp_call","id":"mcp_1","name":"lookup"},
			 {"type":"message","id":"msg_2","phase":"final_answer","content":[{"type":"output_text","text":"満潮は🌊6時。","annotations":null},{"type":"output_text","text":"Genau.","annotations":[]}]}]}`,
			[]string{
				"head id=resp_1", "head model=gpt-x", "head created=1700000000",
				`text 0/0/0+commentary "Ich sehe nach …"`, "end-part 0/0/0+commentary",
				`query "tide 満潮"`, `source https://tide.example/ web url="https://tide.example/"`, `source api:moon tool id="moon" title="moon"`,
				`tool "ci_1" code_interpreter`, `tool "mcp_1" lookup`,
				`text 0/1/0 "満潮は🌊6時。"`, "end-part 0/1/0", `text 0/1/1 "Genau."`, "end-part 0/1/1",
				"finish 0 stop", "end",
			},
		},
		{
			"chunks of files", "openai-responses",
			`{"object":"response","status":"completed","output":[` + search + `"results":[` +
				`{"file_id":"file-1","filename":"a.pdf","score":0.9,"text":"Deep.","attributes":{"page":2}},` +
				`{"file_id":"file-1","filename":"a.pdf","score":null,"text":"Deeper."},{"filename":""}]}]}`,
			[]string{
				`query "depth of the bay"`,
				`source file-1 file id="file-1" global="file-1" title="a.pdf" filename="a.pdf" content="Deep." score=0.9`,
				`source file-1 file id="file-1" global="file-1" title="a.pdf" filename="a.pdf" content="Deeper."`,
				"issue unknown-type file search result", "finish 0 stop", "end",
			},
		},
		{
			"chunks in the shape of a vector store, and no frame around", "openai-responses",
			`{"output":[` + search + `"search_results":[{"file_id":"file-1","filename":"a.pdf","score":0.5,"content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]}]}]}`,
			[]string{
				`query "depth of the bay"`,
				`source file-1 file id="file-1" global="file-1" title="a.pdf" filename="a.pdf" content="One.\nTwo." score=0.5`,
				"finish 0 stop", "end",
			},
		},
		{"no results", "openai-responses", `{"object":"response","status":"completed","output":[` + search + `"results":null}]}`, []string{`query "depth of the bay"`, "finish 0 stop", "end"}},
		{
			"a call that the client must answer", "openai-responses",
			`{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"tide"},{"type":"reasoning"}]}`,
			[]string{`tool "call_1" tide`, "finish 0 tool", "end"},
		},
		{
			"a refusal", "openai-responses",
			`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}`,
			[]string{`text 0/0/0+refusal "No."`, "end-part 0/0/0+refusal", "finish 0 refusal", "end"},
		},
		{
			"too long", "openai-responses",
			`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":"Half a"}]}`,
			[]string{`text 0/0/0 "Half a"`, "finish 0 length", "end"},
		},
		{"filtered", "openai-responses", `{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`, []string{"finish 0 filter", "end"}},
		{"stopped for another reason", "openai-responses", `{"object":"response","status":"incomplete","incomplete_details":{"reason":"tired"},"output":[]}`, []string{"issue unknown-type incomplete reason tired", "end"}},
		{
			"failed", "openai-responses", `{"object":"response","status":"failed","error":{"code":"server_error","message":"Oh."},"output":null}`,
			[]string{`error server_error "Oh."`, "finish 0 error", "end"},
		},
		{"still running", "openai-responses", `{"object":"response","status":"in_progress","output":[]}`, nil},
		{"cancelled", "openai-responses", `{"object":"response","status":"cancelled","output":[]}`, []string{"end"}},
		{"output of the wrong type", "openai-responses", `{"object":"response","status":"completed","output":{}}`, []string{"issue wrong-type output", "finish 0 stop", "end"}},
		{
			"unknown items, parts and wrong types", "openai-responses",
			`{"object":"response","status":"completed","output":[{"type":"dream","id":"d"},7,{"type":"message","content":{"a":1}},{"type":"message","content":[{"type":"smell"},3,{"type":"reasoning_text","text":"hm"},{"type":"output_text","text":5},{"type":"output_text","text":"Ja."}]}]}`,
			[]string{
				"issue unknown-type output item dream", "issue unknown-type output item ", "issue wrong-type content",
				"issue unknown-type content part smell", `text 0/1/4 "Ja."`, "end-part 0/1/4", "finish 0 stop", "end",
			},
		},
		{
			"xAI: a title that is the number shown, a link without a place, its former search call", "xai-responses",
			`{"object":"response","status":"completed","model":"grok-9","output":[{"type":"web_search_call","id":"x","name":"web_search","arguments":"{\"query\":\"tide \\\"x\\\"\"}"},
			 {"type":"message","content":[{"type":"output_text","text":"Hoch.[[1]](https://a.example/)","annotations":[
			 {"type":"url_citation","url":"https://a.example/","start_index":5,"end_index":32,"title":"1"},{"type":"url_citation","url":"https://b.example/"}]}]}]}`,
			[]string{
				"head model=grok-9", "head format=xai-responses", "head provider=xai", `query "tide \"x\""`,
				`text 0/0/0 "Hoch.[[1]](https://a.example/)"`,
				`source https://a.example/ web url="https://a.example/"`, `cite 0/0/0 0/0/0 link 5-32 code-points of part link="https://a.example/" -> https://a.example/`,
				`source https://b.example/ web url="https://b.example/"`, `cite 0/0/1 0/0/0 link nowhere -> https://b.example/`,
				"end-part 0/0/0", "finish 0 stop", "end",
			},
		},
		{"Azure", "openai-responses", `{"object":"response","status":"completed","model":"gpt-x","content_filters":null,"output":[]}`, []string{"head model=gpt-x", "head provider=azure", "finish 0 stop", "end"}},
		{"DeepSeek", "openai-responses", `{"object":"response","status":"completed","model":"deepseek-v9","content_filters":null,"output":[]}`, []string{"head model=deepseek-v9", "head provider=deepseek", "finish 0 stop", "end"}},
		{
			"Perplexity's agents: marks count the ids of results", "openai-responses",
			`{"object":"response","status":"completed","output":[{"type":"search_results","queries":["q"],"results":[{"id":3,"url":"https://c.example/","title":"C","snippet":"c"},{"id":1,"url":"https://a.example/","date":"2024-01-02"},{"id":"x"}]},{"type":"message","content":[{"type":"output_text","text":"So [3]."}]}]}`,
			[]string{
				"head provider=perplexity", `query "q"`,
				`source https://c.example/ web title="C" url="https://c.example/" content="c"`, `source https://a.example/ web url="https://a.example/" published="2024-01-02"`,
				"issue unknown-type search result",
				"markers 0 https://a.example/,,https://c.example/ style=0", `text 0/0/0 "So [3]."`, "end-part 0/0/0", "finish 0 stop", "end",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, record(t, tt.format, "", tt.doc)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponsesStream(t *testing.T) {
	delta := func(n int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"m","output_index":1,"content_index":0,"delta":%q,"obfuscation":"%d"}`, n, text, n*7)
	}
	const (
		link     = `{"type":"url_citation","start_index":3,"end_index":30,"url":"https://a.example/","title":"A"}`
		source   = `source https://a.example/ web title="A" url="https://a.example/"`
		cite     = `cite 0/0/0 0/0/0 link 3-30 code-points of part link="https://a.example/" -> https://a.example/`
		added    = `{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation_index":0,"annotation":` + link + `}`
		item     = `{"type":"message","id":"m","content":[{"type":"output_text","annotations":[` + link + `],"text":"Já. So."}]}`
		done     = `{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning"},` + item + `]}}`
		textDone = `{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Já. So."}`
		partDone = `{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[` + link + `],"text":"Já. So."}}`
		itemDone = `{"type":"response.output_item.done","output_index":1,"item":` + item + `}`
		itemNew  = `{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m","content":[]}}`
	)
	tests := []struct {
		name string
		docs []string
		want []string
	}{
		{
			"everything four times",
			[]string{
				`{"type":"response.created","response":{"id":"r","model":"g","status":"in_progress","output":[]}}`, `{"type":"response.in_progress","response":{"id":"r"}}`,
				itemNew, `{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
				delta(4, "Já"), delta(5, ". "), delta(6, "So."), added, textDone, partDone, itemDone, done,
			},
			[]string{
				"head id=r", "head model=g", `text 0/0/0 "Já"`, `text 0/0/0 ". "`, `text 0/0/0 "So."`, source, cite, `final 0/0/0 "Já. So."`,
				"end-part 0/0/0", "finish 0 stop", "end",
			},
		},
		{"no deltas", []string{itemNew, textDone, done}, []string{`text 0/0/0 "Já. So."`, source, cite, "end-part 0/0/0", "finish 0 stop", "end"}},
		{"only the end", []string{done}, []string{`text 0/0/0 "Já. So."`, source, cite, "end-part 0/0/0", "finish 0 stop", "end"}},
		{
			"a proxy that counts items otherwise at the end",
			[]string{`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Já. So."}`, done},
			[]string{`text 0/0/0 "Já. So."`, `final 0/0/0 "Já. So."`, source, cite, "end-part 0/0/0", "finish 0 stop", "end"},
		},
		{
			"no places at all",
			[]string{`{"type":"response.output_text.delta","delta":"Já. "}`, `{"type":"response.output_text.delta","delta":"So."}`, itemDone},
			[]string{`text 0/0/0 "Já. "`, `text 0/0/0 "So."`, `final 0/0/0 "Já. So."`, source, cite, "end-part 0/0/0"},
		},
		{
			"an event twice",
			[]string{delta(4, "ha "), delta(5, "ha "), delta(5, "ha "), delta(4, "ha "), delta(6, "ho")},
			[]string{
				`text 0/0/0 "ha "`, `text 0/0/0 "ha "`, "issue duplicate-event sequence_number 5", "issue duplicate-event sequence_number 4", `text 0/0/0 "ho"`,
			},
		},
		{
			"an event twice, its number behind its text",
			[]string{
				`{"content_index":0,"delta":"ha ","output_index":0,"sequence_number":4,"type":"response.output_text.delta"}`, `{"content_index":0,"delta":"ha ","output_index":0,"sequence_number":5,"type":"response.output_text.delta"}`,
				`{"content_index":0,"delta":"ha ","output_index":0,"sequence_number":5,"type":"response.output_text.delta"}`,
			},
			[]string{`text 0/0/0 "ha "`, `text 0/0/0 "ha "`, "issue duplicate-event sequence_number 5"},
		},
		{"all numbers the same", []string{delta(0, "a"), delta(0, "a"), delta(0, "b"), delta(0, "b")}, []string{`text 0/0/0 "a"`, `text 0/0/0 "a"`, `text 0/0/0 "b"`, `text 0/0/0 "b"`}},
		{
			"numbers that begin again",
			[]string{delta(0, "a"), delta(1, "b"), delta(0, "c"), delta(1, "b")},
			[]string{`text 0/0/0 "a"`, `text 0/0/0 "b"`, `text 0/0/0 "c"`, `text 0/0/0 "b"`},
		},
		{"an escape cut in two", []string{`{"type":"response.output_text.delta","delta":"\ud83c"}`, `{"type":"response.output_text.delta","delta":"\udf0a!"}`}, []string{`text 0/0/0 "\xed\xa0\xbc"`, `text 0/0/0 "\xed\xbc\x8a!"`}},
		{
			"members in another order",
			[]string{
				`{"content_index":0,"delta":"a","output_index":1,"type":"response.output_text.delta"}`, `{"content_index":0,"delta":"b","output_index":1,"type":"response.output_text.delta"}`,
				`{"content_index":0,"delta":"c","output_index":2,"type":"response.output_text.delta"}`,
			},
			[]string{`text 0/0/0 "a"`, `text 0/0/0 "b"`, `text 0/1/0 "c"`},
		},
		{
			"a citation taken back",
			[]string{added, `{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":"x"}}`},
			[]string{source, cite, `text 0/0/0 "x"`, "withdraw 0/0/0", "end-part 0/0/0"},
		},
		{
			"a citation with an absurd index, taken back",
			[]string{strings.Replace(added, `"annotation_index":0`, `"annotation_index":1999999999999`, 1), `{"type":"response.content_part.done","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":"x"}}`},
			[]string{source, strings.Replace(cite, "0/0/0", "0/0/1999999999999", 1), `text 0/0/0 "x"`, "withdraw 0/0/1999999999999", "end-part 0/0/0"},
		},
		{
			"a citation that only the end has",
			[]string{`{"type":"response.content_part.done","output_index":1,"part":{"type":"output_text","text":"Já. So.","annotations":[]}}`, done},
			[]string{`text 0/0/0 "Já. So."`, "end-part 0/0/0", source, cite, "finish 0 stop", "end"},
		},
		{
			"commentary",
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","phase":"commentary","content":[]}}`,
				`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hm."}`,
				`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","phase":"final_answer","content":[]}}`, delta(9, "Ja."),
			},
			[]string{`text 0/0/0+commentary "Hm."`, `text 0/1/0 "Ja."`},
		},
		{
			"a refusal",
			[]string{`{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No"}`, `{"type":"response.refusal.done","output_index":0,"content_index":0,"refusal":"No."}`, `{"type":"response.completed","response":{}}`},
			[]string{`text 0/0/0+refusal "No"`, `final 0/0/0+refusal "No."`, "finish 0 refusal", "end"},
		},
		{"failed", []string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"c","message":"m"}}}`}, []string{`error c "m"`, "finish 0 error", "end"}},
		{"cut short", []string{`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`}, []string{"finish 0 length", "end"}},
		{"an error event", []string{`{"type":"error","code":"rate_limit","message":"Slow.","param":null,"sequence_number":3}`}, []string{`error rate_limit "Slow."`}},
		{"an error event, nested", []string{`{"type":"error","error":{"type":"overloaded","message":"Slow."}}`}, []string{`error overloaded "Slow."`}},
		{
			"events that say nothing here, and unknown ones once",
			[]string{
				`{"type":"response.reasoning_summary_text.delta","delta":"x"}`, `{"type":"response.code_interpreter_call_code.delta","delta":"x"}`, `{"type":"response.mcp_list_tools.completed"}`,
				`{"type":"response.function_call_arguments.done"}`, `{"type":"keepalive"}`, `{"type":"response.web_search_call.searching"}`, `{"type":"response.smell.delta","delta":"x"}`, `{"type":"response.smell.delta","delta":"y"}`,
			},
			[]string{"issue unknown-type event response.smell.delta"},
		},
		{"the type in the event's name only", []string{`response.output_text.delta {"delta":"a"}`}, []string{`text 0/0/0 "a"`}},
		{"a tool", []string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"w","action":{"type":"search"}}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"w","action":{"type":"search","query":"q"}}}`,
			`{"type":"response.completed","response":{"output":[{"type":"web_search_call","id":"w","action":{"type":"search","query":"q"}}]}}`,
		}, []string{`query "q"`, "finish 0 stop", "end"}},
		{"wrong types", []string{`{"type":"response.output_text.delta","delta":7,"output_index":"x"}`, `{"type":"response.output_text.delta","delta":null}`, `{"type":"response.completed"}`}, []string{
			`issue bad-number output_index "x"`, "issue wrong-type delta", "finish 0 stop", "end",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, record(t, "openai-responses", "", tt.docs...)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponsesKnows(t *testing.T) {
	p := newResponses(&Config{Emit: func(*Op) {}})
	for _, doc := range []string{`{"type":"ping"}`, `{"type":"response.queued"}`, `{"type":"response.new"}`} {
		if !p.Parse(nil, scan.Value(doc)) {
			t.Errorf("%s is not known", doc)
		}
	}
	for _, doc := range []string{`{"type":"message_start"}`, `{}`, `[]`, ``, `{"error":{"message":"x"}}`} {
		if p.Parse(nil, scan.Value(doc)) {
			t.Errorf("%s is known", doc)
		}
	}
}

func TestDetectResponses(t *testing.T) {
	tests := []struct{ doc, want string }{
		{`{"type":"response.created","response":{"model":"gpt-x"}}`, "openai-responses"},
		{`{"type":"response.created","response":{"model":"grok-9"}}`, "xai-responses"},
		{`{"sequence_number":0,"type":"response.output_text.delta","delta":""}`, "openai-responses"},
		{`{"object":"response","output":[]}`, "openai-responses"},
		{`{"model":"grok-9","object":"response","output":[]}`, "xai-responses"},
		{`{"output":[{"type":"message","content":[]}]}`, "openai-responses"},
		{`{"output":{"message":{"role":"assistant"}}}`, ""},
		{`{"output":[]}`, ""},
		{`{"output":["a"]}`, ""},
		{`{"type":"error","code":null,"message":"x","sequence_number":1}`, "openai-responses"},
		{`{"type":"ping"}`, ""},
		{`{}`, ""},
		{`{"error":{"message":"x"}}`, ""},
	}
	for _, tt := range tests {
		if got := Detect(nil, scan.Value(tt.doc)); got != tt.want {
			t.Errorf("Detect(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
}

// FuzzResponses feeds two documents, so that the second may match what was learned from the first.
func FuzzResponses(f *testing.F) {
	f.Add(responsesBody("Já 🌊", `[{"type":"url_citation","start_index":1,"end_index":2,"url":"u"}]`), `{"type":"response.output_text.delta","delta":"x"}`)
	f.Add(`{"type":"response.output_text.delta","sequence_number":1,"output_index":0,"delta":"a"}`, `{"type":"response.output_text.delta","sequence_number":99999999,"output_index":0,"delta":"\u00e9`)
	f.Add(`{"type":"response.output_item.done","output_index":1,"item":{"type":"file_search_call","results":[{"file_id":"f","score":1}]}}`, `{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"refusal"`)
	f.Add(`{"type":"response.reasoning.search_results","results":[{"id":9999999,"url":"u"}]}`, `{"type":"error"}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		fuzzParser(t, newResponses, one, two)
	})
}

// fuzzParser checks that a parser survives any documents and says nothing impossible.
func fuzzParser(t *testing.T, parser func(*Config) Parser, docs ...string) {
	t.Helper()
	p := parser(&Config{Emit: func(op *Op) {
		switch {
		case op.Kind == CiteOp && (len(op.Cite.Refs) == 0 || op.Cite.Start < 0 || op.Cite.End < 0):
			t.Errorf("impossible citation: %s", line(op))
		case op.Kind == SourceOp && op.Source.Key == "":
			t.Errorf("a source without a key: %s", line(op))
		case op.Kind == 0:
			t.Error("an operation without a kind")
		}
	}})
	for range 2 {
		for _, doc := range docs {
			b := []byte(doc)
			p.Parse(nil, b)
			clear(b)
		}
	}
	p.Close()
}
