package frame_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/frame"
)

func sseTests() []splitTest {
	long := strings.Repeat("n", 2000)
	tests := []splitTest{
		{name: "LF", in: "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", want: docs(`{"a":1}`, `{"b":2}`)},
		{name: "CRLF", in: "data: {\"a\":1}\r\n\r\ndata: {\"b\":2}\r\n\r\n", want: docs(`{"a":1}`, `{"b":2}`)},
		{name: "CR", in: "data: {\"a\":1}\r\rdata: {\"b\":2}\r\r", want: docs(`{"a":1}`, `{"b":2}`)},
		{name: "line ends mixed", in: "data: {\"a\":1}\r\n\ndata: 2\n\r\ndata: 3\r\r\ndata: 4\n\r", want: docs(`{"a":1}`, "2", "3", "4")},
		{name: "no space, one space, two spaces", in: "data:1\n\ndata: 2\n\ndata:  3\n\n", want: docs("1", "2", " 3")},
		{name: "several data lines", in: "data: {\ndata:  \"a\":1\ndata\ndata:}\n\n", want: docs("{\n \"a\":1\n\n}")},
		{name: "empty data", in: "data:\n\ndata: \n\n", want: docs("", "")},
		{name: "empty data without a colon", in: ":\ndata\n\ndata\ndata\n\n", want: docs("", "\n")},
		{name: "comments", in: ": one\ndata: {\n: two\ndata: }\n:\n\n", want: docs("{\n}")},
		{
			name: "event names", in: "event: a\ndata: 1\n\ndata: 2\nevent:b\n\ndata: 3\n\nevent: c\nevent: d\ndata: 4\n\n",
			want: []record{{Event: "a", Data: "1"}, {Event: "b", Data: "2"}, {Data: "3"}, {Event: "d", Data: "4"}},
		},
		{name: "event without data", in: "event: ping\n\ndata: 1\n\n", want: docs("1")},
		{name: "event name taken back", in: "event: a\nevent:\ndata: 1\n\nevent: a\nevent\ndata: 2\n\n", want: docs("1", "2")},
		{name: "event name too long", in: "event: " + long + "\ndata: 1\n\n", want: docs("1")},
		{name: "id and retry", in: "id: 1\ndata: 1\nretry: 3\nid\n\n", want: docs("1")},
		{name: "unknown fields", in: "data: 1\nfoo: bar\ndatax: 2\n data: 3\nevents: x\nidea\n\n", want: docs("1")},
		{name: "done", in: "data: {}\n\ndata: [DONE]\n\n", want: then(docs("{}"), record{Done: true})},
		{name: "done without a blank line", in: "data: [DONE]", want: []record{{Done: true}}},
		{name: "done with white space", in: "event: end\ndata:  [DONE] \n\n", want: []record{{Event: "end", Done: true}}},
		{name: "done cut short", in: "data: [DON", want: []record{{Data: "[DON", Why: frame.ErrTruncated}}},
		{name: "no final blank line", in: "data: {}\n", want: docs("{}")},
		{name: "no final line end", in: "event: x\ndata: {}", want: []record{{Event: "x", Data: "{}"}}},
		{name: "truncated", in: "data: {}\n\n: x\ndata: {\"a\":\"b", want: then(docs("{}"), record{Data: `{"a":"b`, Why: frame.ErrTruncated, Offset: 14})},
		{name: "truncated between data lines", in: "data: {\ndata: ", want: []record{{Data: "{\n", Why: frame.ErrTruncated}}},
		{name: "truncated text", in: "data: half a sen", want: docs("half a sen")},
		{name: "truncated in a field name", in: "data: {}\nevent", want: docs("{}")},
		{name: "ends in a comment", in: "data: {}\n\n: bye", want: docs("{}")},
		{name: "ends behind CR", in: "data: {}\r", want: docs("{}")},

		{name: "bare JSON line", in: "data: {}\n\n{\"error\":1}\ndata: 2\n\n", want: docs("{}", `{"error":1}`, "2")},
		{name: "bare JSON line has the event's name", in: "event: error\n{\"error\":1}\n\ndata: 2\n\n", want: []record{{Event: "error", Data: `{"error":1}`}, {Data: "2"}}},
		{name: "bare JSON line ends an event", in: "event: a\ndata: 1\n{\"error\":1}\n\n", want: []record{{Event: "a", Data: "1"}, {Data: `{"error":1}`}}},
		{name: "bare JSON over several lines", in: ":\n{\r\n  \"error\": {\r\n    \"a\": 1\r\n  }\r\n}\r\ndata: 2\r\n\r\n", want: docs("{\n  \"error\": {\n    \"a\": 1\n  }\n}", "2")},
		{name: "bare JSON at the end", in: ":\n{\"error\":1}", want: docs(`{"error":1}`)},
		{name: "bare JSON truncated", in: ":\n{\"error\":", want: []record{{Data: `{"error":`, Why: frame.ErrTruncated, Offset: 2}}},
		{
			name: "damaged bare JSON damages nothing else", in: ":\n{\"a\":[\n\ndata: 1\n\n{\"b\":{\ndata: 2\n\n{\"c\":\"\nevent: x\ndata: 3\n\n{\"d\":{\nevent: y\ndata: 4\n\n",
			want: []record{
				{Data: `{"a":[`, Why: frame.ErrTruncated, Offset: 2},
				{Data: "1"},
				{Data: `{"b":{`, Why: frame.ErrTruncated, Offset: 19},
				{Data: "2"},
				{Data: `{"c":"`, Why: frame.ErrTruncated, Offset: 35},
				{Event: "x", Data: "3"},
				{Data: `{"d":{`, Why: frame.ErrTruncated, Offset: 60},
				{Event: "y", Data: "4"},
			},
		},

		{
			name: "too large", in: "data: 1\n\nevent: x\ndata: 123456789\ndata: 1\n\ndata: 2\n\n", limit: 8,
			want: []record{{Data: "1"}, {Event: "x", Why: frame.ErrTooLarge, Offset: 18}, {Data: "2"}},
		},
		{name: "exactly as large as allowed", in: "data: 1234\ndata: 678\n\n", limit: 8, want: docs("1234\n678")},
		{name: "too large together", in: "data: 1234\ndata: 6789\n\ndata: 2", limit: 8, want: then([]record{{Why: frame.ErrTooLarge}}, docs("2")...)},
		{name: "too large at the end", in: "data: 123456789", limit: 8, want: []record{{Why: frame.ErrTooLarge}}},
		{name: "too large bare JSON", in: ":\n{\"a\":\"\\\"}{\"\n}\ndata: 1\n\n{\"a\":12345}\n{}\n\n", limit: 7, want: []record{
			{Why: frame.ErrTooLarge, Offset: 2},
			{Data: "1"},
			{Why: frame.ErrTooLarge, Offset: 25},
			{Data: "{}"},
		}},
		{name: "long comment", in: ":" + long + "\ndata: 1\n\n", limit: 8, want: docs("1")},
	}
	for i := range tests {
		tests[i].kind = frame.SSE
	}
	return tests
}

func TestSSE(t *testing.T) {
	for _, tt := range sseTests() {
		tt.run(t)
	}
}
