package frame_test

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/frame"
)

// header returns an encoded AWS header.
func header(name string, kind byte, value string) string {
	b := append([]byte{byte(len(name))}, name...)
	b = append(b, kind)
	if kind == 6 || kind == 7 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	}
	return string(append(b, value...))
}

// message returns an encoded AWS message.
func message(headers, payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// prelude returns the start of a message with the given lengths and a correct checksum.
func prelude(total, headers uint32) string {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func event(name, payload string) string {
	return message(header(":event-type", 7, name)+header(":content-type", 7, "application/json")+header(":message-type", 7, "event"), payload)
}

// spoil changes one byte of b at an offset, which counts from the end if negative.
func spoil(b string, at int) string {
	if at < 0 {
		at += len(b)
	}
	return b[:at] + string([]byte{b[at] ^ 0x10}) + b[at+1:]
}

func awsTests() []splitTest {
	a := event("delta", `{"a":1}`)
	b := event("stop", `{"b":2}`)
	types := header("t", 0, "") + header("f", 1, "") + header("b", 2, "x") + header("s", 3, "xx") + header("i", 4, "xxxx") +
		header("l", 5, "xxxxxxxx") + header("bytes", 6, "abc") + header("d", 8, "xxxxxxxx") + header("u", 9, "xxxxxxxxxxxxxxxx") +
		header(":event-type", 7, "all")
	big := event("big", `{"a":"`+strings.Repeat("x", 300)+`"}`)
	size := int64(len(a))
	tests := []splitTest{
		{name: "messages", in: a + b, want: []record{{Event: "delta", Data: `{"a":1}`}, {Event: "stop", Data: `{"b":2}`}}},
		{name: "no headers, no payload", in: message("", "") + a, want: []record{{}, {Event: "delta", Data: `{"a":1}`}}},
		{name: "headers of every type", in: message(types, "{}"), want: []record{{Event: "all", Data: "{}"}}},
		{
			name: "exception", in: message(header(":exception-type", 7, "throttled")+header(":message-type", 7, "exception"), `{"message":"slow"}`),
			want: []record{{Event: "throttled", Data: `{"message":"slow"}`, Exception: true}},
		},
		{
			name: "error", in: message(header(":error-code", 7, "500")+header(":message-type", 7, "error")+header(":error-message", 7, "broken"), ""),
			want: []record{{Event: "500", Data: "broken", Exception: true}},
		},
		{
			name: "wrong message checksum", in: a + spoil(b, -6) + spoil(b, -1) + a,
			want: []record{
				{Event: "delta", Data: `{"a":1}`},
				{Event: "stop", Data: `{"b":"}`, Why: frame.ErrChecksum, Offset: size},
				{Event: "stop", Data: `{"b":2}`, Why: frame.ErrChecksum, Offset: size + int64(len(b))},
				{Event: "delta", Data: `{"a":1}`},
			},
		},
		{name: "wrong prelude checksum", in: a + spoil(b, 3) + a, want: []record{
			{Event: "delta", Data: `{"a":1}`},
			{Data: spoil(b, 3) + a, Why: frame.ErrCorrupt, Offset: size},
		}},
		{name: "length too small", in: a + prelude(15, 0) + "xyz", want: []record{
			{Event: "delta", Data: `{"a":1}`},
			{Data: prelude(15, 0) + "xyz", Why: frame.ErrCorrupt, Offset: size},
		}},
		{name: "headers longer than the message", in: prelude(40, 25), want: []record{{Data: prelude(40, 25), Why: frame.ErrCorrupt}}},
		{name: "headers as long as can be said", in: prelude(40, 0xFFFFFFFF), want: []record{{Data: prelude(40, 0xFFFFFFFF), Why: frame.ErrCorrupt}}},
		{name: "truncated in a prelude", in: a + b[:11], want: []record{{Event: "delta", Data: `{"a":1}`}, {Why: frame.ErrTruncated, Offset: size}}},
		{name: "truncated behind a prelude", in: b[:12], want: []record{{Why: frame.ErrTruncated}}},
		{name: "truncated in the headers", in: b[:30], want: []record{{Why: frame.ErrTruncated}}},
		{name: "truncated in the payload", in: b[:len(b)-6], want: []record{{Event: "stop", Data: `{"b":`, Why: frame.ErrTruncated}}},
		{name: "truncated in the checksum", in: b[:len(b)-1], want: []record{{Event: "stop", Data: `{"b":2}`, Why: frame.ErrTruncated}}},
		{name: "too large", in: a + big + b, limit: 300, want: []record{
			{Event: "delta", Data: `{"a":1}`},
			{Why: frame.ErrTooLarge, Offset: size},
			{Event: "stop", Data: `{"b":2}`},
		}},
		{name: "too large and truncated", in: big[:50], limit: 300, want: []record{{Why: frame.ErrTooLarge}}},
		{name: "too large, then corrupt, under a limit shorter than a prelude", in: a + spoil(b, 3), limit: 4, want: []record{
			{Why: frame.ErrTooLarge},
			{Data: spoil(b, 3)[:12], Why: frame.ErrCorrupt, Offset: size},
		}},
		{name: "larger than any memory", in: prelude(0x08FFFFFF, 0) + "x", limit: 300, want: []record{{Why: frame.ErrTooLarge}}},
	}
	for _, bad := range []struct{ name, headers string }{
		{"no type", "\x01a"},
		{"no name", "\x09a"},
		{"unknown type", header("a", 10, "")},
		{"no length", "\x01a\x07\x00"},
		{"length too long", "\x01a\x07\x00\x05abcd"},
		{"number cut short", "\x01a\x05abc"},
	} {
		tests = append(tests, splitTest{name: "bad header: " + bad.name, in: message(bad.headers, "{}") + a, want: []record{
			{Data: "{}", Why: frame.ErrCorrupt}, {Event: "delta", Data: `{"a":1}`},
		}})
	}
	for i := range tests {
		tests[i].kind = frame.AWS
	}
	return tests
}

func TestAWS(t *testing.T) {
	for _, tt := range awsTests() {
		tt.run(t)
	}
}

func TestAWSCorruptKeepsNoMoreThanAllowed(t *testing.T) {
	in := event("a", "{}") + strings.Repeat("x", 1000)
	got, _ := splitAnyhow(t, []byte(in), 100)
	want := []record{
		{Event: "a", Data: "{}"},
		{Data: strings.Repeat("x", 100), Why: frame.ErrCorrupt, Offset: int64(len(in) - 1000)},
	}
	if diff := cmp.Diff(want, got, sameError()); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}
