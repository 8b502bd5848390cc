package page

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// eventStream sends server-sent events to one reader.
type eventStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// stream begins a stream of events and calls tell, whose context ends when the reader leaves or the server ends. That a
// reader has left is nobody's error.
func (p *Page) stream(w http.ResponseWriter, r *request, tell func(context.Context, *eventStream) error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	s := &eventStream{w, http.NewResponseController(w)}
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	_ = tell(ctx, s)
}

// write sends text at once.
func (s *eventStream) write(text string) error {
	// A server that cannot set deadlines has its own ways with slow readers.
	if err := s.rc.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}
