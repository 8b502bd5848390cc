package tee

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/unpack"
)

// maxCodings is how many content encodings may be applied to one body.
const maxCodings = 4

// parseEncoding returns the codings of a Content-Encoding, in the order in which they were applied, without identity.
func parseEncoding(header string) ([]unpack.Coding, error) {
	var codings []unpack.Coding
	for name := range strings.SplitSeq(header, ",") {
		coding, known := unpack.Find(name)
		switch {
		case !known:
			return nil, fmt.Errorf(
				"decompress response: %w: %.40q", ErrEncoding, strings.ToLower(strings.TrimSpace(name)),
			)
		case coding == unpack.Plain:
		case len(codings) == maxCodings:
			return nil, fmt.Errorf("decompress response: %w: more than %d", ErrEncoding, maxCodings)
		default:
			codings = append(codings, coding)
		}
	}
	return codings, nil
}

// memoryOf returns how much memory the decompressors of codings may take for a body that begins with first, in bytes.
func memoryOf(codings []unpack.Coding, first byte) int64 {
	last := len(codings) - 1
	sum := codings[last].Memory(int(first))
	for _, coding := range codings[:last] {
		sum += coding.Memory(-1)
	}
	return sum
}

// CanDecode reports whether a [Body] can decode a response with that Content-Encoding: see [Options].Encoding.
func CanDecode(encoding string) bool {
	_, err := parseEncoding(encoding)
	return err == nil
}

// unpacker decompresses what is written to it. Since decompressors read, they run on a coroutine that continues inside
// write until it has read everything.
type unpacker struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	in    []byte
	eof   bool
	idle  bool  // nothing more is written, although the input has not ended
	err   error // of decompression
}

var errIdle = errors.New("nothing more is written")

// newUnpacker returns an unpacker that calls sink, inside write, with at most limit bytes of decompressed data.
func newUnpacker(codings []unpack.Coding, limit int64, sink func([]byte)) *unpacker {
	u := &unpacker{}
	u.next, u.stop = iter.Pull(func(yield func(struct{}) bool) {
		u.yield = yield
		if err := u.run(codings, limit, sink); err != nil && !u.idle && !errors.Is(err, io.EOF) {
			u.err = fmt.Errorf("decompress response: %w", err)
		}
	})
	return u
}

// write decompresses p and does not retain it.
func (u *unpacker) write(p []byte) {
	u.in = p
	_, _ = u.next()
	u.in = nil
}

// close ends the input: either it is complete, or the rest is not needed. It returns the error of decompression.
func (u *unpacker) close(ended bool) error {
	if ended {
		u.eof = true
		_, _ = u.next()
	}
	u.stop()
	return u.err
}

// Read returns what is written to the unpacker; decompressors wait in it.
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

func (u *unpacker) run(codings []unpack.Coding, limit int64, sink func([]byte)) error {
	var r io.Reader = u
	for _, coding := range slices.Backward(codings) {
		next, err := coding.Reader(r, unpack.MaxWindow)
		if err != nil {
			return err
		}
		r = unpack.Limit(next, limit, ErrLimit) // limit each coding: one layer's output may vanish in the next
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
