package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
)

// liveRun tells a reader of a run that something was added to it: one event, changed, which ends the stream. The page then offers to be
// loaded again.
func (p *Page) liveRun(w http.ResponseWriter, r *request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if p.o.Bus == nil {
		return p.nowhere(w, r)
	}
	if !p.talks.watch(r.who.Tenant) {
		return &gateway.Problem{
			Status: http.StatusTooManyRequests, Code: gateway.CodeTooMany, Detail: fmt.Sprintf("%d answers and runs are being watched already.", maxLive),
			Hint: "Reload the page to see what was added.", Header: http.Header{"Retry-After": {"5"}},
		}
	}
	defer p.talks.unwatch(r.who.Tenant)
	listener, err := p.o.Bus.Listen(r.Context(), r.who.Tenant, id)
	if err != nil {
		return gateway.Unavailable("The run cannot be watched now.")
	}
	defer listener.Close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	_ = p.tellRun(ctx, r.who, listener, func(text string) error { return writeLive(w, rc, text) })
	return nil // whoever left does not hear of an error
}

// tellRun writes what a listener hears of a run until something was added to it, the reader has left or the server ends.
func (p *Page) tellRun(ctx context.Context, who gateway.Identity, l *bus.Listener, write func(string) error) error {
	if err := write(": watching\nretry: 5000\n\n"); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, open := <-l.C:
			switch {
			case !open: // it fell behind, and connects again
				return nil
			case m.Event != nil:
				return write("event: changed\ndata: {}\n\n")
			case !m.Wake:
				continue
			case !p.o.Guard.Still(ctx, who):
				return nil
			}
			if err := write(": heartbeat\n\n"); err != nil {
				return err
			}
		}
	}
}

// writeLive sends text at once.
func writeLive(w http.ResponseWriter, rc *http.ResponseController, text string) error {
	// A server that cannot set deadlines has its own ways with slow readers.
	if err := rc.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return rc.Flush()
}
