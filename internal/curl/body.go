package curl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// The limits of a trailer. Anything larger is part of the body.
const (
	maxTrailer      = 16 << 10 // bytes
	maxTrailerLines = 64
	maxTrailerNames = 32
)

// splitBody sets Body to a reader that removes the chunks and the trailer, if there may be any.
func (r *Response) splitBody(in *bufio.Reader) {
	length, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64)
	switch {
	case strings.EqualFold(r.Header.Get("Transfer-Encoding"), "chunked") && beginsWithChunk(in):
		r.Body = &chunks{in: in, response: r}
	case err == nil && length >= 0:
		r.Body = &splitter{in: in, response: r, left: length, measured: true, names: nameFinder(r.trailerNames())}
	case r.Header.Get("Trailer") != "":
		r.Body = &splitter{in: in, response: r, names: nameFinder(r.trailerNames())}
	}
}

// isName matches the name of a field. Anything else in a Trailer header is ignored; it need not even be UTF-8.
var isName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// trailerNames returns the names of the fields that the trailer may have: those that the header announces and, since a
// trailer need not be announced over HTTP/2, always that of manifests.
func (r *Response) trailerNames() []string {
	names := []string{manifest.HeaderName}
	for _, line := range r.Header.Values("Trailer") {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); isName.MatchString(name) && len(names) < maxTrailerNames {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	return names
}

// readTrailer parses a trailer. Ok reports whether all its fields may be in one.
func (r *Response) readTrailer(b []byte) (http.Header, bool) {
	if b = bytes.TrimRight(b, "\r\n"); len(b) == 0 || len(b) > maxTrailer {
		return nil, false
	}
	fields, err := readFields(b)
	if err != nil || len(fields) == 0 {
		return nil, false
	}
	names := r.trailerNames()
	for name := range fields {
		if !slices.Contains(names, name) {
			return nil, false
		}
	}
	return fields, true
}

// isPlausible reports whether what looks like a trailer announces no other manifests than the header does. Curl prints
// the trailer directly after the body, so the end of an answer's text could be mistaken for one.
func (r *Response) isPlausible(trailer http.Header) bool {
	lines := trailer.Values(manifest.HeaderName)
	announced, err := manifest.ParseHeader(lines)
	if err != nil || len(announced) == 0 && len(lines) > 0 {
		return false
	}
	before, err := manifest.ParseHeader(r.Header.Values(manifest.HeaderName))
	if err != nil || len(before) == 0 {
		before = announced[:min(1, len(announced))]
	}
	for i := range announced {
		same := func(a manifest.Announcement) bool { return cleanURL(a.Manifest) == cleanURL(announced[i].Manifest) }
		if !slices.ContainsFunc(before, same) {
			return false
		}
	}
	return true
}

// cleanURL returns an address as [snapshot.CleanURL] does, or unchanged if it is invalid.
func cleanURL(address string) string {
	if c, err := snapshot.CleanURL(address); err == nil {
		return c
	}
	return address
}

// splitter reads a body and separates it from the trailer, which curl prints directly after it.
type splitter struct {
	in       *bufio.Reader
	response *Response
	left     int64 // bytes that belong to the body, by its Content-Length
	measured bool  // there is a Content-Length, so only a trailer can follow
	names    *regexp.Regexp

	ready  []byte // belongs to the body
	held   []byte // may be the trailer
	inLine bool   // held begins inside a line
	off    bool   // held was longer than a trailer, so the rest is the body
	err    error
}

func (s *splitter) Read(p []byte) (int, error) {
	if s.left > 0 && len(p) > 0 {
		n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
		s.left -= int64(n)
		// The length of a compressed body may differ: curl --compressed prints it decompressed.
		if errors.Is(err, io.EOF) && s.left > 0 && s.response.Header.Get("Content-Encoding") == "" {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// fill reads more, and moves what cannot be the trailer from held to ready.
func (s *splitter) fill() {
	const step = 4 << 10
	s.held = slices.Grow(s.held, step)
	var n int
	n, s.err = s.in.Read(s.held[len(s.held) : len(s.held)+step])
	s.held = s.held[:len(s.held)+n]
	at := 0
	if !s.measured {
		at = s.trailerAt(s.err == nil)
	}
	if s.off = s.off || len(s.held)-at > maxTrailer; s.off {
		at = len(s.held)
	}
	if errors.Is(s.err, io.EOF) && at < len(s.held) {
		if fields, ok := s.response.readTrailer(s.held[at:]); ok && (s.measured || s.response.isPlausible(fields)) {
			s.response.Trailer = fields
			s.held = s.held[:at]
		}
		at = len(s.held)
	} else if s.err != nil {
		at = len(s.held)
	}
	if at > 0 {
		s.inLine = s.held[at-1] != '\n'
	}
	s.ready, s.held = s.held[:at:at], slices.Clone(s.held[at:])
}

// trailerAt returns the offset in held where the trailer begins: at the first of the lines at the end that are its
// fields. The body may end inside that line. If more may follow, the last line may be incomplete.
func (s *splitter) trailerAt(more bool) int {
	tail := bytes.TrimRight(s.held, "\r\n")
	at := len(s.held)
	for i := range maxTrailerLines {
		begin := bytes.LastIndexByte(tail, '\n') + 1
		line := tail[begin:]
		isWhole := begin > 0 || !s.inLine
		field := -1 // where the last field in the line begins; 0 if the whole line is a field
		for _, found := range s.names.FindAllIndex(line, -1) {
			if field = found[0]; field == 0 && isWhole {
				break
			}
		}
		if field < 0 && more && i == 0 {
			field = s.beginsField(line)
		}
		switch {
		case field == 0 && isWhole:
			at = begin
		case field >= 0:
			return begin + field
		case len(line) == 0 || line[0] != ' ' && line[0] != '\t': // it does not continue a folded field
			return at
		}
		if begin == 0 {
			return at
		}
		tail = tail[:begin-1]
	}
	s.off = true
	return len(s.held)
}

// nameFinder matches the names of fields, with their colon.
func nameFinder(names []string) *regexp.Regexp {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	return regexp.MustCompile(`(?i)(?:` + strings.Join(quoted, "|") + `):`)
}

// beginsField returns the offset where the end of a line may be the beginning of a field's name, or -1.
func (s *splitter) beginsField(line []byte) int {
	for _, name := range s.response.trailerNames() {
		for n := min(len(name), len(line)); n > 0; n-- {
			if strings.EqualFold(string(line[len(line)-n:]), name[:n]) {
				return len(line) - n
			}
		}
	}
	return -1
}

var errChunks = errors.New("the chunks of the body are damaged")

// chunks removes the chunks that `curl --raw` leaves.
type chunks struct {
	in       *bufio.Reader
	response *Response
	left     int64 // bytes of the current chunk
	begun    bool
	err      error
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.left == 0 && c.err == nil && len(p) > 0 {
		c.err = c.next()
	}
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.err = unexpected(err)
	return n, c.err
}

// next reads up to the data of the next chunk. It returns io.EOF after the last one.
func (c *chunks) next() error {
	if c.begun {
		if line, err := c.in.ReadSlice('\n'); err != nil || len(bytes.Trim(line, "\r\n")) > 0 {
			return c.broken("no line end after a chunk", err)
		}
	}
	c.begun = true
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return c.broken("the line of a size does not end", err)
	}
	size, ok := chunkSize(line)
	if !ok {
		return c.broken("a chunk has no size", nil)
	}
	if c.left = size; size > 0 {
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(c.in, maxTrailer+1))
	if err != nil {
		return err
	}
	if rest = bytes.TrimSpace(rest); len(rest) == 0 {
		return io.EOF
	}
	// After the last chunk there can only be a trailer, which therefore need not be announced.
	fields, err := readFields(rest)
	if err != nil || len(rest) > maxTrailer {
		return c.broken("what follows the last chunk is not a trailer", nil)
	}
	c.response.Trailer = fields
	return io.EOF
}

// broken returns the error for damaged chunks, or the error of reading them, if there is one.
func (c *chunks) broken(how string, err error) error {
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return unexpected(err)
	}
	return fmt.Errorf("%w: %s", errChunks, how)
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunkLine matches the line before a chunk, mayBeSize the beginning of such a line.
var (
	chunkLine = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n$`)
	mayBeSize = regexp.MustCompile(`^[0-9A-Fa-f]{1,8}[ \t]*(?:;[^\r\n]*)?\r?\n?$`)
)

// chunkSize returns the size, in bytes, from the line before a chunk.
func chunkSize(line []byte) (size int64, ok bool) {
	m := chunkLine.FindSubmatch(line)
	if m == nil {
		return 0, false
	}
	size, err := strconv.ParseInt(string(m[1]), 16, 64)
	return size, err == nil && size <= math.MaxUint32
}

// beginsWithChunk reports whether a body is chunked. The header does not tell, since curl removes the chunks unless
// --raw is given. Since a text may begin with a number on a line of its own, the first chunk must end where its size
// says.
func beginsWithChunk(in *bufio.Reader) bool {
	const longest = 80 // bytes of a line with a size
	for n := 1; n <= longest; n++ {
		b, err := in.Peek(n)
		if err != nil || !mayBeSize.Match(b) {
			return false
		}
		if b[n-1] != '\n' {
			continue
		}
		size, ok := chunkSize(b)
		if !ok || size == 0 {
			return ok
		}
		if int64(n)+size >= int64(in.Size()) {
			return true
		}
		b, err = in.Peek(n + int(size) + 1)
		if err != nil { // the input ends in it, so it is a chunk if it begins like a document
			return len(b) > n && (b[n] == '{' || b[n] == '[' || bytes.HasPrefix(b[n:], []byte("data:")))
		}
		end := b[len(b)-1]
		return end == '\r' || end == '\n'
	}
	return false
}
