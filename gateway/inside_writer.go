package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// insideWriter is the [http.ResponseWriter] of a call from inside. What [http.ResponseController] asks for it has, but
// no connection to hijack.
type insideWriter struct {
	c      *insideCall
	far    net.Conn // the gateway's end of the pipe
	header http.Header
	status int   // 0: the header was not written
	left   int64 // bytes of the body that are still to come; -1: not known
	none   bool  // there is no body, whatever is written
	says   []string
}

func (w *insideWriter) Header() http.Header { return w.header }

func (w *insideWriter) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	h := w.passed()
	w.left = -1
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		w.left = n
	} else {
		delete(h, "Content-Length")
	}
	head := w.c.out.Method == http.MethodHead
	w.none = head || status == http.StatusNoContent || status == http.StatusNotModified
	res := &http.Response{
		Status: strconv.Itoa(
			status,
		) + " " + cmp.Or(
			http.StatusText(status), "status code "+strconv.Itoa(status),
		),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        h,
		Body:          http.NoBody,
		ContentLength: w.left,
		Request:       w.c.out,
	}
	if w.none && !head {
		res.ContentLength = 0
	}
	if !w.none && w.left != 0 {
		res.Body = &insideResponse{c: w.c, res: res}
	}
	if len(w.says) > 0 {
		res.Trailer = make(http.Header, len(w.says))
		for _, name := range w.says {
			res.Trailer[name] = nil
		}
	}
	w.c.head <- res
}

// passed returns the header as a client gets it, and remembers which trailers it announces.
func (w *insideWriter) passed() http.Header {
	h := make(http.Header, len(w.header))
	for name, values := range w.header {
		switch {
		case len(values) == 0 || strings.HasPrefix(name, http.TrailerPrefix) || name == "Transfer-Encoding":
		case name == "Trailer":
			w.announce(values)
		default:
			h[name] = slices.Clip(values)
		}
	}
	return h
}

// announce remembers which trailers were announced.
func (w *insideWriter) announce(values []string) {
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); name != "" {
				w.says = append(w.says, name)
			}
		}
	}
}

func (w *insideWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.none && w.c.out.Method == http.MethodHead:
		return len(p), nil
	case w.none:
		return 0, http.ErrBodyNotAllowed
	case len(p) == 0:
		return 0, nil // a pipe would wait for a reader all the same
	case w.left >= 0 && int64(len(p)) > w.left:
		return 0, http.ErrContentLength
	}
	n, err := w.far.Write(p)
	if w.left >= 0 {
		w.left -= int64(n)
	}
	return n, err
}

// FlushError sends the header. The body is not held anyway.
func (w *insideWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if w.c.ctx.Err() != nil {
		return fmt.Errorf("writing to a caller inside: %w", context.Cause(w.c.ctx))
	}
	return nil
}

// Flush is FlushError without its error.
func (w *insideWriter) Flush() { _ = w.FlushError() }

// SetReadDeadline says until when the request may be read.
func (w *insideWriter) SetReadDeadline(t time.Time) error {
	w.c.body.setDeadline(t)
	return nil
}

// SetWriteDeadline says until when the caller may take what is written.
func (w *insideWriter) SetWriteDeadline(t time.Time) error { return w.far.SetWriteDeadline(t) }

// EnableFullDuplex has nothing to do: request and response have nothing in common.
func (w *insideWriter) EnableFullDuplex() error { return nil }

// end says how the response ended, and what its trailers are. Whoever reads it learns that when the pipe is closed.
func (w *insideWriter) end(whole bool) {
	if whole {
		w.WriteHeader(http.StatusOK)
	}
	if !whole || w.left > 0 && !w.none {
		w.c.err = w.c.why()
		return
	}
	for name, values := range w.header {
		if short, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.says = append(w.says, http.CanonicalHeaderKey(short))
			w.header[w.says[len(w.says)-1]] = values
		}
	}
	for _, name := range w.says {
		if values, ok := w.header[name]; ok {
			if w.c.tail == nil {
				w.c.tail = http.Header{}
			}
			w.c.tail[name] = values
		}
	}
	_ = w.far.SetDeadline(time.Time{})
}

// insideResponse is the response's body of a call from inside.
type insideResponse struct {
	c      *insideCall
	res    *http.Response
	err    error // ended it; nil: it goes on
	closed atomic.Bool
}

func (b *insideResponse) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.c.near.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		b.err = b.c.why() // our end of the pipe is closed
		return n, b.err
	}
	<-b.c.done // is closed before the pipe
	if b.err = b.c.err; b.err == nil {
		b.err = io.EOF
		if b.res.Trailer == nil && b.c.tail != nil {
			b.res.Trailer = http.Header{}
		}
		maps.Copy(b.res.Trailer, b.c.tail)
	}
	return n, b.err
}

// Close breaks off the call, unless it has ended.
func (b *insideResponse) Close() error {
	b.closed.Store(true)
	b.c.cancel(nil)
	return nil
}
