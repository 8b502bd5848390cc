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

// fail answers with the provider's error body.
func (s *server) fail(w http.ResponseWriter, r *http.Request, f *format, status int) {
	failed := &reply{Answer: &Answer{}, ID: newID(), Status: status, asked: &request{}, seq: new(int)}
	body, err := f.document("error", failed)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Should-Retry", "false") // a client that waits and tries again would get the same
	s.send(w, r, failed, &response{status, "application/json", [][]byte{body}})
}

// write answers with a reply.
func (s *server) write(w http.ResponseWriter, r *http.Request, f *format, answer *reply) {
	if !answer.asked.stream {
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
	if answer.asked.array {
		kind = "application/json; charset=UTF-8"
	}
	w.Header().Set("Cache-Control", "no-cache")
	s.send(w, r, answer, &response{http.StatusOK, kind, chunks})
}

// stream returns the bytes of the events of a reply.
func (s *server) stream(f *format, answer *reply) ([][]byte, error) {
	events, err := f.events("stream", answer)
	if err != nil {
		return nil, err
	}
	if answer.asked.errorInside {
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
		case answer.asked.array && i == 0:
			before, after = "[", ""
		case answer.asked.array:
			before, after = "\n,\r\n", ""
		case e.name != "":
			before = "event: " + e.name + end + before
		}
		chunks = append(chunks, slices.Concat([]byte(before), e.data, []byte(after)))
	}
	if answer.asked.array {
		chunks = append(chunks, []byte("\n]\n"))
	}
	return chunks, nil
}

// response is what goes over the wire.
type response struct {
	status int
	kind   string // the media type
	chunks [][]byte
}

// send writes a response in its pieces, at the pace of the options.
func (s *server) send(w http.ResponseWriter, r *http.Request, answer *reply, out *response) {
	h := w.Header()
	h.Set("Content-Type", out.kind)
	h.Set("X-Request-Id", "req_"+answer.ID)
	h.Set("Request-Id", "req_"+answer.ID) // what Anthropic's SDKs look for
	to := &pacer{w: w, flush: http.NewResponseController(w).Flush, size: s.options.Split}
	switch {
	case s.options.Gzip:
		h.Set("Content-Encoding", "gzip")
		defer to.pack()()
	case len(out.chunks) == 1 && s.options.Split == 0 && !answer.asked.breakOff:
		h.Set("Content-Length", strconv.Itoa(len(out.chunks[0])))
	}
	if !pause(r.Context(), s.options.First) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(out.status)
	chunks := out.chunks
	if answer.asked.breakOff {
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
	if answer.asked.breakOff {
		panic(http.ErrAbortHandler) // cuts the connection without a word to the log
	}
}

// searchIn returns which of the chunks says first what is searched for; -1: none does before the text has begun.
func searchIn(chunks [][]byte, query string) int {
	at := slices.IndexFunc(chunks, func(c []byte) bool { return query != "" && bytes.Contains(c, []byte(query)) })
	if at >= len(chunks)/2 { // some providers say it at the end
		return -1
	}
	return at
}

// pacer writes in pieces that arrive as they are.
type pacer struct {
	w     io.Writer
	flush func() error
	size  int // of a piece; 0: whatever is written
}

// pack compresses from now on. The function it returns ends the compressed data.
func (p *pacer) pack() func() {
	packed, flush := gzip.NewWriter(p.w), p.flush
	p.w = packed
	p.flush = func() error { return errors.Join(packed.Flush(), flush()) }
	return func() { _ = packed.Close() } // who left does not read it
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

// half returns the first half of what would be written.
func half(chunks [][]byte) [][]byte {
	if len(chunks) == 1 {
		return [][]byte{chunks[0][:len(chunks[0])/2]}
	}
	return chunks[:len(chunks)/2]
}

// pause waits, and reports whether the client still does.
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
