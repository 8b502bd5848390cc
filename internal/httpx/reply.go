package httpx

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/wire"
)

// Reply is the response to a request. It remembers whether it has begun.
type Reply struct {
	http.ResponseWriter

	status int  // 0: it has not begun
	head   bool // the request is a HEAD: bodies are left out
}

// WriteHeader begins the response.
func (w *Reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *Reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// HasBegun reports whether the response has begun.
func (w *Reply) HasBegun() bool { return w.status != 0 }

// Body answers with a whole body.
func (w *Reply) Body(status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if !w.head {
		_, _ = w.Write(body) // who left does not read it
	}
}

// JSON answers with v as JSON: one line, without escapes that only HTML needs.
func (w *Reply) JSON(status int, v any) error {
	body, err := Encode(v)
	if err == nil {
		w.Body(status, "application/json", body)
	}
	return err
}

// Tagged answers with a body and its ETag; a client that has the same already gets a 304.
func (w *Reply) Tagged(r *Request, mediaType string, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	for given := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Body(http.StatusOK, mediaType, body)
}

// Encode returns v as a line of JSON, without escapes that only HTML needs.
func Encode(v any) ([]byte, error) {
	raw, err := wire.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	return append(raw, '\n'), nil
}

// OrNull returns what JSON shows of v: null where it is zero, which means unknown.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// TimeOrNull returns a time as JSON shows it: in UTC, and null where it is zero.
func TimeOrNull(t time.Time) *time.Time { return OrNull(t.UTC()) }

// OrEmpty returns s as JSON shows lists: [] and not null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Stream sends a response piece by piece. A reader who does not accept a piece in time loses it all.
type Stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
}

// NewStream returns a stream to w, whose pieces are to be accepted within a time each. End it after use.
func NewStream(w http.ResponseWriter, within time.Duration) *Stream {
	return &Stream{w, http.NewResponseController(w), within}
}

// Events begins a stream of server-sent events. Its headers are set, unless the response has begun.
func (w *Reply) Events(within time.Duration) *Stream {
	if !w.HasBegun() {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
		w.WriteHeader(http.StatusOK)
	}
	return NewStream(w, within)
}

// Write sends p at once.
func (s *Stream) Write(p []byte) (int, error) {
	// A server that cannot set deadlines has its own ways with slow readers.
	err := s.rc.SetWriteDeadline(time.Now().Add(s.within))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		err = s.rc.Flush()
	}
	return n, err
}

// Comment sends a comment of an event stream, which keeps it alive, and what follows it: fields such as retry.
func (s *Stream) Comment(words string) error {
	_, err := s.Write([]byte(": " + words + "\n\n"))
	return err
}

// Event sends an event. Empty fields are left out.
func (s *Stream) Event(id, name string, data []byte) error {
	_, err := s.Write(AppendEvent(nil, id, name, data))
	return err
}

// End lets the connection serve other requests.
func (s *Stream) End() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// AppendEvent appends a server-sent event to b. Data is one line, as [Encode] and [json.Compact] write it; empty fields
// are left out.
func AppendEvent(b []byte, id, name string, data []byte) []byte {
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), bytes.TrimSuffix(data, []byte("\n"))...), "\n\n"...)
}
