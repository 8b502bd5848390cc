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
		{`{"error":{"code":"quota"}}`, said{"quota", `{"code":"quota"}`, true}},
		{`{"error":"model not found"}`, said{"model not found", "model not found", true}},
		{`{"error":"not_found","message":"no such model","status":404}`, said{"404", "no such model", true}},
		{`{"detail":"Not Found"}`, said{"error", "Not Found", true}},
		{`{"title":"Not Found","status":404}`, said{"404", "Not Found", true}},
		{`{"message":"no","type":"BadRequestError"}`, said{"BadRequestError", "no", true}},
		{`{"message":"no","type":"validationException"}`, said{"validationException", "no", true}},
		{`{"message":"no","statusCode":403}`, said{"403", "no", true}},
		{`[{"message":"no","code":7}]`, said{"7", "no", true}},
		{`{"Message":"no","__type":"AccessDeniedException"}`, said{"AccessDeniedException", "no", true}},
		{`{"type":"about:blank","title":"Not Found","status":404,"detail":"no such path"}`, said{"404", "no such path", true}},
		{`{"object":"error","message":"m","type":"t","param":null,"code":1}`, said{"1", "m", true}},
		{`{"error":{}}`, said{}},
		{`{"error":{"x":1},"result":"y"}`, said{}},
		{`{"error":{"message":null},"result":"y"}`, said{}},
		{`{"error":""}`, said{}},
		{`{"error":"","message":"done","code":0}`, said{}},
		{`{"message":"hi"}`, said{}},
		{`{"message":"hi","type":"greeting"}`, said{}},
		{`{"message":"hi","id":"1"}`, said{}},
		{`[{"message":"hello"}]`, said{}},
		{`{"title":"My doc","id":"1"}`, said{}},
		{`{"type":"text","title":"x"}`, said{}},
		{`{"title":"x","code":7}`, said{}},
		{`{"message":{"content":"an answer"}}`, said{}},
		{`{"message":{"content":"an answer"},"code":7}`, said{}},
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
