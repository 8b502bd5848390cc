package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
)

const (
	// maxStreams is how many event streams a tenant can have open on one node.
	maxStreams = 256
	// writeFor is how long a reader may take to accept one event.
	writeFor = 10 * time.Second
	// reconnect is after how long a browser opens a stream again that ended.
	reconnect = 2 * time.Second
)

// errEnd ends a stream that the server ends.
var errEnd = errors.New("the stream ends")

// events tells what happens to a run, from its beginning or from where the reader was, until the reader leaves.
func (a *API) events(w http.ResponseWriter, r *request) error {
	id, err := r.pathID()
	if err != nil {
		return err
	}
	after, err := r.resume()
	if err != nil {
		return err
	}
	if !a.listeners.add(r.who.Tenant) {
		return &gateway.Problem{
			Status: http.StatusTooManyRequests,
			Code:   gateway.CodeTooMany,
			Detail: fmt.Sprintf("%d event streams are open already", maxStreams),
			Hint:   "close some; one stream tells everything about its run",
			Header: http.Header{"Retry-After": {"2"}},
		}
	}
	defer a.listeners.remove(r.who.Tenant)
	listener, err := a.bus.Listen(r.Context(), r.who.Tenant, id)
	if err != nil {
		return gateway.Unavailable("live events cannot be had now")
	}
	defer listener.Close()
	// Once the stream has begun there is no status any more to say that the store is away.
	ctx, cancel := within(r)
	defer cancel()
	if _, err := a.store.Events(ctx, r.who.Tenant, id, after, 1); err != nil {
		return storeError("read the events of a run", err)
	}
	s := a.newStream(w, r, after)
	if r.Method == http.MethodHead {
		return nil
	}
	s.follow(r.Context(), a, listener)
	return nil
}

// resume returns the number of the last event that the reader has. What a browser sends when it connects again goes
// before the URL, which says where it began.
func (r *request) resume() (int64, error) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return 0, badRequest(
				"Last-Event-ID: it is not the id of an event",
				"it is a whole number; leave it out to begin with the first event",
			)
		}
		return n, nil
	}
	return r.params.number("after", 0, 0, math.MaxInt64)
}

// stream is an event stream to one reader.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last int64 // the number of the last event that was sent
	// valid reports whether the reader may still read.
	valid func() bool
}

func (a *API) newStream(w http.ResponseWriter, r *request, after int64) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	w.WriteHeader(http.StatusOK)
	return &stream{
		w: w, rc: http.NewResponseController(w), last: after,
		valid: func() bool { return a.guard.Still(r.Context(), r.who) },
	}
}

// follow sends what happens, until the reader leaves or is too slow, the server shuts down, or the token is revoked.
func (s *stream) follow(ctx context.Context, a *API, listener *bus.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(
		a.closing, cancel,
	)() //nolint:contextcheck // it ends with the server, not with the request
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	if err := s.write(": listening\nretry: " + strconv.FormatInt(reconnect.Milliseconds(), 10) + "\n\n"); err != nil {
		return
	}
	err := listener.Follow(ctx, a.store, s.last, s.tell)
	switch {
	case errors.Is(err, bus.ErrDropped):
		// it may be gone altogether
		_ = s.write(fmt.Sprintf("event: dropped\ndata: {\"last_event_id\":%d}\n\n", s.last))
	case err != nil && ctx.Err() == nil && !errors.Is(err, errEnd):
		a.logger.LogAttrs(ctx, slog.LevelDebug, "an event stream ended", slog.Any("error", err))
	}
}

// tell sends one message.
func (s *stream) tell(m bus.Message) error {
	switch {
	case m.Event != nil:
		if err := s.write(
			fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", m.Event.Seq, m.Event.Kind, oneLine(m.Event.Data)),
		); err != nil {
			return err
		}
		s.last = m.Event.Seq
		return nil
	case m.Live != nil:
		data, err := showLive(m.Live)
		if err != nil {
			return nil //nolint:nilerr // deltas are not promised; what is wrong with one does not concern the others
		}
		return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", m.Live.Kind, oneLine(data)))
	}
	if !s.valid() {
		return errEnd
	}
	return s.write(": heartbeat\n\n")
}

// showLive returns a delta as JSON: its place, and under its own name what it brings.
func showLive(l *bus.Live) ([]byte, error) {
	return encode(map[string]any{"answer_id": l.AnswerID, "step": orNull(l.Step), "at": l.At, l.Kind: l.Data})
}

// oneLine returns JSON without line breaks, which would end an event.
func oneLine(data json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return []byte("null")
	}
	return b.Bytes()
}

// write sends text at once.
func (s *stream) write(text string) error {
	// A server that cannot set deadlines has its own ways with slow readers.
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeFor)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

// listeners counts the event streams of each tenant.
type listeners struct {
	mu   sync.Mutex
	open map[string]int
	sum  int
}

// add counts one more, unless the tenant has as many as it may.
func (l *listeners) add(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[tenant] >= maxStreams {
		return false
	}
	if l.open == nil {
		l.open = map[string]int{}
	}
	l.open[tenant]++
	l.sum++
	return true
}

func (l *listeners) remove(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum--
	if l.open[tenant]--; l.open[tenant] == 0 {
		delete(l.open, tenant)
	}
}

func (l *listeners) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}
