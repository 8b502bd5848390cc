package httpx

import (
	"bytes"
	"context"
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

// Reply is the response to a request. It records whether it has begun.
type Reply struct {
	http.ResponseWriter

	status int  // 0 before the response has begun
	head   bool // the request is a HEAD: bodies are omitted
	// work is the context of a bounded handler; late means that it had ended before the response began.
	work context.Context //nolint:containedctx // of the request
	late bool
}

// WriteHeader begins the response.
func (w *Reply) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// begin notes the status. A bounded handler whose context has ended ends here: what it would send may be incomplete.
func (w *Reply) begin(status int) {
	if w.status != 0 {
		return
	}
	if w.work != nil && w.work.Err() != nil {
		w.late = true
		panic(w) // up to the handler's bound
	}
	w.status = status
}

func (w *Reply) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *Reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// HasBegun reports whether the response has begun.
func (w *Reply) HasBegun() bool { return w.status != 0 }

// Body sends a complete body.
func (w *Reply) Body(status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if !w.head {
		_, _ = w.Write(body) // the client may have left
	}
}

// JSON sends v as one line of JSON, without HTML escapes.
func (w *Reply) JSON(status int, v any) error {
	body, err := Encode(v)
	if err == nil {
		w.Body(status, "application/json", body)
	}
	return err
}

// Tagged sends a body with its ETag, or a 304 if the client already has it.
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

// Encode returns v as a line of JSON, without HTML escapes.
func Encode(v any) ([]byte, error) {
	raw, err := wire.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	return append(raw, '\n'), nil
}

// OrNull returns a pointer to v, or nil if v is zero, which means unknown: JSON then has null.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// TimeOrNull returns a time in UTC for JSON, or nil if it is zero.
func TimeOrNull(t time.Time) *time.Time { return OrNull(t.UTC()) }

// OrEmpty returns s for JSON, as [] in place of null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Stream sends a response in pieces. A reader that does not accept a piece in time is disconnected.
type Stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
}

// NewStream returns a stream to w. Each piece must be accepted within the given time. Call End after use.
func NewStream(w http.ResponseWriter, within time.Duration) *Stream {
	return &Stream{w, http.NewResponseController(w), within}
}

// Events begins a stream of server-sent events. It sets the headers unless the response has begun.
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
	// Servers without deadlines have their own handling of slow readers.
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

// Comment sends a comment to an event stream, which keeps it alive, and any lines after it: fields such as retry.
func (s *Stream) Comment(text string) error {
	_, err := s.Write([]byte(": " + text + "\n\n"))
	return err
}

// Event sends an event. Empty fields are omitted.
func (s *Stream) Event(id, name string, data []byte) error {
	_, err := s.Write(AppendEvent(nil, id, name, data))
	return err
}

// End makes the connection available for other requests.
func (s *Stream) End() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// AppendEvent appends a server-sent event to b. data is one line, as written by [Encode] and [json.Compact]. Empty
// fields are omitted.
func AppendEvent(b []byte, id, name string, data []byte) []byte {
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), bytes.TrimSuffix(data, []byte("\n"))...), "\n\n"...)
}
