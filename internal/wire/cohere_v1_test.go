package wire

import "testing"

func TestCohere1Knows(t *testing.T) {
	testKnows(t, "cohere-v1",
		[]string{`{"event_type":"debug"}`, `{"event_type":"stream-end"}`, `{"text":""}`},
		[]string{`{}`, `[]`, ``, `{"event_type":"sunrise"}`, `{"event_type":"text-generation"}`, `{"text":7}`},
	)
}

func FuzzCohere1(f *testing.F) {
	f.Add(`{"documents":[{"title":"a"}]}`, `{"text":"ab","citations":[{"start":0,"end":1,"text":"a","document_ids":["doc_0",7]}],"documents":[{"id":"doc_0"}]}`)
	f.Add(``, `{"event_type":"text-generation","text":"a"}`)
	f.Add(``, `{"event_type":"stream-end","response":{"text":"a","search_results":[{"error_message":"x"}]}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v1", "", request, doc)
	})
}
