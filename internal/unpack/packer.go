package unpack

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Packer compresses, with zstd, data that only this program reads again. It allocates nothing until its first use, and
// may be used by many goroutines at once. Use [NewPacker]: the zero value panics.
type Packer struct {
	encoder     func() (*zstd.Encoder, error)
	decoder     func() (*zstd.Decoder, error)
	maxUnpacked int
}

// NewPacker returns a packer. Window is the size of the compression window in bytes, which adds to the memory that the
// packer takes; maxUnpacked is how many bytes [Packer.Unpack] returns at most.
func NewPacker(level zstd.EncoderLevel, window, maxUnpacked int) *Packer {
	return &Packer{
		encoder: sync.OnceValues(func() (*zstd.Encoder, error) {
			return zstd.NewWriter(
				nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(level), zstd.WithWindowSize(window),
				zstd.WithLowerEncoderMem(true),
			)
		}),
		decoder: sync.OnceValues(func() (*zstd.Decoder, error) {
			return zstd.NewReader(
				nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(uint64(max(0, maxUnpacked))),
			)
		}),
		maxUnpacked: maxUnpacked,
	}
}

// Pack compresses b. It returns nil if the result has more than maxPacked bytes, or if there is no encoder.
func (p *Packer) Pack(b []byte, maxPacked int) []byte {
	encoder, err := p.encoder()
	if err != nil {
		return nil
	}
	packed := encoder.EncodeAll(b, make([]byte, 0, len(b)/2))
	if len(packed) > maxPacked {
		return nil
	}
	return packed
}

// Unpack returns the bytes that were packed. Size is how many they are; it only saves allocations, and may be wrong.
// There is an error if packed is damaged or has more than maxUnpacked bytes.
func (p *Packer) Unpack(packed []byte, size int) ([]byte, error) {
	decoder, err := p.decoder()
	if err != nil {
		return nil, err
	}
	return decoder.DecodeAll(packed, make([]byte, 0, max(min(size, p.maxUnpacked), 0)))
}
