package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// respond passes the response on, and captures it where it is an answer.
func (e *exchange) respond() {
	res := e.res
	removeHopByHop(res.Header)
	h := e.w.Header()
	passHeader(h, res.Header, e.g.options.Guard.hasOrigins())
	body := io.ReadCloser((*source)(e))
	if e.labels.named && e.captured {
		h[RunHeader] = []string{e.labels.run}
	}
	switch {
	case !e.captured || res.StatusCode/100 != 2 || res.Body == http.NoBody:
		e.release()
	case e.wantsCitation():
		body = e.cite(body)
	default:
		body = e.capture(body)
	}
	announced := announce(h, res.Trailer)
	e.w.WriteHeader(res.StatusCode)
	var err error
	if res.ContentLength < 0 {
		err = e.flush() // a stream's first byte may be long in coming, its header should not
	}
	if err == nil {
		err = e.copy(body)
	}
	_ = body.Close() // sets the trailers
	if err != nil {
		panic(http.ErrAbortHandler) // a response that breaks off must not look like one that ended
	}
	e.passTrailer(h, announced)
	e.citeTrailer()
}

// announce says which trailers will come and returns how many the upstream announced.
func announce(h, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	var names []string
	for name := range trailer {
		if !isOurs(name) {
			names = append(names, name)
		}
	}
	h.Add("Trailer", strings.Join(names, ", "))
	return len(trailer)
}

// passTrailer passes on the trailers that came, those that were not announced too.
func (e *exchange) passTrailer(h http.Header, announced int) {
	if len(e.res.Trailer) == 0 {
		return
	}
	_ = e.flush() // without it the server would give a short body a length, and no trailers
	for name, values := range e.res.Trailer {
		if isOurs(name) {
			continue
		}
		if len(e.res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

const (
	smallBuffer = 2 << 10
	largeBuffer = 32 << 10
)

// buffers are for copying. A stream that trickles gets by with a small one.
type buffers struct{ small, large sync.Pool }

func (b *buffers) get(large bool) *[]byte {
	pool, size := &b.small, smallBuffer
	if large {
		pool, size = &b.large, largeBuffer
	}
	if buf, ok := pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, size)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	if len(*buf) > smallBuffer {
		b.large.Put(buf)
		return
	}
	b.small.Put(buf)
}

// copy copies the body to the client: read, write, flush. The error says that one side failed. Its frame stays small,
// like those below it: a stream waits in it, and its goroutine's stack is most of what it costs.
func (e *exchange) copy(body io.Reader) error {
	large := e.res.ContentLength > smallBuffer
	buf := e.g.buffers.get(large)
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			if err := e.write((*buf)[:n], err != nil); err != nil {
				return err
			}
		}
		if err != nil {
			e.g.buffers.put(buf)
			if errors.Is(err, io.EOF) {
				return nil
			}
			_ = e.flush() // what came before the break is the client's
			return err
		}
		if !large && n == smallBuffer || large && n <= smallBuffer {
			e.g.buffers.put(buf)
			large = !large
			buf = e.g.buffers.get(large)
		}
	}
}

// write writes a piece of the body and flushes it. The server flushes what is last, and so all of a short body whose
// length is said: that was ready when the response began.
func (e *exchange) write(p []byte, last bool) error {
	e.patience.writing()
	n, err := e.w.Write(p)
	e.patience.written()
	e.sent += int64(n)
	length := e.res.ContentLength
	if err != nil || last || e.sent == length || length >= 0 && length <= largeBuffer {
		return err
	}
	return e.flush()
}

func (e *exchange) flush() error {
	e.patience.writing()
	defer e.patience.written()
	if f, ok := e.w.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.NewResponseController(e.w).Flush()
}

// source is the upstream's body: it counts what comes.
type source exchange

func (s *source) Read(p []byte) (int, error) {
	n, err := s.res.Body.Read(p)
	if s.received += int64(n); s.first == 0 && n > 0 {
		s.first = time.Since(s.started)
	}
	return n, err
}

func (s *source) Close() error { return s.res.Body.Close() }
