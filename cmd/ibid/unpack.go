package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxUnpacked is how many bytes compressed input may unpack to. A bomb of a few kilobytes would fill the memory.
	maxUnpacked = 64 << 20
	// maxHead is how many bytes are looked at to recognise a compression that has no mark of its own.
	maxHead = 64 << 10
	// maxWindow is how far back compressed input may refer, which is memory that its unpacking needs.
	maxWindow = 128 << 20
	// prelude is how many bytes a message of an AWS event stream begins with, the last four their checksum.
	prelude = 12
	// fewBytes is how many bytes must unpack to text before an input that goes on, or breaks off, is taken for compressed.
	fewBytes = 32
)

// coding is a way to compress.
type coding int

const (
	plain coding = iota
	gzipped
	zstandard
	zlibbed // the "deflate" of HTTP
	deflated
	brotlied
)

func (c coding) String() string {
	return [...]string{"plain", "gzip", "zstd", "deflate", "deflate", "br"}[c]
}

// unpack returns what r holds, unpacked if it is compressed. What cannot be an answer is an error; of a file named *.br
// nothing is in doubt.
func unpack(r io.Reader, name string) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, maxHead)
	if _, err := buffered.Peek(prelude); err != nil && !errors.Is(err, io.EOF) && buffered.Buffered() == 0 {
		return nil, err
	}
	head, _ := buffered.Peek(buffered.Buffered())
	if !isMarked(head) && !isText(head) && !isEventStream(head) { // then it is no stream that somebody waits to see
		head, _ = buffered.Peek(maxHead)
	}
	c, err := recognise(head, strings.HasSuffix(name, ".br"))
	if err != nil {
		return nil, err
	}
	if c == plain {
		return io.NopCloser(buffered), nil
	}
	unpacked, err := c.reader(buffered)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", c, err)
	}
	return &unpacker{unpacked, c, maxUnpacked}, nil
}

// reader returns what r holds, unpacked.
func (c coding) reader(r io.Reader) (io.ReadCloser, error) {
	switch c {
	case gzipped:
		return gzip.NewReader(r)
	case zstandard:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case zlibbed:
		return zlib.NewReader(r)
	case deflated:
		return flate.NewReader(r), nil
	case brotlied:
		return io.NopCloser(brotli.NewReader(r)), nil
	case plain:
	}
	return io.NopCloser(r), nil
}

// unpacker stops when too much comes out.
type unpacker struct {
	io.ReadCloser
	coding coding
	left   int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.left < 0 {
		return 0, errUnpacked
	}
	n, err := u.ReadCloser.Read(p[:min(int64(len(p)), u.left+1)])
	if u.left -= int64(n); u.left < 0 {
		return n - 1, errUnpacked
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("unpack %s: %w", u.coding, err)
	}
	return n, err
}

// recognise says how bytes that begin with head are compressed, which is everything there is if it is shorter than maxHead.
func recognise(head []byte, brotliName bool) (coding, error) {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return gzipped, nil
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return zstandard, nil
	case isText(head) || isEventStream(head):
		return plain, nil
	case brotliName:
		return brotlied, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return plain, errUTF16
	}
	for _, c := range []coding{zlibbed, brotlied, deflated} {
		if c.fits(head) {
			return c, nil
		}
	}
	if bytes.IndexByte(head, 0) >= 0 || hasControls(head) {
		return plain, errBinary
	}
	return plain, nil // in an old encoding, or damaged
}

func isMarked(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x1f\x8b")) || bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd"))
}

// fits reports whether head makes sense when it is unpacked.
func (c coding) fits(head []byte) bool {
	r, err := c.reader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(r, 4<<10))
	return len(text) > 0 && (err == nil || len(text) >= fewBytes) && (isText(text) && !hasControls(text) || isEventStream(text))
}

// isText reports whether b is UTF-8, maybe cut at its end, without NUL.
func isText(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return false
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}

// hasControls reports whether b holds characters that almost no text has.
func hasControls(b []byte) bool {
	return bytes.ContainsFunc(b, func(r rune) bool {
		return r < ' ' && (r < '\a' || r > '\r') && r != '\x1b'
	})
}

// isEventStream reports whether b begins a message of an AWS event stream: its first eight bytes have a checksum.
func isEventStream(b []byte) bool {
	return len(b) >= prelude && crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:12])
}
