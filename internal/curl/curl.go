package curl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxHeader  = 1 << 20 // bytes of a header; anything longer is the body
	maxLead    = 4 << 10 // bytes of blank lines before the first header; likewise
	bufferSize = 64 << 10

	protocol = "HTTP/" // the beginning of every header
)

// ErrHeader means that the input ends inside a header.
var ErrHeader = errors.New("the header before the body is incomplete")

// Response is a response printed by curl. It is not safe for concurrent use.
type Response struct {
	Status  int // of the last response; 0 if the input has no header, so that all of it is Body
	Header  http.Header
	Trailer http.Header // set once Body has been read to its end
	URL     string      // the Location of the last redirect, if that is an absolute URL; empty if unknown
	// Body is the body without the sizes of its chunks and its trailer. What has arrived can be read at once, except
	// for what may be the trailer. A body that is cut off ends with io.ErrUnexpectedEOF.
	Body io.Reader
}

// Read reads the headers of a response, if r begins with one. What only looks like a header, such as a text that begins
// with "HTTP/2 multiplexes streams", is the body. The only error is [ErrHeader]; errors from r are returned by the
// body.
func Read(r io.Reader) (*Response, error) {
	in := bufio.NewReaderSize(r, bufferSize)
	res := &Response{Body: in}
	location := ""
	for n := lead(in); n >= 0; n = 0 {
		h, taken, err := readHeader(in, n)
		if err != nil {
			return nil, err
		}
		if h == nil {
			in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(taken), in), bufferSize)
			break
		}
		res.Status, res.Header, res.URL = h.status, h.fields, location
		if to := h.fields.Get("Location"); h.status/100 == 3 && strings.Contains(to, "://") {
			location = to // of the next response, if another header follows
		}
		if next, _ := in.Peek(len(protocol)); !h.continues() || string(next) != protocol {
			break
		}
	}
	res.Body = in
	if res.Status != 0 {
		res.splitBody(in)
	}
	return res, nil
}

// lead returns how many bytes of white space and byte order mark precede what may be a header, or -1 if there is none.
// It reads no further than necessary, since more may not have arrived.
func lead(in *bufio.Reader) int {
	for n := 1; n <= maxLead; n++ {
		b, err := in.Peek(n)
		if err != nil {
			return -1
		}
		switch b[n-1] {
		case 0xEF, 0xBB, 0xBF, ' ', '\t', '\r', '\n':
		case protocol[0]:
			b, _ = in.Peek(n - 1 + len(protocol))
			if string(b[n-1:]) == protocol {
				return n - 1
			}
			return -1
		default:
			return -1
		}
	}
	return -1
}

// header is a status line with the fields after it.
type header struct {
	status int
	reason string
	fields http.Header
}

var (
	// statusLine matches the first line of a header. A text may begin like that, too: see readHeader.
	statusLine = regexp.MustCompile(`^HTTP/\d(?:\.\d)? ([1-9]\d\d)(?: ([^\r\n]*))?\r?\n?$`)
	// fieldLine matches the beginning of a field's line, or of a line that continues a folded field.
	fieldLine = regexp.MustCompile("^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:|[ \t]+[^ \t\r\n])")
	// tunnel matches the reason phrase of proxies that answer CONNECT.
	tunnel = regexp.MustCompile(`(?i)connection established`)
)

// readHeader reads a header after the given number of bytes of white space. If there is no header, h is nil, and taken
// is what was read from in.
func readHeader(in *bufio.Reader, white int) (h *header, taken []byte, err error) {
	h = &header{}
	taken = make([]byte, white)
	_, _ = io.ReadFull(in, taken) // lead has peeked at it
	lines := 0                    // offset in taken where the fields begin
	for {
		at := len(taken)
		taken, err = appendLine(taken, in)
		line := taken[at:]
		if at == white {
			m := statusLine.FindSubmatch(line)
			if m == nil {
				return nil, taken, nil
			}
			h.status, _ = strconv.Atoi(string(m[1]))
			h.reason, lines = strings.TrimSpace(string(m[2])), len(taken)
		} else if len(bytes.Trim(line, "\r\n")) == 0 && err == nil {
			break
		} else if len(line) > 0 && !fieldLine.Match(line) || len(taken) > maxHeader {
			return nil, taken, nil
		}
		if err != nil {
			if len(taken) > lines || h.isUsual() {
				return nil, nil, ErrHeader
			}
			return nil, taken, nil
		}
	}
	if h.fields, err = readFields(taken[lines:]); err == nil && (len(h.fields) > 0 || h.isUsual()) {
		return h, taken, nil
	}
	return nil, taken, nil
}

// isUsual reports whether the status line has a usual reason phrase, so that it is one even without fields: a sentence
// may begin like a status line.
func (h *header) isUsual() bool {
	return h.reason == "" || h.status == http.StatusOK && tunnel.MatchString(h.reason) ||
		strings.EqualFold(h.reason, http.StatusText(h.status))
}

// continues reports whether the header of another response may follow. A final one is followed only by its body.
func (h *header) continues() bool {
	switch h.status {
	case http.StatusOK:
		return tunnel.MatchString(h.reason)
	case http.StatusUnauthorized, http.StatusProxyAuthRequired: // curl --digest asks again
		return true
	}
	return h.status/100 == 1 || h.status/100 == 3
}

// appendLine appends the next line with its line end. It returns an error if there is none.
func appendLine(b []byte, in *bufio.Reader) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		b = append(b, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(b) > maxHeader {
			return b, err
		}
	}
}

// readFields parses the fields of a header, given without the blank line at its end.
func readFields(lines []byte) (http.Header, error) {
	all := io.MultiReader(bytes.NewReader(bytes.TrimRight(lines, "\r\n")), strings.NewReader("\r\n\r\n"))
	fields, err := textproto.NewReader(bufio.NewReader(all)).ReadMIMEHeader()
	return http.Header(fields), err
}
