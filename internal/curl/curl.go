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
	maxHeader  = 1 << 20 // bytes of a header; what has more is no header
	maxLead    = 4 << 10 // bytes of blank lines before the first one, likewise
	bufferSize = 64 << 10

	protocol = "HTTP/" // with which each begins
)

// ErrHeader says that a header breaks off.
var ErrHeader = errors.New("the header before the body does not end")

// Response is a response that was printed. It is for one goroutine.
type Response struct {
	Status  int // 0: there is no header, and Body is everything
	Header  http.Header
	Trailer http.Header // known once Body was read to its end
	URL     string      // where redirects led, as they say it; empty: not known
	// Body is without chunks and trailer. It can be read while it arrives; only what may be the trailer waits for the
	// end. Where it breaks off it ends with io.ErrUnexpectedEOF.
	Body io.Reader
}

// Read reads the headers of a response, if r begins with one. What only looks like one, as a text that begins with
// "HTTP/2 multiplexes streams", is left as it is. The error is [ErrHeader]; one of reading r comes with the body.
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
			location = to // what follows is from there, if it is not the redirect's own body
		}
		if next, _ := in.Peek(len(protocol)); !h.goesOn() || string(next) != protocol {
			break
		}
	}
	res.Body = in
	if res.Status != 0 {
		res.splitBody(in)
	}
	return res, nil
}

// lead returns how many bytes of white space and byte order mark stand before what may be a header; -1: it is none. No
// more is waited for than is needed to tell.
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
	// statusLine matches how a header begins. An answer may begin with "HTTP/1.1 404 is", too: see readHeader.
	statusLine = regexp.MustCompile(`^HTTP/\d(?:\.\d)? ([1-9]\d\d)(?: ([^\r\n]*))?\r?\n?$`)
	// fieldLine matches a field, or a line with which one goes on.
	fieldLine = regexp.MustCompile("^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:|[ \t]+[^ \t\r\n])")
	// tunnel is the reason that a proxy gives which has made a connection.
	tunnel = regexp.MustCompile(`(?i)connection established`)
)

// readHeader reads a header behind so much white space. If there is none, it returns nil, and what it has read of in.
func readHeader(in *bufio.Reader, white int) (h *header, taken []byte, err error) {
	h = &header{}
	taken = make([]byte, white)
	_, _ = io.ReadFull(in, taken) // it was seen
	lines := 0                    // bytes of taken before the fields
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

// isUsual reports whether a status line is one even without a field after it: a sentence may begin like one.
func (h *header) isUsual() bool {
	return h.reason == "" || h.status == http.StatusOK && tunnel.MatchString(h.reason) ||
		strings.EqualFold(h.reason, http.StatusText(h.status))
}

// goesOn reports whether another response may follow: of one that is final, all that follows is its body.
func (h *header) goesOn() bool {
	switch h.status {
	case http.StatusOK:
		return tunnel.MatchString(h.reason)
	case http.StatusUnauthorized, http.StatusProxyAuthRequired: // curl --digest asks again
		return true
	}
	return h.status/100 == 1 || h.status/100 == 3
}

// appendLine appends a line with its end. The error says that there is no end.
func appendLine(b []byte, in *bufio.Reader) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		b = append(b, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(b) > maxHeader {
			return b, err
		}
	}
}

// readFields reads the lines of a header without its blank line.
func readFields(lines []byte) (http.Header, error) {
	all := io.MultiReader(bytes.NewReader(bytes.TrimRight(lines, "\r\n")), strings.NewReader("\r\n\r\n"))
	fields, err := textproto.NewReader(bufio.NewReader(all)).ReadMIMEHeader()
	return http.Header(fields), err
}
