package gateway

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// minPacked is how many bytes a request has at least that is compressed while the stream that answers it is open. Fewer
// are not worth the time.
const minPacked = 16 << 10

// packer compresses what is kept of requests while streams are open: for minutes, and by the thousand. It takes no
// memory until it is needed.
type packer struct {
	encoder func() (*zstd.Encoder, error)
	decoder func() (*zstd.Decoder, error)
}

func newPacker() *packer {
	return &packer{
		sync.OnceValues(func() (*zstd.Encoder, error) {
			return zstd.NewWriter(
				nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedDefault),
				zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true),
			)
		}),
		sync.OnceValues(func() (*zstd.Decoder, error) {
			return zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
		}),
	}
}

// packed is what a call keeps of its request while its response is a stream. The zero value is nothing.
type packed struct {
	bytes []byte // compressed
	size  int    // uncompressed
	texts []int  // the lengths of the prompt's texts, one behind the other in bytes; nil: bytes are the body
}

// pack compresses b; nil: that is not worth it.
func (p *packer) pack(b []byte) []byte {
	encoder, err := p.encoder()
	if err != nil {
		return nil
	}
	small := encoder.EncodeAll(b, make([]byte, 0, len(b)/2))
	if len(small) > len(b)/4*3 {
		return nil
	}
	return append(make([]byte, 0, len(small)), small...) // without the room that it did not need
}

// packRequest compresses what is kept of the request until the answer is there.
func (e *exchange) packRequest() {
	if e.body != nil {
		if len(e.body) < minPacked {
			return
		}
		if b := e.g.packer.pack(e.body); b != nil {
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
	if b := e.g.packer.pack(all); b != nil {
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
	var all []byte
	decoder, err := e.g.packer.decoder()
	if err == nil {
		all, err = decoder.DecodeAll(p.bytes, make([]byte, 0, p.size))
	}
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
