package wire

import "testing"

func TestDetectConverse(t *testing.T) {
	testDetect(t, []detectTest{
		{`messageStart {"role":"assistant"}`, "bedrock-converse"},
		{`contentBlockDelta {}`, "bedrock-converse"},
		{`{"messageStart":{"role":"assistant"}}`, "bedrock-converse"},
		{`{"contentBlockDelta":{"delta":{}},"a":1,"b":2}`, ""},
		{`{"output":{"message":{"content":[]}},"stopReason":"end_turn"}`, "bedrock-converse"},
		{`{"output":{"message":{"content":"x"}},"stopReason":"end_turn"}`, ""},
		{`metadata {"usage":{}}`, ""},
	})
}

func TestConverseKnows(t *testing.T) {
	testKnows(t, "bedrock-converse",
		[]string{`metadata {}`, `{"metadata":{}}`, `internalServerException {"message":"x"}`, `{"output":{"message":{}}}`},
		[]string{`{}`, `[]`, ``, `sunrise {}`, `{"sunrise":{}}`, `{"metadata":7}`},
	)
}

func FuzzConverse(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"document":{"name":"a"}}]}]}`, ``, `{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"location":{"documentPage":{"start":1,"end":3}}}]}}]}}}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"text":"a"},"p":"abc"}`)
	f.Add(``, `contentBlockDelta`, `{"contentBlockIndex":1,"delta":{"citation":{"title":"a"}},"p":"abc"}`)
	f.Fuzz(func(t *testing.T, request, event, doc string) {
		fuzzEvent(t, "bedrock-converse", event, request, doc)
	})
}
