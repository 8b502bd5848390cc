package call

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestReadRequest(t *testing.T) {
	for _, test := range []struct {
		name, format, body string
		want               Request
	}{
		{
			"Responses: a string, instructions", "openai-responses",
			`{"model":"gpt-5.2","instructions":"Be brief.","input":"Où ?","stream":true,"tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`,
			Request{"gpt-5.2", true, []Message{{"system", "Be brief."}, {"user", "Où ?"}}, []string{"web_search", "f"}, true},
		},
		{
			"Responses: items; what nobody reads is left out", "openai-responses",
			`{"input":[
				{"role":"developer","content":"D"},
				{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"x"},{"type":"input_text","text":"b"}]},
				{"type":"reasoning","summary":[{"type":"summary_text","text":"no"}]},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"},{"type":"output_text","text":"d"}]},
				{"type":"function_call","name":"f","arguments":"{}"},
				{"type":"function_call_output","call_id":"1","output":"42"},
				{"type":"item_reference","id":"i"}],
				"tools":[{"type":"function","name":"search"}]}`,
			Request{Messages: []Message{{"system", "D"}, {"user", "a\nb"}, {"assistant", "cd"}, {"tool", "42"}}, Tools: []string{"search"}},
		},
		{
			"chat", "openai-chat",
			`{"model":"gpt-4o-search-preview","messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"T"},
				{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}],
				"tools":[{"type":"function","function":{"name":"f"}}]}`,
			Request{"gpt-4o-search-preview", false, []Message{{"system", "S"}, {"user", "U"}, {"tool", "T"}, {"user", ""}}, []string{"f"}, true},
		},
		{
			"Gemini", "gemini-generate",
			`{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"parts":[{"text":"no role"}]},
				{"role":"model","parts":[{"text":"thinking","thought":true},{"text":"A"},{"text":"B"},{"functionCall":{"name":"f"}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"x": 1}}}]},
				{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"text":"U"}]}],
				"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f"},{"name":"g"}]}]}`,
			Request{Messages: []Message{{"system", "S"}, {"user", "no role"}, {"assistant", "AB"}, {"tool", `{"x":1}`}, {"user", "U"}}, Tools: []string{"googleSearch", "f", "g"}, Grounded: true},
		},
		{
			"Gemini: snake case, one in place of a list", "gemini-generate",
			`{"system_instruction":{"parts":{"text":"S"}},"contents":{"parts":{"text":"U"}},"tools":{"google_search":{},"code_execution":{}}}`,
			Request{Messages: []Message{{"system", "S"}, {"user", "U"}}, Tools: []string{"google_search", "code_execution"}, Grounded: true},
		},
		{
			"Interactions: steps", "gemini-interactions",
			`{"model":"g","stream":true,"system_instruction":"S","input":[{"type":"user_input","content":[{"type":"text","text":"U"}]},
				{"type":"thought","signature":"x"},{"type":"model_output","content":[{"type":"text","text":"A"}]},
				{"type":"function_result","call_id":"c","result":"T"},{"type":"user_input","content":"V"}],"tools":[{"type":"google_search"}]}`,
			Request{"g", true, []Message{{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"tool", "T"}, {"user", "V"}}, []string{"google_search"}, true},
		},
		{
			"Interactions: content is one message", "gemini-interactions",
			`{"input":[{"type":"text","text":"a"},{"type":"image","uri":"x"},{"type":"text","text":"b"}]}`,
			Request{Messages: []Message{{"user", "a\nb"}}},
		},
		{
			"Interactions: turns", "gemini-interactions", `{"input":[{"role":"user","content":"U"},{"role":"model","content":[{"type":"text","text":"A"}]}]}`,
			Request{Messages: []Message{{"user", "U"}, {"assistant", "A"}}},
		},
		{
			"Cohere v1: history before the message, whatever their order", "cohere-v1",
			`{"message":"new","preamble":"P","chat_history":[{"role":"USER","message":"U"},{"role":"Chatbot","message":"A"}],"connectors":[{"id":"web-search"}]}`,
			Request{Messages: []Message{{"system", "P"}, {"user", "U"}, {"assistant", "A"}, {"user", "new"}}, Tools: []string{"web-search"}, Grounded: true},
		},
		{
			"Cohere v2", "cohere-v2",
			`{"model":"command-a","messages":[{"role":"user","content":[{"type":"text","text":"U"}]}],"documents":["d"]}`,
			Request{Model: "command-a", Messages: []Message{{"user", "U"}}, Grounded: true},
		},
		{
			"Cohere v1: a tool's results, and no words", "cohere-v1",
			`{"message":"","tool_results":[{"call":{"name":"f"},"outputs":[{"x": 1}]}],"chat_history":[{"role":"USER","message":"U"}]}`,
			Request{Messages: []Message{{"user", "U"}, {"tool", `[{"x":1}]`}}, Grounded: true},
		},
		{
			"Cohere v2: a tool's results can be cited", "cohere-v2", `{"messages":[{"role":"tool","content":"T"},{"role":"tool","content":[{"type":"document","document":{"data":"U"}},{"type":"document","document":{"data":{"x": 1}}}]}]}`,
			Request{Messages: []Message{{"tool", "T"}, {"tool", "U"}, {"tool", `{"x":1}`}}, Grounded: true},
		},
		{"no documents", "cohere-v2", `{"documents":[]}`, Request{}},
		{
			"Anthropic: an answer is cut where it cites; results are the tool's", "anthropic-messages",
			`{"system":[{"type":"text","text":"S"},{"type":"text","text":"T"}],"messages":[
				{"role":"user","content":[{"type":"document","source":{"type":"text","data":"no"},"citations":{"enabled":true}},{"type":"text","text":"U"}]},
				{"role":"assistant","content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"A"},{"type":"text","text":" B"},{"type":"tool_use","id":"1"}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"R"}]},{"type":"text","text":"V"}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"2"}]}],
				"tools":[{"name":"f","input_schema":{}},{"type":"tool_search_tool_bm25_20251119","name":"tool_search"}]}`,
			Request{Messages: []Message{{"system", "S\nT"}, {"user", "U"}, {"assistant", "A B"}, {"tool", "R"}, {"user", "V"}}, Tools: []string{"f", "tool_search_tool_bm25_20251119"}, Grounded: true},
		},
		{
			"Anthropic: a document that is not to be cited", "anthropic-messages",
			`{"messages":[{"role":"user","content":[{"type":"document","source":{}},{"type":"text","text":"U"}]}]}`,
			Request{Messages: []Message{{"user", "U"}}},
		},
		{"Anthropic: search results", "anthropic-messages", `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"search_result","citations":{"enabled":true}}]}]}]}`, Request{Grounded: true}},
		{
			"Bedrock", "bedrock-converse",
			`{"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"U"},{"document":{"name":"d","citations":{"enabled":true}}}]},
				{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"no"}]}},{"text":"A"}]},
				{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"R"}]}}]}],
				"toolConfig":{"tools":[{"toolSpec":{"name":"f"}},{"systemTool":{"name":"nova_grounding"}}]}}`,
			Request{Messages: []Message{{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"tool", "R"}}, Tools: []string{"f", "nova_grounding"}, Grounded: true},
		},
		{"a knowledge base", "bedrock-rag", `{"input":{"text":"U"}}`, Request{Messages: []Message{{"user", "U"}}, Grounded: true}},
		{"Vertex AI Search", "vertex-search", `{"query":{"text":"U"}}`, Request{Messages: []Message{{"user", "U"}}, Grounded: true}},
		{"Perplexity", "perplexity-chat", `{"messages":[{"role":"user","content":"U"}]}`, Request{Messages: []Message{{"user", "U"}}, Grounded: true}},
		{
			"Mistral's conversations", "mistral-conversations",
			`{"instructions":"S","inputs":[{"object":"entry","type":"message.input","role":"user","content":"U"},{"type":"message.output","role":"assistant","content":[{"type":"text","text":"A"},{"type":"tool_reference","title":"t"}]},
				{"type":"function.result","tool_call_id":"1","result":"R"}],"tools":[{"type":"document_library"}]}`,
			Request{Messages: []Message{{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"tool", "R"}}, Tools: []string{"document_library"}, Grounded: true},
		},
		{"Mistral: a string", "", `{"inputs":"U"}`, Request{Messages: []Message{{"user", "U"}}}},
		{"Mistral: one chunk that is no list", "", `{"messages":[{"role":"user","content":{"type":"text","text":"U"}}]}`, Request{Messages: []Message{{"user", "U"}}}},
		{"OpenRouter: online", "", `{"model":"x/y:online"}`, Request{Model: "x/y:online", Grounded: true}},
		{"OpenRouter: plugins", "", `{"plugins":[{"id":"file-parser"},{"id":"web"}]}`, Request{Tools: []string{"file-parser", "web"}, Grounded: true}},
		{"Azure: own data", "", `{"data_sources":[{"type":"azure_search"}]}`, Request{Grounded: true}},
		{"OpenAI: chat search", "", `{"web_search_options":{}}`, Request{Grounded: true}},
		{"xAI: live search", "", `{"search_parameters":{"mode":"auto"}}`, Request{Grounded: true}},
		{"xAI: no search", "", `{"search_parameters":{"mode":"off"}}`, Request{}},

		{"wrong types", "openai-chat", `{"model":7,"stream":"true","messages":{"a":1},"tools":"x","system":null,"documents":{}}`, Request{Messages: []Message{{"user", ""}}}},
		{"odd elements", "", `{"messages":[null,7,[],"s",{"role":"martian","content":"x"},{"role":7,"content":[[],null,"p",{"text":7}]}],"tools":[null,"x",{}]}`, Request{Messages: []Message{{"user", "s"}, {"user", "p"}}}},
		{"cut", "", ` {"model":"m","messages":[{"role":"user","content":"U"},{"role":"user","content":"ha`, Request{Model: "m", Messages: []Message{{"user", "U"}, {"user", ""}}}},
		{"not UTF-8", "", "{\"model\":\"m\xff\",\"input\":\"a\\ud83db\"}", Request{Model: "m\uFFFD", Messages: []Message{{"user", "a\uFFFDb"}}}},
		{"nothing", "", `{}`, Request{}},
	} {
		body := []byte(test.body)
		got, err := ReadRequest(test.format, body)
		clear(body) // nothing of it is kept
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestReadRequestRefuses(t *testing.T) {
	for _, body := range []string{"", " ", "null", "[]", `"x"`, "x", "\xef\xbb\xbf{}"} {
		if r, err := ReadRequest("", []byte(body)); err == nil {
			t.Errorf("%q gives %+v, want an error", body, r)
		}
	}
}

func TestLastUser(t *testing.T) {
	r, err := ReadRequest("", []byte(`{"messages":[{"role":"user","content":"first"},{"role":"user","content":"last"},{"role":"assistant","content":"A"},
		{"role":"user","content":[{"type":"tool_result","content":"R"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := r.LastUser(); !ok || m.Text != "last" {
		t.Errorf("LastUser = %v, %t, want the last words of the user", m, ok)
	}
	if m, ok := (&Request{Messages: []Message{{RoleSystem, "S"}}}).LastUser(); ok {
		t.Errorf("LastUser of a request without one = %v", m)
	}
}

// A body that names more messages or tools than are kept loses the oldest messages and the last tools.
func TestReadRequestLimits(t *testing.T) {
	body := `{"messages":[` + strings.Repeat(`"old",`, 3*MaxMessages) + `"new"],"tools":[{"name":"first"}` + strings.Repeat(`,{"name":"more"}`, MaxTools) + `]}`
	r, err := ReadRequest("", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Messages); n != MaxMessages || r.Messages[n-1].Text != "new" || cap(r.Messages) > 4*MaxMessages {
		t.Errorf("%d messages of room for %d, the last %v, want %d ending with the newest", n, cap(r.Messages), r.Messages[n-1], MaxMessages)
	}
	if len(r.Tools) != MaxTools || r.Tools[0] != "first" {
		t.Errorf("%d tools from %q, want %d from the first", len(r.Tools), r.Tools[0], MaxTools)
	}
}

// Every recorded request gives its user's words; one whose answer had citations of the provider's asked for grounding.
func TestReadRecordedRequests(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "corpus")
	f, err := os.Open(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		column := strings.Split(lines.Text(), "\t")
		name := strings.TrimSuffix(column[0], filepath.Ext(column[0])) + ".request.json"
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue // none was recorded
		}
		r, err := ReadRequest(column[2], body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read++
		if m, ok := r.LastUser(); !ok || m.Text == "" {
			t.Errorf("%s: no words of the user in %+v", name, r)
		}
		// Code writes files, which are cited; a Gemini model recites what it learnt: neither was asked for.
		unasked := slices.Equal(r.Tools, []string{"code_interpreter"}) || column[1] == "gemini" && r.Tools == nil
		if cited := column[5] != "0"; cited && !r.Grounded && !unasked {
			t.Errorf("%s: not grounded, with %s citations", name, column[5])
		}
	}
	if read < 100 {
		t.Errorf("%d recorded requests, want more than 100", read)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(`{"model":"m","input":[{"type":"user_input","content":[{"text":"\ud83d"}]}],"tools":[{"toolSpec":{"name":"f"}}]}`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"x`)
	f.Add(`{"contents":{"parts":[[{"functionResponse":{}}]]},"message":{},"system":[[]]}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := ReadRequest("", []byte(body))
		if err != nil {
			if strings.HasPrefix(body, "{") {
				t.Errorf("an object is refused: %v", err)
			}
			return
		}
		for _, m := range r.Messages {
			if !utf8.ValidString(m.Text) || m.Text == "" && m.Role != RoleUser {
				t.Errorf("message %+q", m)
			}
		}
		if len(r.Messages) > MaxMessages || len(r.Tools) > MaxTools {
			t.Errorf("%d messages, %d tools", len(r.Messages), len(r.Tools))
		}
		for _, tool := range r.Tools {
			if tool == "" || !utf8.ValidString(tool) {
				t.Errorf("tool %+q", tool)
			}
		}
	})
}

func BenchmarkReadRequest(b *testing.B) {
	for _, bench := range []struct {
		name         string
		turns, bytes int // before the question
	}{{"question", 0, 0}, {"2KB", 9, 180}, {"100KB", 9, 10_000}} {
		turn := `{"role":"user","content":"` + strings.Repeat("words ", bench.bytes/6) + `"},`
		body := []byte(`{"model":"gpt-5.2","stream":true,"messages":[` + strings.Repeat(turn, bench.turns) + `{"role":"user","content":"?"}]}`)
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadRequest("openai-chat", body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
