package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// insideBody is the request's body of a call from inside, as a server gives it to its handler: with a deadline, and of
// the length that was said. Its end is to be closed: that is what ends a read that waits.
type insideBody struct {
	body   io.ReadCloser // the caller's; nil: there is none
	length int64         // -1: not known
	failed func(error)   // is told that the caller's body failed

	read int64 // so far; one goroutine reads at a time

	mu     sync.Mutex
	timer  *time.Timer // nil: there never was a deadline
	late   bool        // the deadline has passed
	closed bool
	err    error // of the caller's body
}

func newInsideBody(r *http.Request) *insideBody {
	if r.Body == nil || r.Body == http.NoBody {
		return &insideBody{closed: true}
	}
	b := &insideBody{body: r.Body, length: r.ContentLength}
	if b.length == 0 {
		b.length = -1 // as with every RoundTripper
	}
	return b
}

func (b *insideBody) Read(p []byte) (int, error) {
	if err := b.state(); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	b.read += int64(n)
	ended := errors.Is(err, io.EOF)
	switch {
	case b.length >= 0 && (b.read > b.length || ended && b.read < b.length):
		err = fmt.Errorf(
			"the request's body does not have the %d bytes that were said: %w", b.length, io.ErrUnexpectedEOF,
		)
	case err == nil:
		return n, nil
	case ended:
		return n, io.EOF
	}
	if state := b.state(); state != nil {
		return n, state // the error is what comes of reading what is closed
	}
	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	b.failed(err)
	return n, err
}

func (b *insideBody) state() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.late:
		return os.ErrDeadlineExceeded
	case b.closed:
		return http.ErrBodyReadAfterClose
	}
	return nil
}

// failure returns the error of the caller's body.
func (b *insideBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Close closes the caller's body.
func (b *insideBody) Close() error {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	if was {
		return nil
	}
	return b.body.Close()
}

// setDeadline says when reading ends. What is late once stays so.
func (b *insideBody) setDeadline(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || b.late:
	case t.IsZero():
		if b.timer != nil {
			b.timer.Stop()
		}
	case b.timer == nil:
		b.timer = time.AfterFunc(time.Until(t), b.expire)
	default:
		b.timer.Reset(time.Until(t))
	}
}

func (b *insideBody) expire() {
	b.mu.Lock()
	b.late = !b.closed
	b.mu.Unlock()
	_ = b.Close()
}
