package frame_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/frame"
)

func jsonTests() []splitTest {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	return []splitTest{
		{name: "body", in: `{"a":[1,{"b":"c"}]}`, kind: frame.JSON, want: docs(`{"a":[1,{"b":"c"}]}`)},
		{name: "body with white space behind it", in: "{\n  \"a\": 1\n}\r\n\n ", kind: frame.JSON, want: docs("{\n  \"a\": 1\n}")},
		{name: "brackets and quotes in strings", in: `{"}":"]\"}","\\":"\\\\","\\\"{":""}`, kind: frame.JSON, want: docs(`{"}":"]\"}","\\":"\\\\","\\\"{":""}`)},
		{name: "deep", in: `{"a":` + deep + `}`, kind: frame.JSON, want: docs(`{"a":` + deep + `}`)},
		{name: "truncated in an object", in: `{"a":{"b":1}`, kind: frame.JSON, want: []record{{Data: `{"a":{"b":1}`, Why: frame.ErrTruncated}}},
		{name: "truncated in a string", in: ` {"a":"b\`, kind: frame.JSON, want: []record{{Data: `{"a":"b\`, Why: frame.ErrTruncated, Offset: 1}}},
		{name: "trailing garbage", in: "{} oops\r\n", kind: frame.JSON, want: then(docs("{}"), record{Data: "oops", Why: frame.ErrTrailing, Offset: 3})},
		{name: "trailing bracket", in: `{"a":1}}`, kind: frame.JSON, want: then(docs(`{"a":1}`), record{Data: "}", Why: frame.ErrTrailing, Offset: 7})},
		{
			name: "trailing lines", in: "{}\n<p>\n\n</p>", kind: frame.JSON,
			want: then(docs("{}"), record{Data: "<p>", Why: frame.ErrTrailing, Offset: 3}, record{Data: "</p>", Why: frame.ErrTrailing, Offset: 8}),
		},
		{name: "too large", in: `{"a":"0123456789"}`, limit: 10, kind: frame.JSON, want: []record{{Why: frame.ErrTooLarge}}},
		{name: "exactly as large as allowed", in: `{"a":"01"}`, limit: 10, kind: frame.JSON, want: docs(`{"a":"01"}`)},
		{name: "too large and truncated", in: `{"a":"0123456789`, limit: 10, kind: frame.JSON, want: []record{{Why: frame.ErrTooLarge}}},

		{name: "lines", in: "{\"a\":1}\n{\"b\":2}\r\n\n \n{\"c\":3}", kind: frame.Lines, want: docs(`{"a":1}`, `{"b":2}`, `{"c":3}`)},
		{
			name: "bad lines damage only themselves", in: "{}\n{\"a\":\"\n{\"b\":2}\nx\n{\"c\":3}\n", kind: frame.Lines,
			want: docs("{}", `{"a":"`, `{"b":2}`, "x", `{"c":3}`),
		},
		{name: "last line truncated", in: "{}\n{}\n{\"a\":[1", kind: frame.Lines, want: then(docs("{}", "{}"), record{Data: `{"a":[1`, Why: frame.ErrTruncated, Offset: 6})},
		{
			name: "bad second line", in: "{}\nx\n{\"b\":1}\n{\"c\":2}", kind: frame.Lines,
			want: []record{{Data: "{}"}, {Data: "x", Why: frame.ErrTrailing, Offset: 3}, {Data: `{"b":1}`}, {Data: `{"c":2}`}},
		},
		{
			name: "too large line", in: "{}\n{\"a\":\"01234567\"}\n{\"b\":1}\n", limit: 12, kind: frame.Lines,
			want: []record{{Data: "{}"}, {Why: frame.ErrTooLarge, Offset: 3}, {Data: `{"b":1}`}},
		},
		{
			name: "too large first line", in: "{\"a\":\"01234567\"}\n{\"b\":1}\n", limit: 12, kind: frame.Lines,
			want: then([]record{{Why: frame.ErrTooLarge}}, docs(`{"b":1}`)...),
		},
		{
			name: "white space counts for no line's size", in: "{}\n{}\n              \n{}\n", limit: 3, kind: frame.Lines,
			want: docs("{}", "{}", "{}"),
		},
		{name: "documents on one line", in: `{"a":1}{"b":2} {"c":3}`, kind: frame.Lines, want: docs(`{"a":1}`, `{"b":2}`, `{"c":3}`)},
		{
			name: "documents over several lines", in: "{\n \"a\":1\n}\n{\n \"b\":2\n}\n", kind: frame.Lines,
			want: docs("{\n \"a\":1\n}", "{\n \"b\":2\n}"),
		},

		{name: "array", in: "[{\"a\":1}\n,\r\n{\"b\":[2]}\n,\r\n{}]", kind: frame.Array, want: docs(`{"a":1}`, `{"b":[2]}`, "{}")},
		{name: "pretty array", in: "[\n  {\n    \"a\": 1\n  },\n  {}\n]\n", kind: frame.Array, want: docs("{\n    \"a\": 1\n  }", "{}")},
		{name: "array of more than objects", in: `[{},["]"],"a\",]",12,null ,true]`, kind: frame.Array, want: docs("{}", `["]"]`, `"a\",]"`, "12", "null", "true")},
		{name: "array truncated between elements", in: "[{}\n,\r\n", kind: frame.Array, want: docs("{}")},
		{name: "array truncated in an element", in: `[{},{"a`, kind: frame.Array, want: then(docs("{}"), record{Data: `{"a`, Why: frame.ErrTruncated, Offset: 4})},
		{name: "array truncated in a scalar", in: `[{},12`, kind: frame.Array, want: then(docs("{}"), record{Data: `12`, Why: frame.ErrTruncated, Offset: 4})},
		{name: "array with trailing garbage", in: "[{}] \nx\ny", kind: frame.Array, want: then(docs("{}"), record{Data: "x", Why: frame.ErrTrailing, Offset: 6}, record{Data: "y", Why: frame.ErrTrailing, Offset: 8})},
		{
			name: "too large element", in: `[{"a":1},{"b":"]},{"},["0123456789"],0123456789,{"c":2}]`, limit: 8, kind: frame.Array,
			want: []record{
				{Data: `{"a":1}`},
				{Why: frame.ErrTooLarge, Offset: 9},
				{Why: frame.ErrTooLarge, Offset: 22},
				{Why: frame.ErrTooLarge, Offset: 37},
				{Data: `{"c":2}`},
			},
		},
	}
}

func TestJSON(t *testing.T) {
	for _, tt := range jsonTests() {
		tt.run(t)
	}
}
