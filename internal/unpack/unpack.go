package unpack

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window of an HTTP body compressed with zstd, in bytes (RFC 9659). Decompression needs that
// much memory.
const MaxWindow = 8 << 20

// Coding is a content coding. The zero value is Plain.
type Coding int

// The codings. HTTP's deflate is Zlib according to the RFC, but some servers send [Flate]; [Deflate] accepts either.
const (
	Plain Coding = iota
	Gzip
	Zstd
	Brotli
	Deflate
	Zlib
	Flate
)

// String returns the coding's name in HTTP.
func (c Coding) String() string {
	switch c {
	case Plain:
		return "identity"
	case Gzip:
		return "gzip"
	case Zstd:
		return "zstd"
	case Brotli:
		return "br"
	case Deflate, Zlib, Flate:
		return "deflate"
	}
	return fmt.Sprintf("Coding(%d)", int(c))
}

// Find returns the coding with the given name in a Content-Encoding, and whether there is one.
func Find(name string) (Coding, bool) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", "identity":
		return Plain, true
	case "gzip", "x-gzip":
		return Gzip, true
	case "deflate":
		return Deflate, true
	case "br":
		return Brotli, true
	case "zstd":
		return Zstd, true
	}
	return Plain, false
}

// Memory returns how many bytes of memory a [Coding.Reader] with [MaxWindow] may take. first is the first byte of what
// it reads, which tells the window of Brotli, or negative if it is not known.
func (c Coding) Memory(first int) int64 {
	const fixed, most = 64 << 10, 24 // bits of Brotli's largest window
	switch c {
	case Plain:
		return 0
	case Zstd:
		return MaxWindow + MaxWindow/4
	case Brotli:
		bits := most
		switch {
		case first < 0:
		case first&1 == 0: // RFC 7932, 9.1: WBITS
			bits = 16
		case first>>1&7 != 0:
			bits = 17 + first>>1&7
		case first>>4&7 != 0:
			bits = 8 + first>>4&7
		default:
			bits = 17
		}
		return 1<<bits + 1<<(bits-2) + fixed
	case Gzip, Deflate, Zlib, Flate:
	}
	return fixed
}

// Reader returns a reader of the decompressed contents of r. The window of zstd is limited to window bytes. Most
// codings read a header at once, and return its errors or r's. The reader starts no goroutines and need not be closed.
func (c Coding) Reader(r io.Reader, window uint64) (io.Reader, error) {
	switch c {
	case Gzip:
		return opened(gzip.NewReader(r))
	case Zstd:
		return opened(
			zstd.NewReader(
				r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window),
			),
		)
	case Brotli:
		return brotli.NewReader(r), nil
	case Deflate:
		head := bufio.NewReader(r)
		first, err := head.Peek(2)
		if len(first) == 0 {
			return nil, err
		}
		if err == nil && first[0]&0x0f == 8 && (int(first[0])<<8|int(first[1]))%31 == 0 {
			return opened(zlib.NewReader(head))
		}
		return flate.NewReader(head), nil
	case Zlib:
		return opened(zlib.NewReader(r))
	case Flate:
		return flate.NewReader(r), nil
	case Plain:
	}
	return r, nil
}

// opened keeps a nil pointer out of the interface.
func opened[R io.Reader](r R, err error) (io.Reader, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Limit returns a reader of at most most bytes of r, followed by the error over if there are more.
func Limit(r io.Reader, most int64, over error) io.Reader { return &limited{r, most, over} }

type limited struct {
	r    io.Reader
	left int64 // negative if there were more
	over error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, l.over
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, l.over
	}
	return n, err
}

// Packer compresses data with zstd for use within this program. It allocates nothing until its first use, and is safe
// for concurrent use. Use [NewPacker]: the zero value panics.
type Packer struct {
	encoder     func() (*zstd.Encoder, error)
	decoder     func() (*zstd.Decoder, error)
	maxUnpacked int
}

// NewPacker returns a packer. window is the size of the compression window in bytes, which adds to the packer's memory;
// maxUnpacked is the largest result of [Packer.Unpack].
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

// Unpack returns the original bytes. size is their number; it only saves allocations and may be wrong. It returns an
// error if packed is damaged or has more than maxUnpacked bytes.
func (p *Packer) Unpack(packed []byte, size int) ([]byte, error) {
	decoder, err := p.decoder()
	if err != nil {
		return nil, err
	}
	return decoder.DecodeAll(packed, make([]byte, 0, max(min(size, p.maxUnpacked), 0)))
}
