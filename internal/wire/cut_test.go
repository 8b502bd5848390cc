package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a document breaks off in counts only where it is text to show: the beginning of an address is another address, that
// of a number another number.
func TestBrokenOff(t *testing.T) {
	const gemini = `{"candidates":[{"content":{"parts":[{"text":"Yes. No."}]},"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example/"}}],"groundingSupports":[`
	tests := []struct{ name, format, docs, want string }{
		{
			"an address in Anthropic's body", "anthropic-messages",
			`{"type":"message","role":"assistant","content":[{"type":"text","text":"So.","citations":[{"type":"web_search_result_location","cited_text":"s","url":"https://a.exa`,
			"begin 0/0/0\ntext 0/0/0 \"So.\"\nend-part 0/0/0",
		},
		{
			"an offset in Anthropic's event", "anthropic-messages",
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"s","document_index":0,"start_char_index":0,"end_char_index":1`,
			"begin 0/0/0\ntext 0/0/0 \"\"",
		},
		{
			"an address in a list of OpenAI's", "openai-responses",
			`{"object":"response","model":"gpt-heron","output":[{"type":"message","content":[{"type":"output_text","text":"So.","annotations":[{"type":"url_citation","start_index":0,"end_index":3,"url":"https://a.exa`,
			"head model=gpt-heron\ntext 0/0/0 \"So.\"\nend-part 0/0/0",
		},
		{
			"a whole text said again", "openai-responses",
			`{"type":"response.output_text.delta","sequence_number":1,"delta":"So be it."}
{"type":"response.output_text.done","sequence_number":2,"text":"So b`,
			"text 0/0/0 \"So be it.\"\nfinal 0/0/0 \"So b\" cut",
		},
		{
			"a delta that came before", "openai-responses",
			`{"type":"response.output_text.delta","sequence_number":1,"delta":"So"}
{"type":"response.output_text.delta","sequence_number":2,"delta":" be it."}
{"type":"response.output_text.delta","sequence_number":2,"delta":" be`,
			"text 0/0/0 \"So\"\ntext 0/0/0 \" be it.\"\nissue duplicate-event sequence_number 2",
		},
		{
			"the model of a stream of Gemini's", "gemini-generate",
			`{"candidates":[{"content":{"parts":[{"text":"So"}]}}],"modelVersion":"gemini-heron"}
{"candidates":[{"content":{"parts":[{"text":" be it."}]}}],"modelVersion":"gem`,
			"head model=gemini-heron\ntext 0/0/0 \"So\"\ntext 0/0/0 \" be it.\"",
		},
		{
			"an address of Gemini's", "gemini-generate", strings.TrimSuffix(gemini, `mple/"}}],"groundingSupports":[`),
			`text 0/0/0 "Yes. No."`,
		},
		{
			"an offset of Gemini's", "gemini-generate", gemini + `{"groundingChunkIndices":[0],"segment":{"endIndex": 2`,
			"text 0/0/0 \"Yes. No.\"\nsource chunk:0 web url=\"https://a.example/\"",
		},
		{
			"the words of a segment", "gemini-generate", gemini + `{"groundingChunkIndices":[0],"segment":{"endIndex":8,"text":"Yes.`,
			"text 0/0/0 \"Yes. No.\"\nsource chunk:0 web url=\"https://a.example/\"",
		},
		{
			"an answer of Gemini's", "gemini-generate", `{"candidates":[{"content":{"parts":[{"text":"Hello wor`,
			`text 0/0/0 "Hello wor"`,
		},
		{
			"a part whose thought comes behind its text", "gemini-generate", `{"candidates":[{"content":{"parts":[{"text":"Secret","thought":tr`,
			``,
		},
		{
			"what may be another thought", "gemini-generate",
			`{"candidates":[{"content":{"parts":[{"text":"Secret","thought":true},{"text":"Another sec`,
			``,
		},
		{
			"the answer behind thoughts that say first what they are", "gemini-generate",
			`{"candidates":[{"content":{"parts":[{"thought":true,"text":"Secret"},{"text":"Hello wor`,
			`text 0/0/0 "Hello wor"`,
		},
		{
			"the text of one of several candidates", "gemini-generate",
			`{"candidates":[{"content":{"parts":[{"text":"A"}]},"index":0},{"content":{"parts":[{"text":"B"}]},"index":1}]}
{"candidates":[{"content":{"parts":[{"text":"whose`,
			"text 0/0/0 \"A\"\ntext 1/0/0 \"B\"",
		},
		{
			"a document of Cohere's", "cohere-v1",
			`{"text":"So.","generation_id":"g","documents":[{"id":"d","title":"T","note":"N`,
			"head id=g\nsource d document id=\"d\" title=\"T\"\nfinal 0/0/0 \"So.\"\nend",
		},
		{
			"the last of Perplexity's addresses", "perplexity-chat",
			`{"id":"p","model":"sonar","object":"chat.completion","citations":["https://a.example/","https://b.exa`,
			"head id=p\nhead model=sonar\nhead format=perplexity-chat\nhead provider=perplexity\nsource 1 web url=\"https://a.example/\"\nmarkers 0 1 style=0",
		},
		{
			"an answer of Vertex's said again", "vertex-search",
			`{"answer":{"state":"STREAMING","answerText":"The dam holds well."}}
{"answer":{"answerText":"The dam ho`,
			`text 0/0/0 "The dam holds well."`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := record(t, tt.format, "", strings.Split(tt.docs, "\n")...)
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

// With thoughts asked for, the beginning of an answer may be one.
func TestThoughtsAskedFor(t *testing.T) {
	const cut = `{"candidates":[{"content":{"parts":[{"text":"Secret`
	request := `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`
	if got := record(t, "gemini-generate", request, cut); got != nil {
		t.Errorf("said %q", got)
	}
	if got := record(t, "gemini-generate", request, cut+` no more"}]}}]}`); len(got) != 1 {
		t.Errorf("of a whole part was said %q", got)
	}
}
