package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCohere2Given(t *testing.T) {
	given := []Source{{Title: "A", Content: "x"}, {Key: "own", ID: "own"}}
	got := recordGiven(t, "cohere-v2", given, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	want := []string{
		`source doc:0 document id="doc:0" title="A" content="x"`,
		`source own document id="own"`,
		`text 0/0/0 "a"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestDetectCohere(t *testing.T) {
	testDetect(t, []detectTest{
		{`{"type":"message-start","id":"a"}`, "cohere-v2"},
		{`{"type":"citation-start"}`, "cohere-v2"},
		{`{"finish_reason":"COMPLETE","message":{"content":[]}}`, "cohere-v2"},
		{`{"finish_reason":"TOOL_CALL","message":{"tool_plan":"x"}}`, "cohere-v2"},
		{`{"finish_reason":"COMPLETE","message":{"content":"x"}}`, ""},
		{`{"id":"a","message":{"role":"assistant","content":[{"type":"text","text":"cut o`, "cohere-v2"},
		{`{"id":"a","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}`, "cohere-v2"},
		{`{"id":"a","message":{"role":"assistant","tool_plan":"pl`, "cohere-v2"},
		{`{"id":"a","message":{"toolCalls":[]},"finishReason":"TOOL_CALL"}`, "cohere-v2"},
		{`{"message":{"content":"x","citations":[{"start":0`, "cohere-v2"},
		{`{"model":"llama","message":{"content":"x","tool_calls":[]},"done":true}`, ""},
		{`{"message":{"content":[{"type":"image_url"}]}}`, ""},
		{`{"message":{"content":[{"x":1}]}}`, ""},
		{`{"event_type":"stream-start","is_finished":false}`, "cohere-v1"},
		{`{"text":"a","generation_id":"g","finish_reason":"COMPLETE"}`, "cohere-v1"},
		{`{"response_id":"r","text":"cut o`, "cohere-v1"},
		{`{"text":"a","finishReason":"COMPLETE","citations":[],"documents":[],"generationId":"g"}`, "cohere-v1"},
		{`{"text":"a","finishReason":"COMPLETE","citations":[{"start":0,"documentIds":["d`, "cohere-v1"},
		{`{"text":"a","citations":[{"url":"u"}]}`, ""},
		{`{"text":"a","finish_reason":"COMPLETE"}`, ""},
	})
}

func TestCohere2Knows(t *testing.T) {
	testKnows(t, "cohere-v2",
		[]string{`{"type":"debug"}`, `{"type":"message-end"}`, `{"message":{}}`, `{"message":"invalid request"}`},
		[]string{`{}`, `[]`, ``, `{"type":"sunrise"}`, `{"message":7}`},
	)
}

func FuzzCohere2(f *testing.F) {
	f.Add(`{"documents":["a",{"id":"b","data":{"n":1}}]}`, `{"message":{"content":[{"type":"text","text":"ab"}],"citations":[{"start":0,"end":1,"text":"a","sources":[{"id":"doc:0","document":{}}]}]}}`)
	f.Add(``, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	f.Add(``, `{"type":"citation-start","delta":{"message":{"citations":[{"start":1,"end":0,"sources":[{"type":"tool","tool_output":[]}]}]}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v2", "", request, doc)
	})
}
