package bench_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// recording is the recorded responses of one provider in one format.
type recording struct {
	name   string
	stream bool
	inputs [][]byte // as recorded
	docs   [][]byte // their JSON
}

// recordings returns each provider's recordings, either streams or bodies.
func recordings(b *testing.B, stream bool) []recording {
	b.Helper()
	dir := filepath.Join(testenv.Shared(b), "corpus")
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		b.Skipf("reading the list of recordings: %v", err)
	}
	var all []recording
	for line := range strings.Lines(string(manifest)) {
		row := strings.Split(line, "\t")
		if len(row) < 4 || row[0] == "path" || stream != (row[3] == "y") {
			continue
		}
		input, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(row[0])))
		if err != nil {
			continue // listed, but stored elsewhere
		}
		name := row[1] + "/" + strings.TrimSuffix(row[2], "-stream")
		i := slices.IndexFunc(all, func(r recording) bool { return r.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, recording{name: name, stream: stream})
		}
		all[i].inputs = append(all[i].inputs, input)
		all[i].docs = append(all[i].docs, documentsOf(b, filepath.Join(dir, filepath.FromSlash(row[0])), input)...)
	}
	return all
}

// documentsOf returns the JSON of a recording.
func documentsOf(b *testing.B, path string, input []byte) [][]byte {
	b.Helper()
	var docs [][]byte
	switch filepath.Ext(path) {
	case ".json":
		return [][]byte{input}
	case ".eventstream":
		decoded, err := os.ReadFile(strings.TrimSuffix(path, ".eventstream") + ".jsonl")
		if err != nil {
			b.Skip(err)
		}
		input = decoded
	}
	for line := range bytes.Lines(input) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data: ")))
		if len(line) > 0 && line[0] == '{' {
			docs = append(docs, line)
		}
	}
	return docs
}

func (r *recording) size() int {
	n := 0
	for _, d := range r.docs {
		n += len(d)
	}
	return n
}

// BenchmarkRecordedStreams reads recorded streams.
func BenchmarkRecordedStreams(b *testing.B) { benchRecordings(b, true) }

// BenchmarkRecordedBodies reads recorded bodies.
func BenchmarkRecordedBodies(b *testing.B) { benchRecordings(b, false) }

func benchRecordings(b *testing.B, stream bool) {
	b.Helper()
	for _, r := range recordings(b, stream) {
		b.Run(r.name, func(b *testing.B) {
			b.Run("by=ibid", func(b *testing.B) {
				b.SetBytes(int64(r.size()))
				b.ReportAllocs()
				for b.Loop() {
					for _, input := range r.inputs {
						if stream {
							decode(b, input)
						} else if _, err := ibid.Decode(input, nil); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
			b.Run("by=json", func(b *testing.B) { benchValid(b, r.docs) })
			b.Run("by=struct", func(b *testing.B) { benchByHand(b, r.docs, byHandOf(r.name, stream)) })
		})
	}
}

// byHandOf returns the function that decodes a document of a recording.
func byHandOf(name string, stream bool) func([]byte) (string, error) {
	_, format, _ := strings.Cut(name, "/")
	switch format {
	case "openai-responses":
		if stream {
			return byHand(func(e *responsesEvent) string { return e.Delta })
		}
		return byHand((*responsesBody).text)
	case "anthropic-messages":
		if stream {
			return byHand(func(e *anthropicEvent) string { return e.Delta.Text })
		}
		return byHand((*anthropicBody).text)
	case "gemini", "gemini-generate":
		return byHand((*geminiChunk).text)
	case "gemini-interactions":
		return byHand(func(e *interactionEvent) string { return e.Delta.Text })
	case "cohere-v2":
		if stream {
			return byHand(func(e *cohere2Event) string { return e.Delta.Message.Content.Text })
		}
		return byHand((*cohere2Body).text)
	case "cohere-v1":
		return byHand(func(e *cohere1Event) string { return e.Text })
	case "bedrock-converse":
		return byHand(func(e *converseEvent) string { return e.Delta.Text })
	default:
		return byHand((*chatChunk).text)
	}
}
