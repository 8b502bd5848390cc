package frame_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/frame"
)

func recogniseTests() []splitTest {
	spaces := strings.Repeat(" \r\n\t", 1000)
	return []splitTest{
		{name: "empty", in: "", kind: frame.Unknown},
		{name: "white space", in: " \r\n\t\n", kind: frame.Unknown},
		{name: "byte order mark alone", in: "\xef\xbb\xbf\n", kind: frame.Unknown},
		{name: "half a byte order mark", in: "\xef\xbb", kind: frame.Other, want: docs("\xef\xbb")},
		{name: "JSON behind byte order mark and white space", in: "\xef\xbb\xbf \r\n{}", kind: frame.JSON, want: docs("{}")},
		{name: "JSON behind blank lines that keep a connection open", in: spaces + `{"a":1}`, kind: frame.JSON, want: docs(`{"a":1}`)},
		{name: "array behind byte order mark", in: "\xef\xbb\xbf[{}]", kind: frame.Array, want: docs("{}")},
		{name: "array, the object far away", in: "[" + spaces + "{}]", kind: frame.Array, want: docs("{}")},
		{name: "array that ends at once", in: "[]", kind: frame.Array},
		{name: "array that never begins", in: " [ ", kind: frame.Array},
		{name: "SSE data", in: "data: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "SSE event", in: "event: x\ndata: {}\n\n", kind: frame.SSE, want: []record{{Event: "x", Data: "{}"}}},
		{name: "SSE id", in: "id:7\ndata: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "SSE retry", in: "retry: 10\ndata: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "SSE comment", in: ": hello\n\ndata: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "SSE behind byte order mark and blank lines", in: "\xef\xbb\xbf\r\n\ndata: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "SSE behind much white space", in: spaces + "data: {}\n\n", kind: frame.SSE, want: docs("{}")},
		{name: "a field name that ends early", in: "dat", kind: frame.Other, want: docs("dat")},
		{name: "a field name without its colon", in: "data\n\n", kind: frame.Other, want: docs("data\n\n")},
		{name: "a word that begins like a field", in: "database", kind: frame.Other, want: docs("database")},
		{name: "text", in: "Bad gateway\n", kind: frame.Other, want: docs("Bad gateway\n")},
		{name: "text keeps its white space", in: "\xef\xbb\xbf\n  Well.\n", kind: frame.Other, want: docs("\xef\xbb\xbf\n  Well.\n")},
		{name: "text behind much white space", in: spaces + "x", kind: frame.Other, want: docs(spaces[:512] + "x")},
		{name: "text that begins with a bracket", in: "[1] Herons nest early.", kind: frame.Other, want: docs("[1] Herons nest early.")},
		{name: "JSON string", in: `"text"`, kind: frame.Other, want: docs(`"text"`)},
		{name: "JSON number", in: "123", kind: frame.Other, want: docs("123")},
		{name: "JSON array of strings", in: `[ "a" ]`, kind: frame.Other, want: docs(`[ "a" ]`)},
		{name: "HTML", in: "<html>{}</html>", kind: frame.Other, want: docs("<html>{}</html>")},
		{name: "binary", in: "\x00\x01\x02", kind: frame.Other, want: docs("\x00\x01\x02")},
		{name: "binary of a prelude's length", in: "\x00\x00\x00\x10\x00\x00\x00\x00\x01\x02\x03\x04\x05", kind: frame.Other, want: docs("\x00\x00\x00\x10\x00\x00\x00\x00\x01\x02\x03\x04\x05")},
	}
}

func TestRecognise(t *testing.T) {
	for _, tt := range recogniseTests() {
		tt.run(t)
	}
}

func TestKindString(t *testing.T) {
	seen := map[string]bool{}
	for k := frame.Unknown; k <= frame.Other+1; k++ {
		if s := k.String(); s == "" || seen[s] {
			t.Errorf("Kind(%d).String() = %q, which is empty or another kind's", k, s)
		} else {
			seen[s] = true
		}
	}
}
