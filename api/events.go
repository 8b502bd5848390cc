package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxStreams limits the open event streams of a tenant on one node.
	maxStreams = 256
	// writeTime bounds how long a reader may take to accept one event.
	writeTime = 10 * time.Second
	// reconnect is the delay before a browser reopens a stream.
	reconnect = 2 * time.Second
)

// errEnd ends a stream from the server's side.
var errEnd = errors.New("the stream ends")

// events streams the events of a run, from the beginning or from where the reader left off, until the reader
// disconnects.
func (a *API) events(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	// Last-Event-ID, which a reconnecting browser sends, takes precedence over the URL, which names the start.
	after, _ := strconv.ParseInt(r.Params.Get("after"), 10, 64) // already validated
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil || after < 0 {
			return httpx.BadRequest(
				"Last-Event-ID: not the id of an event",
				"use a whole number, or leave it out to begin with the first event",
			)
		}
	}
	release, ok := a.listeners.Take(r.Who.Tenant)
	if !ok {
		return gateway.TooMany(reconnect, fmt.Sprintf("%d event streams are open already", maxStreams),
			"close some; one stream has all events of its run")
	}
	defer release()
	listener, err := a.o.Bus.Listen(r.Context(), r.Who.Tenant, id)
	if err != nil {
		return gateway.Unavailable("live events are not available at the moment")
	}
	defer listener.Close()
	// Check the store first: once the stream has begun, no status can report that it is unavailable.
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	if _, err := a.store.Events(ctx, r.Who.Tenant, id, after, 1); err != nil {
		return httpx.StoreError("read the events of a run", err)
	}
	unit := unitText{unit: ibid.Unit(r.Params.Get("unit"))}
	s := &stream{w.Events(writeTime), unit, after, func() bool { return a.o.Guard.Still(r.Context(), r.Who) }}
	if r.Method == http.MethodHead {
		return nil
	}
	defer s.End()
	ctx, cancel = context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.closing, cancel)() // end with the server, which does not cancel the request
	if err := s.Comment("listening\nretry: " + strconv.FormatInt(reconnect.Milliseconds(), 10)); err != nil {
		return nil // the reader has left
	}
	err = listener.Follow(ctx, a.store, s.last, s.send)
	switch {
	case errors.Is(err, bus.ErrDropped):
		// the reader may be gone altogether
		_ = s.Event("", "dropped", fmt.Appendf(nil, `{"last_event_id":%d}`, s.last))
	case err != nil && ctx.Err() == nil && !errors.Is(err, errEnd):
		a.logger.LogAttrs(ctx, slog.LevelDebug, "an event stream ended", slog.Any("error", err))
	}
	return nil
}

// stream is an event stream to one reader, who may read as long as valid returns true.
type stream struct {
	*httpx.Stream

	unit  unitText
	last  int64 // the number of the last event that was sent
	valid func() bool
}

// send sends one message.
func (s *stream) send(m bus.Message) error {
	switch {
	case m.Event != nil:
		if err := s.Event(strconv.FormatInt(m.Event.Seq, 10), m.Event.Kind, oneLine(m.Event.Data)); err != nil {
			return err
		}
		s.last = m.Event.Seq
		if m.Event.Kind == store.EventAnswer {
			s.unit.ended(m.Event.Data)
		}
		return nil
	case m.Live != nil:
		live, ok := s.unit.convert(m.Live)
		if !ok {
			return nil // the reader gets it with the answer
		}
		// A delta as JSON: its position, and its data under its own name.
		data, err := httpx.Encode(map[string]any{
			"answer_id": live.AnswerID, "step": httpx.OrNull(live.Step), "at": live.At, live.Kind: live.Data,
		})
		if err != nil {
			return nil //nolint:nilerr // deltas are best effort; a bad one must not stop the others
		}
		return s.Event("", live.Kind, oneLine(data))
	}
	if !s.valid() {
		return errEnd
	}
	return s.Comment("heartbeat")
}

// oneLine returns JSON without line breaks, which would end an event's data.
func oneLine(data json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return []byte("null")
	}
	return b.Bytes()
}

// alerts lists what needs the operator's attention, most recent first.
func (a *API) alerts(ctx context.Context, r *httpx.Request) (*store.Page[store.Alert], error) {
	p := r.Params
	return a.store.Alerts(ctx, r.Who.Tenant, &store.AlertQuery{
		Kind: store.AlertKind(p.Get("kind")), Unseen: p.Get("seen") == "no",
		Cursor: p.Get("cursor"), Limit: p.Int("limit"),
	})
}

// alertOrder is the body that marks an alert as seen or unseen.
type alertOrder struct {
	Seen *bool `json:"seen" required:""`
}

// seeAlert marks an alert as seen or unseen.
func (a *API) seeAlert(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	var order alertOrder
	if err := httpx.ReadJSON(w, r.Request, &order); err != nil {
		return err
	}
	if order.Seen == nil {
		return httpx.BadRequest("seen: missing", `send {"seen": true} or {"seen": false}`)
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	alert, err := a.store.SeeAlert(ctx, r.Who.Tenant, id, *order.Seen)
	if err != nil {
		return httpx.StoreError("mark the alert", err)
	}
	return w.JSON(http.StatusOK, alert)
}
