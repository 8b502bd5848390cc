package tee

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/ibidhq/ibid"
)

// Transport is an [http.RoundTripper] that decodes responses. The zero value is ready to use and, without OnAnswer and
// OnEvent, only passes calls on. Neither the request nor the response is changed, so signed requests stay valid. It is
// safe for concurrent use if Base is; its fields must not be changed once it is used.
type Transport struct {
	// Base sends the requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper
	// OnAnswer is called once for each decoded response: at its end mark, its end or its Close, inside the body's Read
	// or Close, before the reader sees the end. The request is the caller's own; its body may be consumed. The answer
	// is never nil, and has an Error if the provider sent one, whatever the status, or if the status is an error. The
	// error is [Result].Err.
	OnAnswer func(*http.Request, *ibid.Answer, error)
	// OnEvent is called with each response's events as they become known, inside Read. It may be nil.
	OnEvent func(*http.Request, ibid.Event)
	// Match selects the calls to decode, before they are sent. Nil selects those for which [ibid.CallOptions] expects
	// an answer. Of their responses, only those are decoded that can contain one: not a response to HEAD, an empty one
	// or a redirect, and only JSON, event streams, NDJSON, AWS event streams or an unspecified type.
	Match func(*http.Request) bool
	// Limits limit what a hostile response can cost; see also [DefaultLimit].
	Limits ibid.Limits
}

// RoundTrip sends the request with Base. The response is Base's own; its body is wrapped in a [Body] if it is decoded.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.base()
	opts, ok := t.options(req)
	if !ok {
		return base.RoundTrip(req)
	}
	out, sent := teeRequest(req)
	res, err := base.RoundTrip(out)
	if err != nil {
		return res, err
	}
	if res.Request == out {
		res.Request = req
	}
	if !hasAnswer(req, res) {
		return res, nil
	}
	opts.Decode.Request, opts.Decode.Status = sent(), res.StatusCode
	opts.Encoding, opts.Length = res.Header.Get("Content-Encoding"), res.ContentLength
	res.Body = NewBody(res.Body, opts)
	return res, nil
}

// CloseIdleConnections closes Base's idle connections, for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// options returns how the response is to be decoded, and whether it is.
func (t *Transport) options(req *http.Request) (*Options, bool) {
	if t.OnAnswer == nil && t.OnEvent == nil || req.URL == nil {
		return nil, false
	}
	decode, ok := ibid.CallOptions(req.Method, req.URL)
	if t.Match != nil {
		ok = t.Match(req)
	}
	if !ok {
		return nil, false
	}
	decode.Limits = t.Limits
	o := &Options{Decode: decode}
	if t.OnEvent != nil {
		o.OnEvent = func(e ibid.Event) { t.OnEvent(req, e) }
	}
	if t.OnAnswer != nil {
		o.Done = func(r Result) { t.OnAnswer(req, r.Answer, r.Err) }
	}
	return o, true
}

// hasAnswer reports whether a response can contain an answer.
func hasAnswer(req *http.Request, res *http.Response) bool {
	switch {
	case req.Method == http.MethodHead, res.Body == nil, res.Body == http.NoBody, res.ContentLength == 0:
		return false
	case res.StatusCode < 200, res.StatusCode >= 300 && res.StatusCode < 400:
		return false // upgraded connections, whose body is also a writer, and redirects
	case res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusResetContent:
		return false
	}
	return isAnswerType(res.Header.Get("Content-Type"))
}

func isAnswerType(header string) bool {
	kind, _, err := mime.ParseMediaType(header)
	if err != nil { // the type before the parameters still counts
		kind, _, _ = strings.Cut(strings.ToLower(header), ";")
	}
	switch kind = strings.TrimSpace(kind); kind {
	case "", "application/json", "text/json", "text/event-stream", "application/x-ndjson", "application/ndjson",
		"application/jsonl", "application/x-jsonlines", "application/vnd.amazon.eventstream":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}

// MaxRequest is how many bytes of a request's body are kept to decode its response: 32 MiB. A longer request is sent
// normally, but documents that only the request names are then unknown.
const MaxRequest = 32 << 20

// teeRequest returns the request to send in place of req, and a function that returns its body once the response has
// arrived, or nil if it is unknown. A request that can repeat its body is sent unchanged.
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
	*out = *req // not Clone: only the body differs
	out.Body = sent
	return out, sent.bytes
}

// readAgain returns the body of a request that can repeat it, or nil.
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

// sentBody keeps what is sent of a request's body. It may still be read after the response has arrived.
type sentBody struct {
	body   io.ReadCloser
	length int64 // 0 or less if unknown

	mu    sync.Mutex
	buf   []byte
	whole bool // the body was read to its end
	over  bool // it is too long to keep
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

// bytes returns the body, or nil unless all of it was sent.
func (s *sentBody) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.whole {
		return nil
	}
	return s.buf
}
