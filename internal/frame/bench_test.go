package frame_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/frame"
)

// delta is a streamed document of the usual size: with its framing about 220 bytes.
const delta = `{"type":"response.output_text.delta","sequence_number":1417,"item_id":"msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9",` +
	`"output_index":1,"content_index":0,"delta":" river","logprobs":[],"obfuscation":"Qw8rTz1x"}`

func events(n int, end string) []byte {
	return []byte(strings.Repeat("data: "+delta+end+end, n))
}

// body is a JSON body of about the given size, with the usual mixture of short and long strings.
func body(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"results":[`)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"id":"r-%d","score":0.%d,"title":"Report %d","text":"%s \"quoted\" text.\n"},`, i, i, i, strings.Repeat("Herons nest early in wet years. ", 20))
	}
	b.WriteString(`{}]}`)
	return b.Bytes()
}

// run repeatedly splits input in Writes of the given size.
func run(b *testing.B, input []byte, size int) {
	b.Helper()
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	frames := 0
	emit := func(f frame.Frame) {
		if f.Err != nil {
			b.Fatal(f.Err)
		}
		frames++
	}
	for b.Loop() {
		s := frame.Splitter{Emit: emit}
		for at := 0; at < len(input); at += size {
			s.Write(input[at:min(at+size, len(input))])
		}
		s.Close()
	}
	if frames == 0 {
		b.Fatal("no frames")
	}
}

func BenchmarkSSE(b *testing.B) {
	for _, end := range []struct{ name, bytes string }{{"LF", "\n"}, {"CRLF", "\r\n"}} {
		input := events(5000, end.bytes)
		b.Run(end.name+"/one", func(b *testing.B) { run(b, input, len(input)) })
		b.Run(end.name+"/1400", func(b *testing.B) { run(b, input, 1400) })
	}
	named := bytes.ReplaceAll(events(5000, "\n"), []byte("data: "), []byte("event: response.output_text.delta\ndata: "))
	b.Run("named/one", func(b *testing.B) { run(b, named, len(named)) })
}

// BenchmarkIndexByte is the baseline for SSE.
func BenchmarkIndexByte(b *testing.B) {
	input := events(5000, "\n")
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		for p := input; len(p) > 0; p = p[bytes.IndexByte(p, '\n')+1:] {
			continue
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	input := body(1 << 20)
	b.Run("one", func(b *testing.B) { run(b, input, len(input)) })
	b.Run("1400", func(b *testing.B) { run(b, input, 1400) })
}

func BenchmarkLines(b *testing.B) {
	input := []byte(strings.Repeat(delta+"\n", 5000))
	b.Run("one", func(b *testing.B) { run(b, input, len(input)) })
	b.Run("1400", func(b *testing.B) { run(b, input, 1400) })
}

func BenchmarkAWS(b *testing.B) {
	input := []byte(strings.Repeat(event("contentBlockDelta", delta), 5000))
	b.Run("one", func(b *testing.B) { run(b, input, len(input)) })
	b.Run("1400", func(b *testing.B) { run(b, input, 1400) })
}
