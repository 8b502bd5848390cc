package wire

import (
	"strconv"
	"strings"
	"testing"
)

func FuzzVertexSearch(f *testing.F) {
	f.Add([]byte(`{"answer":{"state":"SUCCEEDED","answerText":"ab","citations":[{"endIndex":"2","sources":[{"referenceId":"0"}]}],"references":[{"chunkInfo":{"content":"c","documentMetadata":{"uri":"gs://b/x"}}},{"unstructuredDocumentInfo":{"chunkContents":[{"content":"x"}]}}]}}`))
	f.Add([]byte(`{"summary":{"summaryText":"a [1]","summaryWithMetadata":{"summary":"a","citationMetadata":{"citations":[{"sources":[{}]}]},"references":[{"uri":"u"}]}},"results":[{"document":{"derivedStructData":{"link":"u","snippets":[{}]}}}]}`))
	fuzzGoogle(f, "vertex-search")
}

func BenchmarkVertexSearch(b *testing.B) {
	var refs, cites []string
	for i := range 10 {
		n := strconv.Itoa(i)
		refs = append(refs, `{"chunkInfo":{"chunk":"projects/p/chunks/`+n+`","content":"`+strings.Repeat("Der Berg steht im Frühling. ", 40)+`","relevanceScore":0.5,"documentMetadata":{"document":"projects/p/documents/`+n+`","uri":"https://berge.example/`+n+`","title":"Berge"}}}`)
		cites = append(cites, `{"startIndex":"`+strconv.Itoa(i*29)+`","endIndex":"`+strconv.Itoa(i*29+28)+`","sources":[{"referenceId":"`+n+`"}]}`)
	}
	text := strings.Repeat("Der Berg steht im Frühling. ", 12)
	docs := [][]byte{[]byte(`{"answer":{"state":"STREAMING","references":[` + strings.Join(refs, ",") + `]}}`)}
	for i := range 12 {
		docs = append(docs, []byte(`{"answer":{"state":"STREAMING","answerText":"`+text[i*29:i*29+29]+`"}}`))
	}
	docs = append(docs, []byte(`{"answer":{"state":"SUCCEEDED","answerText":"`+text+`","citations":[`+strings.Join(cites, ",")+`],"references":[`+strings.Join(refs, ",")+`]}}`))
	benchStreams(b, benchStream{"stream", "vertex-search", docs})
}
