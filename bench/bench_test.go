package bench_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkStreams reads whole streams: into an answer with its events, as a validity check of its documents, and by
// hand.
func BenchmarkStreams(b *testing.B) {
	for _, s := range streams() {
		input := s.bytes()
		name := s.format
		if s.framing == array && name == "gemini-generate" {
			name += "-array"
		}
		b.Run(name, func(b *testing.B) {
			b.Run("by=ibid", func(b *testing.B) {
				b.SetBytes(int64(s.size()))
				b.ReportAllocs()
				for b.Loop() {
					decode(b, input)
				}
			})
			b.Run("by=json", func(b *testing.B) { benchValid(b, s.data()) })
			b.Run("by=struct", func(b *testing.B) { benchByHand(b, s.data(), s.read) })
		})
	}
}

// benchValid checks with encoding/json whether documents are valid.
func benchValid(b *testing.B, docs [][]byte) {
	b.Helper()
	size := 0
	for _, d := range docs {
		size += len(d)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, d := range docs {
			if !json.Valid(d) {
				b.Fatal("not JSON")
			}
		}
	}
}

// benchByHand decodes documents into structs and joins their text. A program would have to look twice at a document
// that does not fit the struct; here it is skipped.
func benchByHand(b *testing.B, docs [][]byte, read func([]byte) (string, error)) {
	b.Helper()
	size := 0
	for _, d := range docs {
		size += len(d)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		var text strings.Builder
		for _, d := range docs {
			piece, _ := read(d)
			text.WriteString(piece)
		}
	}
}
