package ibid_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"testing"
)

// encodeAWS encodes lines as an AWS event stream. Each line is a message: a JSON object with one member, whose name is
// the event type and whose value is the payload.
//
//	{"messageStop": {"stopReason": "end_turn"}}
//
// Words before the object modify the message:
//
//	!bytes {"chunk": {…}}                 the payload is base64 in {"bytes": "…"}, as InvokeModel and InvokeAgent send it
//	!exception {"throttlingException": {…}}   an exception instead of an event
//	!checksum {"messageStop": {…}}        the message's checksum is wrong
//	!cut {"messageStop": {…}}             the last 5 bytes of the message are missing
func encodeAWS(t *testing.T, lines []byte) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		words := map[string]bool{}
		for line[0] == '!' {
			word, rest, _ := bytes.Cut(line, []byte(" "))
			words[string(word)] = true
			line = bytes.TrimSpace(rest)
		}
		var event map[string]json.RawMessage
		if err := json.Unmarshal(line, &event); err != nil || len(event) != 1 {
			t.Fatalf("section stream.aws.jsonl: %s is not an object with one member: %v", line, err)
		}
		for kind, payload := range event {
			message := awsMessage(kind, payload, words)
			if words["!checksum"] {
				message[len(message)-1] ^= 0xFF
			}
			if words["!cut"] {
				message = message[:len(message)-5]
			}
			out = append(out, message...)
		}
	}
	return out
}

// awsMessage encodes a message: total length, headers length, checksum of these; headers; payload; checksum of
// everything.
func awsMessage(kind string, payload []byte, words map[string]bool) []byte {
	if words["!bytes"] {
		payload = []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString(payload) + `"}`)
	}
	message, name := "event", ":event-type"
	if words["!exception"] {
		message, name = "exception", ":exception-type"
	}
	var headers []byte
	for _, h := range [][2]string{{name, kind}, {":content-type", "application/json"}, {":message-type", message}} {
		const stringType = 7
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, stringType)
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	const around = 16 // prelude and checksum
	b := binary.BigEndian.AppendUint32(nil, uint32(around+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, headers...)
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// TestEncodeAWS compares with a message encoded by hand from AWS's description.
func TestEncodeAWS(t *testing.T) {
	got := string(encodeAWS(t, []byte(`{"a": {}}`+"\n")))
	headers := "\x0b:event-type\x07\x00\x01a" + "\x0d:content-type\x07\x00\x10application/json" + "\x0d:message-type\x07\x00\x05event"
	want := "\x00\x00\x00\x59\x00\x00\x00\x47\xb8\x99\xa6\xe0" + headers + "{}" + "\xbb\x18\x93\xb7"
	if got != want {
		t.Errorf("encodeAWS = %q, want %q", got, want)
	}
}
