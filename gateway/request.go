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
	"github.com/ibidhq/ibid/store"
)

const (
	// firstRead is how many bytes are held at first for a body that does not say its length, and firstReadMost for one
	// that does: a length is a promise only.
	firstRead     = 4 << 10
	firstReadMost = 64 << 10
)

// receive reads the body of a captured request whole. Only then it may be sent on: a server that begins to respond
// while its client still sends cuts the rest off (golang/go#40747). The error is a problem.
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
	e.w.Header().Set("Connection", "close") // where its next request begins is not known
	return err
}

// read reads the body, of which length is known or 0.
func (e *exchange) read(body io.Reader, length int64) error {
	limit := e.g.options.Limits.Request
	room, most := min(firstRead, limit+1), limit+1
	if length > 0 {
		room, most = min(firstReadMost, length), length
	}
	if err := e.hold(room); err != nil {
		return err
	}
	e.body = make([]byte, 0, room)
	for {
		n, err := body.Read(e.body[len(e.body):cap(e.body)])
		e.body = e.body[:len(e.body)+n]
		switch {
		case int64(len(e.body)) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF), err == nil && int64(len(e.body)) == length:
			var one [1]byte // at the body's end the server notices whether the client leaves
			if n, err := e.in.Body.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
				return unreadable(err)
			}
			return nil
		case err != nil:
			return unreadable(err)
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

// hold makes sure that neither all calls together nor those of one tenant or token hold too much.
func (e *exchange) hold(n int64) error {
	if err := e.g.bodies.Hold(e.who, n); err != nil {
		return err
	}
	e.held += n
	return nil
}

// release lets go of the body.
func (e *exchange) release() {
	e.g.bodies.Release(e.who, e.held)
	e.held, e.body = 0, nil
}

func tooLarge(limit int64) error { return &http.MaxBytesError{Limit: limit} }

func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p := NewProblem(CodeBadRequest, "the request's body did not arrive in time",
			"ibid reads the request whole before it sends it on")
		p.Status = http.StatusRequestTimeout
		return p
	}
	return NewProblem(CodeBadRequest, "the request's body broke off, or is not encoded as its header says", "")
}

// upload is the body of a request that streams. It may last as long as it likes, as long as something comes.
type upload struct {
	body   io.ReadCloser
	w      http.ResponseWriter
	idle   time.Duration
	closed atomic.Bool

	mu    sync.Mutex // held while the body is read
	whole bool       // all of it was read
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	setReadDeadline(u.w, time.Now().Add(u.idle))
	n, err := u.body.Read(p)
	if errors.Is(err, io.EOF) {
		u.whole = true
		setReadDeadline(u.w, time.Time{})
	}
	return n, err
}

// Close does not close the client's body, because the transport may do so at any time: see finish.
func (u *upload) Close() error {
	u.closed.Store(true)
	return nil
}

// finish ends the upload once the response has been sent; flush sends what is buffered of it. An upstream may answer
// before it has read all; then the transport may be reading still, and the rest has to be read before the connection's
// next request. The server would do so when its handler has returned, but with full duplex that starts a read that
// meets the next request's, and panics (net/http's connReader.startBackgroundRead). The error says that the rest did
// not come: the connection is of no use.
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
	u.mu.Lock() // until the transport's last read returns, which has its deadline
	defer u.mu.Unlock()
	if u.whole {
		return nil
	}
	setReadDeadline(u.w, time.Now().Add(u.idle))
	err := u.body.Close()
	setReadDeadline(u.w, time.Time{})
	return err
}

// abort ends the upload of a call that is broken off.
func (u *upload) abort() {
	u.closed.Store(true)
	setReadDeadline(u.w, time.Now())
	u.mu.Lock() // until nobody reads any more
	defer u.mu.Unlock()
	u.whole = true // as much of it as will be read
}

// readRequest takes from the request what is kept with its answer.
func (e *exchange) readRequest() {
	defer e.survive()
	o := &e.g.options
	if len(e.body) == 0 || len(e.in.Header["Content-Encoding"]) > 0 ||
		o.Prompts == PromptsNone && o.Backfill == nil && o.Tracer == nil {
		return
	}
	if request, err := call.ReadRequest(e.route.Format, e.body); err == nil { // else it is the upstream's to complain
		if e.model == "" {
			e.model = request.Model
		}
		e.stream = e.route.Stream || request.Stream
		e.messages = len(request.Messages)
		keep := request.Messages
		if o.Prompts != PromptsAll {
			last, ok := request.LastUser()
			if keep = nil; ok && o.Prompts != PromptsNone {
				keep = []call.Message{last}
			}
		}
		e.prompt = nil
		for _, m := range keep {
			e.prompt = append(e.prompt, store.Message{Role: m.Role, Text: m.Text})
		}
	}
}

// minPacked is how many bytes a request has at least that is compressed while the stream that answers it is open. Fewer
// are not worth the time.
const minPacked = 16 << 10

// packed is what a call keeps of its request while its response is a stream. The zero value is nothing.
type packed struct {
	bytes []byte // compressed
	size  int    // uncompressed
	texts []int  // the lengths of the prompt's texts, one behind the other in bytes; nil: bytes are the body
}

// pack compresses b; nil: that is not worth it.
func (e *exchange) pack(b []byte) []byte {
	// The clone leaves out the spare capacity.
	return slices.Clone(e.g.packer.Pack(b, len(b)/4*3))
}

// packRequest compresses what is kept of the request until the answer is there.
func (e *exchange) packRequest() {
	if e.body != nil {
		if len(e.body) < minPacked {
			return
		}
		if b := e.pack(e.body); b != nil {
			e.packed = packed{bytes: b, size: len(e.body)}
			e.g.bodies.Release(e.who, e.held-int64(len(b)))
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

// unpackRequest restores what packRequest has compressed.
func (e *exchange) unpackRequest() {
	p := e.packed
	if p.bytes == nil {
		return
	}
	e.packed = packed{}
	all, err := e.g.packer.Unpack(p.bytes, p.size)
	if err != nil { // they are our own bytes
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
