package wire

import "testing"

func FuzzBedrockRAG(f *testing.F) {
	f.Add(``, `{"output":{"text":"a"},"citations":[{"generatedResponsePart":{"textResponsePart":{"text":"a","span":{"start":0,"end":9223372036854775807}}},"retrievedReferences":[{"location":{"type":"S3","s3Location":{"uri":"s3://a/b"}},"metadata":{"x-amz-bedrock-kb-chunk-id":"c"}}]}]}`)
	f.Add(`output`, `{"text":"a"}`)
	f.Add(`chunk`, `{"bytes":"YQ==","attribution":{"citations":[{"retrievedReferences":[{}]}]}}`)
	f.Fuzz(func(t *testing.T, event, doc string) {
		fuzzEvent(t, "bedrock-rag", event, "", doc)
	})
}
