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

// stdinName is the argument that means standard input.
const stdinName = "-"

// input is one provider response to be read.
type input struct {
	io.Reader
	live   bool   // it may arrive slowly: a pipe, a terminal
	status int    // of HTTP, if curl -i printed it; 0: it is not known
	Close  func() // closes what the input is read from
}

// openFile opens a file, or standard input.
func openFile(name string, stdin io.Reader) (r io.Reader, closeFile func(), err error) {
	if name == stdinName {
		return stdin, func() {}, nil
	}
	f, err := os.Open(name)
	return f, func() { _ = f.Close() }, err // it is only read
}

// openInput opens an item for what it holds: without what is not the body of a response, and unpacked. The coding may
// be that of the body, or of the file. through, if not nil, sees the bytes of a file before that.
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

// onceStdin refuses names of which more than one is standard input.
func onceStdin(names []string) error {
	first := slices.Index(names, stdinName)
	if first >= 0 && slices.Contains(names[first+1:], stdinName) {
		return usagef("standard input can be read only once", "- is named more than once")
	}
	return nil
}

// bare takes the operation and the file out of an error: messages name the file themselves.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSidecar reads a file that goes with a response, whole.
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

// readDocuments reads the documents that were given to the model.
func readDocuments(name string, stdin io.Reader) ([]ibid.Source, error) {
	data, err := readSidecar(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("read documents %s: %w", name, err)
	}
	docs, err := ibid.ReadDocuments(data)
	if err != nil {
		return nil, usagef(
			`--documents wants a JSON array of strings, flat objects or {"id", "data"}; a whole request goes to `+
				`--request`,
			"read %s: %w", name, err,
		)
	}
	return docs, nil
}

const (
	// maxUnpacked is how many bytes compressed input may unpack to, and an answer to be attributed may have. A bomb of
	// a few kilobytes would fill the memory.
	maxUnpacked = 64 << 20
	// maxHead is how many bytes are looked at to recognise a compression that has no mark of its own.
	maxHead = 64 << 10
	// maxWindow is how far back compressed input may refer, which is memory that its unpacking needs.
	maxWindow = 128 << 20
	// prelude is how many bytes a message of an AWS event stream begins with, the last four their checksum.
	prelude = 12
	// fewBytes is how many bytes must unpack to text before an input that goes on, or breaks off, is taken for
	// compressed.
	fewBytes = 32
)

// unpacked returns what r holds, unpacked if it is compressed. What cannot be an answer is an error; of a file named
// *.br nothing is in doubt.
func unpacked(r io.Reader, name string) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, maxHead)
	if _, err := buffered.Peek(prelude); err != nil && !errors.Is(err, io.EOF) && buffered.Buffered() == 0 {
		return nil, err
	}
	head, _ := buffered.Peek(buffered.Buffered())
	if isText(head) { // no mark is
		return buffered, nil
	}
	c := markedAs(head)
	if c == unpack.Plain {
		if !isMostlyText(head) && !isEventStream(head) { // it is no stream that somebody waits to see
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

// unpacker says of an error what it was at.
type unpacker struct {
	io.Reader

	coding unpack.Coding
}

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errUnpacked) {
		err = fmt.Errorf("unpack %s: %w", u.coding, err)
	}
	return n, err
}

// markedAs says how bytes are compressed that begin with the mark of a compression; Plain: they begin with none.
func markedAs(head []byte) unpack.Coding {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return unpack.Gzip
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return unpack.Zstd
	}
	return unpack.Plain
}

// recognise says how bytes without a mark are compressed that begin with head, which is everything there is if it is
// shorter than maxHead.
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

// fits reports whether head makes sense when it is unpacked.
func fits(c unpack.Coding, head []byte) bool {
	r, err := c.Reader(bytes.NewReader(head), maxWindow)
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(r, 4<<10))
	return len(text) > 0 && (err == nil || len(text) >= fewBytes) &&
		(isText(text) && !hasControls(text) || isEventStream(text))
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

// isMostlyText reports whether b is text in which a few bytes are damaged, or in an old encoding. Of bytes that are
// compressed few are printable, and their first ones hardly ever.
func isMostlyText(b []byte) bool {
	const first, most = 8, 8 // bytes that must be sound; one in so many may be odd
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
