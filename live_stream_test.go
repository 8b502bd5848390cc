package ibid_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// sse returns events as a stream.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func openAIDelta(text string) string {
	return `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":` + quote(text) + `}`
}

// openAILink cites words of a text that is ASCII up to their end.
func openAILink(index int, text, words, url string) string {
	at := strings.Index(text, words)
	return fmt.Sprintf(`{"type":"response.output_text.annotation.added","item_id":"m","output_index":0,"content_index":0,"annotation_index":%d,`+
		`"annotation":{"type":"url_citation","start_index":%d,"end_index":%d,"title":"T","url":%q}}`, index, at, at+len(words), url)
}

func cohereDelta(text string) string {
	return `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":` + quote(text) + `}}}}`
}

func cohereCitation(index, start int, words, id string) string {
	return fmt.Sprintf(`{"type":"citation-start","index":%d,"delta":{"message":{"citations":{"start":%d,"end":%d,"text":%q,`+
		`"sources":[{"type":"document","id":%q,"document":{"id":%q,"title":"Owls"}}],"type":"TEXT_CONTENT"}}}}`, index, start, start+len(words), words, id, id)
}

func perplexityDelta(text string) string {
	return `{"id":"p","model":"sonar","object":"chat.completion.chunk","citations":["https://a.example/","https://b.example/"],` +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":` + quote(text) + `}}]}`
}

func geminiDelta(text, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":` + quote(text) + `}]}` + more + `}]}`
}

// TestLiveStreams decodes and writes a small stream for each way to cite.
func TestLiveStreams(t *testing.T) {
	const openAIText = "Owls hunt at night ([a.example](https://a.example/n)). They sleep by day ([b.example](https://b.example/d))."
	for _, test := range []struct {
		about, stream, want string
	}{
		{
			about: "openai-responses: links, each before its citation",
			stream: sse(
				`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","output":[]}}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}`,
				`{"type":"response.content_part.added","item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
				openAIDelta("Owls hunt at night"), openAIDelta(" ([a.example](https://a"), openAIDelta(".example/n))"),
				openAILink(0, openAIText, "([a.example](https://a.example/n))", "https://a.example/n"),
				openAIDelta(". They sleep by day ([b.example](https://b.example/d))."),
				openAILink(1, openAIText, "([b.example](https://b.example/d))", "https://b.example/d"),
				`{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":`+quote(openAIText)+`}`,
				`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[]}}`,
			),
			want: "Owls hunt at night.[1] They sleep by day.[2]\n",
		},
		{
			about:  "cohere-v2, fast: each citation after its words",
			stream: cohereFast,
			want:   "The barn owl[1] hunts by ear alone.[2]\n",
		},
		{
			about: "cohere-v2, accurate: all citations at the end",
			stream: sse(
				`{"id":"r","type":"message-start","delta":{"message":{"role":"assistant","content":[],"citations":[]}}}`,
				`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
				cohereDelta("Barn owls"), cohereDelta(" hunt by ear."), cohereDelta(" They see"), cohereDelta(" little."),
				cohereCitation(0, 18, "ear.", "100"), cohereCitation(1, 28, "little.", "101"),
				`{"type":"content-end","index":0}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`,
			),
			want: "Barn owls hunt by ear. They see little.[1]\n\nAlso cited:\n\n“ear.” [2]\n",
		},
		{
			about: "anthropic-messages: citations before the text of their block",
			stream: sse(
				`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[]}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"As the guide says, "}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"citations":[],"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"Owls hunt.","document_index":0,"document_title":"Guide","start_char_index":0,"end_char_index":10}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"owls "}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hunt"}}`,
				`{"type":"content_block_stop","index":1}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":", mostly.\n\n- Bats"}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" do not."}}`,
				`{"type":"content_block_stop","index":2}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`,
			),
			want: "As the guide says, owls hunt,[1] mostly.\n\n- Bats do not.\n",
		},
		{
			about: "gemini-generate: everything with the last event",
			stream: sse(
				geminiDelta("Owls hunt at night. ", ""),
				geminiDelta("They sleep by day.", `,"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example/","title":"A"}},{"web":{"uri":"https://b.example/","title":"B"}}],`+
					`"groundingSupports":[{"segment":{"endIndex":19,"text":"Owls hunt at night."},"groundingChunkIndices":[0]},{"segment":{"startIndex":20,"endIndex":38,"text":"They sleep by day."},"groundingChunkIndices":[1,0]}]}`),
			),
			want: "Owls hunt at night. They sleep by day.[1][2]\n\nAlso cited:\n\n“Owls hunt at night.” [2]\n",
		},
		{
			about: "perplexity-chat: marks in the text, but not in code or beyond the list",
			stream: sse(
				perplexityDelta("Owls"), perplexityDelta(" hunt"), perplexityDelta("[1]"), perplexityDelta("[2]"), perplexityDelta(". See"),
				perplexityDelta(" `x[1]`"), perplexityDelta(" and[2]"), perplexityDelta("[7]."), perplexityDelta("\n\nBye."),
			) + "data: [DONE]\n\n",
			want: "Owls hunt.[1][2] See `x[1]` and[2][7].\n\nBye.\n",
		},
	} {
		t.Run(test.about, func(t *testing.T) {
			for _, size := range []int{len(test.stream), 1, 7} {
				var out bytes.Buffer
				live := ibid.Live{W: &out, Style: ibid.StylePlain}
				decoder := ibid.Decoder{OnEvent: live.Event}
				for rest := []byte(test.stream); len(rest) > 0; {
					n := min(size, len(rest))
					_, _ = decoder.Write(rest[:n])
					rest = rest[n:]
				}
				_ = decoder.Close()
				if err := live.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if diff := gocmp.Diff(test.want, out.String()); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}
