package bench_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// BenchmarkDelta reads one text delta, the unit of a stream. Most have less than 300 bytes, so MB/s tells their rate.
func BenchmarkDelta(b *testing.B) {
	for _, s := range streamsOf(uncited(story(pieces))) {
		if s.framing == array {
			continue
		}
		first, deltas := deltasOf(s)
		b.Run(s.format, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(deltas[0])))
			var d *ibid.Decoder
			told := 0
			for i := 0; b.Loop(); i++ {
				if i%len(deltas) == 0 {
					d = &ibid.Decoder{OnEvent: func(ibid.Event) { told++ }}
					_, _ = d.Write(first)
				}
				_, _ = d.Write(deltas[i%len(deltas)])
			}
			if told == 0 {
				b.Fatal("nothing was told")
			}
		})
	}
}

// deltasOf returns the beginning of a stream, up to the first text, and each text delta after it.
func deltasOf(s *stream) (first []byte, deltas [][]byte) {
	i := 0
	for text := ""; text == "" && i < len(s.docs); i++ {
		text, _ = s.read(s.docs[i].data)
	}
	before := *s
	before.docs, before.tail = s.docs[:i], ""
	for _, d := range s.docs[i:] {
		text, err := s.read(d.data)
		if err != nil || text == "" || len(deltas) > 0 && len(text) > 2*len(phrases[0]) {
			continue
		}
		one := *s
		one.docs, one.tail = []document{d}, ""
		deltas = append(deltas, one.bytes())
	}
	return before.bytes(), deltas
}

// BenchmarkLongDelta reads a delta of a megabyte, which gives the cost of a byte of text.
func BenchmarkLongDelta(b *testing.B) {
	const size = 1 << 20
	for name, words := range map[string]string{
		"ascii":   strings.Repeat("the ferry leaves the old harbour at seven ", 8),
		"lines":   strings.Repeat("the ferry leaves the old harbour at seven ", 3) + "\n\"now\"\n",
		"chinese": strings.Repeat("渡轮七点离开旧港口。", 8),
		"escapes": strings.Repeat("\t\n", 20),
	} {
		text := strings.Repeat(words, size/len(words))
		for _, shape := range []string{
			`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_0","output_index":0,"content_index":0,"delta":%s}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%[2]s}}`,
		} {
			var input bytes.Buffer
			for i := range 4 {
				fmt.Fprintf(&input, "data: "+shape+"\n\n", i, quoted(text))
			}
			b.Run(name+"/"+strings.SplitN(shape, `"`, 5)[3], func(b *testing.B) {
				b.SetBytes(int64(input.Len()))
				b.ReportAllocs()
				for b.Loop() {
					d := ibid.Decoder{OnEvent: func(ibid.Event) {}}
					_, _ = d.Write(input.Bytes())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(input.Len()), "ns/B")
			})
		}
	}
}
