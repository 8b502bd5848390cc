package tee

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
)

// MaxRequest is how many bytes of a request's body are kept to decode its response: 32 MiB. A longer one is sent as any
// other; documents that only the request names are then not known.
const MaxRequest = 32 << 20

// teeRequest returns what to send in place of req, and a function that returns the body once the response is there: nil
// if it is not known. A request that can repeat its body is sent as it is.
func teeRequest(req *http.Request) (out *http.Request, body func() []byte) {
	none := func() []byte { return nil }
	switch {
	case req.Body == nil, req.Body == http.NoBody, req.ContentLength > MaxRequest,
		req.Header.Get("Content-Encoding") != "":
		return req, none
	case req.GetBody != nil:
		return req, func() []byte { return readAgain(req) }
	}
	sent := &sentBody{body: req.Body, length: req.ContentLength}
	out = new(http.Request)
	*out = *req // not Clone: nothing but the body is another
	out.Body = sent
	return out, sent.bytes
}

// readAgain returns the body of a request that can repeat it.
func readAgain(req *http.Request) []byte {
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }()
	var buf bytes.Buffer
	if req.ContentLength > 0 {
		buf.Grow(int(req.ContentLength) + bytes.MinRead)
	}
	if n, err := buf.ReadFrom(io.LimitReader(body, MaxRequest+1)); err != nil || n > MaxRequest {
		return nil
	}
	return buf.Bytes()
}

// sentBody keeps what is sent of a request's body. It may still be read when the response is there already.
type sentBody struct {
	body   io.ReadCloser
	length int64 // 0 or less: not known

	mu    sync.Mutex
	buf   []byte
	whole bool // the body was read to its end
	over  bool // it is too long to be kept
}

// Read reads from the request's body.
func (s *sentBody) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = s.over || len(s.buf)+n > MaxRequest; s.over {
		s.buf = nil
	} else {
		s.buf = append(s.buf, p[:n]...)
	}
	s.whole = s.whole || errors.Is(err, io.EOF) || s.length > 0 && int64(len(s.buf)) == s.length
	return n, err
}

// Close closes the request's body.
func (s *sentBody) Close() error { return s.body.Close() }

// bytes returns the body, nil if not all of it was sent.
func (s *sentBody) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.whole {
		return nil
	}
	return s.buf
}
