package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestReadError(t *testing.T) {
	type said struct {
		code, message string
		ok            bool
	}
	tests := []struct {
		doc  string
		want said
	}{
		{`{"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED"}}`, said{"429", "Slow down", true}},
		{`{"error":{"type":"invalid_request_error","code":null,"message":"Bad"}}`, said{"invalid_request_error", "Bad", true}},
		{`[{"error":{"status":"INTERNAL","message":"Oops"}}]`, said{"INTERNAL", "Oops", true}},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, said{"overloaded_error", "Overloaded", true}},
		{`{"error":{"detail":"d"}}`, said{"error", "d", true}},
		{`{"error":{}}`, said{"error", "{}", true}},
		{`{"error":"model not found"}`, said{"model not found", "model not found", true}},
		{`{"error":"not_found","message":"no such model","status":404}`, said{"404", "no such model", true}},
		{`{"error":""}`, said{"error", `""`, true}},
		{`{"message":"invalid api token"}`, said{"error", "invalid api token", true}},
		{`{"Message":"no","__type":"AccessDeniedException"}`, said{"AccessDeniedException", "no", true}},
		{`{"type":"about:blank","title":"Not Found","status":404,"detail":"no such path"}`, said{"404", "no such path", true}},
		{`{"object":"error","message":"m","type":"t","param":null,"code":1}`, said{"1", "m", true}},
		{`{"message":{"content":"an answer"}}`, said{}},
		{`{"message":"hello","choices":[]}`, said{}},
		{`{"error":null,"message":"m"}`, said{}},
		{`{"error":null}`, said{}},
		{`{"error":7}`, said{}},
		{`{}`, said{}},
		{`[]`, said{}},
		{`[7]`, said{}},
		{`"error"`, said{}},
		{``, said{}},
	}
	for _, tt := range tests {
		var got said
		got.code, got.message, got.ok = ReadError(scan.Value(tt.doc))
		if got != tt.want {
			t.Errorf("ReadError(%s) = %+v, want %+v", tt.doc, got, tt.want)
		}
	}
}

func FuzzReadError(f *testing.F) {
	f.Add(`{"error":{"message":"m"}}`)
	f.Add(`[{"message":"m","code":[1]}]`)
	f.Fuzz(func(t *testing.T, doc string) {
		code, message, ok := ReadError(scan.Value(doc))
		if ok == (code == "" || message == "") {
			t.Errorf("ReadError(%q) = %q, %q, %v", doc, code, message, ok)
		}
	})
}
