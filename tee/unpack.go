package tee

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxCodings is how many content encodings may lie over one another.
	maxCodings = 4
	// maxWindow is the largest window of a zstd body, that of RFC 9659.
	maxWindow = 8 << 20
)

// parseEncoding returns the codings of a Content-Encoding, in the order in which they were applied, without identity.
func parseEncoding(header string) ([]string, error) {
	var codings []string
	for name := range strings.SplitSeq(header, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		switch name {
		case "", "identity":
			continue
		case "gzip", "x-gzip", "deflate", "br", "zstd":
		default:
			return nil, fmt.Errorf("decompress response: %w: %.40q", ErrEncoding, name)
		}
		if codings = append(codings, name); len(codings) > maxCodings {
			return nil, fmt.Errorf("decompress response: %w: more than %d", ErrEncoding, maxCodings)
		}
	}
	return codings, nil
}

// unpacker decompresses what is written to it. The decompressors want to read, and are written to: they run on a coroutine
// that goes on, inside write, until it has read all there is.
type unpacker struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	in    []byte
	eof   bool
	idle  bool  // nothing more is written, though the input has not ended
	err   error // of decompressing
}

var errIdle = errors.New("nothing more is written")

// newUnpacker returns an unpacker that calls sink, inside write, with what is decompressed, at most limit bytes of it.
func newUnpacker(codings []string, limit int64, sink func([]byte)) *unpacker {
	u := &unpacker{}
	u.next, u.stop = iter.Pull(func(yield func(struct{}) bool) {
		u.yield = yield
		if err := u.run(codings, limit, sink); err != nil && !u.idle && !errors.Is(err, io.EOF) {
			u.err = fmt.Errorf("decompress response: %w", err)
		}
	})
	return u
}

// write decompresses p and keeps nothing of it.
func (u *unpacker) write(p []byte) {
	u.in = p
	_, _ = u.next()
	u.in = nil
}

// close says that nothing more is written: because the input has ended, or because nobody cares for the rest. It returns what
// was wrong with the input.
func (u *unpacker) close(ended bool) error {
	if ended {
		u.eof = true
		_, _ = u.next()
	}
	u.stop()
	return u.err
}

// Read is where the decompressors wait for what is written.
func (u *unpacker) Read(p []byte) (int, error) {
	for len(u.in) == 0 {
		if u.eof {
			return 0, io.EOF
		}
		if u.idle = u.idle || !u.yield(struct{}{}); u.idle {
			return 0, errIdle
		}
	}
	n := copy(p, u.in)
	u.in = u.in[n:]
	return n, nil
}

func (u *unpacker) run(codings []string, limit int64, sink func([]byte)) error {
	var r io.Reader = u
	for _, coding := range slices.Backward(codings) {
		next, err := decompressor(coding, r)
		if err != nil {
			return err
		}
		r = &bounded{r: next, left: limit}
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			sink(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// bounded bounds what one of several decompressors makes: its bytes may all be lost on the next one.
type bounded struct {
	r    io.Reader
	left int64
}

// Read fails where there is more than may be.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		return int(b.left), ErrLimit
	}
	b.left -= int64(n)
	return n, err
}

// decompressor returns a reader of what r holds compressed. None of them starts a goroutine or needs closing.
func decompressor(coding string, r io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	head := bufio.NewReader(r)
	first, err := head.Peek(2)
	if len(first) == 0 {
		return nil, err
	}
	if err == nil && first[0]&0x0f == 8 && (int(first[0])<<8+int(first[1]))%31 == 0 {
		return zlib.NewReader(head)
	}
	return flate.NewReader(head), nil // as some servers understand deflate, without zlib's header
}
