package tee_test

import (
	"io"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/tee"
)

// chunks is an endless upstream: each Read returns the next chunk of a stream.
type chunks struct {
	chunks [][]byte
	next   int
}

func (c *chunks) Read(p []byte) (int, error) {
	n := copy(p, c.chunks[c.next])
	if c.next++; c.next == len(c.chunks) {
		c.next = 1 // the first is the stream's start
	}
	return n, nil
}

func (c *chunks) Close() error { return nil }

func newChunks() *chunks {
	c := &chunks{}
	for word := range strings.FieldsSeq("Herons nest in the old mill and come back in spring every year without fail") {
		c.chunks = append(c.chunks, []byte(strings.Replace(chunkA, `"a"`, `" `+word+`"`, 1)))
	}
	return c
}

// BenchmarkChunk passes one chunk of an event stream, a delta of one word: directly, through a Body with and without a
// listener, and through the decoder alone.
func BenchmarkChunk(b *testing.B) {
	buf := make([]byte, 32<<10)
	run := func(b *testing.B, open func() io.Reader) {
		b.Helper()
		b.ReportAllocs()
		r := open()
		for i := 0; b.Loop(); i++ {
			if i%4096 == 4095 {
				r = open() // an answer grows with each chunk
			}
			testenv.Must(r.Read(buf))(b)
		}
	}
	b.Run("by=none", func(b *testing.B) { run(b, func() io.Reader { return newChunks() }) })
	b.Run("by=decoder", func(b *testing.B) {
		run(b, func() io.Reader { return io.TeeReader(newChunks(), &ibid.Decoder{}) })
	})
	b.Run("by=tee", func(b *testing.B) {
		run(b, func() io.Reader { return tee.NewBody(newChunks(), nil) })
	})
	b.Run("by=tee-listening", func(b *testing.B) {
		told := 0
		run(b, func() io.Reader {
			return tee.NewBody(newChunks(), &tee.Options{OnEvent: func(ibid.Event) { told++ }})
		})
	})
}

// BenchmarkBody passes a JSON body of 1 KB, from NewBody to Close.
func BenchmarkBody(b *testing.B) {
	sent := []byte(strings.Replace(body, `"ab"`, `"`+strings.Repeat("Herons nest in the old mill. ", 32)+`"`, 1))
	buf := make([]byte, 32<<10)
	run := func(b *testing.B, open func(io.ReadCloser) io.ReadCloser) {
		b.Helper()
		b.ReportAllocs()
		b.SetBytes(int64(len(sent)))
		up := &chunks{chunks: [][]byte{sent, sent}}
		for b.Loop() {
			r := open(up)
			testenv.Must(r.Read(buf))(b)
			_ = r.Close()
		}
	}
	b.Run("by=none", func(b *testing.B) { run(b, func(r io.ReadCloser) io.ReadCloser { return r }) })
	b.Run("by=decoder", func(b *testing.B) {
		run(b, func(r io.ReadCloser) io.ReadCloser {
			d := &ibid.Decoder{}
			return struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r, d), d}
		})
	})
	b.Run("by=tee", func(b *testing.B) {
		run(b, func(r io.ReadCloser) io.ReadCloser { return tee.NewBody(r, nil) })
	})
	b.Run("by=tee-told-the-format", func(b *testing.B) {
		o := &tee.Options{Decode: ibid.DecodeOptions{Format: "openai-chat"}}
		run(b, func(r io.ReadCloser) io.ReadCloser { return tee.NewBody(r, o) })
	})
}

// Reading a delta allocates nothing but the answer's own text.
func TestBodyAllocations(t *testing.T) {
	b := tee.NewBody(newChunks(), nil)
	buf := make([]byte, 4096)
	for range 64 {
		_, _ = b.Read(buf)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = b.Read(buf) }); n > 0.1 {
		t.Errorf("%v allocations a Read", n)
	}
}
