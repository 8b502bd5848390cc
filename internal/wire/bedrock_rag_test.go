package wire

import "testing"

func TestBedrockRAG(t *testing.T) {
	testParser(t, "bedrock-rag", []parserTest{
		{
			name: "inclusive ends",
			docs: []string{
				`{"output":{"text":"Die Brücke hält. Sie ist alt."},"citations":[{"generatedResponsePart":{"textResponsePart":{"text":"Die Brücke hält.","span":{"start":0,"end":15}}},"retrievedReferences":[{"content":{"type":"TEXT","text":"hält"},"location":{"type":"S3","s3Location":{"uri":"s3://bridges/a.pdf"}},"metadata":{"x-amz-bedrock-kb-source-uri":"s3://bridges/a.pdf","x-amz-bedrock-kb-document-page-number":3.0,"x-amz-bedrock-kb-chunk-id":"c7"}},{"content":{"text":"b"},"location":{"type":"WEB","webLocation":{"url":"https://b.example/"}},"metadata":{"title":"B"}}]},{"generatedResponsePart":{"textResponsePart":{"text":"Sie ist alt.","span":{"start":17,"end":28}}},"retrievedReferences":[]}],"sessionId":"s1"}`,
			},
			want: []string{
				`text 0/0/0 "Die Brücke hält. Sie ist alt."`,
				`source s3://bridges/a.pdf file url="s3://bridges/a.pdf" filename="a.pdf" content="hält" chunk="c7" page=3 at-chunk="c7"`,
				`source https://b.example/ web title="B" url="https://b.example/" content="b"`,
				`cite citation:0 0/0/0 claim 0-16 code-points of answer quote="Die Brücke hält." -> s3://bridges/a.pdf "hält" page=3 at-chunk="c7" -> https://b.example/ "b"`,
				`end`,
			},
		},
		{
			name: "spans of no use",
			docs: []string{
				`{"output":{"text":"abc"},"citations":[{"generatedResponsePart":{"textResponsePart":{"text":"abc","span":{"end":2}}},"retrievedReferences":[{"content":{"text":"x"}}]},{"generatedResponsePart":{"textResponsePart":{"text":"abc","span":{"start":-1,"end":2}}},"retrievedReferences":[{"content":{"text":"y"},"location":{"type":"CUSTOM","customDocumentLocation":{"id":"d-1"}}}]},{"generatedResponsePart":{"textResponsePart":{"text":"abc","span":{"start":0}}},"retrievedReferences":[{}]},{"generatedResponsePart":{"textResponsePart":{"text":"abc"}},"retrievedReferences":[{"metadata":{"x-amz-bedrock-kb-source-uri":"https://m.example/"}}]},{"retrievedReferences":[null]},{}],"sessionId":"s1"}`,
			},
			want: []string{
				`text 0/0/0 "abc"`,
				`source reference:0 document content="x"`,
				`cite citation:0 0/0/0 claim 0-3 code-points of answer quote="abc" -> reference:0 "x"`,
				`issue bad-number span start -1`,
				`source d-1 document global="d-1" content="y"`,
				`cite citation:1 0/0/0 claim nowhere quote="abc" -> d-1 "y"`,
				`source reference:1 document`,
				`cite citation:2 0/0/0 claim nowhere quote="abc" -> reference:1`,
				`source https://m.example/ document url="https://m.example/"`,
				`cite citation:3 0/0/0 claim nowhere quote="abc" -> https://m.example/`,
				`source reference:2 document`,
				`cite citation:4 0/0/0 claim nowhere -> reference:2`,
				`end`,
			},
		},
		{
			name: "a guardrail",
			docs: []string{
				`{"output":{"text":"No."},"citations":[],"sessionId":"s1","guardrailAction":"INTERVENED"}`,
			},
			want: []string{
				`text 0/0/0 "No."`,
				`finish 0 filter`,
				`end`,
			},
		},
		{
			name: "no guardrail",
			docs: []string{
				`{"output":{"text":"Yes."},"citations":null,"sessionId":"s1","guardrailAction":"NONE"}`,
			},
			want: []string{
				`text 0/0/0 "Yes."`,
				`end`,
			},
		},
		{
			name: "a stream",
			docs: []string{
				`output {"text":"Die Brücke"}`,
				`output {"text":" hält."}`,
				`citation {"generatedResponsePart":{"textResponsePart":{"text":"Die Brücke hält.","span":{"start":0,"end":15}}},"retrievedReferences":[{"content":{"text":"x"},"location":{"type":"WEB","webLocation":{"url":"https://b.example/"}}}],"citation":{"generatedResponsePart":{"textResponsePart":{"text":"Die Brücke hält."}}}}`,
				`citation {"citation":{"generatedResponsePart":{"textResponsePart":{"text":"hält","span":{"start":11,"end":14}}},"retrievedReferences":[{"content":{"text":"y"}}]}}`,
				`citation {"retrievedReferences":[{"content":{"text":"z"}}]}`,
				`guardrail {"action":"INTERVENED"}`,
			},
			want: []string{
				`text 0/0/0 "Die Brücke"`,
				`text 0/0/0 " hält."`,
				`source https://b.example/ web url="https://b.example/" content="x"`,
				`cite citation:0 0/0/0 claim 0-16 code-points of answer quote="Die Brücke hält." -> https://b.example/ "x"`,
				`source reference:0 document content="y"`,
				`cite citation:1 0/0/0 claim 11-15 code-points of answer quote="hält" -> reference:0 "y"`,
				`source reference:1 document content="z"`,
				`cite citation:2 0/0/0 claim nowhere -> reference:1 "z"`,
				`finish 0 filter`,
				`end`,
			},
		},
		{
			name: "an agent's chunks",
			docs: []string{
				`chunk {"bytes":"R3LDvMOfZS4g","attribution":{"citations":[{"generatedResponsePart":{"textResponsePart":{"text":"Grüße.","span":{"start":0,"end":5}}},"retrievedReferences":[{"content":{"text":"x"},"location":{"type":"WEB","webLocation":{"url":"https://b.example/"}}}]}]}}`,
				`{"trace":{"orchestrationTrace":{}}}`,
				`{"chunk":{"bytes":"RW5kZS4="}}`,
				`{"bytes":"?"}`,
				`{"chunk":{"bytes":8}}`,
			},
			want: []string{
				`text 0/0/0 "Grüße. "`,
				`source https://b.example/ web url="https://b.example/" content="x"`,
				`cite citation:0 0/0/0 claim 0-6 code-points of answer quote="Grüße." -> https://b.example/ "x"`,
				`text 0/0/0 "Ende."`,
				`text 0/0/0 ""`,
				`end`,
			},
		},
		{
			name: "an exception",
			docs: []string{
				`output {"text":"a"}`,
				`throttlingException {"message":"Slow down"}`,
				`nonsense {"a":1}`,
			},
			want: []string{
				`text 0/0/0 "a"`,
				`error throttlingException "Slow down"`,
				`end`,
			},
		},
	})
}

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
