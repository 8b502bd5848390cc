package wire

import "testing"

func FuzzCohere1(f *testing.F) {
	f.Add(`{"documents":[{"title":"a"}]}`, `{"text":"ab","citations":[{"start":0,"end":1,"text":"a","document_ids":["doc_0",7]}],"documents":[{"id":"doc_0"}]}`)
	f.Add(``, `{"event_type":"text-generation","text":"a"}`)
	f.Add(``, `{"event_type":"stream-end","response":{"text":"a","search_results":[{"error_message":"x"}]}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v1", "", request, doc)
	})
}
