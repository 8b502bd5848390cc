package wire

import (
	"encoding/json"
	"testing"
)

// responsesBody returns a body with one message of one part.
func responsesBody(text, annotations string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"object":"response","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[` +
		`{"type":"output_text","text":` + string(quoted) + `,"annotations":` + annotations + `}]}]}`
}

// FuzzResponses feeds two documents, so that the second may match what was learned from the first.
func FuzzResponses(f *testing.F) {
	f.Add(responsesBody("Já 🌊", `[{"type":"url_citation","start_index":1,"end_index":2,"url":"u"}]`), `{"type":"response.output_text.delta","delta":"x"}`)
	f.Add(`{"type":"response.output_text.delta","sequence_number":1,"output_index":0,"delta":"a"}`, `{"type":"response.output_text.delta","sequence_number":99999999,"output_index":0,"delta":"\u00e9`)
	f.Add(`{"type":"response.output_item.done","output_index":1,"item":{"type":"file_search_call","results":[{"file_id":"f","score":1}]}}`, `{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"refusal"`)
	f.Add(`{"type":"response.reasoning.search_results","results":[{"id":9999999,"url":"u"}]}`, `{"type":"error"}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		fuzzParser(t, newResponses, one, two)
	})
}

// fuzzParser checks that a parser survives any documents and emits nothing impossible.
func fuzzParser(t *testing.T, parser func(*Config) Parser, docs ...string) {
	t.Helper()
	p := parser(&Config{Keep: anything, Emit: func(op *Op) {
		switch {
		case op.Kind == CiteOp && (len(op.Cite.Refs) == 0 || op.Cite.Start < 0 || op.Cite.End < 0):
			t.Errorf("impossible citation: %s", line(op))
		case op.Kind == SourceOp && op.Source.Key == "":
			t.Errorf("a source without a key: %s", line(op))
		case op.Kind == 0:
			t.Error("an operation without a kind")
		}
	}})
	for range 2 {
		for _, doc := range docs {
			b := []byte(doc)
			p.Parse(nil, b)
			clear(b)
		}
	}
	p.Close()
}
