package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/internal/call"
)

const (
	// firstRead is the initial buffer size for a body of unknown length, firstReadMost the largest initial size for one
	// of known length: a Content-Length is only a promise.
	firstRead     = 4 << 10
	firstReadMost = 64 << 10
)

// receive reads the whole body of a captured request before it is forwarded: a server that begins to respond while its
// client is still sending cuts off the rest (golang/go#40747). The error is a problem.
func (e *exchange) receive() error {
	if e.in.Body == nil || e.in.Body == http.NoBody || e.in.ContentLength == 0 {
		return nil
	}
	limits := &e.g.options.Limits
	if e.in.ContentLength > limits.Request {
		return tooLarge(limits.Request)
	}
	body := NewPaced(e.in.Body, e.w, limits.RequestPace, e.started.Add(limits.RequestTime))
	err := e.read(body, max(e.in.ContentLength, 0))
	if err == nil {
		body.Done()
		return nil
	}
	e.release()
	e.w.Header().Set("Connection", "close") // the start of the next request is not known
	return err
}

// read reads the body. A length of 0 means unknown.
func (e *exchange) read(body io.Reader, length int64) error {
	limit := e.g.options.Limits.Request
	size, most := min(firstRead, limit+1), limit+1
	if length > 0 {
		size, most = min(firstReadMost, length), length
	}
	if err := e.hold(size); err != nil {
		return err
	}
	e.body = make([]byte, 0, size)
	for {
		n, err := body.Read(e.body[len(e.body):cap(e.body)])
		e.body = e.body[:len(e.body)+n]
		switch {
		case int64(len(e.body)) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF), err == nil && int64(len(e.body)) == length:
			var one [1]byte // at the end of the body, the server starts to notice whether the client leaves
			if n, err := e.in.Body.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
				return unreadable(err, true)
			}
			return nil
		case err != nil:
			return unreadable(err, true)
		}
		if has := int64(cap(e.body)); int64(len(e.body)) == has {
			more := min(2*has, most)
			if err := e.hold(more - has); err != nil {
				return err
			}
			e.body = append(make([]byte, 0, more), e.body...)
		}
	}
}

// hold takes n bytes of memory from the budget.
func (e *exchange) hold(n int64) error {
	if err := e.g.memory.HoldMore(e.who, e.held, n); err != nil {
		return err
	}
	e.held += n
	return nil
}

// release frees the body.
func (e *exchange) release() {
	e.g.memory.Release(e.who, e.held)
	e.held, e.body = 0, nil
}

func tooLarge(limit int64) error { return &http.MaxBytesError{Limit: limit} }

// unreadable returns the problem of a body that cannot be read. whole says that it was to be read before it is
// forwarded.
func unreadable(err error, whole bool) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && whole:
		return Late("ibid reads the whole request before it forwards it")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Late("an upload may take any time, but may not pause for long")
	}
	return NewProblem(CodeBadRequest, "the request's body is incomplete, or not encoded as its header says", "")
}

// Late returns the problem of a request whose body did not arrive in time.
func Late(hint string) *Problem {
	p := NewProblem(CodeBadRequest, "the request's body did not arrive in time", hint)
	p.Status = http.StatusRequestTimeout
	return p
}

// upload is a streamed request body. It may take any time as long as data keeps arriving.
type upload struct {
	body   io.ReadCloser
	w      http.ResponseWriter
	idle   time.Duration
	closed atomic.Bool
	failed atomic.Pointer[error] // why the rest did not arrive

	mu    sync.Mutex // held during reads of the body
	whole bool       // it was read to its end
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	setReadDeadline(u.w, time.Now().Add(u.idle))
	n, err := u.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		u.whole = true
		setReadDeadline(u.w, time.Time{})
	case err != nil:
		u.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Close does not close the client's body, because the transport may call it at any time: see finish.
func (u *upload) Close() error {
	u.closed.Store(true)
	return nil
}

// finish ends the upload once the response has been sent; flush sends what is buffered of the response. An upstream may
// answer before it has read everything; the transport may then still be reading, and the rest has to be read before the
// connection's next request. The server would do so after its handler has returned, but with full duplex that starts a
// read that collides with the next request's and panics (net/http's connReader.startBackgroundRead). An error means
// that the rest did not arrive and the connection is unusable.
func (u *upload) finish(flush func() error) error {
	u.closed.Store(true)
	if u.mu.TryLock() {
		whole := u.whole
		u.mu.Unlock()
		if whole {
			return nil
		}
	}
	if err := flush(); err != nil {
		return err
	}
	u.mu.Lock() // waits for the transport's last read, which has a deadline
	defer u.mu.Unlock()
	if u.whole {
		return nil
	}
	setReadDeadline(u.w, time.Now().Add(u.idle))
	err := u.body.Close()
	setReadDeadline(u.w, time.Time{})
	return err
}

// abort ends the upload of a call that was broken off.
func (u *upload) abort() {
	u.closed.Store(true)
	setReadDeadline(u.w, time.Now())
	u.mu.Lock() // waits for the last read
	defer u.mu.Unlock()
	u.whole = true // no more will be read
}

// readRequest extracts from the request what is kept with its answer.
func (e *exchange) readRequest() {
	defer e.recoverPanic()
	o := &e.g.options
	if len(e.body) == 0 || len(e.in.Header["Content-Encoding"]) > 0 {
		return
	}
	e.readResults()
	if o.Prompts == PromptsNone && o.Backfill == nil && o.Tracer == nil {
		return
	}
	if request, err := call.ReadRequest(e.route.Format, e.body); err == nil { // else the upstream may complain
		if e.model == "" {
			e.model = request.Model
		}
		e.stream = e.route.Stream || request.Stream
		e.messages = len(request.Messages)
		e.prompt = e.g.kept(request.Messages)
	}
}

// minPacked is the smallest size, in bytes, of a request that is compressed while its response streams. Less is not
// worth the time.
const minPacked = 16 << 10

// packed holds the compressed request of a call whose response is a stream.
type packed struct {
	bytes []byte // compressed
	size  int    // uncompressed
	texts []int  // lengths of the prompt's texts, which are concatenated in bytes; nil if bytes is the body
}

// pack compresses b. It returns nil if that is not worth it.
func (e *exchange) pack(b []byte) []byte {
	// Clone drops the spare capacity.
	return slices.Clone(e.g.packer.Pack(b, len(b)/4*3))
}

// packRequest compresses what is kept of the request until the answer has arrived.
func (e *exchange) packRequest() {
	if e.body != nil {
		if len(e.body) < minPacked {
			return
		}
		if b := e.pack(e.body); b != nil {
			e.packed = packed{bytes: b, size: len(e.body)}
			e.g.memory.Release(e.who, e.held-int64(len(b)))
			e.held, e.body = int64(len(b)), nil
		}
		return
	}
	size, texts := 0, make([]int, len(e.prompt))
	for i := range e.prompt {
		texts[i] = len(e.prompt[i].Text)
		size += texts[i]
	}
	if size < minPacked {
		return
	}
	all := make([]byte, 0, size)
	for i := range e.prompt {
		all = append(all, e.prompt[i].Text...)
	}
	if b := e.pack(all); b != nil {
		e.packed = packed{b, size, texts}
		for i := range e.prompt {
			e.prompt[i].Text = ""
		}
	}
}

// unpackRequest restores what packRequest compressed.
func (e *exchange) unpackRequest() {
	p := e.packed
	if p.bytes == nil {
		return
	}
	e.packed = packed{}
	all, err := e.g.packer.Unpack(p.bytes, p.size)
	if err != nil { // we compressed them ourselves
		panic(err)
	}
	if p.texts == nil {
		e.body = all
		return
	}
	rest := string(all)
	for i, n := range p.texts {
		e.prompt[i].Text, rest = rest[:n], rest[n:]
	}
}
