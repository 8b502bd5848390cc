package verify

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/manifest"
)

// What a printed response may have. What is longer is taken for its body.
const (
	maxPrintedHeader = 1 << 20  // octets of a header
	maxTrailer       = 16 << 10 // octets of the trailer
	maxTrailerLines  = 64
)

var errNoStatus = errors.New("reading a response: it does not begin with a status line as `curl -i` prints it")

// tunnel is the status line of a proxy that has made a connection.
var tunnel = regexp.MustCompile(`(?i)^[^\n]*connection established`)

// readPrinted reads a response as `curl -i` prints it: one header after the other of what was informational, redirected
// or a proxy's, then the body, then the trailer. Lines end in CRLF or LF.
func readPrinted(b []byte) (*Response, error) {
	r := &Response{}
	goesOn := false // another response may follow: of one that is final, all that follows is its body
	for first := true; ; first = false {
		status, header, n := readHeader(b)
		if n == 0 || !first && !goesOn {
			if first {
				return nil, errNoStatus
			}
			break
		}
		if at := r.Header.Get("Location"); strings.Contains(at, "://") && r.Status/100 == 3 {
			// what follows a redirect comes from where it led, if it is not the redirect's own body
			r.URL, r.hinted = at, true
		}
		goesOn = status/100 == 1 || status/100 == 3 || status == http.StatusOK && tunnel.Match(b[:n])
		r.Status, r.Header, b = status, header, b[n:]
	}
	if r.Status/100 == 3 || r.Status/100 == 1 {
		r.URL = ""
	}
	r.Body = b
	r.splitBody()
	return r, nil
}

// readHeader reads a status line and the fields after it, and returns how long all of it is; 0: there is none.
func readHeader(b []byte) (status int, header http.Header, n int) {
	end, n := endOfHeader(b)
	if end == 0 {
		return 0, nil, 0
	}
	line, lines, _ := strings.Cut(string(b[:end]), "\n")
	version, rest, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if !strings.HasPrefix(version, "HTTP/") || len(version) > 8 || len(code) != 3 || err != nil || status < 100 {
		return 0, nil, 0
	}
	if header, err = readFields(lines); err != nil {
		return 0, nil, 0
	}
	return status, header, n
}

// endOfHeader returns where the first header in b ends, and where what follows it begins; 0: there is no header.
func endOfHeader(b []byte) (end, next int) {
	b = b[:min(len(b), maxPrintedHeader)]
	if !bytes.HasPrefix(b, []byte("HTTP/")) {
		return 0, 0
	}
	for line := range bytes.Lines(b) {
		if end > 0 && len(bytes.Trim(line, "\r\n")) == 0 && line[len(line)-1] == '\n' {
			return end, end + len(line)
		}
		end += len(line)
	}
	return 0, 0
}

func readFields(lines string) (http.Header, error) {
	if lines != "" && !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines + "\r\n"))).ReadMIMEHeader()
	return http.Header(header), err
}

// splitBody parts body and trailer, which curl prints right behind it, and undoes the chunks that `curl --raw` leaves.
func (r *Response) splitBody() {
	if r.dechunk() {
		return
	}
	if n, err := strconv.Atoi(r.Header.Get("Content-Length")); err == nil && n >= 0 {
		if n > len(r.Body) {
			r.Cut = r.Header.Get("Content-Encoding") == "" // curl --compressed prints another length than was sent
			return
		}
		if fields, ok := trailerFields(r, r.Body[n:]); ok {
			r.Body, r.Trailer = r.Body[:n], fields
		}
		return
	}
	if at := r.trailerAt(); at >= 0 {
		if fields, ok := trailerFields(r, r.Body[at:]); ok && r.plausible(fields) {
			r.Body, r.Trailer = r.Body[:at], fields
		}
	}
}

// plausible reports whether what looks like a trailer announces only what goes with the header: curl prints a trailer
// right behind the body, and the text of an answer may end like one, too.
func (r *Response) plausible(trailer http.Header) bool {
	said, err := manifest.ParseHeader(fields(trailer))
	if err != nil || len(said) == 0 && len(fields(trailer)) > 0 {
		return false
	}
	before, err := manifest.ParseHeader(fields(r.Header))
	if err != nil || len(before) == 0 {
		before = said[:min(1, len(said))]
	}
	for i := range said {
		of := func(a manifest.Announcement) bool { return clean(a.Manifest) == clean(said[i].Manifest) }
		if !slices.ContainsFunc(before, of) {
			return false
		}
	}
	return true
}

// announced returns the names of the fields that may stand in the trailer. Over HTTP/2 nobody needs to announce them.
func (r *Response) announced() []string {
	names := []string{manifest.HeaderName}
	for _, line := range r.Header.Values("Trailer") {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" && len(names) < 32 {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	return names
}

// trailerAt returns where the trailer begins: at the first of the lines at the end that are its fields, which may be
// the line in which the body ends; -1: there is none.
func (r *Response) trailerAt() int {
	if r.Header.Get("Trailer") == "" {
		return -1
	}
	names := r.announced()
	from := max(0, len(r.Body)-maxTrailer)
	tail := bytes.TrimRight(r.Body[from:], "\r\n")
	at := -1
	for range maxTrailerLines {
		begin := bytes.LastIndexByte(tail, '\n') + 1
		line := tail[begin:]
		inLine := lastField(line, names)
		switch {
		case inLine == 0:
			at = from + begin
		case inLine > 0:
			return from + begin + inLine
		case len(line) == 0 || line[0] != ' ' && line[0] != '\t': // else it may go on with the line before
			return at
		}
		if begin == 0 && from == 0 {
			return at
		}
		if begin == 0 {
			break
		}
		tail = tail[:begin-1]
	}
	return -1 // it goes on for longer than a trailer does
}

// lastField returns where the last field in a line begins: 0 if the line is one; -1: there is none.
func lastField(line []byte, names []string) int {
	last := -1
	for _, name := range names {
		for _, at := range regexp.MustCompile(`(?i)`+regexp.QuoteMeta(name)+":").FindAllIndex(line, -1) {
			if at[0] == 0 {
				return 0
			}
			last = max(last, at[0])
		}
	}
	return last
}

// trailerFields reads lines as a trailer; they must all be fields that may stand there.
func trailerFields(r *Response, b []byte) (http.Header, bool) {
	if b = bytes.TrimRight(b, "\r\n"); len(b) == 0 || len(b) > maxTrailer {
		return nil, false
	}
	fields, err := readFields(string(b))
	if err != nil || len(fields) == 0 {
		return nil, false
	}
	names := r.announced()
	for name := range fields {
		if !slices.Contains(names, name) {
			return nil, false
		}
	}
	return fields, true
}

// dechunk undoes the chunks of a body, if it is made of them to its last octet.
func (r *Response) dechunk() bool {
	if !strings.EqualFold(r.Header.Get("Transfer-Encoding"), "chunked") {
		return false
	}
	names := strings.Join(r.announced(), ", ")
	head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: " + names + "\r\n\r\n"
	all := bufio.NewReader(io.MultiReader(strings.NewReader(head), bytes.NewReader(r.Body)))
	res, err := http.ReadResponse(all, nil)
	if err != nil {
		return false
	}
	defer res.Body.Close() //nolint:errcheck // memory
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false
	}
	if _, err := all.Peek(1); !errors.Is(err, io.EOF) {
		return false
	}
	r.Body = body
	if len(res.Trailer) > 0 {
		r.Trailer = res.Trailer
	}
	return true
}
