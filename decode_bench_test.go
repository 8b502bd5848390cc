package ibid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// benchBody is a small response of one format with about 1,000 bytes of text.
type benchBody struct {
	name, format string
	frame        string // with %s for the text and for the citations
	cite         string // with %[1]d for the start, %[2]d for the end, %[3]d for the number and %[4]s for the words of a citation
}

func benchBodies() []benchBody {
	return []benchBody{
		{
			"chat", "openai-chat",
			`{"id":"chatcmpl-000000000042","object":"chat.completion","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"%s",` +
				`"annotations":[%s]},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":250,"total_tokens":262}}`,
			`{"type":"url_citation","url_citation":{"start_index":%[1]d,"end_index":%[2]d,"title":"Source %[3]d","url":"https://example.org/doc/%[3]d"}}`,
		},
		{
			"responses", "openai-responses",
			`{"id":"resp_0042","object":"response","created_at":1700000000,"status":"completed","error":null,"model":"gpt-4o","output":[{"id":"msg_0042","type":"message",` +
				`"status":"completed","role":"assistant","content":[{"type":"output_text","text":"%s","annotations":[%s]}]}],"usage":{"input_tokens":12,"output_tokens":250,"total_tokens":262}}`,
			`{"type":"url_citation","start_index":%[1]d,"end_index":%[2]d,"title":"Source %[3]d","url":"https://example.org/doc/%[3]d"}`,
		},
		{
			"anthropic", "anthropic-messages",
			`{"id":"msg_0042","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"%s","citations":[%s]}],` +
				`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":250}}`,
			`{"type":"char_location","cited_text":"%[4]s","document_index":%[3]d,"document_title":"Source %[3]d","start_char_index":%[1]d,"end_char_index":%[2]d}`,
		},
		{
			"cohere", "cohere-v2",
			`{"id":"c14c80c3-18eb-4519-9460-6c92edd8cfb4","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],"citations":[%s]},` +
				`"usage":{"billed_units":{"input_tokens":12,"output_tokens":250},"tokens":{"input_tokens":12,"output_tokens":250}}}`,
			`{"start":%[1]d,"end":%[2]d,"text":"%[4]s","sources":[{"type":"document","id":"doc:%[3]d","document":{"id":"doc:%[3]d","title":"Source %[3]d","snippet":"It says so."}}],"type":"TEXT_CONTENT"}`,
		},
		{
			"gemini", "gemini-generate",
			`{"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"finishReason":"STOP","citationMetadata":{"citationSources":[%s]},"index":0}],` +
				`"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":250,"totalTokenCount":262},"modelVersion":"gemini-2.5-flash","responseId":"r42"}`,
			`{"startIndex":%[1]d,"endIndex":%[2]d,"uri":"https://example.org/doc/%[3]d"}`,
		},
	}
}

// body returns the response with that number of citations.
func (b *benchBody) body(citations int) []byte {
	text := strings.Repeat("The gateway relays words from the model to its reader and keeps every source it saw on the way. ", 11)[:1000]
	cites := make([]string, citations)
	for i := range cites {
		start, end := i*10, i*10+9
		cites[i] = fmt.Sprintf(strings.ReplaceAll(b.cite, "%[4]s", text[start:end]), start, end, i)
	}
	return fmt.Appendf(nil, b.frame, text, strings.Join(cites, ","))
}

// BenchmarkBody decodes small bodies of known and of unknown format.
func BenchmarkBody(b *testing.B) {
	for _, bench := range benchBodies() {
		for _, citations := range []int{0, 4} {
			body := bench.body(citations)
			for _, format := range []string{bench.format, ""} {
				name := fmt.Sprintf("%s/citations=%d/told=%t", bench.name, citations, format != "")
				b.Run(name, func(b *testing.B) {
					o := &ibid.DecodeOptions{Format: format}
					if a, err := ibid.Decode(body, o); err != nil || a.Format != bench.format || len(a.Citations) != citations {
						b.Fatalf("format %s, %d citations, error %v", a.Format, len(a.Citations), err)
					}
					b.SetBytes(int64(len(body)))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := ibid.Decode(body, o); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
