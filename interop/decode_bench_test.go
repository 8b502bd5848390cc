package interop

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicsse "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	openaisse "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// BenchmarkDecodeStream reads the same recorded streams with ibid, which yields text, sources and verified places, and
// with the provider's own SDK, which yields text and annotations as sent. The target is a tenth of the time of OpenAI's
// SDK and an eighth of Anthropic's.
func BenchmarkDecodeStream(b *testing.B) {
	for _, bench := range []struct {
		name, recording string
		sdk             func(*testing.B, *http.Response) *said
	}{
		{"openai", "openai/pydantic-ai__run.sse", readOpenAIStream},
		{"anthropic", "anthropic/pydantic-ai__anthropic-web-search-tool-stream.sse", readAnthropicStream},
	} {
		body := testenv.Must(os.ReadFile(filepath.Join(testenv.Shared(b), "corpus", bench.recording)))(b)
		answer, err := ibid.Decode(body, nil)
		testenv.OK(b, err)
		got := bench.sdk(b, eventStream(body))
		if len(got.Text) == 0 || len(got.Citations) == 0 || len(answer.Citations) < len(got.Citations) {
			b.Fatalf("%s: the SDK read %d bytes and %d citations, ibid %d and %d",
				bench.name, len(got.Text), len(got.Citations), len(answer.Text), len(answer.Citations))
		}
		b.Run(bench.name+"/by=sdk", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				bench.sdk(b, eventStream(body))
			}
		})
		b.Run(bench.name+"/by=ibid", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				for _, err := range ibid.Stream(bytes.NewReader(body), nil) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func eventStream(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func readOpenAIStream(b *testing.B, r *http.Response) *said {
	stream := openaisse.NewStream[responses.ResponseStreamEventUnion](openaisse.NewDecoder(r), nil)
	got := &said{}
	got.readResponseStream(stream)
	testenv.OK(b, stream.Err())
	return got
}

func readAnthropicStream(b *testing.B, r *http.Response) *said {
	stream := anthropicsse.NewStream[anthropic.MessageStreamEventUnion](anthropicsse.NewDecoder(r), nil)
	var message anthropic.Message
	for stream.Next() {
		testenv.OK(b, message.Accumulate(stream.Current()))
	}
	testenv.OK(b, stream.Err())
	got := &said{}
	got.readMessage(&message)
	return got
}
