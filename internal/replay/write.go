package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// fail sends the provider's error body.
func (s *server) fail(w http.ResponseWriter, r *http.Request, f *format, status int) {
	failed := &reply{Answer: &Answer{}, ID: newID(), Status: status, req: &request{}, seq: new(int)}
	body, err := f.document("error", failed)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Should-Retry", "false") // a retry would get the same
	s.send(w, r, failed, &response{status, "application/json", [][]byte{body}})
}

// write sends a reply.
func (s *server) write(w http.ResponseWriter, r *http.Request, f *format, answer *reply) {
	if !answer.req.stream {
		body, err := f.document("body", answer.As("completed"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.send(w, r, answer, &response{http.StatusOK, "application/json", [][]byte{append(body, '\n')}})
		return
	}
	chunks, err := s.stream(f, answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	kind := "text/event-stream; charset=utf-8"
	if answer.req.array {
		kind = "application/json; charset=UTF-8"
	}
	w.Header().Set("Cache-Control", "no-cache")
	s.send(w, r, answer, &response{http.StatusOK, kind, chunks})
}

// stream returns a reply's events in wire format.
func (s *server) stream(f *format, answer *reply) ([][]byte, error) {
	events, err := f.events("stream", answer)
	if err != nil {
		return nil, err
	}
	if answer.req.errorInside {
		broken, err := f.events("broken", answer)
		if err != nil {
			return nil, err
		}
		events = append(events[:(len(events)+1)/2:(len(events)+1)/2], broken...)
	}
	end := "\n"
	if f.crlf {
		end = "\r\n"
	}
	chunks := make([][]byte, 0, len(events)+1)
	for i, e := range events {
		before, after := "data: ", end+end
		switch {
		case answer.req.array && i == 0:
			before, after = "[", ""
		case answer.req.array:
			before, after = "\n,\r\n", ""
		case e.name != "":
			before = "event: " + e.name + end + before
		}
		chunks = append(chunks, slices.Concat([]byte(before), e.data, []byte(after)))
	}
	if answer.req.array {
		chunks = append(chunks, []byte("\n]\n"))
	}
	return chunks, nil
}

// response is a response to be sent.
type response struct {
	status int
	kind   string // the media type
	chunks [][]byte
}

// send writes a response in its pieces, at the configured pace.
func (s *server) send(w http.ResponseWriter, r *http.Request, answer *reply, out *response) {
	h := w.Header()
	h.Set("Content-Type", out.kind)
	h.Set("X-Request-Id", "req_"+answer.ID)
	h.Set("Request-Id", "req_"+answer.ID) // read by Anthropic's SDKs
	to := &pacer{w: w, flush: http.NewResponseController(w).Flush, size: s.options.Split}
	switch {
	case s.options.Gzip:
		h.Set("Content-Encoding", "gzip")
		defer to.pack()()
	case len(out.chunks) == 1 && s.options.Split == 0 && !answer.req.breakOff:
		h.Set("Content-Length", strconv.Itoa(len(out.chunks[0])))
	}
	if !pause(r.Context(), s.options.First) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(out.status)
	chunks := out.chunks
	if answer.req.breakOff {
		chunks = half(chunks)
	}
	searching := searchIn(chunks, answer.Query)
	for i, chunk := range chunks {
		if i > 0 && !pause(r.Context(), s.options.Delay) || to.write(chunk) != nil {
			return
		}
		if i == searching && !pause(r.Context(), s.options.Search) {
			return
		}
	}
	if answer.req.breakOff {
		panic(http.ErrAbortHandler) // closes the connection without logging
	}
}

// searchIn returns the index of the first chunk that contains the query, or -1 if none does before the text begins.
func searchIn(chunks [][]byte, query string) int {
	at := slices.IndexFunc(chunks, func(c []byte) bool { return query != "" && bytes.Contains(c, []byte(query)) })
	if at >= len(chunks)/2 { // some providers send it at the end
		return -1
	}
	return at
}

// pacer writes and flushes pieces of a fixed size.
type pacer struct {
	w     io.Writer
	flush func() error
	size  int // size of a piece; 0 means each write as a whole
}

// pack starts compression. The function it returns ends the compressed data.
func (p *pacer) pack() func() {
	packed, flush := gzip.NewWriter(p.w), p.flush
	p.w = packed
	p.flush = func() error { return errors.Join(packed.Flush(), flush()) }
	return func() { _ = packed.Close() } // the client may have left
}

func (p *pacer) write(chunk []byte) error {
	for len(chunk) > 0 {
		n := len(chunk)
		if p.size > 0 {
			n = min(p.size, n)
		}
		if _, err := p.w.Write(chunk[:n]); err != nil {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		chunk = chunk[n:]
	}
	return nil
}

// half returns the first half of the data.
func half(chunks [][]byte) [][]byte {
	if len(chunks) == 1 {
		return [][]byte{chunks[0][:len(chunks[0])/2]}
	}
	return chunks[:len(chunks)/2]
}

// pause waits for d, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
