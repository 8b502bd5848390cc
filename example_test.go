package ibid_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/ibidhq/ibid"
)

// body is a response of Gemini: its offsets count UTF-8 bytes, so the ä of März counts twice.
var body = []byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"Herons nest in the old mill. They come back in März."}]},
"finishReason":"STOP","groundingMetadata":{
"groundingChunks":[
 {"web":{"uri":"https://birds.example/mill","title":"The mill colony"}},
 {"web":{"uri":"https://birds.example/calendar","title":"Calendar"}}],
"groundingSupports":[
 {"segment":{"endIndex":28,"text":"Herons nest in the old mill."},"groundingChunkIndices":[0]},
 {"segment":{"startIndex":29,"endIndex":53,"text":"They come back in März."},"groundingChunkIndices":[1]}]}}]}`)

// stream is a stream of Gemini: the sources come with the last event.
const stream = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"The mill "}]}}]}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"is old."}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://birds.example/mill","title":"The mill colony"}}],"groundingSupports":[{"segment":{"endIndex":16,"text":"The mill is old."},"groundingChunkIndices":[0]}]}}]}

`

func ExampleDecode() {
	show := func() error {
		answer, err := ibid.Decode(body, nil) // Gemini, OpenAI, Cohere, Anthropic, Perplexity, Bedrock, … detected from the bytes
		if err != nil {
			return err
		}
		fmt.Println(answer.Render(&ibid.RenderOptions{List: true}))
		return nil
	}
	if err := show(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Herons nest in the old mill.[1](https://birds.example/mill) They come back in März.[2](https://birds.example/calendar)
	//
	// Sources:
	//
	// 1. [The mill colony](https://birds.example/mill) — birds.example
	// 2. [Calendar](https://birds.example/calendar) — birds.example
}

// The request names the documents that the response refers to by number.
func ExampleDecodeOptions() {
	request := []byte(`{"messages":[{"role":"user","content":[
{"type":"document","title":"Tide tables","source":{"type":"text","data":"High water is at noon. Low water is at six."},"citations":{"enabled":true}},
{"type":"text","text":"When is high water?"}]}]}`)
	body := []byte(`{"type":"message","role":"assistant","id":"msg_1","stop_reason":"end_turn","content":[
{"type":"text","text":"At noon","citations":[{"type":"char_location","cited_text":"High water is at noon. ","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":23}]},
{"type":"text","text":"."}]}`)

	answer, err := ibid.Decode(body, &ibid.DecodeOptions{Request: request})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Sources[0].Title, "says:", answer.Citations[0].Refs[0].Quote)
	// Output: Tide tables says: High water is at noon.
}

func ExampleStream() {
	response := &http.Response{Body: io.NopCloser(strings.NewReader(stream))}
	show := func() error {
		live := ibid.Live{W: os.Stdout, List: true} // writes the text as it arrives, with markers where citations are certain
		for event, err := range ibid.Stream(response.Body, nil) {
			if err != nil {
				return err
			}
			live.Event(event)
		}
		if err := live.Close(); err != nil { // writes the sources, and citations that came too late for a marker
			return err
		}
		return nil
	}
	if err := show(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The mill is old.[1](https://birds.example/mill)
	//
	// Sources:
	//
	// 1. [The mill colony](https://birds.example/mill) — birds.example
}

// Numbers stay the same throughout a conversation.
func ExampleNumbering() {
	question, _ := ibid.Decode(body, nil)
	followUp, _ := ibid.Decode([]byte(strings.ReplaceAll(string(body), `"groundingChunkIndices":[0]`, `"groundingChunkIndices":[1]`)), nil)

	var numbers ibid.Numbering
	first := question.Render(&ibid.RenderOptions{Numbering: &numbers, Style: ibid.StylePlain})
	second := followUp.Render(&ibid.RenderOptions{Numbering: &numbers, Style: ibid.StylePlain})
	fmt.Println(first)
	fmt.Println(second)
	// Output:
	// Herons nest in the old mill.[1] They come back in März.[2]
	// Herons nest in the old mill.[2] They come back in März.[2]
}

// A browser counts in UTF-16.
func ExampleAnswer_Document() {
	answer, _ := ibid.Decode(body, nil)
	document := answer.Document(&ibid.DocumentOptions{Unit: ibid.UTF16})
	last := document.Citations[1]
	fmt.Println(*last.TextStart, *last.TextEnd, *last.CitedText)
	// Output: 29 52 They come back in März.
}
