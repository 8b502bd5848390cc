package wire

import "testing"

func TestDetectBedrockRAG(t *testing.T) {
	testDetect(t, []detectTest{
		{`{"output":{"text":"a"},"sessionId":"s"}`, "bedrock-rag"},
		{`{"output":{"text":"a"}}`, ""},
		{`output {"text":"a"}`, "bedrock-rag"},
		{`citation {"retrievedReferences":[]}`, "bedrock-rag"},
		{`{"citation":{"generatedResponsePart":{}}}`, "bedrock-rag"},
		{`{"bytes":"YQ==","attribution":{}}`, "bedrock-rag"},
		{`{"chunk":{"bytes":"YQ==","attribution":{}}}`, "bedrock-rag"},
	})
}

func TestBedrockRAGKnows(t *testing.T) {
	testKnows(t, "bedrock-rag",
		[]string{`{"trace":{}}`, `{"sessionId":"s"}`, `guardrail {}`, `citation {}`, `chunk {"bytes":"YQ=="}`},
		[]string{`{}`, `[]`, ``, `{"bytes":"?"}`, `{"chunk":{"bytes":"?"}}`},
	)
}

func FuzzBedrockRAG(f *testing.F) {
	f.Add(``, `{"output":{"text":"a"},"citations":[{"generatedResponsePart":{"textResponsePart":{"text":"a","span":{"start":0,"end":9223372036854775807}}},"retrievedReferences":[{"location":{"type":"S3","s3Location":{"uri":"s3://a/b"}},"metadata":{"x-amz-bedrock-kb-chunk-id":"c"}}]}]}`)
	f.Add(`output`, `{"text":"a"}`)
	f.Add(`chunk`, `{"bytes":"YQ==","attribution":{"citations":[{"retrievedReferences":[{}]}]}}`)
	f.Fuzz(func(t *testing.T, event, doc string) {
		fuzzEvent(t, "bedrock-rag", event, "", doc)
	})
}
