package passage

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shown is what the tests compare of a passage: "id|title|url|text".
func shown(list []Passage) (all []string) {
	for _, p := range list {
		all = append(all, strings.Join([]string{p.ID, p.Title, p.URL, p.Text}, "|"))
	}
	return all
}

func TestReadText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		want     []string
		text     string
	}{
		{
			"LangChain", `[{"id":null,"page_content":"Rye needs rain.","metadata":{"source":"https://a.example/rye"}}]`,
			[]string{"||https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"LangChain, a file", `[{"page_content":"Rye needs rain.","metadata":{"source":"docs/rye.md","page":2}}]`,
			[]string{"docs/rye.md|||Rye needs rain."},
			"",
		},
		{
			"LlamaIndex", `{"response":"x","source_nodes":[{"node":{"id_":"n1","text":"Rye needs rain.","metadata":{"file_name":"rye.txt"}},"score":0.5}]}`,
			[]string{"n1|rye.txt||Rye needs rain."},
			"",
		},
		{
			"OpenAI file search", `{"data":[{"file_id":"f1","filename":"rye.md","score":0.9,"content":[{"type":"text","text":"Rye needs rain."},{"type":"text","text":"It is sown late."}]}],"search_query":["rye"]}`,
			[]string{"f1|rye.md||Rye needs rain.\nIt is sown late."},
			"",
		},
		{
			"Tavily", `{"query":"rye","answer":"It rains.","results":[{"title":"Rye","url":"https://a.example/rye","content":"Rye needs rain.","score":0.8,"raw_content":null}],"images":[]}`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"SERP", `{"organic_results":[{"position":1,"title":"Rye","link":"https://a.example/rye","snippet":"Rye needs rain.","source":"A site"}],"related_questions":[{"question":"?","snippet":"no"}]}`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"Agno", `[{"content":"Rye needs rain.","meta_data":{"title":"Rye","url":"https://a.example/rye"},"name":"rye_7"}]`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"Cohere", `[{"type":"document","document":{"id":"7","data":"{\"title\":\"Rye\",\"url\":\"https://a.example/rye\",\"text\":\"Rye needs rain.\"}"}}]`,
			[]string{"7|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"Brave", `{"web":{"results":[{"title":"Rye","url":"https://a.example/rye","description":"Rye needs rain."}]}}`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"MediaWiki", `{"query":{"searchinfo":{"totalhits":1},"search":[{"title":"Rye","pageid":7,"snippet":"Rye needs rain."}]}}`,
			[]string{"7|Rye||Rye needs rain."},
			"",
		},
		{
			"Elastic", `{"took":3,"hits":{"total":1,"hits":[{"_id":"7","_score":1.5,"_source":{"title":"Rye","body":"Rye needs rain."}}]}}`,
			[]string{"7|Rye||Rye needs rain."},
			"",
		},
		{
			"Pinecone", `{"matches":[{"id":"7","score":0.5,"metadata":{"text":"Rye needs rain.","url":"https://a.example/rye"}}]}`,
			[]string{"7||https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"Qdrant", `{"result":[{"id":7,"score":0.5,"payload":{"content":"Rye needs rain."}}],"status":"ok"}`,
			[]string{"7|||Rye needs rain."},
			"",
		},
		{
			"Chroma", `{"ids":[["a","b"]],"documents":[["Rye needs rain.","Oats do not."]],"metadatas":[[{"title":"Rye"},null]],"distances":[[0.1,0.2]]}`,
			[]string{"a|Rye||Rye needs rain.", "b|||Oats do not."},
			"",
		},
		{
			"Bedrock", `{"retrievalResults":[{"content":{"text":"Rye needs rain."},"location":{"s3Location":{"uri":"s3://b/rye.txt"}},"score":0.5}]}`,
			[]string{"s3://b/rye.txt|||Rye needs rain."},
			"",
		},
		{
			"Cohere rerank", `{"results":[{"index":0,"relevance_score":0.9,"document":{"text":"Rye needs rain."}}]}`,
			[]string{"|||Rye needs rain."},
			"",
		},
		{
			"Mistral", `{"0":{"title":"Rye","content":"Rye needs rain."},"1":{"content":"Oats do not."}}`,
			[]string{"0|Rye||Rye needs rain.", "1|||Oats do not."},
			"",
		},
		{
			"search_result", `[{"type":"search_result","source":"https://a.example/rye","title":"Rye","content":[{"type":"text","text":"Rye needs rain."}]}]`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"MCP text with JSON", `{"content":[{"type":"text","text":"{\"id\":\"r\",\"text\":\"Rye needs rain.\"}"}],"isError":false}`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{
			"MCP structured content", `{"content":[{"type":"text","text":"Rye: Rye needs rain."}],"structuredContent":{"result":[{"id":"r","text":"Rye needs rain."}]}}`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{
			"MCP resource", `[{"type":"resource","resource":{"uri":"note://rye","mimeType":"text/plain","text":"Rye needs rain."}}]`,
			[]string{"note://rye|||Rye needs rain."},
			"",
		},
		{
			"MCP resource_link", `[{"type":"text","text":"One note:"},{"type":"resource_link","uri":"https://a.example/rye","name":"rye","title":"Rye","description":"Rye needs rain."}]`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{"MCP prose", `{"content":[{"type":"text","text":"Rye needs rain."}]}`, nil, "Rye needs rain."},
		{"MCP error", `{"content":[{"type":"text","text":"no such note"}],"isError":true}`, nil, ""},
		{
			"SEP-3094", `{"content":[{"type":"text","text":"Rye needs rain, says the almanac.","citationRefs":["c1"]}],"citations":[{"id":"c1","target":{"source":"https://a.example/rye#:~:text=rain","selector":{"type":"TextQuoteSelector","exact":"Rye needs rain."},"schema:citation":{"schema:url":"https://a.example/rye","schema:name":"Rye"}}}]}`,
			[]string{"c1|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"an artifact", `{"type":"tool","content":"Content: Rye needs rain.","tool_call_id":"c","artifact":[{"page_content":"Rye needs rain.","metadata":{"id":"r"}}]}`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{
			"a serialized ToolMessage", `{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"[{\"id\":\"r\",\"text\":\"Rye needs rain.\"}]","tool_call_id":"c"}}]}`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{"the AI SDK", `{"type":"json","value":[{"id":"r","text":"Rye needs rain."}]}`, []string{"r|||Rye needs rain."}, ""},
		{
			"Strands", `{"status":"success","content":[{"text":"[{\"id\": \"r\", \"text\": \"Rye needs rain.\"}]"}]}`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{
			"own names", `{"findings":[{"url":"https://a.example/rye","title":"Rye","body":"Rye needs rain."}],"took":3}`,
			[]string{"|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"a fetched page", `{"id":"r","title":"Rye","text":"Rye needs rain.","url":"https://a.example/rye","metadata":null}`,
			[]string{"r|Rye|https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"links only", `{"results":[{"id":"r","title":"Rye","url":"https://a.example/rye"}]}`,
			[]string{"r|Rye|https://a.example/rye|"},
			"",
		},
		{
			"a Python list", `[{'id': 'r', 'title': "Farmer's rye", 'text': 'Rye needs rain.\n', 'score': None}]`,
			[]string{"r|Farmer's rye||Rye needs rain."},
			"",
		},
		{
			"Python documents", `[Document(id='r', metadata={'title': 'Rye'}, page_content='Rye needs rain.')]`,
			[]string{"r|Rye||Rye needs rain."},
			"",
		},
		{
			"a printed Python document", `page_content='Rye needs rain.' metadata={'source': 'https://a.example/rye'}`,
			[]string{"||https://a.example/rye|Rye needs rain."},
			"",
		},
		{
			"JSON lines", "{\"id\":\"r\",\"text\":\"Rye needs rain.\"}\n{\"id\":\"o\",\"text\":\"Oats do not.\"}\n",
			[]string{"r|||Rye needs rain.", "o|||Oats do not."},
			"",
		},
		{"a block of code", "```json\n[{\"id\":\"r\",\"text\":\"Rye needs rain.\"}]\n```", []string{"r|||Rye needs rain."}, ""},
		{
			"JSON that breaks off", `[{"id":"r","text":"Rye needs rain."},{"id":"o","text":"Oats do`,
			[]string{"r|||Rye needs rain."},
			"",
		},
		{"strings", `["Rye needs rain.","Oats do not."]`, []string{"|||Rye needs rain.", "|||Oats do not."}, ""},
		{"prose", "Rye needs rain.", nil, "Rye needs rain."},
		{"prose in brackets", "[1] Rye needs rain.", nil, "[1] Rye needs rain."},
		{"a record", `{"id":7,"status":"shipped","items":3}`, nil, `{"id":7,"status":"shipped","items":3}`},
		{"a wrapped text", `{"result":"Rye needs rain."}`, nil, "Rye needs rain."},
		{
			"the agent's words", `{"messages":[{"role":"user","content":"Rye?"},{"role":"assistant","content":"It needs rain."}]}`,
			nil, "",
		},
		{"an image", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, nil, ""},
	} {
		got := ReadText(test.in)
		if diff := cmp.Diff(test.want, shown(got.Passages)); diff != "" {
			t.Errorf("%s: passages:\n%s", test.name, diff)
		}
		if got.Text != test.text {
			t.Errorf("%s: text %q, want %q", test.name, got.Text, test.text)
		}
	}
}

// TestReadTextIsLinear reads nested wrappers, of which a reader that tries everything twice never comes back.
func TestReadTextIsLinear(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"lists in objects":   strings.Repeat(`{"results":[{"title":"x","data":`, 5000) + "1" + strings.Repeat("}]}", 5000),
		"objects":            strings.Repeat(`{"content":{"a":1,"result":`, 5000) + `""` + strings.Repeat("}}", 5000),
		"Python":             strings.Repeat("[(", 50_000),
		"names":              strings.Repeat(`a=`, 50_000),
		"many members":       `{` + strings.Repeat(`"results":[],`, 50_000) + `"a":1}`,
		"documents in lists": strings.Repeat(`[{"id":1,"text":"a","items":`, 5000) + "[]" + strings.Repeat("}]", 5000),
	} {
		begin := time.Now()
		ReadText(in)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(in), took)
		}
	}
}

func FuzzReadText(f *testing.F) {
	f.Add(`[{"id":"r","text":"Rye needs rain."}]`)
	f.Add(`{"content":[{"type":"text","text":"{\"id\":\"r\"}"}],"structuredContent":{"result":[]}}`)
	f.Add(`[Document(id='r', metadata={'title': 'R\u00fcbe'}, page_content="x")]`)
	f.Fuzz(func(t *testing.T, in string) {
		r := ReadText(in)
		if len(r.Passages) > maxPassages {
			t.Fatalf("%d passages", len(r.Passages))
		}
		for _, p := range r.Passages {
			if p.Text == "" && p.URL == "" {
				t.Fatalf("a passage without words and address: %+v", p)
			}
		}
		ReadJSON([]byte(in))
	})
}
