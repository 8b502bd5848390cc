package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

// chatBody returns a body with one message.
func chatBody(message string) string {
	return `{"object":"chat.completion","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
}

func chunk(delta string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func TestChatBody(t *testing.T) {
	tests := []struct {
		name, doc string
		want      []string
	}{
		{
			"two candidates", `{"id":"c1","object":"chat.completion","created":1700000000,"model":"gpt-x","choices":[
			 {"index":0,"message":{"role":"assistant","content":"Ja 🌊"},"finish_reason":"stop"},{"index":1,"message":{"content":"Nein"},"finish_reason":"length"}]}`,
			[]string{"head id=c1", "head model=gpt-x", "head created=1700000000", `text 0/0/0 "Ja 🌊"`, "finish 0 stop", `text 1/0/0 "Nein"`, "finish 1 length", "end"},
		},
		{
			"links, nested and flat", chatBody(`{"content":"Tide ([a](https://a.example/)).","annotations":[
			 {"type":"url_citation","url_citation":{"start_index":5,"end_index":31,"title":"A","url":"https://a.example/"}},
			 {"type":"url_citation","start_index":0,"end_index":0,"url":"https://b.example/"},{"type":"scent"}]}`),
			[]string{
				`text 0/0/0 "Tide ([a](https://a.example/))."`,
				`source https://a.example/ web title="A" url="https://a.example/"`,
				`cite 0/url_citation/5/31//https://a.example// 0/0/0 link 5-31 code-points of part link="https://a.example/" -> https://a.example/`,
				`source https://b.example/ web url="https://b.example/"`,
				`cite 0/url_citation/0/0//https://b.example// 0/0/0 link nowhere -> https://b.example/`,
				"issue unknown-type annotation scent", "finish 0 stop", "end",
			},
		},
		{
			"a list of chunks", chatBody(`{"content":[{"type":"text","text":"Ebbe "},{"type":"text","text":"und Flut"},"!",{"type":"image_url"},7]}`),
			[]string{`text 0/0/0 "Ebbe "`, `text 0/0/0 "und Flut"`, `text 0/0/0 "!"`, "issue unknown-type content chunk image_url", "finish 0 stop", "end"},
		},
		{"a refusal", chatBody(`{"content":null,"refusal":"No.","annotations":null}`), []string{`text 0/0/1+refusal "No."`, "finish 0 refusal", "end"}},
		{"reasoning", chatBody(`{"reasoning_content":"Hm.","reasoning":"Hm.","content":"Ja."}`), []string{`text 0/0/0 "Ja."`, "finish 0 stop", "end"}},
		{
			"tools", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"t1","function":{"name":"tide","arguments":"{}"}},{"id":"t2","custom":{"name":"moon"}}],"function_call":{"name":"old"}},"finish_reason":"tool_calls"}]}`,
			[]string{`tool "t1" tide`, `tool "t2" moon`, `tool "" old`, "finish 0 tool", "end"},
		},
		{
			"wrong types", `{"object":"chat.completion","choices":[{"message":{"content":5,"annotations":{},"tool_calls":{}},"index":-1,"finish_reason":"bored"},7,null]}`,
			[]string{"issue bad-number choice index -1", "issue wrong-type content", "issue wrong-type annotations", "issue unknown-type finish reason bored", "end"},
		},
		{"choices of the wrong type", `{"object":"chat.completion","choices":{}}`, []string{"issue wrong-type choices"}},
		{"an error", `{"choices":[],"error":{"code":502,"message":"Upstream."}}`, []string{`error 502 "Upstream."`}},
		{
			"Groq", `{"model":"groq/compound","choices":[{"message":{"content":"Ja.","executed_tools":[{"type":"search","arguments":"{\"query\":\"tide\"}","search_results":{"results":[{"title":"T","url":"https://t.example/","content":"c","score":0.5}]}}]}}]}`,
			[]string{
				"head model=groq/compound", "head format=openai-chat", "head provider=groq", `query "tide"`,
				`source https://t.example/ web title="T" url="https://t.example/" content="c" score=0.5`, `text 0/0/0 "Ja."`, "end",
			},
		},
		{"DeepSeek", `{"model":"deepseek-v9","choices":[{"message":{"content":"Ja."}}]}`, []string{"head model=deepseek-v9", "head format=openai-chat", "head provider=deepseek", `text 0/0/0 "Ja."`, "end"}},
		{
			"Zhipu", `{"choices":[{"message":{"content":"潮"}}],"web_search":[{"title":"T","link":"https://t.example/","content":"c","media":"M"}]}`,
			[]string{"head format=openai-chat", "head provider=zhipu", `source https://t.example/ web title="T" url="https://t.example/" site="M" content="c"`, `text 0/0/0 "潮"`, "end"},
		},
		{
			"DashScope", `{"choices":[{"message":{"content":"潮"}}],"search_info":{"search_results":[{"index":1,"title":"T","url":"https://t.example/","site_name":"S"}]}}`,
			[]string{"head format=openai-chat", "head provider=dashscope", `source https://t.example/ web title="T" url="https://t.example/" site="S"`, `text 0/0/0 "潮"`, "end"},
		},
		{"a gateway that keeps Gemini's metadata", `{"choices":[{"message":{"content":"a"}}],"vertex_ai_grounding_metadata":[{"x":1}]}`, []string{`meta vertex_ai_grounding_metadata [{"x":1}]`, `text 0/0/0 "a"`, "end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, record(t, "openai-chat", "", tt.doc)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatStream(t *testing.T) {
	tests := []struct {
		name string
		docs []string
		want []string
	}{
		{
			"padding, usage, the end",
			[]string{
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null,"obfuscation":"abc"}`,
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Ebbe"},"finish_reason":null}],"usage":null,"obfuscation":"a"}`,
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" \"und"},"finish_reason":null}],"usage":null,"obfuscation":""}`,
				`{"id":"d","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" Flut\""},"finish_reason":null}],"usage":null,"obfuscation":"abcdef"}`,
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}],"usage":null,"obfuscation":"abcdef"}`,
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"total_tokens":3}}`,
			},
			[]string{"head id=c", "head model=m", "head created=1", `text 0/0/0 "Ebbe"`, `text 0/0/0 " \"und"`, `text 0/0/0 " Flut\""`, `text 0/0/0 "."`, "finish 0 stop"},
		},
		{
			"candidates that take turns",
			[]string{
				`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"index":0,"delta":{"content":"c"}}]}`,
				`{"choices":[{"index":0,"delta":{"content":"d"}},{"index":1,"delta":{"content":"e"}}]}`,
			},
			[]string{`text 0/0/0 "a"`, `text 1/0/0 "b"`, `text 0/0/0 "c"`, `text 0/0/0 "d"`, `text 1/0/0 "e"`},
		},
		{
			"links with the last chunk",
			[]string{chunk(`{"content":"Tide ([a](https://a.example/))."}`), chunk(`{"annotations":[{"type":"url_citation","url_citation":{"start_index":5,"end_index":31,"title":"A","url":"https://a.example/"}}]}`)},
			[]string{
				`text 0/0/0 "Tide ([a](https://a.example/))."`, `source https://a.example/ web title="A" url="https://a.example/"`,
				`cite 0/url_citation/5/31//https://a.example// 0/0/0 link 5-31 code-points of part link="https://a.example/" -> https://a.example/`,
			},
		},
		{"pieces of a call", []string{chunk(`{"tool_calls":[{"index":0,"id":"t1","function":{"name":"tide","arguments":""}}]}`), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`)}, []string{`tool "t1" tide`}},
		{"a refusal in pieces", []string{chunk(`{"refusal":"N"}`), chunk(`{"refusal":"o"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`}, []string{`text 0/0/1+refusal "N"`, `text 0/0/1+refusal "o"`, "finish 0 refusal"}},
		{"the whole message after its pieces", []string{chunk(`{"content":"a"}`), chatBody(`{"content":"ab"}`)}, []string{`text 0/0/0 "a"`, `final 0/0/0 "ab"`, "finish 0 stop", "end"}},
		{
			"reasoning, then text",
			[]string{
				chunk(`{"content":null,"reasoning_content":"H"}`), chunk(`{"content":null,"reasoning_content":"m"}`), chunk(`{"content":null,"reasoning_content":null}`),
				chunk(`{"content":"Ja","reasoning_content":null}`), chunk(`{"content":".","reasoning_content":null}`), chunk(`{"content":null,"reasoning_content":"?"}`),
			},
			[]string{`text 0/0/0 "Ja"`, `text 0/0/0 "."`},
		},
		{"an error in the middle", []string{chunk(`{"content":"a"}`), `{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":"c","message":"m"}}],"error":{"code":"c","message":"m"}}`}, []string{
			`text 0/0/0 "a"`, `error c "m"`, "finish 0 error", `error c "m"`,
		}},
		{"cut off", []string{chunk(`{"content":"a"}`), `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b`}, []string{`text 0/0/0 "a"`, `text 0/0/0 "b"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, record(t, "openai-chat", "", tt.docs...)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatFlavours(t *testing.T) {
	const (
		lists  = `"citations":["https://a.example/","https://b.example/"],"search_results":[{"title":"B","url":"https://b.example/","date":"2024-01-02","snippet":"b"},{"title":"C","url":"https://c.example/"}],`
		listed = `source 1 web url="https://a.example/"
source 2 web title="B" url="https://b.example/" published="2024-01-02" content="b"
source https://c.example/ web title="C" url="https://c.example/"
markers 0 1,2 style=0`
	)
	tests := []struct {
		name, format, request string
		docs                  []string
		want                  string
	}{
		{
			"Perplexity repeats everything in every chunk", "perplexity-chat", "",
			[]string{
				`{"id":"p","model":"sonar","usage":{"completion_tokens":1},` + lists + `"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"Ebbe"},"delta":{"role":"assistant","content":"Ebbe"}}]}`,
				`{"id":"p","model":"sonar","usage":{"completion_tokens":20},` + lists + `"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"Ebbe \"x"},"delta":{"role":"assistant","content":" \"x"}}]}`,
				`{"id":"p","model":"sonar","usage":{"completion_tokens":21},` + lists + `"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"Ebbe \"x\"[2]"},"delta":{"role":"assistant","content":"\"[2]"}}]}`,
				`{"id":"p","model":"sonar","usage":{"completion_tokens":21},` + lists + `"object":"chat.completion.done","choices":[{"index":0,"message":{"role":"assistant","content":"Ebbe \"x\"[2]"},"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
			},
			"head id=p\nhead model=sonar\nhead format=perplexity-chat\nhead provider=perplexity\n" + listed + `
text 0/0/0 "Ebbe"
text 0/0/0 " \"x"
text 0/0/0 "\"[2]"
finish 0 stop
end`,
		},
		{
			"Perplexity's body has both; a second candidate is marked, too", "perplexity-chat", "",
			[]string{`{"model":"sonar",` + lists + `"object":"chat.completion","choices":[{"index":0,"message":{"content":"a[1]"},"delta":{"content":""}},{"index":1,"message":{"content":"b[2]"},"delta":{"content":""}}]}`},
			"head model=sonar\nhead format=perplexity-chat\nhead provider=perplexity\n" + listed + `
text 0/0/0 "a[1]"
markers 1 1,2 style=0
text 1/0/0 "b[2]"
end`,
		},
		{
			"search results without citations are counted by their ids", "perplexity-chat", "",
			[]string{`{"search_results":[{"id":2,"url":"https://b.example/"},{"id":"x","url":"https://c.example/"}],"choices":[{"message":{"content":"a"}}]}`},
			`head format=perplexity-chat
head provider=perplexity
source 2 web url="https://b.example/"
source 2 web url="https://c.example/"
markers 0 ,2 style=0
text 0/0/0 "a"
end`,
		},
		{
			"OpenRouter's annotations come first and say no place; a file is passed on", "openrouter-chat", "",
			[]string{
				`{"id":"gen-1","provider":"OpenAI","model":"x/y","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example/","title":"","content":"long","start_index":0,"end_index":0}}]}}]}`,
				`{"id":"gen-1","provider":"OpenAI","model":"x/y","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a [1]","annotations":[{"type":"file","file":{"hash":"h"}}]},"native_finish_reason":"stop","finish_reason":"stop"}]}`,
			},
			`head format=openrouter-chat
head provider=openrouter
head id=gen-1
head model=x/y
source https://a.example/ web url="https://a.example/" content="long"
cite 0/url_citation/0/0//https://a.example// 0/0/0 link nowhere -> https://a.example/
text 0/0/0 "a [1]"
meta file_annotation_0 {"type":"file","file":{"hash":"h"}}
finish 0 stop`,
		},
		{
			"Perplexity behind OpenRouter marks the annotations", "openrouter-chat", "",
			[]string{`{"id":"gen-1","model":"perplexity/sonar","object":"chat.completion","choices":[{"message":{"content":"a [2]","annotations":[{"type":"url_citation","url_citation":{"url":"u1"}},{"type":"url_citation","url_citation":{"url":"u2"}}]}}]}`},
			`head id=gen-1
head model=perplexity/sonar
head format=openrouter-chat
head provider=openrouter
text 0/0/0 "a [2]"
source u1 web url="u1"
cite 0/url_citation////u1/ 0/0/0 link nowhere -> u1
source u2 web url="u2"
cite 0/url_citation////u2/ 0/0/0 link nowhere -> u2
markers 0 u1,u2 style=0
end`,
		},
		{
			"xAI's citations say no place", "xai-chat", "",
			[]string{
				`{"model":"grok-9","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"model":"grok-9","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"citations":["https://a.example/",""]}`,
			},
			`head model=grok-9
head format=xai-chat
head provider=xai
text 0/0/0 "a"
source https://a.example/ web url="https://a.example/"
cite all/https://a.example/ 0/0/0 claim nowhere -> https://a.example/
issue citation-without-source citations
finish 0 stop`,
		},
		{
			"Azure on own data", "azure-chat", "",
			[]string{
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","context":{"citations":[{"content":"One.","title":null,"url":null,"filepath":"a.pdf","chunk_id":"0"},{"content":"Two.","title":"T","url":{"url":"https://a.example/"},"filepath":"a.pdf","chunk_id":1},{"content":"Three."}],"intent":"[\"tide\",\"moon\"]","all_retrieved_documents":[{"rerank_score":3}]}}}]}`,
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"delta":{"content":"So [doc2]."}}]}`,
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"delta":{},"end_turn":true,"finish_reason":"stop"}]}`,
			},
			`head format=azure-chat
head provider=azure
source doc1 file filename="a.pdf" content="One." chunk="0"
source doc2 file title="T" url="https://a.example/" filename="a.pdf" content="Two." chunk="1"
source doc3 document content="Three."
markers 0 doc1,doc2,doc3 style=1 [1] "One." at-chunk="0" [2] "Two." at-chunk="1" [3] "Three."
query "tide"
query "moon"
meta all_retrieved_documents [{"rerank_score":3}]
text 0/0/0 "So [doc2]."
finish 0 stop
end`,
		},
		{
			"Azure before 2024", "azure-chat", "",
			[]string{`{"object":"extensions.chat.completion","choices":[{"index":0,"messages":[{"role":"tool","content":"{\"citations\":[{\"content\":\"One.\",\"filepath\":\"a.pdf\"}],\"intent\":\"tide\"}"},{"role":"assistant","content":"So [doc1].","end_turn":true}],"finish_reason":"stop"}]}`},
			`head format=azure-chat
head provider=azure
source doc1 file filename="a.pdf" content="One."
markers 0 doc1 style=1 [1] "One."
query "tide"
text 0/0/0 "So [doc1]."
finish 0 stop
end`,
		},
		{
			"Azure before 2024, in pieces", "azure-chat", "",
			[]string{
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"messages":[{"delta":{"role":"tool","content":"{\"citations\":[{\"content\":\"One.\"}]}"},"end_turn":false}]}]}`,
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"messages":[{"delta":{"content":"So [doc1]."},"end_turn":false}]}]}`,
				`{"object":"extensions.chat.completion.chunk","choices":[{"index":0,"messages":[{"delta":{},"end_turn":true}]}]}`,
			},
			`head format=azure-chat
head provider=azure
source doc1 document content="One."
markers 0 doc1 style=1 [1] "One."
text 0/0/0 "So [doc1]."
end`,
		},
		{
			"Mistral's references name the results of tools", "mistral-chat",
			`{"messages":[{"role":"user","content":"?"},{"role":"tool","content":"{\"0\":{\"url\":\"https://a.example/\",\"title\":\"A\",\"snippets\":[\"s1\",\"s2\"],\"date\":\"2024-01-02\"},\"k\":\"plain\"}"},{"role":"tool","content":[{"type":"text","text":"[{\"x\":1},{\"title\":\"B\",\"content\":\"b\"}]"}]}]}`,
			[]string{`{"model":"mistral-x","object":"chat.completion","choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Ebbe"},{"type":"reference","reference_ids":[1,"k"]},{"type":"text","text":" und Flut"},{"type":"reference","reference_ids":[9]},{"type":"reference","reference_ids":[]},{"type":"tool_reference","tool":"web_search","title":"C","url":"https://c.example/"},{"type":"tool_reference","tool":"calc","title":"D"},{"type":"tool_reference"}]}}]}`},
			`head model=mistral-x
head format=mistral-chat
head provider=mistral
text 0/0/0 "Ebbe"
source 1 tool id="1" title="B" content="b"
source k tool id="k" content="plain"
cite  0/0/0 point here -> 1 -> k
text 0/0/0 " und Flut"
source 9 tool id="9"
cite  0/0/0 point here -> 9
issue citation-without-source reference
source https://c.example/ web title="C" url="https://c.example/"
cite  0/0/0 point here -> https://c.example/
source calc:D tool title="D"
cite  0/0/0 point here -> calc:D
issue citation-without-source tool_reference
end`,
		},
		{
			"a Mistral reference in a stream", "mistral-chat", `{"messages":[{"role":"tool","content":"{\"0\":{\"url\":\"https://a.example/\",\"title\":\"A\",\"snippets\":[\"s1\",\"s2\"]}}"}]}`,
			[]string{chunk(`{"content":"Ebbe"}`), chunk(`{"content":[{"type":"reference","reference_ids":[0]}]}`), chunk(`{"content":{"type":"text","text":"."}}`)},
			`text 0/0/0 "Ebbe"
head format=mistral-chat
head provider=mistral
source 0 web id="0" title="A" url="https://a.example/" content="s1\ns2"
cite  0/0/0 point here -> 0
text 0/0/0 "."`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), record(t, tt.format, tt.request, tt.docs...)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if got := Detect(nil, scan.Value(tt.docs[0])); got != tt.format && !strings.Contains(tt.name, "in a stream") {
				t.Errorf("recognised as %q, want %q", got, tt.format)
			}
		})
	}
}

func TestDetectChat(t *testing.T) {
	tests := []struct{ doc, want string }{
		{`{"object":"chat.completion.chunk","choices":[]}`, "openai-chat"},
		{`{"choices":[{"message":{"content":"a"}}]}`, "openai-chat"},
		{`{"choices":[{"delta":{}}]}`, "openai-chat"},
		{`{"choices":[{"text":"a"}],"object":"text_completion"}`, ""},
		{`{"choices":[{"text":"a"}]}`, ""},
		{`{"choices":[]}`, ""},
		{`{"choices":{}}`, ""},
		{`{"choices":["a"]}`, ""},
		{`{"model":"grok-9","choices":[{"delta":{}}]}`, "xai-chat"},
		{`{"model":"x-ai/grok-9","id":"gen-1","choices":[{"delta":{}}]}`, "openrouter-chat"},
		{`{"model":"sonar-pro","choices":[{"delta":{}}]}`, "perplexity-chat"},
		{`{"model":"magistral-x","choices":[{"delta":{}}]}`, "mistral-chat"},
		{`{"model":"mistral-saba","x_groq":{},"choices":[{"delta":{}}]}`, "openai-chat"},
		{`{"model":"","object":"","choices":[],"prompt_filter_results":[]}`, "azure-chat"},
		{`{"model":"gpt-x","choices":[{"delta":{},"content_filter_results":{}}]}`, "azure-chat"},
		{`{"id":"x","citations":["https://a.example/"],"choices":[{"message":{"content":"a"}}]}`, "perplexity-chat"},
		{`{"id":"x","citations":[],"choices":[{"message":{"content":"a"}}]}`, "openai-chat"},
		{`{"id":"x","message":{"content":[]},"citations":[]}`, ""},
		{`{"error":{"message":"x"}}`, ""},
		{`{}`, ""},
	}
	for _, tt := range tests {
		got := Detect(nil, scan.Value(tt.doc))
		if !strings.HasSuffix(got, "-chat") {
			got = ""
		}
		if got != tt.want {
			t.Errorf("Detect(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
}

// TestChatDocuments: documents that the caller gives take the place of those of the request.
func TestChatDocuments(t *testing.T) {
	var got []string
	p := newChat(&Config{
		Documents: []Source{{Key: "a", Kind: KindDocument, Title: "A"}, {Kind: KindDocument, Title: "B"}},
		Emit:      func(op *Op) { got = append(got, line(op)) },
	})
	p.Parse(nil, scan.Value(chatBody(`{"content":[{"type":"reference","reference_ids":["a",1]}]}`)))
	if want := `source 1 document title="B"`; !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("operations %q lack %q", got, want)
	}
}

func FuzzChat(f *testing.F) {
	f.Add(chatBody(`{"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"u","start_index":0,"end_index":1}}]}`), chunk(`{"content":"\ud83c"}`))
	f.Add(`{"usage":{},"citations":["u"],"object":"chat.completion.chunk","choices":[{"message":{"content":"a\""},"delta":{"content":"b"}}]}`, `{"usage":{"x":1},"citations":["u"],"object":"chat.completion.chunk","choices":[{"message":{"content":"a"},"delta":{"content":"b`)
	f.Add(`{"choices":[{"messages":[{"role":"tool","content":"{\"messages\":[{\"role\":\"tool\"}],\"citations\":[{}]}"}]}]}`, `{"choices":[{"delta":{"content":[{"type":"reference","reference_ids":[{},[],1]}]}}],"obfuscation":"x"}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		fuzzParser(t, newChat, one, two)
		Detect(nil, scan.Value(one))
	})
}
