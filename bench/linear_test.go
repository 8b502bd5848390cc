package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
)

// tooMuch is the cost of ten times the input at which the linearity benchmarks fail: four times what is due, for busy
// machines and inputs that no longer fit into the caches.
const tooMuch = 40

// BenchmarkLinearStream reads streams of 10 and 100 MB that were never in memory as a whole. MB/held is what the answer
// and the decoder hold at the end, MB/passed everything allocated on the way.
func BenchmarkLinearStream(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(citations int) io.Reader
	}{
		{"openai-responses", endlessResponses},
		{"anthropic-messages", endlessAnthropic},
	} {
		b.Run(shape.name, func(b *testing.B) {
			for b.Loop() {
				short, _ := readEndless(b, shape.make(10_000), 10_000)
				long, size := readEndless(b, shape.make(100_000), 100_000)
				reportLinear(b, short, long)
				b.ReportMetric(float64(size)/1e6/long.Seconds(), "MB/s")
			}
		})
	}
}

func reportLinear(b *testing.B, short, long time.Duration) {
	b.Helper()
	ratio := float64(long) / float64(short)
	b.ReportMetric(ratio, "x/10x")
	if ratio > tooMuch {
		b.Errorf("ten times as much took %.0f times as long (%v, %v)", ratio, short, long)
	}
}

// readEndless reads a stream with the given number of citations and returns the time and the stream's size in bytes.
func readEndless(b *testing.B, r io.Reader, citations int) (took time.Duration, size int64) {
	b.Helper()
	var before, passed, held runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	d := ibid.Decoder{OnEvent: func(ibid.Event) {}}
	size, err := io.Copy(&d, r)
	if err != nil {
		b.Fatal(err)
	}
	_ = d.Close()
	took = time.Since(start)
	runtime.ReadMemStats(&passed)
	runtime.GC()
	runtime.ReadMemStats(&held)
	a, err := d.Answer()
	if err != nil || len(a.Citations) != citations {
		b.Fatalf("%d citations of %d, error %v", len(a.Citations), citations, err)
	}
	b.ReportMetric(float64(held.HeapAlloc-before.HeapAlloc)/1e6, "MB/held")
	b.ReportMetric(float64(passed.TotalAlloc-before.TotalAlloc)/1e6, "MB/passed")
	return took, size
}

// endless is a stream generated while it is read: one call of next for each citation.
type endless struct {
	buf  bytes.Buffer
	next func(i int)
	i, n int
}

// Read generates the bytes to be read.
func (e *endless) Read(p []byte) (int, error) {
	for e.buf.Len() < len(p) && e.i <= e.n {
		e.next(e.i)
		e.i++
	}
	return e.buf.Read(p)
}

func (e *endless) event(kind, format string, args ...any) {
	fmt.Fprintf(&e.buf, "event: %s\ndata: {\"type\":\"%[1]s\",", kind)
	fmt.Fprintf(&e.buf, format, args...)
	e.buf.WriteString("}\n\n")
}

// endlessResponses returns a stream of the Responses API with four deltas and a link for each citation, a kilobyte in all.
func endlessResponses(n int) io.Reader {
	e := &endless{n: n}
	sequence, at := 0, 0
	delta := func(text string) {
		sequence++
		at += len(text)
		e.event("response.output_text.delta", `"sequence_number":%d,"item_id":"msg_0a1b2c3d","output_index":0,"content_index":0,"delta":"%s"`, sequence, text)
	}
	e.next = func(i int) {
		if i == n {
			e.event("response.completed", `"sequence_number":%d,"response":{"status":"completed","output":[]}`, sequence+1)
			return
		}
		for k := range 4 {
			delta([]string{" The ferry leaves", " the old harbour", " at seven", "."}[k])
		}
		link := fmt.Sprintf(` ([harbour.example](https://harbour.example/%d))\n\n`, i%50_000)
		start := at + 1
		delta(link)
		at -= 2 // two escapes
		e.event("response.output_text.annotation.added",
			`"sequence_number":%d,"item_id":"msg_0a1b2c3d","output_index":0,"content_index":0,"annotation_index":%d,"annotation":{"type":"url_citation","start_index":%d,"end_index":%d,"title":"Harbour %d","url":"https://harbour.example/%[5]d"}`,
			sequence, i, start, at-2, i%50_000)
	}
	return e
}

// endlessAnthropic returns a stream of the Messages API with a block of four deltas for each citation, a kilobyte in all.
func endlessAnthropic(n int) io.Reader {
	e := &endless{n: n}
	index := strings.Repeat("Eo8BCioIARgCIiQ3", 12)
	e.next = func(i int) {
		if i == 0 {
			e.event("message_start", `"message":{"id":"msg_0a1b2c3d","model":"claude-x","content":[]}`)
		}
		if i == n {
			e.event("message_stop", `"index":0`)
			return
		}
		e.event("content_block_start", `"index":%d,"content_block":{"type":"text","text":"","citations":[]}`, i)
		e.event("content_block_delta",
			`"index":%d,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","cited_text":"Boats leave at seven.","url":"https://harbour.example/%d","title":"Harbour","encrypted_index":"%s"}}`,
			i, i%50_000, index)
		for k := range 4 {
			e.event("content_block_delta", `"index":%d,"delta":{"type":"text_delta","text":"%s"}`,
				i, []string{" The ferry leaves", " the old harbour", " at seven", ".\\n\\n"}[k])
		}
		e.event("content_block_stop", `"index":%d`, i)
	}
	return e
}
