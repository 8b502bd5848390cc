package api

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// The bus wakes a listener every 15 seconds, to send a heartbeat and check that the reader still has access.
func TestStreamHeartbeat(t *testing.T) {
	w := httptest.NewRecorder()
	valid := true
	s := &stream{Stream: httpx.NewStream(w, time.Second), valid: func() bool { return valid }}
	testenv.OK(t, s.send(bus.Message{Wake: true}))
	testenv.OK(t, s.send(bus.Message{Event: &store.Event{Seq: 7, Kind: "answer", Data: json.RawMessage("{\n}")}}))
	if err := s.send(bus.Message{Live: &bus.Live{Kind: "text", Data: json.RawMessage("no JSON")}}); err != nil {
		t.Errorf("one bad delta ends the stream: %v", err)
	}
	if got, want := w.Body.String(), ": heartbeat\n\nid: 7\nevent: answer\ndata: {}\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !w.Flushed || s.last != 7 {
		t.Errorf("flushed %v, last %d", w.Flushed, s.last)
	}
	valid = false
	if err := s.send(bus.Message{Wake: true}); !errors.Is(err, errEnd) {
		t.Errorf("after the token was revoked: %v", err)
	}
}
