package wire

import "testing"

func FuzzCohere2(f *testing.F) {
	f.Add(`{"documents":["a",{"id":"b","data":{"n":1}}]}`, `{"message":{"content":[{"type":"text","text":"ab"}],"citations":[{"start":0,"end":1,"text":"a","sources":[{"id":"doc:0","document":{}}]}]}}`)
	f.Add(``, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	f.Add(``, `{"type":"citation-start","delta":{"message":{"citations":[{"start":1,"end":0,"sources":[{"type":"tool","tool_output":[]}]}]}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v2", "", request, doc)
	})
}
