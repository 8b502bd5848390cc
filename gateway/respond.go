package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid/tee"
)

// respond passes a response on, and captures it where it is an answer.
func (e *exchange) respond(res *http.Response) {
	e.res, e.status = res, res.StatusCode
	removeHopByHop(res.Header)
	h := e.w.Header()
	passHeader(h, res.Header)
	body := io.ReadCloser((*source)(e))
	if e.captured {
		e.says[0] = e.asked.run
		h[RunHeader] = e.says[0:1:1]
		if res.StatusCode/100 == 2 && res.Body != http.NoBody {
			body = e.capture(body)
		} else {
			e.release()
		}
	}
	announced := announce(h, res.Trailer)
	e.w.WriteHeader(res.StatusCode)
	err := e.copy(body)
	_ = body.Close() // sets the trailers
	if err != nil {
		panic(http.ErrAbortHandler) // a response that breaks off must not look like one that ended
	}
	e.passTrailer(h, announced)
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
	_ = http.NewResponseController(e.w).Flush() // without it the server would give a short body a length, and no trailers
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
	// paceAfter is how many bytes of a response are written without looking at the time: the sockets take them.
	paceAfter = 256 << 10
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

// copier copies one response's body.
type copier struct {
	e       *exchange
	flush   func() error
	length  int64 // of the body; -1: not known
	written int64
	paced   time.Time // until when writing may take; zero: not yet looked at
}

// copy copies the body to the client: read, write, flush. The error says that one side failed.
func (e *exchange) copy(body io.Reader) error {
	c := copier{e: e, length: e.res.ContentLength, flush: http.NewResponseController(e.w).Flush}
	if f, ok := e.w.(interface{ FlushError() error }); ok {
		c.flush = f.FlushError
	}
	if c.length < 0 {
		if err := c.flush(); err != nil { // a stream's first byte may be long in coming, its header should not
			return err
		}
	}
	err := c.run(body)
	if !c.paced.IsZero() {
		_ = http.NewResponseController(e.w).SetWriteDeadline(time.Time{})
	}
	return err
}

func (c *copier) run(body io.Reader) error {
	buf := c.e.g.buffers.get(c.length > smallBuffer)
	defer func() { c.e.g.buffers.put(buf) }()
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			if err := c.write((*buf)[:n], err != nil); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			_ = c.flush() // what came before the break is the client's
			return err
		}
		if large := len(*buf) > smallBuffer; !large && n == len(*buf) || large && n <= smallBuffer {
			c.e.g.buffers.put(buf)
			buf = c.e.g.buffers.get(!large)
		}
	}
}

// write writes a piece of the body and flushes it. The server flushes what is last, and so all of a short body whose length is
// said: that was ready when the response began.
func (c *copier) write(p []byte, last bool) error {
	if c.written > paceAfter {
		c.pace()
	}
	n, err := c.e.w.Write(p)
	c.written += int64(n)
	if err != nil {
		return err
	}
	if last || c.written == c.length || c.length >= 0 && c.length <= largeBuffer {
		return nil
	}
	return c.flush()
}

// pace bounds how long a client may take to read. HTTP/2 does that by itself, see [NewServer]; a deadline there would also end a
// stream that has nothing to write.
func (c *copier) pace() {
	if c.e.in.ProtoMajor != 1 {
		return
	}
	idle := c.e.g.options.Limits.Idle
	if now := time.Now(); c.paced.Sub(now) < idle/2 {
		c.paced = now.Add(idle)
		_ = http.NewResponseController(c.e.w).SetWriteDeadline(c.paced) // a writer without deadlines is a test's
	}
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

// capture puts the tee between the upstream and the client.
func (e *exchange) capture(body io.ReadCloser) io.ReadCloser {
	if !e.route.Get {
		e.says[1] = e.answerID
		e.w.Header()[AnswerHeader] = e.says[1:2:2]
	}
	e.out.GetBody, e.model = nil, e.route.Model
	if len(e.body) > maxHeldBody && !readsRequest(e.route.Format) && e.g.options.Backfill == nil {
		e.understand()
		e.release()
	}
	limits := &e.g.options.Limits
	if e.up.Provider != "" { // else the path only resembles a provider's, and the response tells more
		e.teeing.Decode.Format = e.route.Format
	}
	e.teeing.Decode.Provider = e.provider()
	if len(e.in.Header["Content-Encoding"]) == 0 {
		e.teeing.Decode.Request = e.body
	}
	e.teeing.Decode.Limits = limits.Decode
	e.teeing.Length = e.res.ContentLength
	e.teeing.Limit = limits.Decoded
	e.teeing.Encoding = strings.Join(e.res.Header["Content-Encoding"], ", ")
	e.teeing.Done = e.done
	if e.g.bus != nil && !e.route.Get {
		e.live = &live{e: e}
		e.teeing.OnEvent = e.live.event
	}
	return tee.NewBody(body, &e.teeing)
}

// provider returns who answers, as far as it is known without the answer.
func (e *exchange) provider() string {
	if e.route.Provider != "" {
		return e.route.Provider
	}
	return e.up.Provider
}
