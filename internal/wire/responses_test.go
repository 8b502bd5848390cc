package wire

import (
	"encoding/json"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
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

func TestResponsesKnows(t *testing.T) {
	p := newResponses(&Config{Emit: func(*Op) {}})
	for _, doc := range []string{`{"type":"ping"}`, `{"type":"response.queued"}`, `{"type":"response.new"}`} {
		if !p.Parse(nil, scan.Value(doc)) {
			t.Errorf("%s is not known", doc)
		}
	}
	for _, doc := range []string{`{"type":"message_start"}`, `{}`, `[]`, ``, `{"error":{"message":"x"}}`} {
		if p.Parse(nil, scan.Value(doc)) {
			t.Errorf("%s is known", doc)
		}
	}
}

func TestDetectResponses(t *testing.T) {
	tests := []struct{ doc, want string }{
		{`{"type":"response.created","response":{"model":"gpt-x"}}`, "openai-responses"},
		{`{"type":"response.created","response":{"model":"grok-9"}}`, "xai-responses"},
		{`{"sequence_number":0,"type":"response.output_text.delta","delta":""}`, "openai-responses"},
		{`{"object":"response","output":[]}`, "openai-responses"},
		{`{"model":"grok-9","object":"response","output":[]}`, "xai-responses"},
		{`{"output":[{"type":"message","content":[]}]}`, "openai-responses"},
		{`{"output":{"message":{"role":"assistant"}}}`, ""},
		{`{"output":[]}`, ""},
		{`{"output":["a"]}`, ""},
		{`{"type":"error","code":null,"message":"x","sequence_number":1}`, "openai-responses"},
		{`{"type":"ping"}`, ""},
		{`{}`, ""},
		{`{"error":{"message":"x"}}`, ""},
	}
	for _, tt := range tests {
		if got := Detect(nil, scan.Value(tt.doc)); got != tt.want {
			t.Errorf("Detect(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
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

// fuzzParser checks that a parser survives any documents and says nothing impossible.
func fuzzParser(t *testing.T, parser func(*Config) Parser, docs ...string) {
	t.Helper()
	p := parser(&Config{Emit: func(op *Op) {
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
