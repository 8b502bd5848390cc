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

func FuzzCohere2(f *testing.F) {
	f.Add(`{"documents":["a",{"id":"b","data":{"n":1}}]}`, `{"message":{"content":[{"type":"text","text":"ab"}],"citations":[{"start":0,"end":1,"text":"a","sources":[{"id":"doc:0","document":{}}]}]}}`)
	f.Add(``, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	f.Add(``, `{"type":"citation-start","delta":{"message":{"citations":[{"start":1,"end":0,"sources":[{"type":"tool","tool_output":[]}]}]}}}`)
	f.Fuzz(func(t *testing.T, request, doc string) {
		fuzzEvent(t, "cohere-v2", "", request, doc)
	})
}
