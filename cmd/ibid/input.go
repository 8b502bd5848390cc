package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/curl"
	"github.com/ibidhq/ibid/internal/unpack"
)

// stdinName is the argument for standard input.
const stdinName = "-"

// input is one provider response to be read.
type input struct {
	io.Reader
	live   bool   // it may arrive slowly, from a pipe or a terminal
	status int    // the HTTP status printed by curl -i; 0 if unknown
	Close  func() // closes the underlying file
}

// openFile opens a file, or standard input.
func openFile(name string, stdin io.Reader) (r io.Reader, closeFile func(), err error) {
	if name == stdinName {
		return stdin, func() {}, nil
	}
	f, err := os.Open(name)
	return f, func() { _ = f.Close() }, err // only reads
}

// openInput opens the content of an item: the body of a response, decompressed. The compression may be that of the body
// or that of the file. through, if not nil, wraps the reader of a file.
func openInput(it *item, stdin io.Reader, through func(io.Reader) io.Reader) (*input, error) {
	in := &input{Reader: bytes.NewReader(it.data), Close: func() {}}
	if it.data == nil {
		r, closeFile, err := openFile(it.name, stdin)
		if err != nil {
			return nil, bare(err)
		}
		in = &input{Reader: r, live: true, Close: closeFile}
		if f, ok := r.(*os.File); ok {
			info, err := f.Stat()
			in.live = err != nil || !info.Mode().IsRegular()
		}
		if through != nil {
			in.Reader = through(r)
		}
	}
	response, err := curl.Read(in.Reader)
	if err == nil && response.Status == 0 {
		var r io.Reader
		if r, err = unpacked(response.Body, it.name); err == nil {
			response, err = curl.Read(r)
		}
	}
	if err == nil {
		in.status, in.Reader = response.Status, response.Body
		if in.status != 0 {
			in.Reader, err = unpacked(response.Body, it.name)
		}
	}
	if err != nil {
		in.Close()
		return nil, bare(err)
	}
	return in, nil
}

// onceStdin returns an error if more than one of the names is standard input.
func onceStdin(names []string) error {
	first := slices.Index(names, stdinName)
	if first >= 0 && slices.Contains(names[first+1:], stdinName) {
		return usagef("standard input can be read only once", "- is named more than once")
	}
	return nil
}

// bare strips the operation and the file from an error, because messages name the file themselves.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSidecar reads a whole file that accompanies a response.
func readSidecar(name string, stdin io.Reader) ([]byte, error) {
	in, err := openInput(&item{name: name}, stdin, nil)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, bare(err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// readDocuments reads the documents that the model was given.
func readDocuments(name string, stdin io.Reader) ([]ibid.Source, error) {
	data, err := readSidecar(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("read documents %s: %w", name, err)
	}
	docs, err := ibid.ReadDocuments(data)
	if err != nil {
		return nil, usagef(
			`--documents needs a JSON array of strings, flat objects or {"id", "data"}; a whole request belongs in `+
				`--request`,
			"read %s: %w", name, err,
		)
	}
	return docs, nil
}

const (
	// maxUnpacked limits, in bytes, the decompressed size of an input, and of an answer to attribute, as a bomb of a
	// few kilobytes would fill memory.
	maxUnpacked = 64 << 20
	// maxHead is how many bytes are examined to detect a compression without a signature.
	maxHead = 64 << 10
	// maxWindow limits how far back compressed input may refer, and so the memory needed to decompress it.
	maxWindow = 128 << 20
	// prelude is the length of the start of an AWS event stream message; the last four bytes are its checksum.
	prelude = 12
	// fewBytes is how many bytes must decompress to text before input that continues, or is truncated, counts as
	// compressed.
	fewBytes = 32
)

// unpacked returns the content of r, decompressed if need be. Binary data is an error. A file named *.br is always
// taken for Brotli.
func unpacked(r io.Reader, name string) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, maxHead)
	if _, err := buffered.Peek(prelude); err != nil && !errors.Is(err, io.EOF) && buffered.Buffered() == 0 {
		return nil, err
	}
	head, _ := buffered.Peek(buffered.Buffered())
	if isText(head) { // no signature is text
		return buffered, nil
	}
	c := markedAs(head)
	if c == unpack.Plain {
		if !isMostlyText(head) && !isEventStream(head) { // not a stream to be shown live
			head, _ = buffered.Peek(maxHead)
		}
		var err error
		if c, err = recognise(head, strings.HasSuffix(name, ".br")); err != nil {
			return nil, err
		}
		if c == unpack.Plain {
			return buffered, nil
		}
	}
	text, err := c.Reader(buffered, maxWindow)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", c, err)
	}
	return &unpacker{unpack.Limit(text, maxUnpacked, errUnpacked), c}, nil
}

// unpacker makes the errors of decompression an unpackError.
type unpacker struct {
	io.Reader

	coding unpack.Coding
}

// unpackError says how compressed data is damaged, which may be known only after all of it was read.
type unpackError struct {
	coding unpack.Coding
	err    error
}

func (e *unpackError) Error() string { return fmt.Sprintf("unpack %s: %v", e.coding, e.err) }

func (e *unpackError) Unwrap() error { return e.err }

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errUnpacked) {
		err = &unpackError{u.coding, err}
	}
	return n, err
}

// markedAs returns the compression whose signature head begins with, or Plain.
func markedAs(head []byte) unpack.Coding {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return unpack.Gzip
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return unpack.Zstd
	}
	return unpack.Plain
}

// recognise returns the compression of data without a signature that begins with head. If head is shorter than maxHead,
// it is all of the data.
func recognise(head []byte, brotliName bool) (unpack.Coding, error) {
	switch {
	case isText(head) || isEventStream(head):
		return unpack.Plain, nil
	case brotliName:
		return unpack.Brotli, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return unpack.Plain, errUTF16
	}
	for _, c := range []unpack.Coding{unpack.Zlib, unpack.Brotli, unpack.Flate} {
		if !isMostlyText(head) && fits(c, head) {
			return c, nil
		}
	}
	if !isMostlyText(head) && (bytes.IndexByte(head, 0) >= 0 || hasControls(head)) {
		return unpack.Plain, errBinary
	}
	return unpack.Plain, nil // in an old encoding, or damaged
}

// fits reports whether head decompresses to plausible data.
func fits(c unpack.Coding, head []byte) bool {
	r, err := c.Reader(bytes.NewReader(head), maxWindow)
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(r, 4<<10))
	return len(text) > 0 && (err == nil || len(text) >= fewBytes) &&
		(isText(text) && !hasControls(text) || isEventStream(text))
}

// isText reports whether b is UTF-8 without NUL. Its last character may be incomplete.
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

// isMostlyText reports whether b is text with a few damaged bytes, or in an old encoding. In compressed data few bytes
// are printable, and the first ones hardly ever.
func isMostlyText(b []byte) bool {
	const first, most = 8, 8 // the leading bytes that must be valid; at most one in so many may be odd
	odd := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 && utf8.FullRune(b[i:]) || r == 0 || hasControls(b[i:i+n]) {
			if odd++; i < first {
				return false
			}
		}
		i += n
	}
	return odd <= len(b)/most && len(b) > first
}

// hasControls reports whether b contains characters that hardly occur in text.
func hasControls(b []byte) bool {
	return bytes.ContainsFunc(b, func(r rune) bool {
		return r < ' ' && (r < '\a' || r > '\r') && r != '\x1b'
	})
}

// isEventStream reports whether b begins an AWS event stream message, by the checksum of its first eight bytes.
func isEventStream(b []byte) bool {
	return len(b) >= prelude && crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:12])
}
