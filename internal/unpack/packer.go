package unpack

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Packer compresses with zstd what the program itself reads again. It takes no memory until it is needed. It may be
// used by many goroutines at once. The zero value cannot be used.
type Packer struct {
	encoder func() (*zstd.Encoder, error)
	decoder func() (*zstd.Decoder, error)
	most    int
}

// NewPacker returns a packer. Window is how far back it looks for what repeats, in bytes, and is memory that it takes;
// most is how many bytes [Packer.Unpack] returns.
func NewPacker(level zstd.EncoderLevel, window, most int) *Packer {
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
				zstd.WithDecoderMaxMemory(uint64(most)),
			)
		}),
		most: most,
	}
}

// Pack compresses b; nil: that makes it no shorter than most bytes.
func (p *Packer) Pack(b []byte, most int) []byte {
	encoder, err := p.encoder()
	if err != nil {
		return nil
	}
	packed := encoder.EncodeAll(b, make([]byte, 0, len(b)/2))
	if len(packed) > most {
		return nil
	}
	return packed
}

// Unpack returns the bytes that were packed. Size is how many they were. It is a hint, and may be wrong.
func (p *Packer) Unpack(packed []byte, size int) ([]byte, error) {
	decoder, err := p.decoder()
	if err != nil {
		return nil, err
	}
	return decoder.DecodeAll(packed, make([]byte, 0, max(min(size, p.most), 0)))
}
