package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/store"
)

// firstRead is how many bytes are held at first for a body that does not say its length.
const firstRead = 4 << 10

// receive reads the body of a captured request whole. Only then it may be sent on: a server that begins to respond while its
// client still sends cuts the rest off (golang/go#40747). The error is a problem.
func (e *exchange) receive() error {
	if e.in.Body == nil || e.in.Body == http.NoBody || e.in.ContentLength == 0 {
		return nil
	}
	limits := &e.g.options.Limits
	if e.in.ContentLength > limits.Request {
		return tooLarge(limits.Request)
	}
	control := http.NewResponseController(e.w)
	_ = control.SetReadDeadline(e.started.Add(limits.RequestTime)) // a writer without deadlines is a test's
	err := e.read(max(e.in.ContentLength, 0))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
		return nil
	}
	e.release()
	e.w.Header().Set("Connection", "close") // where its next request begins is not known
	return err
}

// read reads the body, of which length is known or 0.
func (e *exchange) read(length int64) error {
	limit := e.g.options.Limits.Request
	room := length
	if length == 0 {
		room = min(firstRead, limit+1)
	}
	if err := e.hold(room); err != nil {
		return err
	}
	e.body = make([]byte, 0, room)
	for {
		n, err := e.in.Body.Read(e.body[len(e.body):cap(e.body)])
		e.body = e.body[:len(e.body)+n]
		switch {
		case int64(len(e.body)) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF), err == nil && length > 0 && int64(len(e.body)) == length:
			return e.finish()
		case err != nil:
			return unreadable(err)
		}
		if has := int64(cap(e.body)); int64(len(e.body)) == has {
			more := min(2*has, limit+1)
			if err := e.hold(more - has); err != nil {
				return err
			}
			e.body = append(make([]byte, 0, more), e.body...)
		}
	}
}

// finish reads to the body's end, where the server notices whether the client leaves.
func (e *exchange) finish() error {
	var one [1]byte
	if n, err := e.in.Body.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
		return unreadable(err)
	}
	return nil
}

// hold makes sure that all calls together do not hold too much.
func (e *exchange) hold(n int64) error {
	if e.g.held.Add(n) > e.g.options.Limits.InFlight {
		e.g.held.Add(-n)
		p := Unavailable("too many large requests are being served")
		p.Hint = "try again in a moment"
		return p
	}
	e.held += n
	return nil
}

// release lets go of the body.
func (e *exchange) release() {
	e.g.held.Add(-e.held)
	e.held, e.body = 0, nil
}

func tooLarge(limit int64) error { return &http.MaxBytesError{Limit: limit} }

func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Problem{
			Status: http.StatusRequestTimeout, Code: CodeBadRequest, Detail: "the request's body did not arrive in time",
			Hint: "ibid reads the request whole before it sends it on",
		}
	}
	return &Problem{
		Status: http.StatusBadRequest, Code: CodeBadRequest, Detail: "the request's body broke off, or is not encoded as its header says",
	}
}

// attach gives the body to the request for the upstream, with its length.
func (e *exchange) attach() {
	out := e.out
	out.TransferEncoding, out.Trailer = nil, nil
	if out.ContentLength = int64(len(e.body)); out.ContentLength == 0 {
		out.Body = http.NoBody
		return
	}
	out.Body = &sent{rest: e.body}
	// The transport asks for it only where the upstream did not process the request (HTTP/2 says so), or where the client gave it an
	// idempotency key. Nothing else is sent twice.
	out.GetBody = func() (io.ReadCloser, error) { return &sent{rest: e.body}, nil }
}

// maxHeldBody is how large a body may be, in bytes, that is held until its answer has ended, even if it is not needed for
// decoding it: less than what is taken from it might be.
const maxHeldBody = 4 << 10

// readsRequest reports whether answers of a format can only be decoded in full with their request: it has the documents that
// they refer to.
func readsRequest(format string) bool {
	switch format {
	case "openai-responses", "openai-chat", "azure-chat", "xai-responses", "xai-chat", "perplexity-chat", "openrouter-chat":
		return false
	}
	return true
}

// understand takes from the request what is kept with its answer.
func (e *exchange) understand() {
	o := &e.g.options
	if len(e.body) == 0 || len(e.in.Header["Content-Encoding"]) > 0 || o.Prompts == PromptsNone && o.Backfill == nil && o.Tracer == nil {
		return
	}
	if request, err := wire.ReadRequest(e.route.Format, e.body); err == nil { // else it is the upstream's to complain
		if e.model == "" {
			e.model = request.Model
		}
		e.stream = e.route.Stream || request.Stream
		e.prompt = promptOf(request, o.Prompts)
	}
}

func promptOf(r *wire.Request, keep Prompts) []store.Message {
	switch keep {
	case PromptsAll:
		prompt := make([]store.Message, len(r.Messages))
		for i, m := range r.Messages {
			prompt[i] = store.Message{Role: m.Role, Text: m.Text}
		}
		return prompt
	case PromptsNone:
	default:
		if m, ok := r.LastUser(); ok {
			return []store.Message{{Role: m.Role, Text: m.Text}}
		}
	}
	return nil
}

// sent is a body while it is sent. At its end it lets go of it, since the transport keeps the request until the response ends.
type sent struct{ rest []byte }

func (s *sent) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
	}
	return n, nil
}

func (s *sent) Close() error { return nil }

// upload is the body of a request that streams. It may last as long as it likes, as long as something comes.
type upload struct {
	body    io.Reader
	control *http.ResponseController
	idle    time.Duration
	closed  atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	if u.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	_ = u.control.SetReadDeadline(time.Now().Add(u.idle)) // a writer without deadlines is a test's
	n, err := u.body.Read(p)
	if errors.Is(err, io.EOF) {
		_ = u.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close does not close the client's body: its server would wait for the rest of it, and it closes it itself in the end.
func (u *upload) Close() error {
	u.closed.Store(true)
	return nil
}
