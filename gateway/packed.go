package gateway

import (
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/ibidhq/ibid/internal/unpack"
)

// minPacked is how many bytes a request has at least that is compressed while the stream that answers it is open. Fewer
// are not worth the time.
const minPacked = 16 << 10

// newPacker returns the packer for requests, which are kept while their streams are open: for minutes, and by the
// thousand.
func newPacker() *unpack.Packer { return unpack.NewPacker(zstd.SpeedDefault, 128<<10, math.MaxInt) }

// packed is what a call keeps of its request while its response is a stream. The zero value is nothing.
type packed struct {
	bytes []byte // compressed
	size  int    // uncompressed
	texts []int  // the lengths of the prompt's texts, one behind the other in bytes; nil: bytes are the body
}

// pack compresses b; nil: that is not worth it.
func (e *exchange) pack(b []byte) []byte {
	// The clone leaves out the spare capacity.
	return slices.Clone(e.g.packer.Pack(b, len(b)/4*3))
}

// packRequest compresses what is kept of the request until the answer is there.
func (e *exchange) packRequest() {
	if e.body != nil {
		if len(e.body) < minPacked {
			return
		}
		if b := e.pack(e.body); b != nil {
			e.packed = packed{bytes: b, size: len(e.body)}
			e.g.bodies.Release(e.who, e.held-int64(len(b)))
			e.held, e.body = int64(len(b)), nil
		}
		return
	}
	size, texts := 0, make([]int, len(e.prompt))
	for i := range e.prompt {
		texts[i] = len(e.prompt[i].Text)
		size += texts[i]
	}
	if size < minPacked {
		return
	}
	all := make([]byte, 0, size)
	for i := range e.prompt {
		all = append(all, e.prompt[i].Text...)
	}
	if b := e.pack(all); b != nil {
		e.packed = packed{b, size, texts}
		for i := range e.prompt {
			e.prompt[i].Text = ""
		}
	}
}

// unpackRequest restores what packRequest has compressed.
func (e *exchange) unpackRequest() {
	p := e.packed
	if p.bytes == nil {
		return
	}
	e.packed = packed{}
	all, err := e.g.packer.Unpack(p.bytes, p.size)
	if err != nil { // they are our own bytes
		panic(err)
	}
	if p.texts == nil {
		e.body = all
		return
	}
	rest := string(all)
	for i, n := range p.texts {
		e.prompt[i].Text, rest = rest[:n], rest[n:]
	}
}
